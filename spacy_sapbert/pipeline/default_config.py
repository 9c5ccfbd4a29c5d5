"""The default config of `sapbert_linker`, to paste into a config.cfg."""

import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from thinc.api import Config

from ..errors import SapbertError
from ..linking.options import DEFAULT_OPTIONS, OPTIONS, LinkOptions
from ..linking.settings import describe_values

# A saved config would lose another label, or read it as a different one.
LABEL = re.compile(r"[^\W_]([^:=\r\n]*[^\s:=])?")
SECTION = "components.sapbert_linker"
CONFIG_WIDTH = 88
VALUES = DEFAULT_OPTIONS.to_config()
SCHEMAS = LinkOptions.schemas()
F = TypeVar("F", bound=Callable[..., Any])


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
# folder of a knowledge base, or the name of an installed one; null = the only installed
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
# auto = OpenVINO on a CPU, where it is installed and the knowledge base has the encoder
# for it; torch; openvino
engine = "auto"
names_per_pass = 64
precision = "float32"

[{SECTION}.scorer]
@scorers = "spacy-sapbert.linker_scorer.v1"
"""
DEFAULTS = Config().from_str(DEFAULT_CONFIG)["components"]["sapbert_linker"]
LINKER_CONFIG = {name: value for name, value in DEFAULTS.items() if name != "factory"}


def with_options(function: F) -> F:
    """Declare the options of linking as arguments of a function with `**options`.

    spaCy checks a config by the signature of the factory.
    """
    signature = inspect.signature(function)
    *arguments, _ = signature.parameters.values()
    kind = inspect.Parameter.KEYWORD_ONLY
    # `LinkOptions` checks their values.
    options = [inspect.Parameter(name, kind, annotation=Any) for name in OPTIONS]
    function.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*arguments, *options]
    )
    return function


def check_labels(labels: Iterable[str]) -> None:
    """Raise an error if a config file cannot hold one of the labels."""
    for label in labels:
        if not LABEL.fullmatch(label):
            raise SapbertError(
                "E551",
                "Expected labels in `label_types` that a config file can hold, "
                "without `:` or `=` and with a letter or digit first, but got "
                f"{label!r}. Rename the label, or pass `label_types` with each call.",
            )
