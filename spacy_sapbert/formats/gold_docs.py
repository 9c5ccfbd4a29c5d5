"""Convert gold documents to Docs without losing a mention."""

import warnings
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.util import filter_spans

from .corpus import open_corpus
from .docbin import read_docbin
from .documents import OnError, raise_error
from .entities import NamedDoc
from .gold import (
    LABEL,
    UNSAID,
    GoldDocument,
    GoldMention,
    choose_kb_id,
    is_no_id,
)

GOLD = "gold"  # the span group of all mentions


class GoldAttributes(BaseModel):
    """The `attrs` of a group of `make_gold_docs`, one value for each mention."""

    model_config = ConfigDict(strict=True)

    start_char: list[int]
    end_char: list[int]
    ids: list[list[list[str]]]


def cover_mention(doc: Doc, gold: GoldMention, *, label: str) -> Span:
    """Return the fewest whole tokens that cover a mention.

    A single blank is not a token; it is covered by the token before it.
    """
    span = doc.char_span(gold.start, gold.end, alignment_mode="expand")
    assert span is not None  # it is inside the text
    first = min(span.start, span.end - 1)
    name = gold.type or label  # spaCy has no entities without a label
    return Span(doc, first, span.end, label=name, kb_id=choose_kb_id(gold))


def split_tokens(doc: Doc, spans: Sequence[GoldMention]) -> Doc:
    """Return a Doc in which mentions begin and end with tokens; it may be the same."""
    firsts = {span.start for span in spans}
    lasts = {span.end for span in spans}
    begins = {token.idx for token in doc}
    ends = {token.idx + len(token) for token in doc}
    if firsts <= begins and lasts <= ends:
        return doc
    words: list[str] = []
    spaces: list[bool] = []
    cuts = sorted(firsts | lasts)
    for token in doc:
        start, text = token.idx, token.text
        end = start + len(text)
        inside = cuts[bisect_right(cuts, start) : bisect_left(cuts, end)]
        bounds = [start, *inside, end]
        words += [text[a - start : b - start] for a, b in pairwise(bounds)]
        spaces += [False] * (len(bounds) - 1)
        if token.whitespace_ and (end in firsts or end + 1 in lasts):
            words.append(" ")  # a blank that is part of a mention is a token
            spaces.append(False)
        else:
            spaces[-1] = bool(token.whitespace_)
    return Doc(doc.vocab, words=words, spaces=spaces)


def set_mentions(doc: Doc, spans: Sequence[GoldMention], spans_key: str | None) -> Doc:
    """Return a Doc with mentions at exactly their offsets, without concepts."""
    doc = split_tokens(doc, spans)
    mentions: list[Span] = []
    for gold in spans:
        span = doc.char_span(gold.start, gold.end, label=gold.type or LABEL)
        assert span is not None  # its tokens were split
        mentions.append(span)
    if spans_key is None:
        doc.set_ents(mentions)
    else:
        doc.spans[spans_key] = SpanGroup(doc, name=spans_key, spans=mentions)
    return doc


def clear_concepts(doc: Doc, spans_key: str | None) -> None:
    """Remove the concepts of a span group; the linker sets those of all entities."""
    if spans_key is None or not any(s.kb_id for s in doc.spans.get(spans_key, ())):
        return
    plain = [
        Span(doc, span.start, span.end, label=span.label, span_id=span.id)
        for span in doc.spans[spans_key]
    ]
    doc.spans[spans_key] = SpanGroup(doc, name=spans_key, spans=plain)


def make_gold_doc(
    doc: Doc,
    document: GoldDocument,
    counts: Counter[str],
    *,
    spans_key: str,
    label: str,
) -> Doc:
    """Set the mentions of a document; see `make_gold_docs`."""
    mentions = [gold for gold in document.mentions if gold.start >= 0]
    group = SpanGroup(doc, name=spans_key)
    exact = []
    for gold in mentions:
        span = cover_mention(doc, gold, label=label)
        group.append(span)
        if (span.start_char, span.end_char) == (gold.start, gold.end):
            exact.append(span)
    group.attrs["start_char"] = [gold.start for gold in mentions]
    group.attrs["end_char"] = [gold.end for gold in mentions]
    group.attrs["ids"] = [gold.parts for gold in mentions]
    doc.spans[spans_key] = group
    entities = filter_spans(exact)
    doc.set_ents(entities)
    counts["mentions"] += len(mentions)
    counts["widened"] += len(mentions) - len(exact)
    counts["overlapping"] += len(exact) - len(entities)
    return doc


def make_gold_docs(
    documents: Iterable[GoldDocument],
    nlp: Language,
    *,
    path: Path,
    spans_key: str,
    label: str,
) -> Iterator[NamedDoc]:
    """Make Docs of annotated documents.

    `doc.spans[spans_key]` has all mentions with offsets in the order of the file, those
    that do not begin and end with tokens widened to whole ones; its `attrs` have their
    true `start_char` and `end_char`, and as `ids` all of their ids, for each part of a
    composite the alternatives. `doc.ents` has those that are on token boundaries, and
    of some that overlap the longest. If it lacks any, there is one warning with the
    counts. The `kb_id_` is the first id, `NIL` if there is none, and empty for a
    composite, of which no id alone is right, and if nobody has said which it is.
    """
    counts: Counter[str] = Counter()
    try:
        for document in documents:
            doc = make_gold_doc(
                nlp.tokenizer(document.text),
                document,
                counts,
                spans_key=spans_key,
                label=label,
            )
            yield document.id, doc
    finally:
        if counts["widened"] or counts["overlapping"]:
            warnings.warn(
                f"[W530] {path}: Expected mentions of whole tokens, one at a place, "
                f"but of {counts['mentions']} {counts['widened']} do not begin and end "
                f"with tokens and {counts['overlapping']} overlap a longer one. These "
                f"are not in `doc.ents`; `doc.spans[{spans_key!r}]` has all.",
                stacklevel=2,
            )


def split_mentions(document: GoldDocument) -> Iterator[GoldDocument]:
    """Yield a document, or if it has no text each mention as a text of its own.

    The id of such a text is that of the document and the line of the mention.
    """
    if document.text or not document.mentions:
        yield document
        return
    for gold in document.mentions:
        text = gold.mention.strip()
        mention = gold._replace(start=0, end=len(text))
        id = f"{document.id}:{gold.line}"
        yield document._replace(id=id, text=text, mentions=[mention])


def read_kb_id(id: str) -> list[list[str]]:
    return UNSAID if not id else [] if is_no_id(id) else [[id]]


def make_gold(
    doc: Doc, id: str | int = "", *, spans_key: str | None = None, every: bool = False
) -> GoldDocument:
    """Return a Doc as an annotated document.

    It has the entities, or the spans of a group, that have an id or `NIL`; with `every`
    others too. The group of `make_gold_docs` has exact offsets and all ids in `attrs`.
    """
    group = None if spans_key is None else doc.spans.get(spans_key)
    spans = [*(doc.ents if spans_key is None else group or ())]
    text, attrs = doc.text, {} if group is None else group.attrs
    try:
        known = GoldAttributes(**attrs)
        rows = [*zip(spans, known.start_char, known.end_char, known.ids, strict=True)]
    except (TypeError, ValueError):  # of another program
        rows = [
            (s, s.start_char, s.end_char, read_kb_id(s.kb_id_))
            for s in spans
            if s.kb_id_ or every
        ]
    mentions = [
        GoldMention(start, end, span.label_, text[start:end], parts, 0)
        for span, start, end, parts in rows
        if 0 <= start < end <= len(text)
    ]
    return GoldDocument(id, text, mentions)


def read_gold(path: Path, *, on_error: OnError = raise_error) -> Iterator[GoldDocument]:
    """Read a `.spacy` file: the span group of `read_docs`, else the entities."""
    for document in read_docbin(path, path.name, None):
        doc = document.doc
        assert doc is not None
        key = GOLD if GOLD in doc.spans else None
        yield make_gold(doc, document.id, spans_key=key, every=True)


def read_docs(
    path: str | Path,
    nlp: Language,
    *,
    format: str | None = None,
    spans_key: str = GOLD,
    label: str = LABEL,
    **options: Any,
) -> Iterator[NamedDoc]:
    """Read annotated documents as gold Docs.

    Args:
        path: A file or folder of any format that `read_corpus` reads; each mention of a
            table is a document.
        nlp: A pipeline, of which the tokenizer is used.
        format: A format that is read; None = by the ending of the path or the content.
        spans_key: The group of spans for all mentions; `doc.ents` has those that are
            aligned with tokens and do not overlap.
        label: Label of mentions without a type.
        options: Of the reader of the format, see `read_corpus`.

    Yields:
        The id of each document, and its Doc with the group of spans. An error has the
        place in the file of an invalid document.

    Examples:
        >>> path = "assets/sample/annotated.txt"
        >>> id, doc = next(read_docs(path, spacy.blank("en")))
        >>> id, len(doc.spans["gold"])
        ('visit-01', 7)
    """
    path = Path(path)
    gold = open_corpus(path, format, **options)
    documents = chain.from_iterable(map(split_mentions, gold))
    return make_gold_docs(documents, nlp, path=path, spans_key=spans_key, label=label)
