"""The settings of the linker, and the factory that spaCy makes it with."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from spacy.language import Language
from thinc.api import Config, Model

from ..errors import Errors, SapbertError
from ..linking.options import DEFAULT_OPTIONS, change_options
from .linker import SapbertLinker

DEFAULT_CONFIG = """
[components]

[components.sapbert_linker]
factory = "sapbert_linker"
# folder of a knowledge base, or the name of an installed one; null = the only installed
kb = null
# concepts kept for a mention
k = 10
# cosine under which a mention has no concept; null = as calibrated for the kb
threshold = null
# true = such a mention has a broader concept, a parent of its candidates, if it can
broader = false
# "nil" = a mention has no concept where only the order of the ids would choose it
ambiguous = "link"
# what orders concepts with equal scores, the most important first: "label",
# "preferred", "source" and, by what else the document has, "coherence"
tie_evidence = ["label", "preferred", "source"]
# for the evidence "source": the vocabularies whose names count most, the best first
source_rank = []
# "filter" = entities find only the types of their label; "evidence" = they prefer them
label_types_use = "filter"
# null = the cosine alone; "weighted" or "rrf" = with the likeness of characters
fusion = null
ngram_weight = 0.1
# mentions looked up at once, of as many documents as it takes
batch_size = 256
# null = doc.ents, else doc.spans[spans_key]
spans_key = null
# the attributes: span._.cui, span._.candidates, span._.link_note
cui_attr = "cui"
candidates_attr = "candidates"
note_attr = "link_note"
# a list of (cui, score) as scispaCy has it, for example in "kb_ents"; null = none
kb_ents_attr = null
# the long form of an abbreviation, looked up in its place where a component set it;
# null = it never is
long_form_attr = "long_form"

# what may be found, e.g. types = ["DISO"]; types, sources, languages, allow, deny
[components.sapbert_linker.filter]

# semantic types or groups of the labels, e.g. DISEASE = ["T047"]
[components.sapbert_linker.label_types]

[components.sapbert_linker.encoder]
@architectures = "spacy-sapbert.TransformerEncoder.v1"
names_per_pass = 64
precision = "float32"

[components.sapbert_linker.scorer]
@scorers = "spacy-sapbert.linker_scorer.v1"
"""
DEFAULTS = Config().from_str(DEFAULT_CONFIG)["components"]["sapbert_linker"]


@Language.factory(
    "sapbert_linker",
    assigns=["span._.cui", "span._.candidates", "token.ent_kb_id"],
    requires=["doc.ents"],
    default_config={key: val for key, val in DEFAULTS.items() if key != "factory"},
    default_score_weights={
        "nel_micro_f": 1.0,
        "nel_micro_r": None,
        "nel_micro_p": None,
    },
)
def make_sapbert_linker(
    nlp: Language,
    name: str,
    kb: str | Path | None,
    k: int,
    threshold: float | None,
    broader: bool,
    ambiguous: str,
    tie_evidence: list[str],
    source_rank: list[str],
    label_types_use: str,
    fusion: str | None,
    ngram_weight: float,
    batch_size: int,
    spans_key: str | None,
    cui_attr: str,
    candidates_attr: str,
    note_attr: str,
    kb_ents_attr: str | None,
    long_form_attr: str | None,
    filter: dict[str, list[str]],
    label_types: dict[str, list[str]],
    encoder: Model,
    scorer: Callable[..., dict[str, Any]] | None,
) -> SapbertLinker:
    """Make the component; see `DEFAULT_CONFIG` for its settings."""
    for label in label_types:
        # These would be lost, or read as something else, when the config is saved.
        if (
            set(":=\n\r") & {*label}
            or label != label.strip()
            or not label[:1].isalnum()
        ):
            raise SapbertError(Errors.E551.format(label=label))
    options = change_options(
        DEFAULT_OPTIONS,
        {
            "k": k,
            "threshold": threshold,
            "broader": broader,
            "filter": filter,
            "label_types": label_types,
            "label_types_use": label_types_use,
            "tie_evidence": tie_evidence,
            "source_rank": source_rank,
            "ambiguous": ambiguous,
            "fusion": fusion,
            "ngram_weight": ngram_weight,
        },
    )
    return SapbertLinker(
        name,
        kb=kb,
        options=options,
        batch_size=batch_size,
        spans_key=spans_key,
        attrs=(cui_attr, candidates_attr, note_attr),
        kb_ents_attr=kb_ents_attr,
        long_form_attr=long_form_attr,
        encoder=encoder,
        scorer=scorer,
    )
