"""Writes links into a Doc."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spacy.tokens import Doc, Span

from ..errors import SapbertError
from ..formats.entities import AttributeNames

if TYPE_CHECKING:
    from ..linking.link import Linked

NIL = "NIL"  # the same text as in spaCy's own entity linker
# What an attribute is where no linker has set it, in the order of `AttributeNames`.
DEFAULTS: tuple[Any, ...] = (None, [], None, {})


def set_extensions(attrs: AttributeNames) -> None:
    """Register the attributes of spans that a linker sets.

    Raises:
        SapbertError: If two names are equal, or an attribute has a getter.
    """
    given = zip(attrs, DEFAULTS, strict=True)
    wanted = [(name, default) for name, default in given if name is not None]
    names = [name for name, _ in wanted]
    for attr, default in wanted:
        if names.count(attr) > 1:
            raise wrong_attribute(attr=attr, reason="named twice")
        if not Span.has_extension(attr):
            Span.set_extension(attr, default=default)
        elif any(Span.get_extension(attr)[1:]):
            reason = "computed by another component"
            raise wrong_attribute(attr=attr, reason=reason)


def write_links(
    doc: Doc,
    spans: Sequence[Span],
    results: "Sequence[Linked]",
    *,
    attrs: AttributeNames,
    spans_key: str | None,
) -> None:
    """Write the links of the spans of one Doc.

    Args:
        doc: Changed in place.
        spans: Its entities, or the spans of the group.
        results: The link of each span.
        spans_key: Key of the span group; None = the entities.
    """
    for span, result in zip(spans, results, strict=True):
        span._.set(attrs.cui, result.cui)
        span._.set(attrs.candidates, result.candidates)
        span._.set(attrs.note, result.note)
        if attrs.codes is not None:
            span._.set(attrs.codes, result.codes)
        if spans_key is None:
            # `ent.kb_id_ = …` would be lost: `doc.ents` creates new spans.
            for token in span:
                token.ent_kb_id_ = result.cui or NIL
    if spans_key is not None and spans:
        # Spans of equal offsets share `span._`, so the group keeps its own lists.
        group = doc.spans[spans_key]
        links: dict[tuple[int, int], Linked] = {}
        for number, (span, result) in enumerate(zip(spans, results, strict=True)):
            if links.setdefault((span.start_char, span.end_char), result) != result:
                warnings.warn(
                    f"[W559] Expected spans of the group {spans_key!r} at "
                    "different places, but two at the same place have different "
                    "links, and share `span._`, which has the last one. Read "
                    "`span.kb_id_` and `group.attrs`, which have those of each "
                    "span.",
                    stacklevel=2,
                )
            # A span of a group is a copy, so `span.kb_id_ = …` would be lost.
            kb_id = result.cui or NIL
            group[number] = Span(
                doc, span.start, span.end, span.label, kb_id=kb_id, span_id=span.id
            )
        group.attrs[attrs.cui] = [result.cui for result in results]
        group.attrs[attrs.candidates] = [result.candidates for result in results]
        group.attrs[attrs.note] = [result.note for result in results]
        if attrs.codes is not None:
            group.attrs[attrs.codes] = [result.codes for result in results]


def wrong_attribute(*, attr: object, reason: object) -> SapbertError:
    return SapbertError(
        "E552",
        "Expected an attribute of spans for each of CUI, candidates, note and codes, "
        f"but `span._.{attr}` is {reason}. Choose another name with the settings "
        "`cui_attr`, `candidates_attr`, `note_attr` and `codes_attr`.",
    )
