"""CADEC as released by CSIRO: the folders `text`, `original` and `sct`."""

import re
from collections.abc import Iterator
from pathlib import Path

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.brat import (
    Entities,
    list_annotations,
    read_entities,
    wrong_annotation,
)
from spacy_sapbert.formats.documents import read_text
from spacy_sapbert.formats.gold import (
    LONGEST,
    GoldDocument,
    GoldMention,
    parse_fragments,
    place_mention,
)
from spacy_sapbert.io.reading import read_lines

EXPECTED = "`TT1`, `id | name | start end`, the mention"
NO_CONCEPT = "CONCEPT_LESS"
PLACED = re.compile(r"(.*?)\s*([0-9]+ [0-9]+(?:;[0-9]+ [0-9]+)*)\s*")
CONCEPT = re.compile(r"\s*([0-9]{6,18})\s*(?:\|[^|]*(?:\||$))?\s*")
JOINT = re.compile(r"or\b|\+", re.IGNORECASE)


def split_concepts(path: Path, number: int, field: str) -> list[list[str]]:
    """Parse the concepts of a mention.

    Args:
        field: `id | name |`, or several, with `or` between alternatives and `+` between
            parts; or `CONCEPT_LESS`.

    Returns:
        Alternative ids of each part; empty without a concept.
    """
    if field.strip(" |").upper() == NO_CONCEPT:
        return []
    parts: list[list[str]] = [[]]
    position = 0
    while True:
        concept = CONCEPT.match(field, position)
        if concept is None:
            break
        parts[-1].append(concept.group(1))
        if concept.end() == len(field):
            return parts
        joint = JOINT.match(field, concept.end())
        if joint is None:
            break
        if joint.group() == "+":
            parts.append([])
        position = joint.end()
    raise wrong_annotation(path, number, EXPECTED)


def read_cadec(path: Path) -> Iterator[GoldDocument]:
    """Read posts with mentions from `original` and their concepts from `sct`.

    `original/X.ann` has brat's lines `T1`, `ADR 9 19`, mention. `sct/X.ann` has for T1
    `TT1`, `271782001 | Drowsy | 9 19`, mention: ids of SNOMED CT, of the Australian
    Medicines Terminology for drugs, or `CONCEPT_LESS`. Several concepts are joined by
    `or` or `+`. The type of a mention is from `original`, everything else from
    `sct`. The custom folds of CADEC have another layout.

    Yields:
        Each file of `original`; a mention that is not in `sct` has no id.

    Raises:
        SapbertError: With file and line, at the first bad line, and where the offsets
            do not give the mention.

    Source: Karimi et al. (2015).
    """
    folder = path / "original"
    for file in list_annotations(folder):
        name = file.relative_to(folder).with_suffix("")
        text = read_text(path / "text" / f"{name}.txt", longest=LONGEST)
        entities, _ = read_entities(file, text)
        concepts = path / "sct" / f"{name}.ann"
        found: Entities = {}
        for number, line in read_lines(concepts):
            if not line.strip() or line.startswith("#"):
                continue
            fields = line.split("\t", 2)
            match = PLACED.fullmatch(fields[1]) if len(fields) == 3 else None
            if match is None or not fields[0].startswith("TT"):
                raise wrong_annotation(concepts, number, EXPECTED)
            parts = split_concepts(concepts, number, match[1])
            fragments = parse_fragments(concepts, number, match[2])
            offsets = place_mention(concepts, number, text, fragments, fields[2])
            key = fields[0].strip()[1:]
            if key not in entities:
                raise SapbertError(
                    "E117",
                    f"{concepts}:{number}: Expected the line to name a mention of "
                    f"{file}, but it names another. Correct the line.",
                )
            if key in found:
                first = found[key].line
                raise SapbertError(
                    "E117",
                    f"{concepts}:{number}: Expected each annotation once, but it has "
                    f"the name of the one in line {first}. Rename one of them.",
                )
            start, end, mention = offsets
            type = entities[key].type
            found[key] = GoldMention(start, end, type, mention, parts, number)
        spans = list({**entities, **found}.values())
        yield GoldDocument(name.as_posix(), text, spans)
