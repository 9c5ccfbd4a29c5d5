"""What all the formats say of an entity, read from a linked Doc."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from .gold import NIL

# An id of the document, and the document.
NamedDoc = tuple[Any, Doc]


class AttributeNames(NamedTuple):
    """The custom attributes in which a linker leaves what it found.

    cui (str): The concept.
    candidates (str): The concepts that were looked at, best first.
    note (str): Why there is no concept, or what was done to the mention.
    """

    cui: str = "cui"
    candidates: str = "candidates"
    note: str = "link_note"


ATTRIBUTE_NAMES = AttributeNames()


def plain_candidate(candidate: dict[str, Any]) -> dict[str, Any]:
    """Make a candidate fit for JSON, which has no NaN.

    candidate (dict[str, Any]): The candidate.
    RETURNS (dict[str, Any]): The same, with floats or None as score and probability.
    """
    plain = {**candidate}
    for key in ("score", "probability"):
        if (value := plain.get(key)) is not None:
            plain[key] = float(value) if math.isfinite(value) else None
    return plain


def read_attribute(
    doc: Doc, spans: Sequence[Span], key: str | None, name: str
) -> list[Any]:
    """Read a custom attribute of some spans.

    doc (Doc): The document.
    spans (Sequence[Span]): All spans of the group, or the entities.
    key (str | None): Of the span group; None = the entities.
    name (str): The attribute.
    RETURNS (list[Any]): A value for each; None if nobody registered it.
    """
    if key is not None and spans:
        # Spans of equal offsets share `span._`, so the linker keeps its lists there.
        values = doc.spans[key].attrs.get(name)
        if isinstance(values, (list, tuple)) and len(values) == len(spans):
            return list(values)
    if not Span.has_extension(name):
        return [None] * len(spans)
    return [span._.get(name) for span in spans]


def describe_entities(
    doc: Doc,
    *,
    spans_key: str | None = None,
    names: AttributeNames = ATTRIBUTE_NAMES,
) -> list[dict[str, Any]]:
    """Describe the linked entities of a document.

    doc (Doc): The document.
    spans_key (str | None): A span group; None = the entities.
    names (AttributeNames): The custom attributes of the linker.
    RETURNS (list[dict[str, Any]]): For each, sorted by place, `start` and `end` in
        characters, `text`, `label`, `cui` or None; of that concept `name`, `score` and
        `probability` or None, `types` and `codes`, empty if unknown; `candidates`, and
        `note` or None.
    """
    spans = list(doc.ents if spans_key is None else doc.spans.get(spans_key, ()))
    columns = (read_attribute(doc, spans, spans_key, name) for name in names)
    described = []
    for span, cui, found, note in zip(spans, *columns, strict=True):
        candidates = [plain_candidate(candidate) for candidate in found or ()]
        # Without the custom attributes, as in a Doc saved without user data, the id
        # still says the concept.
        cui = cui or (span.kb_id_ if span.kb_id_ != NIL else None) or None
        chosen = next((c for c in candidates if c.get("cui") == cui), {})
        described.append(
            {
                "start": span.start_char,
                "end": span.end_char,
                "text": span.text,
                "label": span.label_,
                "cui": cui,
                "name": chosen.get("name"),
                "score": chosen.get("score"),
                "probability": chosen.get("probability"),
                "types": chosen.get("types") or [],
                "codes": chosen.get("codes") or {},
                "candidates": candidates,
                "note": note,
            }
        )
    return sorted(described, key=lambda entity: (entity["start"], entity["end"]))
