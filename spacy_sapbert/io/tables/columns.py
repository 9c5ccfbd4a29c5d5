"""Which column of a table is what: by the option `--columns`, by its name, or known.

A kind of table (of a vocabulary, of annotated mentions) declares its roles once, in
`Roles`: names of columns that are usual, and the tables of publishers and tools whose
header is known. No column has a role because it is left over.
"""

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ...errors import SapbertError
from ..terminal import printable
from .headers import (
    LONGEST_LISTED,
    column_key,
    describe_header,
    find_places,
    list_columns,
    missing_columns,
)

NUMBERED = re.compile(r"\d{1,5}")
VALUE = re.compile(r"[-+]?\d[\d.,]*%?|[A-Za-z]{0,2}\d+\.\d+|\D{0,12}\d{4,}\S*")
WORDS = 4  # of the name of a column


class Column(NamedTuple):
    """A column that is read.

    Attributes:
        role: One of a `Roles`.
        place: From 0.
        source: Of codes: their vocabulary.
    """

    role: str
    place: int
    source: str = ""


class Layout(NamedTuple):
    """A table of a publisher or a tool.

    Attributes:
        name: Whose it is, for the report.
        columns: What its columns are, as in `--columns`; any may be absent. Numbers if
            it has no header.
        header: Columns that tell it from other tables; empty = it has no header.
        files: Pattern of the names of its files, if it has no header.
        id: Pattern of its ids, which its first row begins with, if it has no header.
        width: Of its rows; 0 = any.
        delimiter, comment: Between its fields, and before its comments, if it has no
            header.
        prefix: Before its ids.
        separator: Between the values of a cell.
        only: By column the only values with which a row is read, in lower case.
        never: By column the values with which a row is not read.
    """

    name: str
    columns: str
    header: tuple[str, ...] = ()
    files: str = ""
    id: str = ".*"
    width: int = 0
    delimiter: str = ""
    comment: str = ""
    prefix: str = ""
    separator: str | None = None
    only: Mapping[str, tuple[str, ...]] = {}
    never: Mapping[str, tuple[str, ...]] = {}

    def matches(self, path: Path, row: Sequence[str], keys: Sequence[str]) -> bool:
        """Return whether a table is this one, by its name and its first row."""
        if self.width not in (0, len(row)):
            return False
        if self.header:
            return {*map(column_key, self.header)} <= {*keys}
        is_one = bool(row) and re.fullmatch(self.id, row[0].strip()) is not None
        return is_one and self.has_name(path)

    def has_name(self, path: Path) -> bool:
        """Return whether a file without a header has the name of the table."""
        return fnmatch(path.name.lower().removesuffix(".gz"), self.files)


@dataclass(frozen=True)
class Roles:
    """What the columns of a kind of table may be.

    Attributes:
        names: By role the names of columns that have it, as `column_key` returns them,
            the best first.
        needed: Of each group of roles a table has one.
        repeated: Roles that several columns may have.
        coded: The role that has a source: "codes.ICD10CM=icd"; empty = none.
        find_source: Returns the source of a column of codes, or "".
        layouts: Tables that are known; the first that matches.
        example: A value of `--columns`, for errors.
        private: A first row that has no known name may be texts of people: no error
            shows it.
        also: What else a file may be, for errors.
    """

    names: Mapping[str, tuple[str, ...]]
    needed: tuple[tuple[str, ...], ...]
    example: str
    repeated: tuple[str, ...] = ()
    coded: str = ""
    find_source: Callable[[str], str] = lambda name: ""
    layouts: tuple[Layout, ...] = ()
    private: bool = False
    also: str = ""

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.names, *filter(None, [self.coded]))

    def find_file(self, path: Path) -> Layout | None:
        """Return the first known table without a header that has the name of a file."""
        return next((layout for layout in self.layouts if layout.has_name(path)), None)

    def lacks(self, roles: set[str]) -> list[tuple[str, ...]]:
        """Return the groups of `needed` of which there is none."""
        return [group for group in self.needed if not {*group} & roles]


@dataclass(frozen=True)
class Columns:
    """The columns of a table.

    Attributes:
        chosen: Those that are read.
        header: The names of all columns; empty = the first row has none.
        layout: What is known of the table, if it is a known one.
        rules: Of rows: the place of a column, values, and whether a row that has one of
            these is read or is not.
    """

    chosen: tuple[Column, ...]
    header: tuple[str, ...] = ()
    layout: Layout | None = None
    rules: tuple[tuple[int, tuple[str, ...], bool], ...] = ()

    def find(self, role: str) -> int | None:
        """Return the place of the first column with a role."""
        return next((c.place for c in self.chosen if c.role == role), None)

    def keeps(self, fields: Sequence[str]) -> bool:
        """Return whether a row is read; cells of rules may have several values."""
        return all(
            kept != {*fields[place].strip().lower().split("|")}.isdisjoint(values)
            for place, values, kept in self.rules
        )

    def describe(self) -> str:
        """Return which column is read as what, and which are not read."""
        names = [*map(show, self.header)]
        used = [
            f"{join_role(role, source)}={names[place] if names else place + 1}"
            for role, place, source in self.chosen
        ]
        places = {column.place for column in self.chosen}
        others = [
            name
            for place, name in enumerate(self.header)
            if place not in places and name.strip()
        ]
        known = f" of {self.layout.name}" if self.layout else ""
        rest = f"; not read: {list_columns(others)}" if others else ""
        return f"Columns{known}: {','.join(used)}{rest}."


def show(name: str) -> str:
    """Return the name of a column for a message, in one short line."""
    name = printable(name[:LONGEST_LISTED]).strip()
    return f'"{name}"' if "," in name or not name else name


def join_role(role: str, source: str) -> str:
    return f"{role}.{source}" if source else role


def parse_choice(choice: str, roles: Roles) -> list[tuple[str, str, str]]:
    """Parse the value of `--columns`.

    Args:
        choice: E.g. "id=Code,name=Preferred,codes.ICD10CM=icd"; double quotes around a
            part whose column has a comma.

    Returns:
        Role, source and name of the column.
    """
    choices = []
    try:
        (parts,) = csv.reader([choice], strict=True, skipinitialspace=True)
    except (csv.Error, ValueError):
        parts = [""]
    for part in parts:
        what, equals, name = part.partition("=")
        role, dot, source = what.strip().partition(".")
        # codes without a source get the name of their column
        right = role in roles.all and bool(source) == bool(dot)
        right = right and not (dot and role != roles.coded)
        if not equals or not name.strip() or not right:
            raise wrong_columns_option(roles, part[:LONGEST_LISTED])
        choices.append((role, source, name.strip()))
    return choices


def check_choice(choices: Sequence[tuple[str, str, str]], roles: Roles) -> None:
    """Check that a choice has the roles that are needed, and none too often."""
    given = [role for role, _, _ in choices]
    for role in given:
        if role not in roles.repeated and given.count(role) > 1:
            raise SapbertError(
                "E331",
                f"Expected one column as `{role}`, but `--columns` has several. "
                f"{' and '.join(f'`{name}`' for name in roles.repeated) or 'None'} may "
                "be repeated.",
            )
    if lacking := roles.lacks({*given}):
        raise wrong_columns_option(roles, f"no {' or '.join(lacking[0])}")


def choose_columns(
    path: Path, line: int, first: Sequence[str], roles: Roles, choice: str | None = None
) -> Columns:
    """Choose the columns of a table.

    Args:
        line: Of the first row, for errors.
        first: The first row, which has the names of the columns unless the table is a
            known one without names, or the choice has numbers.
        choice: See `parse_choice`; None = what is known of the table, else by the names
            of the columns. Numbers instead of names are places from 1.
    """
    keys = [column_key(name) for name in first]
    if choice is not None:
        parsed = parse_choice(choice, roles)
        check_choice(parsed, roles)
        return find_choice(path, line, first, parsed, roles)
    for layout in roles.layouts:
        if layout.matches(path, first, keys):
            columns = apply_layout(layout, first, roles)
            if columns.find(roles.needed[0][0]) is not None:
                return columns
    chosen = guess_columns(keys, first, roles)
    if roles.lacks({column.role for column in chosen}):
        is_header = bool(chosen) or (not roles.private and is_header_like(first))
        example = suggest(chosen, first, roles) if is_header else roles.example
        raise SapbertError(
            "E410",
            f"{path}:{line}: Expected names of columns in the first row that say "
            f"which has the {' and the '.join(group[0] for group in roles.needed)}, "
            f"but it has {describe_header(first, is_header=is_header)}. Say it: "
            f"`--columns {example}`; in a table without names `--columns` has the "
            f"numbers of the columns.{roles.also}",
        )
    return Columns(chosen, tuple(first))


def apply_layout(layout: Layout, first: Sequence[str], roles: Roles) -> Columns:
    """Return the columns of a known table that are there."""
    by_place = not layout.header
    chosen = tuple(
        Column(role, place, source)
        for role, source, name in parse_choice(layout.columns, roles)
        for place in list_places(first, name, by_place=by_place)[:1]
    )
    rules = tuple(
        (place, values, kept)
        for some, kept in ((layout.only, True), (layout.never, False))
        for name, values in some.items()
        for place in list_places(first, name, by_place=by_place)[:1]
    )
    return Columns(chosen, () if by_place else tuple(first), layout, rules)


def list_places(first: Sequence[str], name: str, *, by_place: bool) -> list[int]:
    """Return the places of the columns with a name, or with a number from 1."""
    if not by_place:
        return find_places(first, name)
    return [int(name) - 1] if 0 < int(name) <= len(first) else []


def find_choice(
    path: Path,
    line: int,
    first: Sequence[str],
    parsed: Sequence[tuple[str, str, str]],
    roles: Roles,
) -> Columns:
    """Return the columns that `--columns` names."""
    by_place = all(NUMBERED.fullmatch(name) for _, _, name in parsed)
    is_header = not by_place and any(find_places(first, each[2]) for each in parsed)
    found = []
    for role, source, name in parsed:
        places = list_places(first, name, by_place=by_place)
        if not places:
            raise missing_columns(
                f"{path}:{line}",
                first,
                [name[:LONGEST_LISTED]],
                "Correct `--columns`.",
                is_header=is_header,
            )
        if len(places) > 1:
            got = describe_header(first, is_header=is_header)
            raise SapbertError(
                "E410",
                f"{path}:{line}: Expected one column {name[:LONGEST_LISTED]!r}, but "
                f"several of {got} have that name. Rename them, or pass the places of "
                "the columns, e.g. `--columns id=1,name=2`, without the first row.",
            )
        if role == roles.coded and not source:
            source = (not by_place and roles.find_source(name)) or name
        found.append(Column(role, places[0], source))
    return Columns(tuple(found), () if by_place else tuple(first))


def guess_columns(
    keys: Sequence[str], header: Sequence[str], roles: Roles
) -> tuple[Column, ...]:
    """Return the columns whose names say what they are, which may have a number.

    Of two columns for the same role the one with the better name is used.
    """
    guessed: dict[int, Column] = {}
    for role, names in roles.names.items():
        for name in names:
            places = [
                place
                for place, key in enumerate(keys)
                if key.rstrip("0123456789") == name and place not in guessed
            ]
            several = role in roles.repeated
            for place in places if several else places[:1]:
                guessed[place] = Column(role, place)
            if places and not several:
                break
    for place, name in enumerate(header):
        if place not in guessed and (source := roles.find_source(name)):
            guessed[place] = Column(roles.coded, place, source)
    return tuple(guessed[place] for place in sorted(guessed))


def suggest(chosen: Sequence[Column], first: Sequence[str], roles: Roles) -> str:
    """Return a value of `--columns` for a table: what is known, and a column for each
    role that is needed.

    If no other column can have the role, it is one with such a name that was taken for
    something not needed; if there is none either, the value is `roles.example`.
    """
    parts = {column.place: column for column in chosen}
    lacking = roles.lacks({column.role for column in chosen})
    needed = {*chain(*roles.needed)}
    for role, *_ in lacking:
        free = [p for p in range(len(first)) if p not in parts or parts[p].source]
        ends = [p for p in free if column_key(first[p]).endswith(role)]
        free = ends or [p for p in free if p in parts] or free
        free = free or [
            place
            for place, column in parts.items()
            if column.role not in needed
            and column_key(first[place]).endswith(role.removesuffix("s"))
        ]
        if not free:
            return roles.example
        parts[free[0]] = Column(role, free[0])
    return ",".join(
        f'"{text}"' if "," in text else text
        for place, column in sorted(parts.items())
        for text in [f"{join_role(column.role, column.source)}={first[place].strip()}"]
    )


def is_header_like(first: Sequence[str]) -> bool:
    """Return whether a row has names: short texts without values, all different."""
    cells = [cell.strip() for cell in first]
    return (
        len(cells) > 1
        and len({*cells}) == len(cells)
        and all(cells)
        and all(len(c) <= LONGEST_LISTED and len(c.split()) <= WORDS for c in cells)
        and not any(map(VALUE.fullmatch, cells))
    )


def wrong_columns_option(roles: Roles, part: str) -> SapbertError:
    codes = roles.coded and f" Write `{roles.coded}.ICD10CM=icd` for codes."
    return SapbertError(
        "E331",
        f"Expected `--columns` like `{roles.example}`, with the roles "
        f"{', '.join(roles.all)} and those that are needed, but got: {part}.{codes}",
    )
