"""Writes links into a Doc."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spacy.tokens import Doc, Span

from ..errors import Errors, SapbertError

if TYPE_CHECKING:
    from ..linking.link import Linked

NIL = "NIL"  # the same text as in spaCy's own entity linker
Attrs = tuple[str, str, str]  # names of the attributes for CUI, candidates and note


def set_extensions(
    attrs: Attrs, kb_ents_attr: str | None = None, codes_attr: str | None = None
) -> None:
    """Register the attributes of spans that a linker sets.

    attrs (Attrs): Their names.
    kb_ents_attr (str | None): Name of the attribute for pairs of CUI and score.
    codes_attr (str | None): Name of the attribute for codes.
    RAISES (SapbertError): If two names are equal, or an attribute has a getter.
    """
    defaults: tuple[Any, ...] = (None, [], None, [], {})
    given = zip((*attrs, kb_ents_attr, codes_attr), defaults, strict=True)
    wanted = [(name, default) for name, default in given if name is not None]
    names = [name for name, _ in wanted]
    for attr, default in wanted:
        if names.count(attr) > 1:
            raise SapbertError(Errors.E552.format(attr=attr, reason="named twice"))
        if not Span.has_extension(attr):
            Span.set_extension(attr, default=default)
        elif any(Span.get_extension(attr)[1:]):
            reason = "computed by another component"
            raise SapbertError(Errors.E552.format(attr=attr, reason=reason))


def write_links(
    doc: Doc,
    spans: Sequence[Span],
    results: "Sequence[Linked]",
    *,
    attrs: Attrs,
    spans_key: str | None,
    kb_ents_attr: str | None = None,
    codes_attr: str | None = None,
) -> None:
    """Write the links of the spans of one Doc.

    doc (Doc): Changed in place.
    spans (Sequence[Span]): Its entities, or the spans of the group.
    results (Sequence[Linked]): The link of each span.
    attrs (Attrs): Names of the attributes.
    spans_key (str | None): Key of the span group; None = the entities.
    kb_ents_attr (str | None): Name of the attribute for pairs of CUI and score, which
        are set for mentions linked to their first candidate.
    codes_attr (str | None): Name of the attribute for the codes of the concept by
        vocabulary.
    """
    cui_attr, candidates_attr, note_attr = attrs
    for span, result in zip(spans, results, strict=True):
        span._.set(cui_attr, result.cui)
        span._.set(candidates_attr, result.candidates)
        span._.set(note_attr, result.note)
        if kb_ents_attr is not None:
            pairs = [(c["cui"], c["score"]) for c in result.accepted]
            span._.set(kb_ents_attr, pairs)
        if codes_attr is not None:
            span._.set(codes_attr, result.codes)
        if spans_key is None:
            # `ent.kb_id_ = …` would be lost: `doc.ents` creates new spans.
            for token in span:
                token.ent_kb_id_ = result.cui or NIL
    if spans_key is not None and spans:
        # Spans of equal offsets share `span._`, so the group keeps its own lists.
        group = doc.spans[spans_key]
        for number, (span, result) in enumerate(zip(spans, results, strict=True)):
            # A span of a group is a copy, so `span.kb_id_ = …` would be lost.
            kb_id = result.cui or NIL
            group[number] = Span(
                doc, span.start, span.end, span.label, kb_id=kb_id, span_id=span.id
            )
        group.attrs[cui_attr] = [result.cui for result in results]
        group.attrs[candidates_attr] = [result.candidates for result in results]
        group.attrs[note_attr] = [result.note for result in results]
        if codes_attr is not None:
            group.attrs[codes_attr] = [result.codes for result in results]
