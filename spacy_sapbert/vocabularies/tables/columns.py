"""Which column of a table is which: by the option `--columns`, or by its name."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...errors import SapbertError
from ...io.tables.headers import column_key, describe_header
from ...linking.sources import SOURCES

ID, NAME, SYNONYMS, CODES = "id", "name", "synonyms", "codes"
STATUS = "status"  # of a name in MedCAT: P = preferred
# names of columns as `column_key` returns them, without a number at the end
GUESSES: dict[str, tuple[str, ...]] = {
    ID: (
        *("id", "code", "cui", "conceptid", "conceptcode", "identifier", "termid"),
        *("key", "uri", "schlüssel", "schluessel", "kode", "código", "codigo"),
    ),
    NAME: (
        *("name", "preferred", "preferredname", "preferredterm", "preferredlabel"),
        *("preflabel", "label", "term", "title", "conceptname", "canonicalname"),
        *("display", "bezeichnung", "benennung", "libellé", "libelle", "nombre"),
    ),
    SYNONYMS: (
        *("synonyms", "synonym", "alias", "aliases", "altlabel", "altlabels", "alt"),
        *("alternativename", "alternativenames", "alternativelabel", "othernames"),
        *("exactsynonym", "exactsynonyms", "synonyme", "sinónimos", "sinonimos"),
    ),
    "type": (
        *("type", "types", "semantictype", "semantictypes", "tui", "semantictag"),
        *("domain", "domainid", "category", "class", "typeids"),
    ),
    "parent": (
        *("parent", "parents", "parentid", "parentids", "parentcode", "broader"),
        *("isa", "superclass"),
    ),
    "definition": ("definition", "def", "scopenote", "description", "beschreibung"),
    "language": ("language", "lang", "lat", "languagecode", "sprache", "idioma"),
    "retired": ("retired", "retiredid", "retiredids", "replaces"),
    STATUS: ("namestatus",),
}
# names of columns with codes → the name of the vocabulary in UMLS
CODE_COLUMNS = {name: source.name for source in SOURCES for name in source.columns}
ROLES = (*GUESSES, CODES)
SHOWN = 40  # columns in an error, and characters of each


class Column(NamedTuple):
    """A column that is read.

    Attributes:
        role: One of `ROLES`.
        place: From 0.
        source: Of codes: their vocabulary.
    """

    role: str
    place: int
    source: str = ""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table.

    Attributes:
        chosen: Those that are read, with one ID and at least one name.
        width: Number of columns; 0 = of the first row.
        has_header: The first row has names of columns.
    """

    chosen: tuple[Column, ...]
    width: int
    has_header: bool

    def find(self, role: str) -> int | None:
        """Return the place of the first column with a role."""
        return next(
            (column.place for column in self.chosen if column.role == role), None
        )

    def describe(self, header: Sequence[str]) -> str:
        """Return which column is read as what, and which are not read."""
        names = [show(name) for name in header] if self.has_header else []
        used = []
        for role, place, source in self.chosen:
            what = f"{role}.{source}" if source else role
            used.append(f"{what}={names[place] if names else place + 1}")
        places = {each.place for each in self.chosen}
        others = [
            name
            for place, name in enumerate(names)
            if place not in places and name != '""'
        ]
        rest = f"; not read: {shorten(others)}" if others else ""
        return f"Columns: {','.join(used)}{rest}."


def show(name: str) -> str:
    """Return the name of a column for a message, in one short line."""
    name = "".join(
        character if character.isprintable() else " " for character in name[:SHOWN]
    ).strip()
    return f'"{name}"' if "," in name or not name else name


def shorten(names: Sequence[str]) -> str:
    """Return names for a message, of which at most `SHOWN` are written."""
    return ", ".join(names[:SHOWN]) + (" …" if len(names) > SHOWN else "")


def parse_choice(choice: str) -> list[tuple[str, str, str]]:
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
        right = role in ROLES and bool(source) == bool(dot) == (role == CODES)
        # codes without a source get the name of their column
        right = right or (role == CODES and not dot)
        if not equals or not name.strip() or not right:
            raise wrong_columns_option(roles=", ".join(ROLES), part=part[:SHOWN])
        choices.append((role, source, name.strip()))
    roles = [role for role, _, _ in choices]
    for role in ROLES:
        if role not in (SYNONYMS, CODES) and roles.count(role) > 1:
            raise SapbertError(
                "E331",
                f"Expected one column as `{role}`, but `--columns` has several. Only "
                "`synonyms` and `codes` may be repeated.",
            )
    if ID not in roles or not {NAME, SYNONYMS} & {*roles}:
        raise wrong_columns_option(roles=", ".join(ROLES), part="no id or no name")
    return choices


def choose_columns(
    path: Path, line: int, header: Sequence[str], choice: str | None
) -> Columns:
    """Choose the columns of a table.

    Args:
        line: Of the header, for errors.
        header: The first row.
        choice: See `parse_choice`; None = by the names of the columns. Numbers instead
            of names are places from 1, in a table without a header.
    """
    keys = [column_key(name) for name in header]
    if choice is None:
        chosen = guess_columns(keys, header)
        roles = {column.role for column in chosen}
        if ID not in roles or not {NAME, SYNONYMS} & roles:
            got = describe_header(header, is_header=bool(chosen))
            raise SapbertError(
                "E410",
                f"{path}:{line}: Expected names of columns in the first row that say "
                f"which has the ids and which the names, but it has {got}. Name them, "
                "e.g. `--columns id=Code,name=Preferred`; in a table without names "
                "`--columns id=1,name=2`.",
            )
        return Columns(chosen, len(header), has_header=True)
    parsed = parse_choice(choice)
    by_place = all(name.isdecimal() and len(name) < 6 for _, _, name in parsed)
    found = []
    for role, source, name in parsed:
        if by_place:
            places = [int(name) - 1] if 0 < int(name) <= len(header) else []
        else:
            places = [p for p, other in enumerate(header) if other.strip() == name]
            places = places or [
                p for p, key in enumerate(keys) if key == column_key(name)
            ]
        named = any(column_key(other) in keys for _, _, other in parsed)
        got = describe_header(header, is_header=named and not by_place)
        if not places:
            raise SapbertError(
                "E410",
                f"{path}:{line}: Expected a column {name[:SHOWN]!r}, as `--columns` "
                f"says, but it has {got}. Correct the option.",
            )
        if len(places) > 1:
            raise SapbertError(
                "E410",
                f"{path}:{line}: Expected one column {name[:SHOWN]!r}, but several of "
                f"{got} have that name. Rename them, or pass the places of the "
                "columns, e.g. `--columns id=1,name=2`, without the first row.",
            )
        if role == CODES and not source:
            source = (not by_place and find_source(name)) or name
        found.append(Column(role, places[0], source))
    return Columns(tuple(found), len(header), has_header=not by_place)


def find_source(name: str) -> str:
    """Return the vocabulary of a column with codes, or "" if its name is none."""
    key = column_key(name)
    for ending in ("", "codes", "code", "ids", "id"):
        if key.endswith(ending) and (
            source := CODE_COLUMNS.get(key.removesuffix(ending) if ending else key)
        ):
            return source
    return ""


def guess_columns(keys: Sequence[str], header: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns whose names say what they are.

    Of two columns for the same role the first of `GUESSES` is used. "Description" is
    the name, if there is no other, and else the definition.
    """
    guessed: dict[int, Column] = {}
    for role, names in GUESSES.items():
        for name in names:
            places = [
                p for p, key in enumerate(keys) if key.rstrip("0123456789") == name
            ]
            places = [place for place in places if place not in guessed]
            for place in places if role == SYNONYMS else places[:1]:
                guessed[place] = Column(role, place)
            if places and role != SYNONYMS:
                break
    for place, name in enumerate(header):
        if place not in guessed and (source := find_source(name)):
            guessed[place] = Column(CODES, place, source)
    roles = {column.role: column for column in guessed.values()}
    described = roles.get("definition")
    if NAME not in roles and described and keys[described.place].startswith("desc"):
        guessed[described.place] = Column(NAME, described.place)
    if ID not in roles and CODES in roles:
        # the only code is the id: `ICD10,name`
        guessed[roles[CODES].place] = Column(ID, roles[CODES].place)
    return tuple(guessed[place] for place in sorted(guessed))


def wrong_columns_option(*, roles: object, part: object) -> SapbertError:
    return SapbertError(
        "E331",
        f"Expected `--columns` like `id=Code,name=Preferred`, with the roles {roles} "
        f"and with an id and a name or synonyms, but got: {part}. Write "
        "`codes.ICD10CM=icd` for codes of a vocabulary.",
    )
