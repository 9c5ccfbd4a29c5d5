"""Read documents to link from files of any format, one at a time."""

import warnings
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import SapbertError
from ...io.reading import check_not_empty
from ..docbin import read_docbin
from ..documents import (
    STDIN,
    Document,
    OnError,
    open_input,
    raise_error,
    read_text,
)
from ..gold import GoldDocument, GoldMention
from ..registry import list_formats, load_function, load_reader
from .checks import check_ids, check_runs
from .files import BRAT, TEXT, InputFile
from .rows import COLUMNS, Columns, Row, find_field, make_document

if TYPE_CHECKING:
    from spacy.vocab import Vocab

WITHOUT_TEXT = "without text"  # documents whose text is null
ENTITIES = "entities"  # the field of a JSONL line


def select_spans(
    spans: Sequence[GoldMention], counts: Counter[str]
) -> list[GoldMention]:
    """Return the longest mentions that do not overlap, in order, and count the others.

    Mentions with equal offsets and types are one.
    """
    distinct = {(span.start, span.end, span.type): span for span in spans}
    kept: list[GoldMention] = []
    starts: list[int] = []
    for span in sorted(distinct.values(), key=lambda span: span.start - span.end):
        position = bisect_left(starts, span.end)
        # of those that start before its end, the last one has to end before its start
        if not position or kept[position - 1].end <= span.start:
            starts.insert(position, span.start)
            kept.insert(position, span)
    counts["mentions"] += len(distinct)
    counts["overlapping"] += len(distinct) - len(kept)
    return kept


@dataclass
class DocumentReader:
    """Reads files of all formats; see `read_documents`."""

    columns: Columns
    longest: int
    vocab: "Vocab | None"
    overlapping: bool
    on_error: OnError
    counts: Counter[str]
    encoding: str
    concepts: bool = False
    keep_failed: bool = False
    mentions: Counter[str] = field(default_factory=Counter)
    empty: list[Path] = field(default_factory=list)

    def read_files(self, files: Iterable[InputFile]) -> Iterator[Document]:
        """Yield the documents of files; a damaged file is one error."""
        for file in files:
            try:
                yield from self.read_file(file)
            except SapbertError as error:
                self.on_error(error)
        if self.mentions["overlapping"]:
            warnings.warn(
                "[W533] Expected entities that do not overlap, but of "
                f"{self.mentions['mentions']} in the input "
                f"{self.mentions['overlapping']} overlap a longer one and are left "
                "out. A `--pipeline` whose linker has a `spans_key` links all.",
                stacklevel=2,
            )
        if self.empty:
            warnings.warn(
                "[W537] Expected documents in each input file, but the file is "
                f"empty: {self.empty[0]}. Number of empty files: "
                f"{len(self.empty):,}.",
                stacklevel=2,
            )

    def read_file(self, file: InputFile) -> Iterator[Document]:
        path, name, format = file
        self.check_empty(file)
        if format in list_formats("rows"):
            yield from self.read_table(file)
        elif format == "spacy":
            yield from read_docbin(path, name, self.vocab)
        elif format == TEXT:
            text = read_text(path, longest=self.longest, encoding=self.encoding)
            yield Document(name, text, place=name)
        else:
            for gold in self.read_annotated(file):
                place = name if format == BRAT else f"{name}: {gold.id}"
                id = name if format == BRAT else gold.id
                mentions = self.choose_spans(gold.mentions)
                yield Document(id, gold.text, mentions=mentions, place=place)

    def check_empty(self, file: InputFile) -> None:
        """Note an empty file, and raise an error if its format does not allow it."""
        if file.path == STDIN or file.format == BRAT or file.path.stat().st_size:
            return
        if file.format in ("spacy", "parquet", "biocxml", "biocjson"):
            check_not_empty(file.path, f"documents in the format {file.format}")
        self.empty.append(file.path)

    def read_annotated(self, file: InputFile) -> Iterator[GoldDocument]:
        if file.format == BRAT:
            from ..brat import read_file

            yield read_file(file.path, file.name, longest=self.longest)
        else:
            reader = load_reader(file.format)
            yield from reader(file.path, longest=self.longest, on_error=self.on_error)

    def choose_spans(self, spans: Sequence[GoldMention]) -> list[GoldMention]:
        """Return mentions as the linker can get them, without their concepts."""
        chosen = spans if self.overlapping else select_spans(spans, self.mentions)
        if self.concepts:
            return [*chosen]
        return [span._replace(parts=[]) for span in chosen]

    def read_rows(self, file: InputFile) -> Iterator[Row]:
        rows = load_function(file.format, "rows")
        options = {"encoding": self.encoding, "name": file.name}
        return rows(file.path, self.columns, on_error=self.on_error, **options)

    def read_table(self, file: InputFile) -> Iterator[Document]:
        """Yield the documents of rows, with the mentions of JSONL."""
        path, _ = open_input(file.path)
        for number, row in self.read_rows(file):
            try:
                document = self.convert_row(file, path, number, row)
            except SapbertError as error:
                self.on_error(error)
                if self.keep_failed and error.document is not None:
                    yield Document(error.document, "", error=str(error))
            else:
                yield document

    def convert_row(
        self, file: InputFile, path: Path, number: int, row: Any
    ) -> Document:
        document = make_document(
            row,
            path,
            file.name,
            number,
            longest=self.longest,
            columns=self.columns,
        )
        # an empty cell is nothing that somebody wrote
        if find_field(row, self.columns.text)[1] in (None, ""):
            self.counts[WITHOUT_TEXT] += 1
        if file.format == "jsonl" and row.get(ENTITIES) is not None:
            from ..jsonl import read_entities

            spans = read_entities(path, number, document.text, row[ENTITIES])
            document = document._replace(mentions=self.choose_spans(spans))
        return document


def read_documents(
    files: Iterable[InputFile],
    *,
    longest: int,
    vocab: "Vocab | None" = None,
    columns: Columns = COLUMNS,
    overlapping: bool = False,
    concepts: bool = False,
    on_error: OnError = raise_error,
    counts: Counter[str] | None = None,
    encoding: str = "utf-8",
    keep_failed: bool = False,
) -> Iterator[Document]:
    """Read documents to link, one at a time.

    Args:
        vocab: For `.spacy` files: the vocabulary of the pipeline.
        columns: Of JSONL, CSV and Parquet.
        overlapping: Return mentions that overlap; else the longest of them, with a
            warning.
        on_error: Called with the error of an invalid document; a damaged file is one
            error.
        counts: Updated: `WITHOUT_TEXT`.
        keep_failed: Yield invalid documents of a known id too, with their `error`.
    """
    reader = DocumentReader(
        columns,
        longest=longest,
        vocab=vocab,
        overlapping=overlapping,
        on_error=on_error,
        counts=Counter() if counts is None else counts,
        encoding=encoding,
        concepts=concepts,
        keep_failed=keep_failed,
    )
    found = check_runs(reader.read_files(files), on_error, keep_failed=keep_failed)
    return check_ids(found)
