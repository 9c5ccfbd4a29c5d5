"""Link tables of documents inside an engine for many machines.

What the rows are does not depend on the partitions of the engine.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import SapbertError, check_range
from ..formats.arrow import MENTION_SCHEMA, make_batch
from ..formats.documents import Document
from ..formats.entities import COLUMNS, mention_rows
from ..formats.gold import LONGEST
from ..formats.inputs.reading import MOST_RUN, measure_run, too_many_signs
from ..io.forks import ProcessLock
from ..io.tables.headers import list_columns
from ..kb.folder.versions import find_kb
from ..linking.options import DEFAULT_OPTIONS, change_options
from ..pipeline.running import ComponentError, link_batch, open_pipeline

if TYPE_CHECKING:
    from spacy.language import Language

    from ..pipeline.linker import SapbertLinker

MOST_TOGETHER = 10_000  # documents
CHARS_TOGETHER = 500_000  # of documents that are in memory as Docs at once
FAILED = ("id", "error")  # columns of a document that has no mentions because it failed
ROWS_PER_BATCH = 10_000  # of what is returned to an engine that streams
MOST_OPENED = 2  # pipelines in a process, which may work for several jobs
CACHED_STRINGS = 50_000  # of the first documents: one to four for a word
OPENING = ProcessLock()


class LinkBatches:
    """Links the documents of Arrow tables: a row for each mention.

    Holds names and settings only, so that it is small when it is pickled. The pipeline
    is opened in each process when it is needed first; several objects with the same
    settings share it, and one thread at a time uses it.

    Args:
        pipeline: Folder or package; None = a blank pipeline that detects the names of
            the knowledge base.
        text: Column of the text of a document.
        id: Column of its id.
        keep: Columns to repeat for each mention.
        candidates: Return the candidates; else their column is null.
        max_chars: Maximum number of characters of a document.
        batch_size: Maximum of documents in memory at once.
        lang: Language of the blank pipeline; None = "en".
        kb: Folder or name of a knowledge base, for a pipeline without a linker; None =
            the only one installed.
        kb_digest: The digest that it must have; None = any.
        mentions: "names" = detect the names of the knowledge base.
        engine: See `EncoderConfig`; None = as the linker.
        precision: The same.
        options: Options of linking, which replace those of the linker.

    Examples:
        >>> link = LinkBatches(kb="models/sample/kb")
        >>> notes = {"id": ["1"], "text": ["She had a heart attack."]}
        >>> link(pyarrow.table(notes))["cui"].to_pylist()
        ['C0027051']
    """

    def __init__(
        self,
        pipeline: str | Path | None = None,
        *,
        text: str = "text",
        id: str = "id",
        keep: Sequence[str] = (),
        candidates: bool = False,
        max_chars: int = LONGEST,
        batch_size: int = 64,
        lang: str | None = None,
        kb: str | Path | None = None,
        kb_digest: str | None = None,
        mentions: str | None = None,
        engine: str | None = None,
        precision: str | None = None,
        **options: Any,
    ) -> None:
        clean = change_options(DEFAULT_OPTIONS, options).to_config()
        taken = [n for n in keep if n in MENTION_SCHEMA.names or [*keep].count(n) > 1]
        if isinstance(keep, str):
            taken = [keep]
        if taken:
            raise SapbertError(
                "E331",
                "Expected `keep` to have columns once, which the rows have not of "
                f"their own, but got {taken[0]!r}. Correct it, or rename the column.",
            )
        check_range("max_chars", max_chars, 1, LONGEST)
        check_range("batch_size", batch_size, 1, MOST_TOGETHER)
        self.text, self.id, self.keep = text, id, tuple(keep)
        self.candidates = candidates
        self.max_chars = max_chars
        self.batch_size = batch_size
        settings = {
            "name": pipeline,
            "lang": lang,
            "kb": kb,
            "kb_digest": kb_digest,
            "mentions": mentions,
            "engine": engine,
            "precision": precision,
            "options": {name: clean[name] for name in options},
        }
        # as a text, so that a value that no worker could read is an error here
        self.settings = json.dumps(settings, default=os.fspath, sort_keys=True)

    def __call__(self, table: pa.Table | pa.RecordBatch) -> pa.Table:
        """Link the documents of a table.

        Args:
            table: A document a row; a text that is null is a document without mentions.

        Returns:
            The columns of `MENTION_SCHEMA`, then those to keep, with their types. A row
            for each mention, in the order of the documents, and for a document that
            failed one row with its `error`.
        """
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        texts = read_texts(table, self.text)
        ids = read_texts(table, self.id, numbers=True)
        kept = [find_column(table, name) for name in self.keep]
        # of the documents of the rows; a chunk is sorted by length
        numbers: list[int] = []
        batches: list[pa.RecordBatch] = []
        lengths = pc.fill_null(pc.utf8_length(texts), 0).to_numpy()
        if lengths.any():
            with OPENING:
                opened = open_once(self.settings)
            with opened.use():
                for chunk in plan_chunks(lengths, most=self.batch_size):
                    for linked, batch in self.link_chunk(opened, chunk, texts, ids):
                        numbers += linked
                        batches.append(batch)
        rows = pa.Table.from_batches(batches, MENTION_SCHEMA)
        order = np.argsort(numbers, kind="stable")
        rows = rows.take(pa.array(order, pa.int64()))
        documents = pa.array(np.array(numbers, np.int64)[order])
        for name, column in zip(self.keep, kept, strict=True):
            rows = rows.append_column(table.field(name), take_rows(column, documents))
        return rows

    def iterate(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the documents of each record batch; see `__call__`."""
        for batch in batches:
            yield from self(batch).combine_chunks().to_batches(ROWS_PER_BATCH)

    def link_chunk(
        self, opened: "OpenedPipeline", chunk: np.ndarray, texts: Any, ids: Any
    ) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Yield rows, and the numbers of their documents, which `chunk` has."""
        failed: dict[int, list[Any]] = {}
        documents: dict[int, Document] = {}
        for number in chunk.tolist():
            id: Any = decode_value(ids[number])
            try:
                documents[number] = Document(id, self.read_text(texts[number], id))
            except SapbertError as error:
                failed[number] = [id, str(error)]
        columns = [c for c in COLUMNS if self.candidates or c != "candidates"]
        numbers: list[int] = []
        rows: list[list[Any]] = []
        results = link_batch(opened.nlp, [*documents.values()])
        for (number, document), linked in zip(documents.items(), results, strict=True):
            if isinstance(linked, ComponentError):
                failed[number] = [document.id, str(linked)]
                continue
            rows += mention_rows([linked], columns)
            numbers += [number] * len(linked.entities)
        digest = opened.linker.kb.manifest.digest
        yield numbers, make_batch(rows, columns, kb_digest=digest)
        errors = [*failed.values()]
        yield [*failed], make_batch(errors, FAILED, kb_digest=digest)

    def read_text(self, value: pa.Scalar, id: str | None) -> str:
        """Return a text that is UTF-8, not too long, and does not take hours."""
        length = pc.utf8_length(value).as_py()
        is_long = length > self.max_chars
        text = None if is_long else decode_value(value)
        if text is None:
            got = f"it has {length:,} characters" if is_long else "it has other bytes"
            raise SapbertError(
                "E374",
                f"Expected a document of at most {self.max_chars:,} characters in "
                f"UTF-8, but {got}. Convert or split it, or pass a larger `max_chars`, "
                "up to 1,000,000.",
            )
        run = measure_run(text)
        if run > MOST_RUN:
            raise too_many_signs(limit=MOST_RUN, id=id, run=run)
        return text

    def spark_schema(self, documents: Any = None) -> Any:
        """Return the schema for `mapInArrow`; to keep columns it needs `documents`."""
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = from_arrow_schema(MENTION_SCHEMA)
        for name in self.keep:
            schema = schema.add(documents.schema[name])
        return schema


class OpenedPipeline:
    """A pipeline that links, in spaCy's memory zones once it has read many words.

    Without zones a worker keeps each new word until it ends. But in a zone the
    tokenizer caches no word, and takes 20 times as long for those that are not cached.
    """

    def __init__(self, nlp: "Language", linker: "SapbertLinker") -> None:
        self.nlp, self.linker = nlp, linker
        self.lock = ProcessLock()  # memory zones are not for several threads
        self.strings = len(nlp.vocab.strings)  # when opened

    @contextmanager
    def use(self) -> Iterator[None]:
        """Keep other threads out while Docs are made and read; then free new words."""
        with self.lock:
            cached = len(self.nlp.vocab.strings) - self.strings
            if cached < CACHED_STRINGS or not hasattr(self.nlp, "memory_zone"):
                yield
            else:
                with self.nlp.memory_zone():
                    yield


@lru_cache(maxsize=MOST_OPENED)
def open_once(settings: str) -> OpenedPipeline:
    """Open the pipeline of `LinkBatches.settings` and its knowledge base."""
    values: dict[str, Any] = json.loads(settings)
    if values["kb"] is not None:
        find_kb(values["kb"])  # an error here costs nothing; the imports take seconds
    nlp, linker = open_pipeline(**values)
    linker.kb  # noqa: B018 (an error shows before the first document)
    return OpenedPipeline(nlp, linker)


def plan_chunks(lengths: np.ndarray, *, most: int) -> Iterator[np.ndarray]:
    """Yield the numbers of up to `most` documents of similar length, none empty."""
    order = np.argsort(lengths, kind="stable")
    order = order[np.searchsorted(lengths[order], 1) :]
    start = 0
    while start < len(order):
        ends = np.cumsum(lengths[order[start : start + most]])
        fitting = int(np.searchsorted(ends, CHARS_TOGETHER, side="right"))
        end = start + max(1, fitting)
        yield order[start:end]
        start = end


def find_column(table: pa.Table, name: str) -> pa.ChunkedArray:
    if table.column_names.count(name) != 1:
        columns = list_columns(sorted(table.column_names))
        raise SapbertError(
            "E410",
            f"Expected one column {name!r} in the documents, but they have {columns}. "
            "Pass the names of their columns as `text`, `id` and `keep`.",
        )
    return table.column(name)


def read_texts(table: pa.Table, name: str, *, numbers: bool = False) -> pa.Array:
    """Return a column of texts; with `numbers` also one of whole numbers, as texts."""
    column = find_column(table, name)
    type = column.type
    if pa.types.is_dictionary(type):
        type = type.value_type
    texts = {pa.string(), pa.large_string(), pa.string_view(), pa.null()}
    if type not in texts and not (numbers and pa.types.is_integer(type)):
        expected = "texts or whole numbers" if numbers else "texts"
        raise SapbertError(
            "E410",
            f"Expected {expected} in the column {name!r}, but its type is "
            f"{column.type}. Convert the column, or pass another as `text` or `id`.",
        )
    # `string` has room for 2 GB, which a dictionary may unpack to
    return column.cast(type).cast(pa.large_string()).combine_chunks()


def take_rows(column: pa.ChunkedArray, rows: pa.Array) -> pa.ChunkedArray:
    try:
        return column.take(rows)
    except pa.ArrowNotImplementedError:  # e.g. of string_view
        is_binary = pa.types.is_binary_view(column.type)
        taken = column.cast(pa.large_binary() if is_binary else pa.large_string())
        return taken.take(rows).cast(column.type)


def decode_value(value: pa.Scalar) -> str | None:
    """Return a text of Arrow; None if it is null or not UTF-8."""
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return None
