"""JSON Lines: concepts of your own, and knowledge bases of scispaCy."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Required

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ...errors import Errors, SapbertError
from ...system.json_lines import validate_line
from ..concepts import (
    Concept,
    change_names,
    clean_name,
    describe_error,
    has_letter_or_digit,
    parse_concept,
)
from ..merge import sort_concepts
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


def read_jsonl(path: Path, report: Report) -> Iterator[Concept]:
    """Read concepts in any order, and clean their names.

    Args:
        path: The file, plain or `.gz`, in the form of concepts.jsonl.

    Yields:
        Each concept, sorted by id.

    Raises:
        SapbertError: With file and line, at the first invalid line.
    """
    return sort_concepts(parse_lines(path, report, parse_concept))


def read_scispacy(path: Path, report: Report) -> Iterator[Concept]:
    """Read a knowledge base of scispaCy; see `read_jsonl`.

    Yields:
        Each concept, sorted by id; its `canonical_name` comes first.
    """
    return sort_concepts(parse_lines(path, report, parse_entity))


def parse_lines(path: Path, report: Report, parse: Parser) -> Iterator[Concept]:
    """Yield the concept of each line that has a name."""
    for number, line in read_good_lines(path, report):
        try:
            concept = parse(line, path, number)
        except SapbertError as error:
            report.skip("bad lines", error)
            continue
        names = [clean_name(alias) for alias in concept.aliases]
        names = [name if has_letter_or_digit(name) else "" for name in names]
        change_names(concept, names)
        dropped = names.count("")
        report.dropped["names without a letter or digit"] += dropped
        report.dropped["repeated names"] += len(names) - dropped - len(concept.aliases)
        report.rows_kept += len(concept.aliases)
        if concept.aliases:
            yield concept


def parse_entity(line: str, path: Path, number: int) -> Concept:
    """Parse a line of a knowledge base of scispaCy; see `parse_concept`."""

    def fail(expected: str) -> SapbertError:
        return SapbertError(
            Errors.E117.format(path=path, line=number, expected=expected)
        )

    try:
        data = validate_line(ENTITY, line)
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
