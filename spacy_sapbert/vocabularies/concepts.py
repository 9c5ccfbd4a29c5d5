"""Concept, and concepts.jsonl: what every vocabulary becomes, one concept a line."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from html import escape
from itertools import groupby
from operator import attrgetter, lt
from pathlib import Path
from typing import Annotated, Any, Required

from pydantic import (
    ConfigDict,
    FailFast,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)
from typing_extensions import TypedDict

from ..errors import SapbertError
from ..io.reading import RECORD_BYTES, RECORD_VALUES, is_too_large, read_lines
from ..io.writing import write_atomically

PLACES = ("languages", "sources")
get_cui = attrgetter("cui")
SHOWN_NAMES = 10  # in a notebook
# What a code of another vocabulary is that does not mean the same as the concept
BROADER, NARROWER, RELATED = "broader", "narrower", "related"
RELATIONS = (BROADER, NARROWER, RELATED)
Relation = Annotated[str, StringConstraints(pattern="^(broader|narrower|related)$")]
ANNOTATED = "annotated"  # source of names that a knowledge base learned from mentions
# or a wrong line would have an error of some thousand bytes for each item
Texts = Annotated[list[str], FailFast()]
Places = dict[str, Annotated[list[int], FailFast()]]
# U+3000 is the last
BLANKS = {place: " " for place in range(0x3001) if chr(place).isspace()}


def clean_name(text: str) -> str:
    """Strip a name, and replace each run of white space in it by one space.

    Tabs, carriage returns, U+0085, U+2028 and no-break spaces are white space. Case,
    Unicode form, zero-width and right-to-left marks stay.
    """
    if text.isprintable() and "  " not in text:
        return text.strip()  # the usual case: a space is the only white space
    text = text.translate(BLANKS).strip(" ")
    # `split` would need a hundred times the memory for a name of short words
    while "  " in text:
        text = text.replace("  ", " ")
    return text


def has_letter_or_digit(name: str) -> bool:
    """Return whether a name has a letter or digit of any script."""
    return name[:1].isalnum() or any(map(str.isalnum, name))


@dataclass(slots=True)
class Concept:
    """One CUI with its names.

    Attributes:
        cui: Id of the concept: a UMLS CUI, or any id of another vocabulary.
        aliases: All names, distinct, the preferred one first; never empty.
        types: Ids of semantic types, e.g. "T047".
        codes: Codes that mean the same, by vocabulary.
        parents: CUIs one step up in the hierarchy.
        definition: What it is, in a sentence or two.
        retired: Ids that once named this concept.
        retired_by: By some of these ids, the table or property that says so; of several
            steps all: "replaced by: A → B; alternative id: B → C".
        languages: By language as in UMLS, e.g. "ENG", the places in `aliases` of the
            names that it has: from 0, ascending, distinct. A name may be in several,
            and in none if its language is unknown.
        sources: The same by the vocabularies that the names come from, e.g. "MSH".
        related_codes: Codes that do not mean the same, by what they are (`RELATIONS`)
            and by vocabulary: {"broader": {"ICD10": ["Q77.3"]}}.

    Examples:
        >>> fever = Concept("C0015967", ["Fever", "Pyrexia"], types=["T184"])
        >>> fever.name
        'Fever'
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
    related_codes: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    retired_by: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The preferred name."""
        return self.aliases[0]

    def _repr_html_(self) -> str:
        """Return what it is, for notebooks: id, names, types and definition."""
        names = "; ".join(self.aliases[1:SHOWN_NAMES])
        more = len(self.aliases) - SHOWN_NAMES
        parts = [
            f"<b>{escape(self.cui)} {escape(self.name)}</b>",
            escape(names) + (f" and {more} more" if more > 0 else ""),
            escape(", ".join(self.types)),
            escape(self.definition or ""),
        ]
        return "<br>".join(filter(None, parts))

    @property
    def canonical_name(self) -> str:
        """The `name`, under the name that it has in scispaCy."""
        return self.name


class ConceptLine(TypedDict, total=False):
    """The fields of a line of concepts.jsonl; see `Concept`."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]

    cui: Required[str]
    name: str | None
    aliases: Texts
    types: Texts
    codes: dict[str, Texts]
    parents: Texts
    definition: str | None
    retired: Texts
    languages: Places
    sources: Places
    related_codes: dict[Relation, dict[str, Texts]]
    retired_by: dict[str, str]


CONCEPT_LINE = TypeAdapter(ConceptLine)
EXPECTED = {
    "": "`cui` and `name` or `aliases`",
    "cui": "a text as `cui`",
    "name": "a text as `name`",
    "definition": "a text as `definition`",
    "codes": "lists of texts by source as `codes`",
    "related_codes": "lists of texts by relation and source as `related_codes`",
    "retired_by": "texts by retired id as `retired_by`",
    **{
        key: f"a list of texts as `{key}`"
        for key in ("aliases", "types", "parents", "retired")
    },
    **{
        key: f"lists of ascending places in `aliases`, from 0, as `{key}`"
        for key in PLACES
    },
}


def concept_to_json(concept: Concept) -> dict[str, Any]:
    """Return the fields that are not empty, in a fixed order.

    Args:
        concept: The concept.

    Returns:
        Plain JSON types; empty fields are left out, and the keys of languages and
        sources sorted.
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
    if concept.related_codes:
        data["related_codes"] = concept.related_codes
    if concept.retired_by:
        data["retired_by"] = concept.retired_by
    return data


def set_related_codes(
    concept: Concept, related: Iterable[tuple[str, str, str]]
) -> None:
    """Set the related codes of a concept: each once, and none that means the same.

    `related` has relation, source and code of each.
    """
    seen = {(source, code) for source, some in concept.codes.items() for code in some}
    concept.related_codes = {}
    for relation, source, code in related:
        if (source, code) not in seen:
            seen.add((source, code))
            by_source = concept.related_codes.setdefault(relation, {})
            by_source.setdefault(source, []).append(code)


def list_related_codes(concept: Concept) -> Iterator[tuple[str, str, str]]:
    """Yield relation, source and code of the related codes of a concept."""
    for relation, by_source in concept.related_codes.items():
        for source, codes in by_source.items():
            for code in codes:
                yield relation, source, code


def move_places(
    places: dict[str, list[int]], moved: Sequence[int | None]
) -> dict[str, list[int]]:
    """Return the places of names after their list has changed.

    Args:
        places: Old places, by language or source.
        moved: The new place of each old one; None if it is removed.

    Returns:
        New places, ascending; without keys that have none.
    """
    found = {
        key: sorted({new for old in known if (new := moved[old]) is not None})
        for key, known in places.items()
    }
    return {key: value for key, value in found.items() if value}


def change_names(concept: Concept, names: Sequence[str]) -> None:
    """Change the names of a concept, and update its languages and sources.

    Args:
        concept: The concept, changed in place; its old lists and dicts are not changed.
        names: One for each alias; an empty one is left out, and of equal ones the first
            is kept.
    """
    aliases = list(dict.fromkeys(filter(None, names)))
    where = {alias: position for position, alias in enumerate(aliases)}
    moved = [where.get(name) for name in names]
    concept.aliases = aliases
    concept.languages = move_places(concept.languages, moved)
    concept.sources = move_places(concept.sources, moved)


def parse_concept(line: str, path: Path, number: int) -> Concept:
    """Parse a line of concepts.jsonl.

    `name` and `aliases` may each be absent. `languages` and `sources` refer to the
    `aliases` of the line; if there are none, 0 is the `name`.

    Args:
        path, number: File and line number for the error.

    Raises:
        SapbertError: If it is not JSON, or a field is missing, unknown or invalid.
    """

    def fail(expected: str) -> SapbertError:
        return SapbertError(
            "E117",
            f"{path}:{number}: Expected a concept as a JSON object with {expected}, "
            "but got something else. Correct the line, or make the file of a table or "
            "release: `spacy sapbert concepts FILE --output concepts.jsonl`.",
        )

    try:
        data = CONCEPT_LINE.validate_json(line)
    except ValidationError as error:
        raise fail(describe_error(error, EXPECTED)) from None
    cui, name = data["cui"], data.get("name")
    names = [name] if name else []
    written = data.get("aliases") or names
    aliases = list(dict.fromkeys([*names, *written]))
    languages, sources = data.get("languages", {}), data.get("sources", {})
    if expected := find_invalid(cui, aliases, (languages, sources), len(written)):
        raise fail(expected)
    if written != aliases:
        # another name comes first, or one comes twice
        where = {alias: position for position, alias in enumerate(aliases)}
        moved = [where[alias] for alias in written]
        languages, sources = move_places(languages, moved), move_places(sources, moved)
    return Concept(
        cui=cui,
        aliases=aliases,
        types=data.get("types", []),
        codes=data.get("codes", {}),
        parents=data.get("parents", []),
        definition=data.get("definition"),
        retired=data.get("retired", []),
        languages=languages,
        sources=sources,
        related_codes=dict(data.get("related_codes", {})),
        retired_by=data.get("retired_by", {}),
    )


def find_invalid(
    cui: str, aliases: list[str], places: tuple[Places, Places], written: int
) -> str:
    """Return what was expected of the fields of a concept, or "" if they are valid.

    Places refer to the `written` names.
    """
    if not cui.strip():
        return EXPECTED["cui"]
    if not aliases or not all(map(str.strip, aliases)):
        return "at least one name, and no empty one"
    languages, sources = places
    if ANNOTATED in sources:
        return f"names of sources other than `{ANNOTATED}`, which marks what was taught"
    for key, lists in zip(PLACES, (languages, sources), strict=True):
        for values in lists.values():
            if not values or values[0] < 0 or values[-1] >= written:
                return EXPECTED[key]
            if not all(map(lt, values, values[1:])):
                return EXPECTED[key]
    return ""


def check_concept(concept: Concept) -> bytes:
    """Check that `read_concepts` can read a concept.

    Returns:
        Its line of concepts.jsonl, without the line feed.

    Raises:
        SapbertError: If its id or a name is blank, it has no names, places of names are
            invalid, or the line is too large. No name is quoted.
    """
    cui, aliases = concept.cui, concept.aliases
    places = concept.languages, concept.sources
    try:
        expected = find_invalid(cui, aliases, places, len(aliases))
        line = json.dumps(concept_to_json(concept), ensure_ascii=False).encode("utf8")
    except (IndexError, TypeError, UnicodeEncodeError):
        expected = "texts that UTF-8 can encode as id and names"
    if not expected and is_too_large(line):
        expected = f"at most {RECORD_BYTES:,} bytes and {RECORD_VALUES:,} values"
    if expected:
        raise SapbertError(
            "E117",
            f"Expected a concept with {expected}, but the concept {f'{cui}'[:40]!r} is "
            "another. Correct the concept.",
        )
    return line


def describe_error(error: ValidationError, expected: Mapping[str, str]) -> str:
    """Return what was expected, from the first error of a line; never its values.

    `expected` has it by field; "" = of the line.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return "valid JSON"
    if first["type"] == "extra_forbidden":
        return f"no fields but {sorted(filter(None, expected))}"
    return expected[str(first["loc"][0]) if first["loc"] else ""]


def read_concepts(path: str | Path) -> Iterator[Concept]:
    """Read concepts.jsonl, or the same with `.gz`, one concept at a time.

    Yields:
        Each concept, in the order of the file.

    Raises:
        SapbertError: With file and line, at the first bad line.
    """
    path = Path(path)
    for number, line in read_lines(path):
        if line.strip():
            yield parse_concept(line, path, number)


def write_concepts(path: str | Path, concepts: Iterable[Concept]) -> int:
    """Write concepts.jsonl to a temporary file, then rename it.

    Args:
        path: The file; with `.gz` at the end it is compressed.
        concepts: The concepts.

    Returns:
        How many there were.

    Raises:
        SapbertError: See `check_concept`; no file is left under the name.

    Examples:
        >>> fever = Concept("W1", ["blue fever", "azure fever"])
        >>> write_concepts("words.jsonl", [fever])
        1
        >>> [concept.name for concept in read_concepts("words.jsonl")]
        ['blue fever']
    """
    count = 0
    with write_atomically(Path(path)) as file:
        for concept in concepts:
            file.write(check_concept(concept) + b"\n")
            count += 1
    return count


def unite_vocabularies(inputs: Sequence[Iterable[Concept]]) -> Iterator[Concept]:
    """Merge vocabularies in constant memory.

    Args:
        inputs: Each sorted by id, with each id once; the vocabulary whose names and
            definitions are preferred first.

    Yields:
        Each concept once, sorted by id.
    """
    for _, same in groupby(merge(*inputs, key=get_cui), key=get_cui):
        yield unite_concepts(list(same))


def unite_concepts(concepts: list[Concept]) -> Concept:
    """Merge concepts with the same id into the first one.

    The preferred name is that of the first concept, the definition that of the first
    that has one; other fields are joined in this order.
    """
    united, *others = concepts
    if not others:
        return united
    unite_names(concepts)
    for name in ("types", "parents", "retired"):
        values = (value for concept in concepts for value in getattr(concept, name))
        setattr(united, name, list(dict.fromkeys(values)))
    for concept in reversed(concepts):
        united.retired_by = united.retired_by | concept.retired_by
    codes: dict[str, dict[str, None]] = {}
    for concept in concepts:
        united.definition = united.definition or concept.definition
        for source, found in concept.codes.items():
            codes.setdefault(source, {}).update(dict.fromkeys(found))
    related = [code for concept in concepts for code in list_related_codes(concept)]
    united.codes = {source: list(found) for source, found in codes.items()}
    set_related_codes(united, related)
    return united


def unite_names(concepts: Sequence[Concept]) -> None:
    """Add the names of other concepts, with languages and sources, to the first one."""
    where: dict[str, int] = {}
    for concept in concepts:
        for alias in concept.aliases:
            where.setdefault(alias, len(where))
    for name in PLACES:
        united: dict[str, set[int]] = {}
        for concept in concepts:
            for key, places in getattr(concept, name).items():
                moved = (where[concept.aliases[position]] for position in places)
                united.setdefault(key, set()).update(moved)
        setattr(concepts[0], name, {key: sorted(united[key]) for key in united})
    concepts[0].aliases = list(where)
