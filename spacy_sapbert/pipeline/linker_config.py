"""The config of `sapbert_linker`: each setting with its default and its meaning."""

import json
import textwrap

from thinc.api import Config

from ..linking.options import DEFAULT_OPTIONS, OPTIONS, LinkOptions
from ..linking.settings_base import describe_values

SECTION = "components.sapbert_linker"
CONFIG_WIDTH = 88
VALUES = DEFAULT_OPTIONS.to_config()
SCHEMAS = LinkOptions.schemas()


def write_comment(name: str) -> str:
    """Return the comment of an option: what it does, and its range or values."""
    text, schema = f"{OPTIONS[name].description}", SCHEMAS[name]
    if not {"anyOf", "enum", "minimum"}.isdisjoint({*schema, *schema.get("items", ())}):
        text += f" ({describe_values(schema)})"
    lines = textwrap.wrap(text, CONFIG_WIDTH - 2, break_on_hyphens=False)
    return "".join(f"# {line}\n" for line in lines)


def write_options() -> str:
    """Return the lines of the options that are one value each, with comments."""
    return "".join(
        f"{write_comment(name)}{name} = {json.dumps(value)}\n"
        for name, value in VALUES.items()
        if not isinstance(value, dict)
    )


def write_sections() -> str:
    """Return the sections of the options that are several values, with comments."""
    return "\n".join(
        f"{write_comment(name)}[{SECTION}.{name}]\n"
        for name, value in VALUES.items()
        if isinstance(value, dict)
    )


DEFAULT_CONFIG = f"""
[components]

[{SECTION}]
factory = "sapbert_linker"
# folder of a knowledge base, or the name of an installed one; null = the one that was
# saved with the pipeline, else the only one installed
kb = null
# its digest, from `spacy sapbert kb info`: another version is an error; null = any
kb_digest = null
# look for a new version of the kb when so many seconds have passed; null = never
reload_seconds = null
{write_options()}\
# mentions linked at once, from as many documents as needed
batch_size = 256
# null = doc.ents, else doc.spans[spans_key]
spans_key = null
# the attributes: span._.cui, span._.candidates, span._.link_note
cui_attr = "cui"
candidates_attr = "candidates"
note_attr = "link_note"
# the codes by vocabulary: span._.codes; null = none
codes_attr = "codes"
# attribute with the long form of an abbreviation, which is linked in its place;
# null = never
long_form_attr = "long_form"

{write_sections()}
[{SECTION}.encoder]
@architectures = "spacy-sapbert.Encoder.v1"
# auto = ONNX Runtime on a CPU, where it is installed and the knowledge base has the
# encoder for it; torch; onnx
engine = "auto"
names_per_pass = 64
precision = "float32"

[{SECTION}.scorer]
@scorers = "spacy-sapbert.linker_scorer.v1"
"""
DEFAULTS = Config().from_str(DEFAULT_CONFIG)["components"]["sapbert_linker"]
LINKER_CONFIG = {name: value for name, value in DEFAULTS.items() if name != "factory"}
OF_FUNCTIONS = ("encoder", "scorer")  # registered, and not settings of their own
