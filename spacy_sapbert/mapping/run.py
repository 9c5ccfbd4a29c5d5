"""A table with a column of terms → the same table with the concepts of the terms."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import SapbertError, refused_by_system
from ..io.progress import show_progress
from ..io.reading import check_file, file_digest
from ..io.writing import write_atomically
from ..kb.knowledge_base import KnowledgeBase
from ..linking.filters import Filter
from ..linking.options import LinkOptions
from . import sssom
from .columns import PREFIX, find_columns, list_cells, list_columns
from .lookup import STATUSES, Found, Query, map_queries
from .tables import Cell, find_kind, read_rows, write_table
from .terms import split_terms

SSSOM_ENDINGS = (".sssom.tsv", ".sssom.tsv.gz")
SAVED = ".lookups"  # ending of the file beside the output that a stopped run leaves


class TermColumns(NamedTuple):
    """Which columns of a table are what.

    Attributes:
        types, languages: What the concept of a row may be: semantic types or groups,
            and languages of its names, with commas between.
        separator: What stands between the terms of a cell; None = there is one.
    """

    term: str
    types: str | None = None
    languages: str | None = None
    separator: str | None = None


class Term(NamedTuple):
    """A term of a row.

    Attributes:
        row: Its row in the table, from 1 = the header.
        cells: Those of the row.
    """

    query: Query
    row: int
    cells: list[str]


class SavedLookups:
    """The look-ups of a run, a line each, in a file that a stopped run leaves.

    What a stop left of the last line is looked up again.

    Args:
        path: The file; it is deleted by `finish`.
        settings: What the look-ups depend on, in plain JSON types.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        text = json.dumps(settings, sort_keys=True)
        digest = sha256(text.encode("utf8", "replace")).hexdigest()
        self.path = path
        self.found: dict[Query, Found] = {}
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)  # it has texts
        self.file = os.fdopen(handle, "r+b")
        whole = self.read(digest)
        self.file.truncate(whole)
        self.file.seek(whole)
        if not whole:
            self.write({"settings": digest})

    def read(self, digest: str) -> int:
        """Read the file, and return the number of bytes of its whole lines."""
        whole = 0
        try:
            for line in self.file:
                if not line.endswith(b"\n"):
                    break
                data = json.loads(line)
                if whole:
                    term, types, languages = data["query"]
                    query = Query(term, tuple(types), tuple(languages))
                    self.found[query] = Found(*data["found"])
                elif data["settings"] != digest:
                    raise ValueError
                whole += len(line)
        except (KeyError, TypeError, ValueError):
            self.close()
            raise SapbertError(
                "E440",
                "Expected look-ups of the same table, knowledge base and settings in "
                f"{self.path}, but got others. Delete the file to begin anew.",
            ) from None
        return whole

    def write(self, data: dict[str, Any]) -> None:
        line = json.dumps(data, ensure_ascii=True)
        try:
            self.file.write(line.encode("utf8") + b"\n")
            self.file.flush()
        except OSError as error:
            values = {"path": self.path, "reason": error.strerror or error}
            raise refused_by_system(**values) from error

    def add(self, query: Query, found: Found) -> None:
        """Keep a look-up."""
        self.found[query] = found
        self.write({"query": query, "found": found})

    def close(self) -> None:
        """Close the file; the next run goes on with it."""
        with suppress(OSError):  # what cannot be written is looked up again
            self.file.close()

    def finish(self) -> None:
        """Delete the file."""
        self.close()
        self.path.unlink(missing_ok=True)


def map_table(
    kb: KnowledgeBase,
    path: Path,
    output: Path,
    columns: TermColumns,
    options: LinkOptions,
    *,
    encoding: str = "utf-8",
    progress: bool = False,
) -> Counter[str]:
    """Map the terms of a table, and write it with the concepts.

    Terms that occur several times are looked up once. A stopped run leaves its look-ups
    beside the output, and the same call goes on with them.

    Args:
        output: CSV, TSV, `.xlsx`, `.parquet` or `.sssom.tsv`.
        options: Its `k` is the number of candidates that are written.

    Returns:
        Number of terms by status, of `STATUSES`; and of rows without a term, as
        "empty".
    """
    check_file(path)
    settings: dict[str, Any] = {
        "input": file_digest(path),
        "kb": kb.manifest.digest,
        "columns": columns,
        "options": repr(options),
        "encoding": encoding,
    }
    header, terms = read_terms(path, columns, encoding)
    occurrences = Counter[Query]()
    checked = set[tuple[tuple[str, ...], ...]]()
    for term in terms:
        if term.query[1:] not in checked:
            check_allowed(kb, path, term)
            checked.add(term.query[1:])
        occurrences[term.query] += 1
    queries = [query for query in occurrences if query.term]
    saved = SavedLookups(output.with_name(f"{output.name}{SAVED}"), settings)
    try:
        missing = [query for query in queries if query not in saved.found]
        links = map_queries(kb, missing, options)
        done = show_progress(
            zip(missing, links, strict=True),
            unit="terms",
            total=len(queries),
            initial=len(queries) - len(missing),
            quiet=not progress,
        )
        for query, found in done:
            saved.add(query, found)
        _, terms = read_terms(path, columns, encoding)
        pairs = ((term, saved.found.get(term.query)) for term in terms)
        write_mapped(output, header, pairs, options.k, kb.manifest.digest)
    finally:
        saved.close()
    saved.finish()
    counts = Counter[str](dict.fromkeys(STATUSES, 0))
    for query, number in occurrences.items():
        counts[saved.found[query].status if query.term else "empty"] += number
    return counts


def read_terms(
    path: Path, columns: TermColumns, encoding: str
) -> tuple[list[str], Iterator[Term]]:
    """Read the terms of a table.

    Returns:
        The names of the columns, without those of an earlier mapping, and the terms; a
        row without one has the term "".
    """
    rows = read_rows(path, encoding=encoding)
    header = next(rows, [])
    names = (columns.term, columns.types, columns.languages)
    term, types, languages = find_columns(path, header, names)
    kept = [n for n, name in enumerate(header) if not name.startswith(PREFIX)]
    assert term is not None

    def values(row: Sequence[str], column: int | None) -> tuple[str, ...]:
        parts = row[column].split(",") if column is not None else ()
        return tuple(filter(None, map(str.strip, parts)))

    def read() -> Iterator[Term]:
        for number, row in enumerate(rows, 2):
            cells = [row[column] for column in kept]
            allowed = values(row, types), values(row, languages)
            parts = list(split_terms(row[term], columns.separator)) or [""]
            for part in parts:
                yield Term(Query(part, *allowed), number, cells)

    return [header[column] for column in kept], read()


def check_allowed(kb: KnowledgeBase, path: Path, term: Term) -> None:
    """Raise an error if a row allows what the knowledge base lacks.

    A cell is not shown: the column may be a wrong one, with texts of people.
    """
    allowed = Filter(types=term.query.types, languages=term.query.languages)
    try:
        kb.check_options(LinkOptions(filter=allowed))
    except SapbertError as error:
        if error.code != "E332":
            raise
        raise SapbertError(
            "E445",
            f"{path}: Expected semantic types and languages of the knowledge base in "
            f"the columns that limit each row, but row {term.row} has another. "
            "Correct the cell, or name another column.",
        ) from None


def write_mapped(
    output: Path,
    header: Sequence[str],
    pairs: Iterable[tuple[Term, Found | None]],
    k: int,
    digest: str,
) -> None:
    """Write the mapped table in the format of the ending."""
    if output.name.lower().endswith(SSSOM_ENDINGS):
        today = datetime.now(tz=UTC).date()
        rows = (
            sssom.list_cells(term.query.term, result, today)
            for term, result in pairs
            if result is not None
        )
        with write_atomically(output) as file:
            sssom.write_sssom(file, rows, digest)
        return
    added = list_columns(k)
    blank: list[Cell] = ["", *[None] * (len(added) - 1)]
    cells = (
        [
            *term.cells,
            *(blank if result is None else list_cells(term.query.term, result, k)),
        ]
        for term, result in pairs
    )
    write_table(output, [*header, *added], cells)


def check_output(output: Path) -> None:
    """Check that the ending of an output is known."""
    if not output.name.lower().endswith(SSSOM_ENDINGS):
        find_kind(output)
