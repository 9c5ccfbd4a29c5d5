"""Annotated files of any format → annotated documents to learn from."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from ..errors import SapbertError
from ..formats.docbin import read_docbin
from ..formats.gold import NO_ID
from ..formats.inputs.csv_rows import read_csv_rows
from ..formats.inputs.files import detect_format
from ..formats.inputs.rows import Columns
from ..io.formulas import undefuse
from ..kb.teaching.documents import AnnotatedDocument
from ..mapping.run import is_mapped
from ..pipeline.stop_names import AnnotatedText
from ..pipeline.teaching import annotate, annotate_docs
from .registry import FORMATS, change_prefixes, read_corpus

TABLES = (".tsv", ".tsv.gz")
DOCS, CSV, MAPPED = "spacy", "csv", "mapped"
ANNOTATED_FORMATS = (*FORMATS, DOCS, CSV)
GOLD = "gold"  # span group of Docs that `convert` wrote


def read_annotated(
    path: Path, format: str | None = None, *, prefix: str = "", drop_prefix: str = ""
) -> Iterator[AnnotatedDocument]:
    """Read annotated documents.

    Args:
        path: A file or a folder, as the format has it; files can be `.gz`.
        format: One of `ANNOTATED_FORMATS`: a corpus format (also a table of `map`),
            `.spacy`, or the CSV of `link` with corrected `cui`; None = by ending or
            content.
        prefix, drop_prefix: See `read_corpus`.

    Raises:
        SapbertError: If the format is not recognised; with file and line, at the first
            bad line.
    """
    format = format or detect_annotated(path)
    if format == DOCS:
        documents = read_docs(path)
    elif format == CSV:
        documents = read_links(path)
    else:
        documents = (
            annotate(
                path.name,
                gold.text,
                [(span.mention, span.parts) for span in gold.spans],
                id=str(gold.id),
            )
            for gold in read_corpus(path, format)
        )
    for document in documents:
        mentions = [
            mention._replace(
                parts=change_prefixes(
                    mention.parts, prefix=prefix, drop_prefix=drop_prefix
                )
            )
            for mention in document.mentions
        ]
        yield document._replace(mentions=mentions)


def detect_annotated(path: Path) -> str:
    """Return the format of annotated documents, by the ending or the content.

    Raises:
        SapbertError: If there is no such file, or its format is not recognised.
    """
    format = "tsv" if path.name.endswith(TABLES) else ""
    format = MAPPED if is_mapped(path) else format
    return format or ("brat" if path.is_dir() else detect_format(path))


def read_annotated_texts(
    path: Path, format: str | None = None
) -> Iterator[AnnotatedText]:
    """Read texts and the offsets of their mentions; see `read_annotated`.

    Documents without a text, such as those of tables, are left out.
    """
    format = format or detect_annotated(path)
    if format == DOCS:
        for document in read_docbin(path, path.name, None):
            doc = document.doc
            if doc is not None:
                spans = doc.spans.get(GOLD, doc.ents)
                places = [(span.start_char, span.end_char) for span in spans]
                yield AnnotatedText(doc.text, places)
        return
    for gold in read_corpus(path, format):
        if gold.text:
            yield AnnotatedText(gold.text, [(s.start, s.end) for s in gold.spans])


def read_docs(path: Path) -> Iterator[AnnotatedDocument]:
    """Read a `.spacy` file: the span group of `convert`, else the entities."""
    for document in read_docbin(path, path.name, None):
        doc = document.doc
        if doc is not None:
            key = GOLD if GOLD in doc.spans else None
            yield from annotate_docs([doc], source=path.name, spans_key=key)


def read_links(path: Path) -> Iterator[AnnotatedDocument]:
    """Read the CSV of `link`: columns `id`, `text` and `cui`; an empty `cui` is none.

    Rows of one document stand together.
    """

    def fail(error: SapbertError) -> None:
        raise error

    columns = Columns(text="text", id="id", keep=("cui",))
    rows = read_csv_rows(path, columns, on_error=fail)
    for id, of_document in groupby(
        (row for _, row in rows), key=lambda row: row.get("id")
    ):
        mentions = [
            (undefuse(row["text"]), [] if row["cui"] in NO_ID else [[row["cui"]]])
            for row in of_document
        ]
        yield annotate(path.name, "", mentions, id=str(id or ""))
