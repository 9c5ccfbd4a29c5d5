"""Tables of mentions, `doc start end lang type mention ids`, without text."""

from collections.abc import Iterator
from pathlib import Path

from spacy_sapbert.evaluation.gold_mentions import read_header, split_row
from spacy_sapbert.formats.gold import parse_offsets, split_ids
from spacy_sapbert.system.reading import read_lines
from training.corpora.registry import GoldDocument, GoldSpan
from training.errors import Errors, SapbertError


def read_tsv(
    path: Path, *, bars_join_parts: bool = False, language: str | None = None
) -> Iterator[GoldDocument]:
    """Read the tables of `read_mentions`, with offsets and types if present.

    path (Path): A table with a header that has at least `mention` and `ids`, or lines
        `mention||id`; plain or `.gz`.
    bars_join_parts (bool): See `split_ids`.
    language (str | None): Only mentions that have it as `lang`; None = all.
    YIELDS (GoldDocument): Consecutive lines with the same `doc`.
    RAISES (SapbertError): With file and line, at the first bad line; if no mention has
        the language.
    """
    columns: list[str] | None = None
    document: GoldDocument | None = None
    started = False
    languages: set[str] = set()
    for number, line in read_lines(path):
        if not line.strip():
            continue
        if not started:
            started, columns = True, read_header(path, number, line)
            if columns:
                continue
        doc, mention, ids = split_row(path, number, line, columns)
        row: dict[str, str] = {}
        if columns:
            row = dict(zip(columns, line.split("\t"), strict=True))
        languages.add(row.get("lang", ""))
        if language is not None and row.get("lang") != language:
            continue
        start, end = parse_offsets(
            path, number, row.get("start", ""), row.get("end", "")
        )
        parts = split_ids(ids, bars_join_parts=bars_join_parts)
        span = GoldSpan(start, end, row.get("type", ""), mention, parts, number)
        if document is None or document.id != doc:
            if document is not None:
                yield document
            document = GoldDocument(doc, "", [])
        document.spans.append(span)
    if document is not None:
        yield document
    elif language is not None:
        known = ", ".join(sorted(languages - {""})) or "none"
        raise SapbertError(
            Errors.E724.format(path=path, language=language, known=known)
        )
