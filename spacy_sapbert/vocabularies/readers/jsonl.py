"""JSON Lines: concepts of your own, and knowledge bases of scispaCy."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Required

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ...errors import SapbertError, unexpected_line
from ...io.json_members import JSONError, read_members
from ...io.reading import read_lines
from ..concepts import Concept, describe_error, parse_concept
from ..facts import Fact, concept_facts
from ..options import ReadOptions
from ..report import Report, read_good_lines

Parser = Callable[[str, Path, int], Concept]


class Entity(TypedDict, total=False):
    """An entity of scispaCy.

    Source: scispacy.linking_utils.Entity.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]

    concept_id: Required[str]
    canonical_name: str | None
    aliases: list[str] | None
    types: list[str] | None
    definition: str | None


ENTITY = TypeAdapter(Entity)
EXPECTED = {
    "": "a JSON object",
    "concept_id": "a text as `concept_id`",
    "canonical_name": "a text as `canonical_name`",
    "aliases": "a list of texts as `aliases`",
    "types": "a list of texts as `types`",
    "definition": "a text as `definition`",
}


def read_jsonl(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read concepts in the form of concepts.jsonl, in any order."""
    return line_facts(path, report, parse_concept)


def read_scispacy(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read a knowledge base of scispaCy; `canonical_name` is the preferred name.

    It has an entity a line, or is one list in JSON.
    """
    if next((line for _, line in read_lines(path)), "").lstrip()[:1] != "[":
        yield from line_facts(path, report, parse_entity)
        return
    try:
        for number, (_, entity) in enumerate(read_members(path, [()]), 1):
            report.read(path.name, 1)
            try:
                concept = parse_entity(json.dumps(entity), path, number)
            except SapbertError as error:
                report.skip("bad lines", error)
                continue
            yield from concept_facts(concept)
    except JSONError as error:
        raise SapbertError(
            "E117",
            f"{path}: Expected a list of scispaCy in JSON, but got {error}. Fetch or "
            "copy the file again.",
        ) from None


def line_facts(path: Path, report: Report, parse: Parser) -> Iterator[Fact]:
    """Yield the facts of the concept of each line."""
    for number, line in read_good_lines(path, report):
        try:
            concept = parse(line, path, number)
        except SapbertError as error:
            report.skip("bad lines", error)
            continue
        yield from concept_facts(concept)


def parse_entity(line: str, path: Path, number: int) -> Concept:
    """Parse a line of a knowledge base of scispaCy; see `parse_concept`."""

    def fail(expected: str) -> SapbertError:
        return unexpected_line(path=path, line=number, expected=expected)

    try:
        data = ENTITY.validate_json(line)
    except ValidationError as error:
        raise fail(describe_error(error, EXPECTED)) from None
    if not data["concept_id"].strip():
        raise fail(EXPECTED["concept_id"])
    name = data.get("canonical_name")
    names = [*([name] if name else []), *(data.get("aliases") or [])]
    if not names:
        raise fail("`canonical_name` or `aliases`")
    return Concept(
        data["concept_id"],
        list(dict.fromkeys(names)),
        types=data.get("types") or [],
        definition=data.get("definition") or None,
    )
