"""Tables of mentions with their ids: of corpora, of `link` and of `map`."""

import re
import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from urllib.parse import unquote

from ..errors import SapbertError, blank_mention
from ..io.reading import read_lines
from ..io.tables.formulas import undefuse
from ..vocabularies.report import Report
from ..vocabularies.sssom import NOTHING, OWN, read_exact
from .documents import OnError, raise_error
from .format_table import file_ending, list_formats, load_function
from .gold import (
    MENTIONS,
    NOWHERE,
    NUMBER,
    SEPARATORS,
    GoldDocument,
    GoldMention,
    is_no_id,
    parse_offsets,
    split_ids,
)
from .inputs.rows import Columns, Row

BARS = "||"
COLUMNS = ("mention", "ids")
# Long enough for the ids of UMLS, MeSH, OMIM, HPO, and too long for "p53" or "CD4".
LIKE_ID = re.compile(r"(?:[A-Za-z]+:)?[A-Z]{0,2}\d{5,}")
LANGUAGE_LETTERS = 8  # "zh-Hant"
TERM, CHOSEN = "match_term", "match_chosen"  # columns of `map`

Found = tuple[str, GoldMention]  # the id of a document, and a mention


def looks_like_ids(field: str) -> bool:
    """Return whether all of a field has the form of ids."""
    return all(LIKE_ID.fullmatch(cui.strip()) for cui in SEPARATORS.split(field))


def group_mentions(found: Iterable[Found]) -> Iterator[GoldDocument]:
    """Yield documents without a text; one of very many mentions comes in pieces."""
    for id, pairs in groupby(found, key=itemgetter(0)):
        while mentions := [mention for _, mention in islice(pairs, MENTIONS)]:
            yield GoldDocument(id, "", mentions)


def read_header(path: Path, number: int, line: str) -> list[str] | None:
    """Return the columns of a table by its first line; None for `mention||id`."""
    columns = line.split("\t")
    if all(column in columns for column in COLUMNS):
        return columns
    if BARS in line:
        return None
    raise SapbertError(
        "E117",
        f"{path}:{number}: Expected a header with tabs between the columns and "
        "`mention` and `ids` among them, or lines `mention||id`, but got something "
        "else. Convert the file to one of the two, or pass its `--format`.",
    )


def split_row(
    path: Path, number: int, line: str, columns: list[str] | None
) -> dict[str, str]:
    """Return the fields of a line, which an error does not quote."""
    names, separator = (columns, "\t") if columns else (COLUMNS, BARS)
    fields = line.split(separator)
    check_fields(path, number, fields, len(names), "tabs" if columns else f"`{BARS}`")
    row = dict(zip(names, fields, strict=True))
    if not row["mention"].strip():
        raise blank_mention(path=path, line=number)
    ids, swapped = row["ids"], looks_like_ids(row["mention"])
    if not columns and swapped and not looks_like_ids(ids) and not is_no_id(ids):
        raise SapbertError(
            "E117",
            f"{path}:{number}: Expected `mention||id`, but the ids come first. "
            "Swap the columns: `awk -F'[|][|]' '{print $2 \"||\" $1}'`.",
        )
    return row


def check_fields(
    path: Path, number: int, fields: list[str], expected: int, separator: str
) -> None:
    if len(fields) != expected:
        raise SapbertError(
            "E117",
            f"{path}:{number}: Expected {expected} fields with {separator} between "
            f"them, but got {len(fields)}. Correct the line.",
        )


def read_offsets(path: Path, number: int, row: dict[str, str]) -> tuple[int, int]:
    """Return the offsets of a row; none of a mention whose parts are out of order."""
    start, end = row.get("start") or "", row.get("end") or ""
    if start.isdecimal() and end.isdecimal() and int(start) > int(end):
        return NOWHERE
    return parse_offsets(path, number, start, end)


def read_tsv(
    path: Path,
    *,
    bars_join_parts: bool = False,
    language: str | None = None,
    on_error: OnError = raise_error,
) -> Iterator[GoldDocument]:
    """Read a table with the columns `mention` and `ids`, or lines `mention||id`.

    Args:
        path: The columns `doc`, `start`, `end`, `type` and `lang` may be there too.
        bars_join_parts: See `split_ids`.
        language: Only mentions that have it as `lang`; None = all.
        on_error: Called with the error of an invalid line.

    Yields:
        Consecutive lines with the same `doc`.
    """
    languages: set[str] = set()

    def iter_mentions() -> Iterator[Found]:
        columns: list[str] | None = None
        started = False
        for number, line in read_lines(path):
            if not line.strip():
                continue
            if not started:
                started, columns = True, read_header(path, number, line)
                if columns:
                    continue
            try:
                row = split_row(path, number, line, columns)
                offsets = read_offsets(path, number, row)
            except SapbertError as error:
                on_error(error)
                continue
            languages.add(row.get("lang", ""))
            if language in (None, row.get("lang")):
                parts = split_ids(row["ids"], bars_join_parts=bars_join_parts)
                type, mention = row.get("type", ""), row["mention"]
                gold = GoldMention(*offsets, type, mention, parts, number)
                yield row.get("doc", ""), gold

    found = False
    for document in group_mentions(iter_mentions()):
        found = True
        yield document
    if language is not None and not found:
        # A column of texts by mistake would show them.
        codes = sorted(code for code in languages if 0 < len(code) <= LANGUAGE_LETTERS)
        known = ", ".join(codes) or "none"
        raise SapbertError(
            "E105",
            f"{path}: Expected mentions with {language!r} in the column `lang`, but "
            f"got none: the languages there are {known}. Correct `--language`.",
        )


def read_linked(
    format: str, path: Path, *, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read a table of `link`: `id`, `text` of the mention, and `cui`; "" = no concept.

    Rows of one document stand together. A row with an `error` has no mention.
    """
    columns = Columns(keep=("cui",))
    rows: Iterator[Row] = load_function(format, "rows")(
        path, columns, on_error=on_error
    )
    plain = str if format == "parquet" else undefuse

    def iter_mentions() -> Iterator[Found]:
        for number, row in rows:
            text, cui = plain(row["text"] or ""), row["cui"] or ""
            if not text:
                if not row.get("error"):
                    on_error(blank_mention(path=path, line=number))
                continue
            parts = [] if is_no_id(plain(cui)) else [[plain(cui)]]
            start, end = (str(row.get(name)) for name in ("start", "end"))
            offsets = NOWHERE
            if NUMBER.fullmatch(start) and NUMBER.fullmatch(end):
                offsets = int(start), int(end)
            label = plain(row.get("label") or "")
            id = row.get("id")
            gold = GoldMention(*offsets, label, text, parts, number)
            yield "" if id is None else plain(str(id)), gold

    yield from group_mentions(iter_mentions())


read_csv = partial(read_linked, "csv")
read_excel = partial(read_linked, "excel")
read_parquet = partial(read_linked, "parquet")


def find_rows(path: Path) -> str:
    """Return the format of a table by its ending; `csv` if it is no other."""
    tables = list_formats("rows").items()
    ending = file_ending(path)
    return next((name for name, table in tables if ending in table.endings), "csv")


def read_mapped(
    path: Path, *, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read a table of `map` in which a person has chosen the concepts of terms.

    Each term for which `match_chosen` has something is a document: an id, several with
    bars between them of which one is right, or NIL.
    """
    columns, format = Columns(text=TERM, id=TERM, keep=(CHOSEN,)), find_rows(path)
    rows = load_function(format, "rows")(path, columns, on_error=on_error)
    plain = undefuse if format == "csv" else str
    empty = True
    for number, row in rows:
        term, chosen = (plain(row[name] or "").strip() for name in (TERM, CHOSEN))
        if term and chosen:
            empty = False
            parts = [] if is_no_id(chosen) else split_ids(chosen)
            mention = GoldMention(0, len(term), "", term, parts, number)
            yield GoldDocument(f"{path.name}:{number}", term, [mention])
    if empty:
        raise SapbertError(
            "E106",
            f"{path}: Expected chosen ids in the column `match_chosen`, but it is "
            "empty. Write an id, or NIL, for each term that you have reviewed.",
        )


class ErrorReport(Report):
    """Passes the errors of invalid lines on."""

    def __init__(self, on_error: OnError) -> None:
        super().__init__()
        self.handle = on_error

    def skip(self, rule: str, error: SapbertError) -> None:
        self.handle(error)


def read_sssom(
    path: Path, *, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read the texts that a file of SSSOM maps exactly to a concept, or to none.

    Each text, a literal or the label of a subject, is a document; ids may have their
    prefix or not. A warning counts the mappings that are left out.
    """
    report = ErrorReport(on_error)
    for row in read_exact(path, report):
        if not row.subject_label:
            report.dropped["mappings without `subject_label`"] += 1
            continue
        prefix, _, local = row.target.partition(":")
        local = unquote(local)
        ids = [local] if prefix == OWN else [f"{prefix}:{local}", local]
        parts = [] if row.target == NOTHING else [ids]
        text = row.subject_label
        mention = GoldMention(0, len(text), "", text, parts, row.line)
        yield GoldDocument(f"{path.name}:{row.line}", text, [mention])
    if report.dropped:
        counts = ", ".join(f"{n:,} {rule}" for rule, n in report.dropped.items())
        warnings.warn(
            f"[W538] {path}: Expected exact mappings of texts, but left out {counts}. "
            "Remove these rows to read the file without this warning.",
            stacklevel=2,
        )
