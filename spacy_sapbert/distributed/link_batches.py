"""Link tables of documents inside an engine for many machines.

    engine        a partition: Arrow tables, one document a row
    LinkBatches   pickled: names and settings, no data
      open_once         the pipeline, opened once a process    distributed.opened
      plan_chunks       some documents, shortest first         here
      run_batch         Docs, or why there is none             pipeline.batches
      describe_entities → mention_rows → make_batch            formats.entities, .arrow
    engine        Arrow tables, one mention a row, in the order of the documents

The engine does the rest: partitions, retries, files. What the rows are does not depend
on the partitions.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import Errors, SapbertError, check_range
from ..formats.arrow import MENTION_SCHEMA, make_batch
from ..formats.documents import Document
from ..formats.entities import (
    COLUMNS,
    LinkedDoc,
    describe_entities,
    mention_rows,
)
from ..formats.gold import LONGEST
from ..formats.inputs.checks import MOST_RUN, measure_run
from ..io.tables import list_columns
from ..io.version import __version__
from ..linking.options import DEFAULT_OPTIONS, OPTIONS, change_options
from ..pipeline.batches import ComponentError, run_batch
from ..pipeline.running import complete_pipeline
from .columns import (
    decode_value,
    find_column,
    read_texts,
    take_rows,
    without_maps,
)
from .opened import OpenedPipeline, open_once

MOST_TOGETHER = 10_000  # documents
CHARS_TOGETHER = 500_000  # of documents that are in memory as Docs at once
FAILED = ("id", "error")  # columns of a document that has no mentions because it failed
ROWS_PER_BATCH = 10_000  # of what is returned to an engine that streams


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
        copy_to: Folder on the local disk of each machine, into which the knowledge base
            is copied once; see `copy_kb`.
        settings: `kb`, `kb_digest`, `mentions`, `engine` and `precision`, see
            `complete_pipeline`; and options of linking. With `copy_to`, `kb` may be a
            URL.

    Raises:
        SapbertError: If a setting is not possible; nothing is opened.

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
        copy_to: str | Path | None = None,
        **settings: Any,
    ) -> None:
        given = {n: settings.pop(n) for n in [*settings] if n in OPTIONS}
        clean = change_options(DEFAULT_OPTIONS, given).to_config()
        options = {name: clean[name] for name in given}
        arguments = complete_pipeline.__kwdefaults__ or {}
        known = {*arguments} - {"options", "detection"}
        for name in {*settings} - known:
            listed = list_columns(sorted(known | {*OPTIONS}))
            raise SapbertError(Errors.E373.format(known=listed, got=repr(name)))
        if isinstance(keep, str) or len({*keep}) < len(keep):
            raise SapbertError(Errors.E372.format(got=repr(keep)))
        if taken := [name for name in keep if name in MENTION_SCHEMA.names]:
            raise SapbertError(Errors.E372.format(got=repr(taken[0])))
        check_range("max_chars", max_chars, 1, LONGEST)
        check_range("batch_size", batch_size, 1, MOST_TOGETHER)
        self.text, self.id, self.keep = text, id, tuple(keep)
        self.candidates = candidates
        self.max_chars = max_chars
        self.batch_size = batch_size
        settings |= {"pipeline": pipeline, "lang": lang, "copy_to": copy_to}
        settings["options"] = options
        # as a text, so that a value that no worker could read is an error here
        self.settings = json.dumps(settings, default=os.fspath, sort_keys=True)

    def open(self) -> OpenedPipeline:
        """Return the pipeline of this process; see `open_once`."""
        return open_once(self.settings)

    def __call__(self, table: pa.Table | pa.RecordBatch) -> pa.Table:
        """Link the documents of a table.

        Args:
            table: A document a row; a text that is null is a document without mentions.

        Returns:
            The columns of `MENTION_SCHEMA`, then those to keep, with their types. A row
            for each mention, in the order of the documents, and for a document that
            failed one row with its `error`.

        Raises:
            SapbertError: If a column is missing or has another type, or the pipeline
                cannot be opened.
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
            opened = self.open()
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
        self, opened: OpenedPipeline, chunk: np.ndarray, texts: Any, ids: Any
    ) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Yield the rows of some documents, and the number of the document of each.

        `chunk` has their numbers in the columns `texts` and `ids`.
        """
        failed: dict[int, list[Any]] = {}
        documents: dict[int, Document] = {}
        for number in chunk.tolist():
            id: Any = decode_value(ids[number])
            try:
                documents[number] = Document(id, self.read_text(texts[number], id))
            except SapbertError as error:
                failed[number] = [id, str(error)]
        names, key = opened.linker.attrs, opened.linker.spans_key
        columns = [c for c in COLUMNS if self.candidates or c != "candidates"]
        numbers: list[int] = []
        rows: list[list[Any]] = []
        results = run_batch(opened.nlp, [*documents.values()], skip=[])
        for (number, document), doc in zip(documents.items(), results, strict=True):
            if isinstance(doc, ComponentError):
                failed[number] = [document.id, str(doc)]
                continue
            entities = describe_entities(doc, spans_key=key, names=names)
            rows += mention_rows([LinkedDoc(document.id, "", entities)], columns)
            numbers += [number] * len(entities)
        yield numbers, make_batch(rows, columns, kb_digest=opened.digest)
        errors = [*failed.values()]
        yield [*failed], make_batch(errors, FAILED, kb_digest=opened.digest)

    def read_text(self, value: pa.Scalar, id: str | None) -> str:
        """Return a text that is UTF-8, not too long, and does not take hours."""
        length = pc.utf8_length(value).as_py()
        if length > self.max_chars:
            raise SapbertError(Errors.E374.format(limit=self.max_chars, length=length))
        text = decode_value(value)
        if text is None:
            raise SapbertError(Errors.E375)
        run = measure_run(text)
        if run > MOST_RUN:
            raise SapbertError(Errors.E536.format(limit=MOST_RUN, id=id, run=run))
        return text

    def as_lists(self, table: pa.Table | pa.RecordBatch) -> pa.Table:
        """Link as `__call__` does, with maps as lists of `key` and `value`.

        The types of `datasets` have no maps.
        """
        rows = self(table)
        types = [without_maps(field.type) for field in rows.schema]
        return rows.cast(pa.schema([*zip(rows.schema.names, types, strict=True)]))

    def fingerprint(self, previous: str) -> str:
        """Return the fingerprint of the result, for the cache of `datasets`.

        It differs if the settings, the version of this package, the pipeline or the
        knowledge base do, or `previous`, the fingerprint of the documents.
        """
        opened = self.open()
        described = [
            previous,
            {**vars(self), "keep": list(self.keep)},
            __version__,
            opened.digest,
            opened.nlp.meta.get("version"),
            opened.nlp.config.to_str(),
        ]
        return sha256(json.dumps(described).encode()).hexdigest()[:32]

    def spark_schema(self, documents: Any = None) -> Any:
        """Return the schema of the rows for `DataFrame.mapInArrow`.

        If columns are kept, it needs the `DataFrame` of the documents.
        """
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = from_arrow_schema(MENTION_SCHEMA)
        for name in self.keep:
            schema = schema.add(documents.schema[name])
        return schema


def plan_chunks(lengths: np.ndarray, *, most: int) -> Iterator[np.ndarray]:
    """Yield the numbers of up to `most` documents of similar lengths.

    The shortest come first, and those without text are left out. Shape: (n,) → (up to
    most,).
    """
    order = np.argsort(lengths, kind="stable")
    order = order[np.searchsorted(lengths[order], 1) :]
    start = 0
    while start < len(order):
        ends = np.cumsum(lengths[order[start : start + most]])
        fitting = int(np.searchsorted(ends, CHARS_TOGETHER, side="right"))
        end = start + max(1, fitting)
        yield order[start:end]
        start = end
