"""Tables of mentions with their ids: of corpora, of `link` and of `map`."""

import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from urllib.parse import unquote

from ..errors import SapbertError, blank_mention
from ..io.tables.columns import Columns, Layout, Roles, choose_columns
from ..io.tables.delimited import (
    BARS,
    TAB,
    find_separator,
    name_delimiter,
    read_first_line,
)
from ..io.tables.files import fit_rows, is_text, open_rows
from ..io.tables.formulas import undefuse
from ..vocabularies.options import LEAST_CONFIDENCE
from ..vocabularies.report import Report, read_good_lines
from ..vocabularies.sssom import NOTHING, OWN, read_exact
from .documents import OnError, raise_error
from .gold import (
    MENTIONS,
    NOWHERE,
    SEPARATORS,
    UNSAID,
    GoldDocument,
    GoldMention,
    is_no_id,
    parse_fragments,
    parse_offsets,
    place_mention,
    split_ids,
)

TERM, CHOSEN = "match_term", "match_chosen"  # columns of `map`
LINK = Layout(
    "`link`",
    "mention=text,ids=cui,doc=id,start=start,end=end,type=label,error=error",
    header=("text", "cui"),
)
MAP = Layout("`map`", f"mention={TERM},ids={CHOSEN}", header=(TERM, CHOSEN))
# Of two columns, `id` has the ids; beside others it may be of the document.
PAIRS = tuple(
    Layout("mentions", f"mention={name},ids=id", header=(name, "id"), width=2)
    for name in ("mention", "term")
)
ROLES = Roles(
    names={
        "mention": ("mention", "span", "mentiontext", "spantext", "term", "text"),
        "ids": ("ids", "cui", "cuis", "code", "codes", "conceptid", "kbid"),
        "doc": (
            *("doc", "docid", "document", "documentid", "filename", "file", "pmid"),
            *("noteid", "id"),
        ),
        "start": ("start", "begin", "startspan", "startoffset", "startchar", "off"),
        "end": ("end", "endspan", "endoffset", "endchar", "off"),
        "offsets": ("offsets",),
        "type": ("type", "label", "entitytype", "semantictype"),
        "lang": ("lang", "language"),
        "error": ("error",),
        "text": (),  # of the document
    },
    needed=(("mention",), ("ids",)),
    example="mention=span,ids=code,doc=filename,start=off0,end=off1",
    layouts=(MAP, LINK, *PAIRS),
    private=True,
    also=" Lines `mention||id` need none.",
)
# Long enough for the ids of UMLS, MeSH, OMIM, HPO, and too long for "p53" or "CD4".
LIKE_ID = re.compile(r"(?:[A-Za-z]+:)?[A-Z]{0,2}\d{5,}")
# Whoever names the columns may have mentions alone, to link them.
NAMED = replace(ROLES, needed=(("mention",),))
LANGUAGE_LETTERS = 8  # "zh-Hant"

Found = tuple[str, str, GoldMention]  # the id and the text of a document, a mention


def group_mentions(found: Iterable[Found]) -> Iterator[GoldDocument]:
    """Yield documents; one of very many mentions comes in pieces."""
    for id, group in groupby(found, key=itemgetter(0)):
        while some := [*islice(group, MENTIONS)]:
            yield GoldDocument(id, some[0][1], [mention for *_, mention in some])


class ErrorReport(Report):
    """Passes the errors of invalid lines on."""

    def __init__(self, on_error: OnError) -> None:
        super().__init__()
        self.handle = on_error

    def skip(self, rule: str, error: SapbertError) -> None:
        self.handle(error)


def find_delimiter(path: Path, encoding: str) -> str:
    """Return what the first line of a text has between its fields."""
    line = read_first_line(path, encoding)
    return BARS if BARS in line and TAB not in line else find_separator(line)


class MentionRows:
    """The mentions in the rows of a table; see `read_table`."""

    def __init__(
        self,
        path: Path,
        columns: Columns,
        *,
        bars: bool = False,
        bars_join_parts: bool = False,
        is_text: bool = True,
    ) -> None:
        self.path, self.layout = path, columns.layout
        self.bars, self.bars_join_parts = bars, bars_join_parts
        # a cell of our own tables may have a quote that prevents a formula
        self.undefuse = self.layout in (MAP, LINK) and is_text
        self.places = {column.role: column.place for column in columns.chosen}

    def read(self, number: int, fields: list[str]) -> Found | None:
        """Return the mention of a row; None if it has none."""
        path = self.path
        cells = {role: fields[place] for role, place in self.places.items()}
        if self.undefuse:
            cells = {role: undefuse(cell) for role, cell in cells.items()}
        mention, ids = cells["mention"], cells.get("ids", "")
        if not mention.strip() and cells.get("error"):
            return None
        if self.layout is MAP:
            return self.read_chosen(number, mention.strip(), ids.strip())
        if not mention.strip():
            raise blank_mention(path=path, line=number)
        if (
            self.bars
            and looks_like_ids(mention)
            and not (looks_like_ids(ids) or is_no_id(ids))
        ):
            raise SapbertError(
                "E117",
                f"{path}:{number}: Expected `mention||id`, but the ids come first. "
                "Swap the columns: `awk -F'[|][|]' '{print $2 \"||\" $1}'`.",
            )
        start, end = self.read_offsets(number, cells)
        if "ids" not in cells:
            parts = UNSAID
        elif self.layout is LINK:
            parts = [] if is_no_id(ids) else [[ids]]
        else:
            parts = split_ids(ids, bars_join_parts=self.bars_join_parts)
        text = cells.get("text", "")
        if text and start >= 0:
            start, end, mention = place_mention(
                path, number, text, [(start, end)], mention
            )
        gold = GoldMention(start, end, cells.get("type", ""), mention, parts, number)
        return cells.get("doc", ""), text, gold

    def read_offsets(self, number: int, cells: dict[str, str]) -> tuple[int, int]:
        """Return the offsets of a row; none of one whose parts are in no order."""
        if offsets := cells.get("offsets", "").strip():
            fragments = parse_fragments(self.path, number, offsets)
            start, end = str(fragments[0][0]), str(fragments[-1][1])
        else:
            start, end = cells.get("start", ""), cells.get("end", "")
        if self.layout is LINK and not (start.isdecimal() and end.isdecimal()):
            return NOWHERE
        if start.isdecimal() and end.isdecimal() and int(start) > int(end):
            return NOWHERE
        return parse_offsets(self.path, number, start, end)

    def read_chosen(self, number: int, term: str, chosen: str) -> Found | None:
        """Return the term of a row of `map`, if a person has chosen something."""
        if not term or not chosen:
            return None
        parts = [] if is_no_id(chosen) else split_ids(chosen)
        mention = GoldMention(0, len(term), "", term, parts, number)
        return f"{self.path.name}:{number}", term, mention


def looks_like_ids(field: str) -> bool:
    """Return whether all of a field has the form of ids."""
    return all(LIKE_ID.fullmatch(cui.strip()) for cui in SEPARATORS.split(field))


def read_table(
    path: Path,
    *,
    columns: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    bars_join_parts: bool = False,
    language: str | None = None,
    on_error: OnError = raise_error,
) -> Iterator[GoldDocument]:
    """Read a table of mentions, or lines `mention||id`.

    Of a table of `link` an id is one, even with bars in it, and a row with an `error`
    has no mention. Of a table of `map` each term for which a person has chosen
    something is a document.

    Args:
        path: CSV, TSV, Excel or Parquet; text plain or `.gz`.
        columns: Which column is what, see `ROLES`; None = by their names.
        delimiter: Between the fields; None = the one of the first line.
        encoding: Of text.
        bars_join_parts: See `split_ids`.
        language: Only mentions that have it as `lang`; None = all.
        on_error: Called with the error of an invalid line.

    Yields:
        Consecutive rows with the same document.
    """
    if delimiter is not None:
        delimiter = name_delimiter(delimiter)
    elif is_text(path):
        delimiter = find_delimiter(path, encoding)
    if delimiter == BARS and columns is None:
        columns = "mention=1,ids=2"
    read = partial(read_good_lines, report=ErrorReport(on_error), blank=True)
    open_table = partial(open_rows, path, delimiter, encoding=encoding, read=read)
    rows = open_table(quoted=None)
    _, first = next(rows, (1, list[str]()))
    if not first:
        return
    roles = ROLES if columns is None else NAMED
    chosen = choose_columns(path, 1, first, roles, columns)
    if not chosen.header:
        rows = chain([(1, first)], rows)
    elif chosen.layout is MAP:  # in which cells with tabs between them have quotes too
        rows = islice(open_table(), 1, None)
    table = MentionRows(
        path,
        chosen,
        bars=delimiter == BARS,
        bars_join_parts=bars_join_parts,
        is_text=is_text(path),
    )
    # the last cells of a row may be missing
    least = 1 + max(table.places.get(role, 0) for role in ("mention", "ids"))
    rows = fit_rows(path, rows, len(first), least=least, on_error=on_error)
    place = table.places.get("lang")
    languages: set[str] = set()
    empty = True

    def iter_mentions() -> Iterator[Found]:
        nonlocal empty
        for number, fields in rows:
            try:
                found = table.read(number, fields)
            except SapbertError as error:
                on_error(error)
                continue
            if found is None:
                continue
            spoken = "" if place is None else fields[place]
            languages.add(spoken)
            if language in (None, spoken):
                empty = False
                yield found

    yield from group_mentions(iter_mentions())
    if empty and language is not None:
        # A column of texts by mistake would show them.
        codes = sorted(code for code in languages if 0 < len(code) <= LANGUAGE_LETTERS)
        known = ", ".join(codes) or "none"
        raise SapbertError(
            "E105",
            f"{path}: Expected mentions with {language!r} in the column `lang`, but "
            f"got none: the languages there are {known}. Correct `--language`.",
        )
    if empty and table.layout is MAP:
        raise SapbertError(
            "E106",
            f"{path}: Expected chosen ids in the column `{CHOSEN}`, but it is empty. "
            "Write an id, or NIL, for each term that you have reviewed.",
        )


def read_sssom(
    path: Path,
    *,
    least_confidence: float = LEAST_CONFIDENCE,
    on_error: OnError = raise_error,
) -> Iterator[GoldDocument]:
    """Read the texts that a file of SSSOM maps exactly to a concept, or to none.

    Each text, a literal or the label of a subject, is a document; ids may have their
    prefix or not. A warning counts the mappings that are left out, e.g. with less than
    `least_confidence`.
    """
    report = ErrorReport(on_error)
    for row in read_exact(path, report, least_confidence):
        if not row.subject_label:
            report.dropped["mappings without a `subject_label`"] += 1
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
            "These rows may stay: they are neither learned nor measured.",
            stacklevel=2,
        )
