"""A column of terms on the page: tables are read, mapped and written as by `map`."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import SapbertError
from ..formats.mention_tables import CHOSEN
from ..kb.knowledge_base import KnowledgeBase
from ..mapping import sssom
from ..mapping.lookup import Found
from ..mapping.run import list_cells, list_columns
from ..mapping.tables import ENDINGS, Cell, read_rows, write_table
from .encodings import BINARY, to_utf8
from .problems import INVALID, MISSING, RequestError, check_format, too_much_in_request

MOST_ROWS = 20_000  # more are for the command `map`
MOST_KEPT = 50_000  # terms whose candidates are in memory, of all tables together
SSSOM_FORMAT = "sssom.tsv"
FORMATS: dict[str, str] = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    SSSOM_FORMAT: "text/tab-separated-values; charset=utf-8",
}
NIL = "NIL"
FINAL = "match_final"  # what holds: the choice of a person, else the link
TEXTS = (".csv", ".tsv", ".txt")


@dataclass(frozen=True)
class Table:
    """A header, and rows with as many cells."""

    header: list[str]
    rows: list[list[str]]


class MappedTerms:
    """What was found for the last terms, so that a table is written without it.

    The key of a term is the digest of the knowledge base, the number of candidates, and
    the term.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.found: OrderedDict[tuple[str, int, str], Found] = OrderedDict()

    def keep(self, digest: str, k: int, found: Mapping[str, Found]) -> None:
        """Keep what was found for terms; the oldest are forgotten."""
        with self.lock:
            for term, one in found.items():
                self.found[digest, k, term] = one
                self.found.move_to_end((digest, k, term))
            while len(self.found) > MOST_KEPT:
                self.found.popitem(last=False)

    def get(self, digest: str, k: int, term: str) -> Found | None:
        """Return what was found for a term; None = it is not known any more."""
        with self.lock:
            return self.found.get((digest, k, term))


def read_table(name: str, data: bytes) -> Table:
    """Read a table that was dropped on the page.

    Args:
        name: Of the file; only its ending is used.

    Raises:
        RequestError: If it is no table, or has too many rows.
        SapbertError: If a library is missing.
    """
    ending = next((e for e in ENDINGS if name.lower().endswith(e)), ".csv")
    data = to_utf8(data)
    if data.startswith(BINARY) and ending in TEXTS:
        known, other = ", ".join(ENDINGS), "another"
        raise RequestError(
            "E110",
            f"Expected a table with an ending of {known}, but got {other}. Rename it.",
            INVALID,
        )
    with TemporaryDirectory(prefix="sapbert-table-") as folder:
        path = Path(folder) / f"table{ending}"
        path.write_bytes(data)
        try:
            rows = [*islice(read_rows(path), MOST_ROWS + 2)]
        except SapbertError as error:
            if error.code == MISSING:
                raise
            text = error.text.replace(str(path), path.name)
            raise RequestError(error.code, text, INVALID) from None
    if len(rows) > MOST_ROWS + 1:
        got = len(rows) - 1
        raise too_much_in_request(MOST_ROWS, "rows", got)
    return Table(rows[0] if rows else [], rows[1:])


def write_mapped(
    kb: KnowledgeBase,
    format: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    terms: Sequence[str],
    found: Sequence[Found],
    chosen: Sequence[str],
    reviewer: str = "",
) -> bytes:
    """Return a mapped table as a file.

    Args:
        format: A key of `FORMATS`.
        rows, terms, found, chosen: Equally many. What is chosen is an id, "NIL" or
            empty.
        reviewer: Who chose.

    Raises:
        SapbertError: If the format is unknown, or a library is missing.
    """
    check_format(format, FORMATS)
    with TemporaryDirectory(prefix="sapbert-table-") as folder:
        path = Path(folder) / f"mapped.{format}"
        if format == SSSOM_FORMAT:
            today = datetime.now(tz=UTC).date()
            mappings = (
                sssom.list_cells(term, apply_choice(kb, one, choice), today, reviewer)
                for term, one, choice in zip(terms, found, chosen, strict=True)
            )
            with path.open("wb") as file:
                sssom.write_sssom(file, mappings, kb.manifest.digest)
        else:
            k = max((len(one.candidates) for one in found), default=1)
            added = list_columns(max(k, 1))
            place = added.index(CHOSEN)
            table: list[list[Cell]] = []
            for row, term, one, choice in zip(rows, terms, found, chosen, strict=True):
                new = list_cells(term, one, max(k, 1))
                new[place] = choice
                table.append([*row, *new, choice or one.cui])
            write_table(path, [*header, *added, FINAL], table)
        return path.read_bytes()


def apply_choice(kb: KnowledgeBase, found: Found, chosen: str) -> Found:
    """Return what was found, with the concept that a person chose in its place."""
    if not chosen:
        return found
    if chosen == NIL:
        return found._replace(cui=None, note=None, status=sssom.NO_CONCEPT)
    same = [one for one in found.candidates if one["cui"] == chosen]
    concept = kb.concept(chosen)
    if not same and concept is not None:
        same = [
            {
                "cui": concept.cui,
                "name": concept.name,
                "alias": concept.name,
                "score": 0.0,
                "rank": 1,
                "types": concept.types,
                "codes": concept.codes,
                "tie": None,
                "probability": None,
            }
        ]
    status = sssom.CHOSEN
    return found._replace(cui=chosen, status=status, note=None, candidates=same)
