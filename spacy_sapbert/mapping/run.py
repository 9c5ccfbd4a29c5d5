"""A table with a column of terms → the same table with their concepts.

A person chooses among them in a column, which is read again.
"""

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import SapbertError
from ..formats.gold import SEPARATORS, is_no_id
from ..formats.mention_tables import CHOSEN, TERM
from ..io.progress import show_progress
from ..io.reading import check_file
from ..io.tables.files import (
    CsvStyle,
    find_kind,
    is_sssom,
    read_cell,
    read_header,
    read_rows,
    read_style,
    write_table,
)
from ..io.tables.headers import find_columns, show_id
from ..io.tables.spreadsheets import Cell, text_of
from ..io.writing import write_atomically
from ..kb.ids import find_id
from ..linking.candidates import Candidate
from ..linking.filters import Filter
from ..linking.options import LinkOptions
from ..vocabularies.sssom import (
    PREFIX,
    SUBJECT,
    make_subject,
    name_subjects,
    write_sssom,
)
from .concept_map import (
    NAMES,
    check_code,
    check_omop,
    is_concept_map,
    write_concept_map,
)
from .decisions import apply_choice, list_mapping
from .lookup import REVIEW, STATUSES, Found, Query, map_queries
from .terms import split_terms

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

MOST_LISTED = 10  # of chosen ids that there are not
MATCH = "match_"  # of all columns that a mapping adds, so that no others are lost
FIRST = (
    *("term", "chosen", "status", "id", "name", "alias", "score", "probability"),
    *("codes", "note", "read_as", "dropped"),
)
LOST = "lost"
OF_CANDIDATES = ("id", "name", "alias", "score")


class TermColumns(NamedTuple):
    """Which columns of a table are what.

    Attributes:
        types, languages: What the concept of a row may be, with commas between.
        separator: What stands between the terms of a cell; None = there is one.
        unit, specimen: Of the results of a laboratory test: "mg/dL", "Urine".
        id: The ids of the rows, which are the subjects of mappings.
        prefix: The vocabulary of these ids; "" = that of the column.
    """

    term: str
    types: str | None = None
    languages: str | None = None
    separator: str | None = None
    unit: str | None = None
    specimen: str | None = None
    id: str | None = None
    prefix: str = ""


class Term(NamedTuple):
    """A term, and the number and the cells of its row; row 1 is the header.

    `chosen` is what a person chose for it; `lost` = they chose it for another term;
    `id` is that of the row.
    """

    query: Query
    row: int
    cells: list[Cell]
    chosen: Cell = ""
    lost: bool = False
    id: str = ""


def map_table(
    kb: "KnowledgeBase",
    path: Path,
    output: Path,
    columns: TermColumns,
    options: LinkOptions,
    *,
    encoding: str = "utf-8",
    progress: bool = False,
) -> Counter[str]:
    """Write a table with the concepts of its terms, and count the terms by status.

    SSSOM and `source_to_concept_map` of OMOP have only what is sure or decided, each
    mapping of an id and a term once, and no other columns.

    The `k` of the options is the number of candidates that are written. "empty" counts
    the rows without a term, `CHOSEN` the decisions of an earlier mapping that are kept,
    and `LOST` those that are not.
    """
    check_file(path)
    if columns.prefix and not PREFIX.fullmatch(columns.prefix):
        raise SapbertError(
            "E331",
            "Expected letters, digits, - and _ as the prefix of ids, but got "
            f"{columns.prefix!r}. Correct `--subject-prefix`.",
        )
    if is_concept_map(output):
        check_omop(kb, columns.id, name_vocabulary(columns))
    header, terms = read_terms(path, columns, encoding)
    occurrences, decisions = Counter[Query](), Counter[str]()
    checked = set[tuple[tuple[str, ...], ...]]()
    unknown: dict[str, int] = {}  # chosen ids, and the first row with each
    for term in terms:
        allowed = term.query.types, term.query.languages
        if allowed not in checked:
            check_allowed(kb, path, term)
            checked.add(allowed)
        if is_concept_map(output) and term.query.term:
            check_code(path, term.row, term.id)
        occurrences[term.query] += 1
        decisions[CHOSEN] += bool(text_of(term.chosen).strip())
        decisions[LOST] += term.lost
        if lacks(kb, chosen := read_cell(term.chosen).strip()):
            unknown.setdefault(chosen, term.row)
    if unknown:
        report_unknown(kb, path, unknown, is_sssom(output) or is_concept_map(output))
    if not occurrences:
        warnings.warn(
            f"[W537] {path}: Expected rows with terms, but the table has none below "
            "the names of its columns.",
            stacklevel=2,
        )
    queries = [query for query in occurrences if query.term]
    links = map_queries(kb, queries, options)
    bar = show_progress(links, unit="terms", total=len(queries), quiet=not progress)
    found = dict(zip(queries, bar, strict=True))
    _, terms = read_terms(path, columns, encoding)  # again: it may not fit in memory
    pairs = ((term, found.get(term.query)) for term in terms)
    style = read_style(path, encoding)
    write_mapped(kb, output, columns, header, pairs, options.k, style)
    counts = Counter[str](dict.fromkeys(STATUSES, 0))
    for query, number in occurrences.items():
        counts[found[query].status if query.term else "empty"] += number
    counts.update(+decisions)
    return counts


def lacks(kb: "KnowledgeBase", chosen: str) -> bool:
    """Return whether a person chose one concept, which there is not."""
    is_one = chosen and not is_no_id(chosen) and not SEPARATORS.search(chosen)
    return bool(is_one) and kb.concept(chosen) is None


def report_unknown(
    kb: "KnowledgeBase", path: Path, unknown: dict[str, int], fails: bool
) -> None:
    """Warn of chosen ids that there are not; if they make mappings, raise an error."""
    listed = []
    for id, row in [*unknown.items()][:MOST_LISTED]:
        hint = find_id(kb.store, id).hint
        listed.append(f"{show_id(id)} in row {row}{hint and f' ({hint})'}")
    more = " …" * (len(unknown) > MOST_LISTED)
    said = (
        f"{path}: Expected ids of the knowledge base in `{CHOSEN}`, but got "
        f"{', '.join(listed)}{more}."
    )
    if fails:
        raise SapbertError("E117", f"{said} Correct them, or write NIL for none.")
    warnings.warn(
        f"[W538] {said} They are kept, but no mapping can be made of them.",
        stacklevel=3,
    )


def read_terms(
    path: Path, columns: TermColumns, encoding: str
) -> tuple[list[str], Iterator[Term]]:
    """Return the columns and terms of a table, without those of an earlier mapping.

    A row of an earlier mapping has one term of a cell, and maybe a decision.
    """
    rows = read_rows(path, encoding=encoding)
    header = read_header(rows)
    names = (
        *(columns.term, columns.types, columns.languages),
        *(columns.id, columns.unit, columns.specimen),
    )
    term, types, languages, id, *measured = find_columns(path, header, names)
    kept = [n for n, name in enumerate(header) if not name.startswith(MATCH)]
    place = {name: n for n, name in enumerate(header)}
    assert term is not None

    def values(row: Sequence[Cell], column: int | None) -> tuple[str, ...]:
        parts = read_cell(row[column]).split(",") if column is not None else ()
        return tuple(filter(None, map(str.strip, parts)))

    def read() -> Iterator[Term]:
        for number, row in enumerate(rows, 2):
            cells = [row[column] for column in kept]
            of_row = "" if id is None else read_cell(row[id])
            unit, specimen = (
                read_cell(row[n]).strip() if n is not None else "" for n in measured
            )
            empty = Query(
                "", values(row, types), values(row, languages), unit, specimen
            )
            parts = list(split_terms(read_cell(row[term]), columns.separator)) or [""]
            chosen = row[place[CHOSEN]] if CHOSEN in place else ""
            earlier = read_cell(row[place[TERM]]) if TERM in place else ""
            if earlier in parts:
                query = empty._replace(term=earlier)
                yield Term(query, number, cells, chosen, id=of_row)
                continue
            for n, part in enumerate(parts):
                lost = not n and bool(text_of(chosen).strip())
                query = empty._replace(term=part)
                yield Term(query, number, cells, lost=lost, id=of_row)

    return [header[column] for column in kept], read()


def name_vocabulary(columns: TermColumns) -> str:
    """Return the vocabulary of the ids as OMOP calls it; "" = it is unknown."""
    prefix = columns.prefix or name_subjects(columns.id or "")
    return "" if prefix == SUBJECT else NAMES.get(prefix, prefix)


def list_left_out(
    path: Path, columns: TermColumns, *, encoding: str = "utf-8"
) -> list[str]:
    """Return the columns of a table that mappings do not have."""
    header = read_header(read_rows(path, encoding=encoding))
    (term, id) = find_columns(path, header, (columns.term, columns.id))
    return [
        name
        for place, name in enumerate(header)
        if place not in (term, id) and not name.startswith(MATCH)
    ]


def check_allowed(kb: "KnowledgeBase", path: Path, term: Term) -> None:
    """Raise an error, which shows no cell, if a row allows what the kb lacks."""
    allowed = Filter(types=term.query.types, languages=term.query.languages)
    try:
        kb.check_options(LinkOptions(filter=allowed))
    except SapbertError as error:
        if error.code != "E332":
            raise
        raise SapbertError(
            "E332",
            f"{path}: Expected semantic types and languages of the knowledge base in "
            f"the columns that limit each row, but row {term.row} has another. "
            "Correct the cell, or name another column.",
        ) from None


def list_columns(k: int) -> list[str]:
    ranks = range(1, k + 1)
    others = [f"{rank}_{name}" for rank in ranks for name in OF_CANDIDATES]
    return [f"{MATCH}{name}" for name in (*FIRST, *others)]


def list_cells(term: str, found: Found, k: int, chosen: Cell = "") -> list[Cell]:
    """Return the cells of `list_columns`; a person fills `chosen`.

    Only what is linked has an id of its own; all candidates are proposed.
    """
    first = found.candidates[0] if found.candidates else None
    linked = first if found.cui is not None else None
    codes = linked["codes"] if linked else {}
    proposed = [*found.candidates[:k], *[None] * (k - len(found.candidates))]
    is_doubted = found.status == REVIEW and found.certainty in ("unsure", "tied")
    note = found.note or (found.certainty if is_doubted else None)
    return [
        *(term, chosen, found.status),
        *describe_candidate(linked),
        first["probability"] if first else None,
        json.dumps(codes, ensure_ascii=False) if codes else None,
        *(note, found.read_as, "; ".join(found.dropped) or None),
        *chain.from_iterable(map(describe_candidate, proposed)),
    ]


def describe_candidate(candidate: Candidate | None) -> list[Cell]:
    """Return the cells of `OF_CANDIDATES`."""
    if candidate is None:
        return [None] * len(OF_CANDIDATES)
    score = candidate["score"] or None  # what a person found has none
    return [candidate["cui"], candidate["name"], candidate["alias"], score]


def decide(kb: "KnowledgeBase", term: Term, found: Found) -> Found:
    """Return what was found, or what a person chose; several ids are no decision."""
    chosen = read_cell(term.chosen).strip()
    if SEPARATORS.search(chosen):
        return replace(found, status=REVIEW)
    return apply_choice(kb, term.query.term, found, chosen)


def write_mapped(
    kb: "KnowledgeBase",
    output: Path,
    columns: TermColumns,
    header: Sequence[str],
    pairs: Iterable[tuple[Term, Found | None]],
    k: int,
    style: CsvStyle,
) -> None:
    if is_concept_map(output):
        found = (
            (term.row, term.id.strip(), term.query.term, decide(kb, term, result))
            for term, result in pairs
            if result is not None
        )
        write_concept_map(kb, output, found, name_vocabulary(columns))
        return
    if is_sssom(output):
        today, place = datetime.now(tz=UTC).date(), (columns.id or "", columns.prefix)
        rows = (
            list_mapping(
                term.query.term,
                decide(kb, term, result),
                today,
                subject=make_subject(term.id, *place),
            )
            for term, result in pairs
            if result is not None
        )
        with write_atomically(output) as file:
            write_sssom(file, rows, kb.manifest.digest, find_kind(output))
        return
    added = list_columns(k)
    blank: list[Cell] = ["", *[None] * (len(added) - 1)]
    cells = (
        [
            *term.cells,
            *(list_cells(term.query.term, found, k, term.chosen) if found else blank),
        ]
        for term, found in pairs
    )
    write_table(output, [*header, *added], cells, style=style)
