"""The default config of `sapbert_linker`, to paste into a config.cfg."""

import re
from collections.abc import Iterable

from thinc.api import Config

from ..errors import Errors, SapbertError

# A saved config would lose another label, or read it as a different one.
LABEL = re.compile(r"[^\W_]([^:=\r\n]*[^\s:=])?")
DEFAULT_CONFIG = """
[components]

[components.sapbert_linker]
factory = "sapbert_linker"
# folder of a knowledge base, or the name of an installed one; null = the only installed
kb = null
# its digest, from `spacy sapbert kb info`: another version is an error; null = any
kb_digest = null
# look for a new version of the kb when so many seconds have passed; null = never
reload_seconds = null
# concepts kept for a mention
k = 10
# cosine below which a mention has no concept; null = the threshold of the kb
threshold = null
# true = link such a mention to a broader concept, a parent of its candidates
broader = false
# "nil" = a mention has no concept if only the order of the ids breaks the tie
ambiguous = "link"
# evidence that breaks ties, the most important first: "label", "annotated" (mentions
# that were taught), "preferred", "source" and "coherence" (with the other concepts of
# the document)
tie_evidence = ["label", "annotated", "preferred", "source"]
# for the evidence "source": vocabularies, the best first
source_rank = []
# "filter" = only concepts with the types of the label; "evidence" = they break ties
label_types_use = "filter"
# vocabularies whose codes are set, e.g. ["SNOMEDCT_US", "ICD10CM"]; empty = all
codes = []
# null = cosine alone; "weighted" or "rrf" = fused with the similarity of characters
fusion = null
ngram_weight = 0.1
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
# a list of (cui, score) as scispaCy sets it, for example "kb_ents"; null = none
kb_ents_attr = null
# attribute with the long form of an abbreviation, which is linked in its place;
# null = never
long_form_attr = "long_form"

# limits the concepts, e.g. types = ["DISO"]; types, sources, languages, allow, deny;
# defined = true
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


def check_labels(labels: Iterable[str]) -> None:
    """Raise an error if a config file cannot hold one of the labels."""
    for label in labels:
        if not LABEL.fullmatch(label):
            raise SapbertError(Errors.E551.format(label=label))
