"""Tables as text: lines → rows of fields. All tables are split here."""

import codecs
import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from io import TextIOWrapper
from itertools import chain
from pathlib import Path

from ..errors import SapbertError
from .formulas import defuse
from .reading import RECORD_BYTES, USUAL_BYTES
from .terminal import printable
from .writing import write_atomically

# Words of columns that tables of terms, texts and codes have. An error may show them.
COLUMN_WORDS = frozenset(
    re.findall(
        r"\w+",
        "abstract age author body category chapter class code codes column comment "
        "concept context count cui data date definition description diagnosis disease "
        "doc document drug encounter end field file finding format gender group hadm "
        "icd id identifier ids index key kind label lang language length level line "
        "link list mapping match meaning medication mention mesh message modifier "
        "name nr no note notes number object offset omop parent patient pmid position "
        "predicate preferred probability procedure record report row score section "
        "sentence sex snomed source span start status study subject symbol symptom "
        "synonym synonyms system term terms text texts title tui type types umls unit "
        "url user value version visit vocabulary ward word year",
    )
)
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
ID = re.compile(r"[A-Za-z_]{0,20}[:.]?[A-Za-z]{0,8}-?\d[\w.:/-]{0,30}")
QUOTE = '"'
OPEN_LINES = 1000  # of a field in quotes
MOST_LISTED, LONGEST_LISTED = 20, 40  # columns in an error, and characters of each
MOST_CELLS = 100  # of a first row with a column that is looked for: more may be texts
Row = tuple[int, list[str]]  # the number of its first line, from 1, and its fields


def split_rows(
    lines: Iterable[tuple[int, str]],
    separator: str,
    path: Path,
    *,
    quoted: bool = True,
    open_lines: int = OPEN_LINES,
) -> Iterator[Row]:
    """Split lines into rows, without blank lines.

    Args:
        lines: The number of each line, and the line without its line feed.
        path: For the error.
        quoted: A field in double quotes may have separators and line feeds, and two
            quotes are one. Else, and in a line with tabs where quotes do not fit,
            quotes are characters like others.
        open_lines: Maximum number of lines of a field in quotes.

    Yields:
        The rows; no field if the quotes in one line are wrong.

    Raises:
        SapbertError: If a field in quotes does not end, or ends wrongly in another
            line: where the next row begins is not known then.
    """
    if not quoted:
        for number, line in lines:
            if line.strip():
                yield number, line.split(separator)
        return
    # the limit is of the process, and that of lines is checked already
    csv.field_size_limit(max(csv.field_size_limit(), RECORD_BYTES))
    lines = iter(lines)
    for number, line in lines:
        if QUOTE not in line:
            if line.strip():
                yield number, line.removesuffix("\r").split(separator)
            continue
        taken: list[str] = []
        try:
            text = join_lines(line, lines, taken, open_lines)
            fields = next(csv.reader(text, delimiter=separator, strict=True), [])
        except csv.Error:
            if taken:
                raise SapbertError(
                    "E117",
                    f"{path}:{number}: Expected the end of the quotes that begin in "
                    f"this line within {len(taken):,} lines, and a separator after "
                    "them, but got neither. Correct the quotes, or double them where "
                    "they are characters.",
                ) from None
            fields = line.split(separator) if separator == "\t" else []
        yield number, fields


def join_lines(
    line: str, lines: Iterator[tuple[int, str]], taken: list[str], most: int
) -> Iterator[str]:
    """Yield a line and, as long as a field is open, the next ones, kept in `taken`."""
    yield f"{line}\n"
    size = len(line)
    while len(taken) < most and size < USUAL_BYTES and (following := next(lines, None)):
        taken.append(following[1])
        size += len(following[1])
        yield f"{following[1]}\n"


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table as CSV, whose cells no spreadsheet computes."""
    with write_atomically(path) as file:
        text = TextIOWrapper(file, "utf8", newline="", write_through=True)
        try:
            writer = csv.writer(text)
            writer.writerow(header)
            writer.writerows([defuse(cell) for cell in row] for row in rows)
        finally:
            text.detach()  # else the file would be closed with it


def end_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Write line feeds for carriage returns if one ends the first line of a table.

    Old programs on a Mac wrote such tables. One in quotes ends no line.
    """
    blocks = iter(blocks)
    first = next(blocks, b"")
    line = first.lstrip().partition(b"\n")[0]
    header, _, rest = line.partition(b"\r")
    ends = bool(rest) and header.count(b'"') % 2 == 0
    for block in chain([first] if first else [], blocks):
        yield block.replace(b"\r", b"\n") if ends else block


def decode_blocks(
    blocks: Iterable[bytes], path: Path, encoding: str
) -> Iterator[bytes]:
    """Convert blocks in any encoding to UTF-8; those in UTF-8 are not checked here."""
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        yield from blocks
        return
    try:
        b"a".decode(encoding, "ignore")  # `zip`, which encodes bytes, is an error
        decoder = codecs.getincrementaldecoder(encoding)()
    except (LookupError, UnicodeError, ValueError):
        raise SapbertError(
            "E331",
            "Expected `--encoding` to be a text encoding that Python has, but got "
            f"{encoding[:40]!r}. Pass e.g. `cp1252`, `latin-1` or `utf-16`.",
        ) from None
    offset = 0
    try:
        for block in blocks:
            if text := decoder.decode(block):
                yield text.encode("utf8")
            offset += len(block)
        if text := decoder.decode(b"", True):
            yield text.encode("utf8")
    except UnicodeError:
        raise SapbertError(
            "E009",
            f"{path}: Expected text in {encoding}, as `--encoding` says, but got "
            f"other bytes after offset {offset}. Pass the encoding in which the file "
            "was saved.",
        ) from None


def list_columns(names: Iterable[str]) -> str:
    """Return the names of columns for an error, the first of many."""
    listed = [printable(name[:LONGEST_LISTED]) for name in names]
    more = ["…"] if len(listed) > MOST_LISTED else []
    return ", ".join([*listed[:MOST_LISTED], *more])


def is_known_column(name: str) -> bool:
    """Return whether a name has only `COLUMN_WORDS`, as "note_id" and "codeSystem"."""
    words = {word.lower() for word in WORDS.findall(name)}
    rest = WORDS.sub("", name).strip(" _-.:#/()")
    return bool(words) and words <= COLUMN_WORDS and not rest


def describe_header(header: Sequence[str], *, is_header: bool) -> str:
    """Return the first row of a table for an error.

    Args:
        is_header: One of its cells is the name of a column that is looked for. Else the
            table may lack a header, and have texts of people in its first row. Of these
            only words are shown that columns usually have.
    """
    if not header:
        return "no columns"
    short = all(len(c) <= LONGEST_LISTED and c.isprintable() for c in header)
    known = [*filter(is_known_column, header)]
    if len(known) == len(header) or (is_header and short and len(header) <= MOST_CELLS):
        return f"the columns {list_columns(header)}"
    cells = "1 cell" if len(header) == 1 else f"{len(header)} cells"
    shown = f"{list_columns(known)} and others, " if known else ""
    return f"{cells} in the first row, {shown}not shown here since they may be texts"


def show_id(text: str) -> str:
    """Return an id for an error; what does not look like one may be of a patient."""
    return repr(text) if ID.fullmatch(text) else "one that does not look like an id"


def find_separator(line: str, separators: str) -> str:
    """Return the separator that a line has most often, the first of equal ones."""
    return max(separators, key=line.count)


def column_key(name: str) -> str:
    """Return the form of a column's name that is equal for equal names."""
    return "".join(filter(str.isalnum, name.casefold()))
