"""Concept, and concepts.jsonl: what every vocabulary becomes, one concept a line."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import lt
from pathlib import Path
from typing import Any

from ..errors import Errors, SapbertError
from ..system.reading import read_lines
from ..system.writing import write_atomically

LISTS = ("aliases", "types", "parents", "retired")
PLACES = ("languages", "sources")


@dataclass(slots=True)
class Concept:
    """One CUI with its names.

    cui (str): Id of the concept: a UMLS CUI, or any id of another vocabulary.
    aliases (list[str]): All names, distinct, the preferred one first; never empty.
    types (list[str]): Ids of semantic types, e.g. "T047".
    codes (dict[str, list[str]]): Codes in the vocabularies that the names come from.
    parents (list[str]): CUIs one step up in the hierarchy.
    definition (str | None): What it is, in a sentence or two.
    retired (list[str]): Ids that once named this concept.
    languages (dict[str, list[int]]): By language as in UMLS, e.g. "ENG", the places in
        `aliases` of the names that it has: from 0, ascending, distinct. A name may be
        in several, and in none if its language is unknown.
    sources (dict[str, list[int]]): The same by the vocabularies that the names come
        from, e.g. "MSH".
    """

    cui: str
    aliases: list[str]
    types: list[str] = field(default_factory=list)
    codes: dict[str, list[str]] = field(default_factory=dict)
    parents: list[str] = field(default_factory=list)
    definition: str | None = None
    retired: list[str] = field(default_factory=list)
    languages: dict[str, list[int]] = field(default_factory=dict)
    sources: dict[str, list[int]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The preferred name."""
        return self.aliases[0]


def concept_to_json(concept: Concept) -> dict[str, Any]:
    """Return the fields that say something, in a fixed order.

    concept (Concept): The concept.
    RETURNS (dict[str, Any]): Plain JSON types; empty fields are left out, and the keys
        of languages and sources sorted.
    """
    data: dict[str, Any] = {
        "cui": concept.cui,
        "name": concept.name,
        "aliases": concept.aliases,
    }
    for key in ("types", "codes", "parents", "definition", "retired"):
        if value := getattr(concept, key):
            data[key] = value
    for key in PLACES:
        if places := getattr(concept, key):
            data[key] = dict(sorted(places.items()))
    return data


def are_places(data: Any, count: int) -> bool:
    """Return whether something is places of names by language or source.

    data (Any): Parsed JSON.
    count (int): How many names there are.
    RETURNS (bool): Whether each key has a list of whole numbers, from 0, ascending.
    """
    return (
        isinstance(data, dict)
        and all(
            isinstance(places, list)
            # a bool is an int in Python
            and set(map(type, places)) == {int}
            and places[0] >= 0
            and places[-1] < count
            and all(map(lt, places, places[1:]))
            for places in data.values()
        )
    )


def move_places(
    places: dict[str, list[int]], moved: Sequence[int | None]
) -> dict[str, list[int]]:
    """Say where names are after their list has changed.

    places (dict[str, list[int]]): Old places, by language or source.
    moved (Sequence[int | None]): The new place of each old one; None = it is gone.
    RETURNS (dict[str, list[int]]): New places, ascending; without keys that have none.
    """
    found = {
        key: sorted({new for old in known if (new := moved[old]) is not None})
        for key, known in places.items()
    }
    return {key: value for key, value in found.items() if value}


def change_names(concept: Concept, names: Sequence[str]) -> None:
    """Return a concept other names, and keep their languages and sources right.

    concept (Concept): The concept, changed in place: its fields are replaced, and what
        was in them stays as it was.
    names (Sequence[str]): One for each alias; an empty one is left out, and of equal
        ones the first is kept.
    """
    aliases = list(dict.fromkeys(filter(None, names)))
    where = {alias: place for place, alias in enumerate(aliases)}
    moved = [where.get(name) for name in names]
    concept.aliases = aliases
    concept.languages = move_places(concept.languages, moved)
    concept.sources = move_places(concept.sources, moved)


def concept_from_json(data: Any, path: Path, line: int) -> Concept:
    """Check what a line of concepts.jsonl says, and make the concept of it.

    data (Any): The parsed line. `name` and `aliases` may each stand alone; `languages`
        and `sources` count in `aliases` as the line has them, or 0 is a `name` alone.
    path (Path): The file, for the error.
    line (int): The line in it, from 1, for the error.
    RETURNS (Concept): The concept.
    RAISES (SapbertError): If a field is missing, unknown or of another type.
    """

    def fail(expected: str, got: str) -> SapbertError:
        return SapbertError(
            Errors.E101.format(path=path, line=line, expected=expected, got=got)
        )

    if not isinstance(data, dict):
        raise fail("`cui` and `name` or `aliases`", f"a {type(data).__name__}")
    known = set(Concept.__slots__) | {"name"}
    if unknown := sorted(set(data) - known):
        raise fail(f"no fields but {sorted(known)}", f"the field {unknown[0]!r}")
    cui = data.get("cui")
    if not isinstance(cui, str) or not cui.strip():
        raise fail("a text as `cui`", repr(type(cui).__name__))
    for key in LISTS:
        value = data.get(key, [])
        if not isinstance(value, list) or any(not isinstance(v, str) for v in value):
            raise fail(f"a list of texts as `{key}`", "something else")
    codes = data.get("codes", {})
    if not isinstance(codes, dict) or any(
        not isinstance(c, list) or any(not isinstance(v, str) for v in c)
        for c in codes.values()
    ):
        raise fail("lists of texts by source as `codes`", "something else")
    for key in ("name", "definition"):
        if not isinstance(data.get(key), (str, type(None))):
            raise fail(f"a text as `{key}`", "something else")
    names = [data["name"]] if data.get("name") else []
    said = data.get("aliases") or names
    aliases = list(dict.fromkeys([*names, *said]))
    if not aliases or any(not alias.strip() for alias in aliases):
        raise fail("at least one name and no empty one", "none or an empty one")
    for key in PLACES:
        if not are_places(data.get(key, {}), len(said)):
            expected = f"lists of ascending places in `aliases`, from 0, as `{key}`"
            raise fail(expected, "something else")
    languages, sources = (data.get(key, {}) for key in PLACES)
    if said != aliases:
        # another name comes first, or one comes twice
        where = {alias: place for place, alias in enumerate(aliases)}
        moved = [where[alias] for alias in said]
        languages, sources = move_places(languages, moved), move_places(sources, moved)
    return Concept(
        cui=cui,
        aliases=aliases,
        types=data.get("types", []),
        codes=codes,
        parents=data.get("parents", []),
        definition=data.get("definition"),
        retired=data.get("retired", []),
        languages=languages,
        sources=sources,
    )


def parse_concept(line: str, path: Path, number: int) -> Concept:
    """Make a concept of a line of concepts.jsonl.

    line (str): The line.
    path (Path): The file, for the error.
    number (int): The line in it, from 1, for the error.
    RETURNS (Concept): The concept.
    RAISES (SapbertError): If it is no JSON, or no concept.
    """
    try:
        data = json.loads(line)
        if "\\u" in line:
            # JSON can escape half a character, and no file can hold one
            json.dumps(data, ensure_ascii=False).encode("utf8")
    except (ValueError, RecursionError):
        raise SapbertError(
            Errors.E101.format(
                path=path, line=number, expected="valid JSON", got="something else"
            )
        ) from None
    return concept_from_json(data, path, number)


def read_concepts(path: Path) -> Iterator[Concept]:
    """Read concepts.jsonl, or the same with `.gz`, one concept at a time.

    path (Path): The file.
    YIELDS (Concept): Each concept, in the order of the file.
    RAISES (SapbertError): With file and line, at the first bad line.
    """
    for number, line in read_lines(path):
        if line.strip():
            yield parse_concept(line, path, number)


def write_concepts(path: Path, concepts: Iterable[Concept]) -> int:
    """Write concepts.jsonl; the file takes its name only when it is whole.

    path (Path): The file; with `.gz` at the end it is compressed.
    concepts (Iterable[Concept]): The concepts.
    RETURNS (int): How many there were.
    """
    count = 0
    with write_atomically(path) as file:
        for concept in concepts:
            line = json.dumps(concept_to_json(concept), ensure_ascii=False)
            file.write(line.encode("utf8") + b"\n")
            count += 1
    return count
