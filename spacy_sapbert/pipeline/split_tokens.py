"""Tokens that are split where a name starts or ends inside of them: "-fever", "1)X"."""

import warnings
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import Any

import numpy as np
from spacy.tokens import Doc, Span, SpanGroup, Token

Place = tuple[int, int]  # start and end in characters

MOST_STEPS = 20_000_000  # tokens times splits: spaCy moves all tokens, some seconds
COPIED = ("TAG", "POS", "DEP", "ENT_TYPE", "ENT_KB_ID", "ENT_ID")  # `MORPH` is a text


def list_boundaries(doc: Doc) -> tuple[set[int], set[int]]:
    """Return where the tokens of a Doc start and end, in characters."""
    places = doc.to_array(["IDX", "LENGTH"]).astype(np.int64)
    starts = places[:, 0]
    return {*starts.tolist()}, {*(starts + places[:, 1]).tolist()}


def split_tokens(doc: Doc, places: Sequence[Place], taken: Iterable[Place]) -> None:
    """Split the tokens of a Doc so that places in its text can be spans.

    Entities and span groups stay where they are. Not split is for a place inside of a
    longer one, for one that overlaps a taken one, for an address of the web, beyond
    `MOST_STEPS`, and if the Doc has vectors of a transformer for each token: of these
    two a warning has the number (W561).
    """
    starts, ends = list_boundaries(doc)
    inside = [
        (start, end)
        for start, end in select_outer(places, taken)
        if start not in starts or end not in ends
    ]
    cuts = find_cuts(doc, inside)
    if not cuts:
        return
    most, reason = MOST_STEPS // len(doc), "splitting more takes too long. Divide it"
    if doc.has_extension("trf_data") and doc._.get("trf_data") is not None:
        most = 0
        reason = (
            "it has vectors of a transformer for each token. Put `sapbert_mentions` "
            "before it"
        )
    if len(cuts) > most:
        warnings.warn(
            f"[W561] Expected names of whole tokens, but {len(cuts) - most:,} tokens "
            f"of a document have names inside that are not marked, since {reason}.",
            stacklevel=3,
        )
    cuts = dict(islice(cuts.items(), most))
    if not cuts:
        return
    entities = [*map(describe_span, doc.ents)]
    groups = {
        key: (group, [*map(describe_span, group)]) for key, group in doc.spans.items()
    }
    added = {
        doc[number].idx + offset: doc[number].sent_start
        for number, offsets in cuts.items()
        for offset in offsets
    }
    with doc.retokenize() as retokenizer:
        for number, offsets in cuts.items():
            split_token(retokenizer, doc[number], offsets)
    if not doc.has_annotation("DEP"):  # else the heads tell where sentences start
        for token in doc:
            if token.idx in added:
                token.is_sent_start = False if added[token.idx] else None
    if doc.tensor.size:
        doc.tensor = doc.tensor[: len(doc)]  # spaCy adds a row too many for each token
    doc.set_ents([make_span(doc, values) for values in entities], default="unmodified")
    for key, (group, spans) in groups.items():
        made = [make_span(doc, values) for values in spans]
        doc.spans[key] = SpanGroup(doc, name=group.name, attrs=group.attrs, spans=made)


def select_outer(places: Iterable[Place], taken: Iterable[Place]) -> Iterator[Place]:
    """Yield the places that overlap none that is taken and are inside of no other."""
    others = sorted(taken)
    starts = [start for start, _ in others]
    reached = [*accumulate((end for _, end in others), max)]
    last = -1  # where the places so far end
    for start, end in sorted(places, key=lambda place: (place[0], -place[1])):
        before = bisect_left(starts, end)
        if end > last and not (before and reached[before - 1] > start):
            last = end
            yield start, end


def find_cuts(doc: Doc, places: Iterable[Place]) -> dict[int, list[int]]:
    """Return the tokens that have a start or an end of places inside, and where."""
    cuts: dict[int, set[int]] = defaultdict(set)
    for place in places:
        span = doc.char_span(*place, alignment_mode="expand")
        assert span is not None  # a place has characters
        for token in (span[0], span[-1]):
            inside = {c - token.idx for c in place if 0 < c - token.idx < len(token)}
            if inside and not is_address(token):
                cuts[token.i] |= inside
    return {number: sorted(cuts[number]) for number in sorted(cuts)}


def is_address(token: Token) -> bool:
    text = token.text
    return token.like_email or "://" in text or text.startswith("www.")


def split_token(retokenizer: Any, token: Token, offsets: Sequence[int]) -> None:
    """Split a token at some places in it; its parts get what it had."""
    text, ends = token.text, [*offsets, len(token)]
    parts = [text[start:end] for start, end in zip([0, *offsets], ends, strict=True)]
    first = (token, 0) if token.head == token else token.head
    heads = [first, *[(token, 0)] * len(offsets)]
    attrs = {name: [getattr(token, name.lower())] * len(parts) for name in COPIED}
    attrs["MORPH"] = [str(token.morph)] * len(parts)
    if token.lemma:
        attrs["LEMMA"] = parts
    retokenizer.split(token, parts, heads=heads, attrs=attrs)


def describe_span(span: Span) -> tuple[int, int, int, int, int]:
    return span.start_char, span.end_char, span.label, span.kb_id, span.id


def make_span(doc: Doc, values: tuple[int, int, int, int, int]) -> Span:
    start, end, label, kb_id, span_id = values
    span = doc.char_span(start, end, label=label, kb_id=kb_id, span_id=span_id)
    assert span is not None  # splitting adds boundaries, and removes none
    return span
