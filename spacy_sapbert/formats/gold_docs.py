"""Convert gold documents to Docs without losing a mention."""

import warnings
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from spacy.language import Language
from spacy.tokenizer import Tokenizer  # type: ignore[import-not-found]
from spacy.tokens import Doc, Span, SpanGroup
from spacy.util import filter_spans
from spacy.vocab import Vocab

from .entities import NamedDoc
from .gold import GoldDocument, GoldSpan, choose_kb_id
from .inputs.files import detect_format
from .registry import load_reader

LABEL = "ENTITY"  # of a mention without a type: spaCy has no entities without a label


def choose_tokenizer(nlp: Language | Vocab) -> Callable[[str], Doc]:
    """Return the tokenizer of a pipeline; of a vocabulary one that splits at blanks."""
    return nlp.tokenizer if isinstance(nlp, Language) else Tokenizer(nlp)


def cover_mention(doc: Doc, gold: GoldSpan, *, label: str) -> Span:
    """Return the fewest whole tokens that cover a mention.

    A single blank is not a token; it is covered by the token before it.
    """
    span = doc.char_span(gold.start, gold.end, alignment_mode="expand")
    assert span is not None  # it is inside the text
    first = min(span.start, span.end - 1)
    name = gold.type or label  # spaCy has no entities without a label
    return Span(doc, first, span.end, label=name, kb_id=choose_kb_id(gold))


def split_tokens(doc: Doc, spans: Sequence[GoldSpan]) -> Doc:
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


def set_mentions(doc: Doc, spans: Sequence[GoldSpan], spans_key: str | None) -> Doc:
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
    tokenizer: Callable[[str], Doc],
    document: GoldDocument,
    counts: Counter[str],
    *,
    spans_key: str,
    label: str,
) -> Doc:
    """Make a Doc of a text and its mentions; see `make_gold_docs`."""
    doc = tokenizer(document.text)
    group = SpanGroup(doc, name=spans_key)
    exact = []
    for gold in document.spans:
        span = cover_mention(doc, gold, label=label)
        group.append(span)
        if (span.start_char, span.end_char) == (gold.start, gold.end):
            exact.append(span)
    group.attrs["start_char"] = [gold.start for gold in document.spans]
    group.attrs["end_char"] = [gold.end for gold in document.spans]
    group.attrs["ids"] = [gold.parts for gold in document.spans]
    doc.spans[spans_key] = group
    entities = filter_spans(exact)
    doc.set_ents(entities)
    counts["mentions"] += len(document.spans)
    counts["widened"] += len(document.spans) - len(exact)
    counts["overlapping"] += len(exact) - len(entities)
    return doc


def make_gold_docs(
    documents: Iterable[GoldDocument],
    nlp: Language | Vocab,
    *,
    path: Path,
    spans_key: str,
    label: str,
) -> Iterator[NamedDoc]:
    """Make Docs of annotated documents.

    `doc.spans[spans_key]` has all mentions in the order of the file, those that do
    not begin and end with tokens widened to whole ones; its `attrs` have their true
    `start_char` and `end_char`, and as `ids` all of their ids, for each part of a
    composite the alternatives. `doc.ents` has those that are on token boundaries, and
    of some that overlap the longest. If it lacks any, there is one warning with the
    counts. The `kb_id_` is the first id, `NIL` if there is none, and empty for a
    composite, of which no id alone is right.
    """
    tokenizer = choose_tokenizer(nlp)
    counts: Counter[str] = Counter()
    try:
        for document in documents:
            doc = make_gold_doc(
                tokenizer, document, counts, spans_key=spans_key, label=label
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


def read_docs(
    path: str | Path,
    nlp: Language | Vocab,
    *,
    format: str | None = None,
    spans_key: str = "gold",
    label: str = "ENTITY",
) -> Iterator[NamedDoc]:
    """Read annotated documents as gold Docs.

    Args:
        path: A file or, of a format with `folder`, a folder.
        nlp: A pipeline with a tokenizer; a vocabulary: tokens are separated by blanks.
        format: A format that is read; None = by the ending of the path or the content;
            of a folder brat.
        spans_key: The group of spans for all mentions; `doc.ents` has those that are
            aligned with tokens and do not overlap.
        label: Label of mentions without a type.

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
    if format is None:
        format = "brat" if path.is_dir() else detect_format(path)
    documents = load_reader(format)(path)
    return make_gold_docs(documents, nlp, path=path, spans_key=spans_key, label=label)
