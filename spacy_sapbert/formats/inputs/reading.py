"""Read documents to link from files of any format, one at a time."""

import re
import warnings
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import SapbertError
from ...io.reading import check_not_empty
from ...io.system import STREAM
from ..corpus import open_corpus
from ..documents import (
    Document,
    OnError,
    open_input,
    raise_error,
    read_text,
)
from ..format_table import list_formats, load_function
from ..gold import GoldMention
from ..jsonl import REJECTED, is_rejected, name_text, read_spans
from .files import JSON_LINES, TEXT, InputFile, list_standoff
from .rows import COLUMNS, Columns, find_field, make_document

if TYPE_CHECKING:
    from spacy.vocab import Vocab

WITHOUT_TEXT = "without text"  # documents whose text is null
ENTITIES = "entities"  # the field of a JSONL line
TABLES = ("csv", "excel", "parquet")  # formats that may have mentions in rows
RUN = re.compile(r"(?:(?!\s)[\W_]){50,}+")  # punctuation and symbols
SLOW_RUN, MOST_RUN = 2_000, 100_000  # characters
MOST_IDS = 1_000_000  # that are compared; their hashes take less than 100 MB


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


def measure_run(text: str) -> int:
    """Return the length of the longest run of punctuation; 0 for less than 50.

    spaCy's tokenizer takes the characters one by one off the ends of what is between
    two blanks, and copies the rest each time: 2,000 of them take half a second, 20,000
    take a minute, and 1,000,000 days.
    """
    return max((len(run) for run in RUN.findall(text)), default=0)


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
    concepts: bool
    keep_failed: bool
    table: Mapping[str, str]
    selected: Counter[str] = field(default_factory=Counter)
    empty: list[Path] = field(default_factory=list)

    def read_files(self, files: Iterable[InputFile]) -> Iterator[Document]:
        """Yield the documents of files; a damaged file is one error."""
        for file in files:
            try:
                yield from self.read_file(file)
            except SapbertError as error:
                self.on_error(error)
        if self.selected["overlapping"]:
            warnings.warn(
                "[W533] Expected entities that do not overlap, but of "
                f"{self.selected['mentions']} in the input "
                f"{self.selected['overlapping']} overlap a longer one and are left "
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
        is_standoff = format in list_standoff()
        if path != STREAM and not is_standoff and not path.stat().st_size:
            if format in ("spacy", "parquet", "biocxml", "biocjson"):
                check_not_empty(path, f"documents in the format {format}")
            self.empty.append(path)
        options = self.table if format in TABLES else {}
        if format in list_formats("rows") and not options:
            yield from self.read_table(file)
        elif format == "spacy":
            from ..docbin import read_docbin

            yield from read_docbin(path, name, self.vocab)
        elif format == TEXT:
            try:
                text = read_text(path, longest=self.longest, encoding=self.encoding)
            except SapbertError as error:
                self.on_error(error)
                if self.keep_failed:
                    yield Document(name, "", mentions=[], error=str(error))
            else:
                yield Document(name, text, place=name)
        else:
            for gold in open_corpus(
                path, format, longest=self.longest, on_error=self.on_error, **options
            ):
                place = name if is_standoff else f"{name}: {gold.id}"
                id = name if is_standoff or gold.id == path.name else gold.id
                if gold.mentions and not gold.text:
                    self.on_error(without_text(place=place))
                elif not gold.error:
                    mentions = self.choose_mentions(gold.mentions)
                    yield Document(id, gold.text, mentions=mentions, place=place)
                elif self.keep_failed:
                    yield Document(id, "", mentions=[], error=gold.error)

    def choose_mentions(self, mentions: Sequence[GoldMention]) -> list[GoldMention]:
        """Return mentions as the linker can get them, without their concepts."""
        if not self.overlapping:
            mentions = select_spans(mentions, self.selected)
        if self.concepts:
            return [*mentions]
        return [mention._replace(parts=[]) for mention in mentions]

    def read_table(self, file: InputFile) -> Iterator[Document]:
        """Yield the documents of rows, with the mentions of JSONL."""
        path, _ = open_input(file.path)
        rows = load_function(file.format, "rows")
        for number, row in rows(
            file.path,
            self.columns,
            on_error=self.on_error,
            encoding=self.encoding,
            name=file.name,
        ):
            if file.format == JSON_LINES:
                if is_rejected(row):
                    self.counts[REJECTED] += 1
                    continue
                row = name_text(row, self.columns.text)
            try:
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
                if file.format == JSON_LINES:
                    found = read_spans(path, number, document.text, row)
                    if found is not None:
                        mentions = self.choose_mentions(found)
                        document = document._replace(mentions=mentions)
            except SapbertError as error:
                self.on_error(error)
                if self.keep_failed and error.document is not None:
                    yield Document(error.document, "", mentions=[], error=str(error))
            else:
                yield document

    def check_documents(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Leave out texts that take the tokenizer days, and warn of the same ids.

        Of more than `MOST_IDS` different ids, the later ones are not compared.
        """
        seen: set[int] = set()
        repeated, example, warned = 0, "", False
        for document in documents:
            # the Docs of a `.spacy` file have tokens
            run = measure_run(document.text) if document.doc is None else 0
            if run > MOST_RUN:
                error = too_many_signs(limit=MOST_RUN, id=document.id, run=run)
                self.on_error(error)
                if not self.keep_failed:
                    continue
                document = Document(document.id, "", mentions=[], error=str(error))
            elif run > SLOW_RUN and not warned:
                warned = True
                warnings.warn(
                    "[W531] Expected at most some hundred punctuation characters in a "
                    f"row, but document {document.id!r} has {run:,}, and others may "
                    "have as many. spaCy's tokenizer needs time with the square of "
                    "that. If it takes too long, remove them.",
                    stacklevel=2,
                )
            key = hash(str(document.id))
            if key in seen:
                repeated += 1
                example = example or document.place or str(document.id)
            elif len(seen) < MOST_IDS:
                seen.add(key)
            yield document
        if repeated:
            warnings.warn(
                "[W534] Expected a different id for each document, but some have the "
                f"id of an earlier one: {repeated:,}, first at {example}. The output "
                "has all documents.",
                stacklevel=2,
            )


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
    table: Mapping[str, str] | None = None,
) -> Iterator[Document]:
    """Read documents to link, one at a time.

    Args:
        vocab: For `.spacy` files: the vocabulary of the pipeline.
        columns: Of JSONL, CSV and Parquet.
        overlapping: Return mentions that overlap; else the longest of them, with a
            warning.
        concepts: Return the ids of the mentions too.
        on_error: Called with the error of an invalid document; a damaged file is one
            error.
        counts: Updated: `WITHOUT_TEXT`, `REJECTED`.
        keep_failed: Yield invalid documents of a known id too, with their `error`.
        table: `columns` and `delimiter` of tables of mentions, with the texts of the
            documents; see `mention_tables.read_table`. None = a row is a document.
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
        table=table or {},
    )
    return reader.check_documents(reader.read_files(files))


def without_text(*, place: str) -> SapbertError:
    return SapbertError(
        "E117",
        f"{place}: Expected a document with its text, but got mentions alone. Export "
        "the file with texts.",
    )


def too_many_signs(*, limit: int, id: object, run: int) -> SapbertError:
    return SapbertError(
        "E536",
        f"Expected documents with at most {limit:,} punctuation characters in a row, "
        f"but {id!r} has {run:,}: spaCy's tokenizer would need hours. Remove them, or "
        "pass the document as a `.spacy` file, which has tokens.",
    )
