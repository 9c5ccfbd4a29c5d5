"""CADEC as released by CSIRO: the folders `text`, `original` and `sct`."""

import re
from collections.abc import Iterator
from pathlib import Path

from spacy_sapbert.formats.brat import Entities, list_annotations, read_entities
from spacy_sapbert.formats.documents import read_text
from spacy_sapbert.formats.gold import LONGEST, parse_fragments, place_fragments
from spacy_sapbert.system.reading import read_lines
from training.corpora.registry import GoldDocument, GoldSpan
from training.errors import Errors, SapbertError

EXPECTED = "`TT1`, `id | name | start end`, the mention"
NO_CONCEPT = "CONCEPT_LESS"
PLACED = re.compile(r"(.*?)\s*([0-9]+ [0-9]+(?:;[0-9]+ [0-9]+)*)\s*")
CONCEPT = re.compile(r"\s*([0-9]{6,18})\s*(?:\|[^|]*(?:\||$))?\s*")
JOINT = re.compile(r"or\b|\+", re.IGNORECASE)


def split_concepts(path: Path, number: int, field: str) -> list[list[str]]:
    """Parse the concepts of a mention.

    field (str): `id | name |`, or several, with `or` between alternatives and `+`
        between parts; or `CONCEPT_LESS`.
    RETURNS (list[list[str]]): Alternative ids of each part; empty without a concept.
    RAISES (SapbertError): If the field has another form.
    """
    if field.strip(" |").upper() == NO_CONCEPT:
        return []
    parts: list[list[str]] = [[]]
    place = 0
    while True:
        concept = CONCEPT.match(field, place)
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
        place = joint.end()
    raise SapbertError(Errors.E719.format(path=path, line=number, expected=EXPECTED))


def read_concept(
    path: Path, number: int, line: str, text: str, originals: tuple[Path, Entities]
) -> tuple[str, GoldSpan]:
    """Read a line of a file in `sct`; see `read_cadec`.

    RETURNS (tuple[str, GoldSpan]): The name of the mention in `original`, and the
        mention with its concepts.
    """
    fields = line.split("\t", 2)
    match = PLACED.fullmatch(fields[1]) if len(fields) == 3 else None
    if match is None or not fields[0].startswith("TT"):
        raise SapbertError(
            Errors.E719.format(path=path, line=number, expected=EXPECTED)
        )
    concepts, offsets = match.groups()
    parts = split_concepts(path, number, concepts)
    fragments = parse_fragments(path, number, offsets)
    start, end, mention = place_fragments(path, number, text, fragments, fields[2])
    name = fields[0].strip()[1:]
    file, entities = originals
    if name not in entities:
        raise SapbertError(Errors.E720.format(path=path, line=number, file=file))
    return name, GoldSpan(start, end, entities[name].type, mention, parts, number)


def read_cadec(path: Path, *, longest: int = LONGEST) -> Iterator[GoldDocument]:
    """Read posts with mentions from `original` and their concepts from `sct`.

    `original/X.ann` has brat's lines `T1`, `ADR 9 19`, mention. `sct/X.ann` has for T1
    `TT1`, `271782001 | Drowsy | 9 19`, mention: ids of SNOMED CT, of the Australian
    Medicines Terminology for drugs, or `CONCEPT_LESS`. Several concepts are joined by
    `or` or `+`. The type of a mention is from `original`, everything else from
    `sct`. The custom folds of CADEC have another layout.

    longest (int): Characters of a post at most.
    YIELDS (GoldDocument): Each file of `original`; a mention that is not in `sct` has
        no id.
    RAISES (SapbertError): With file and line, at the first bad line, and where the
        offsets do not give the mention.
    SOURCE: Karimi et al. (2015).
    """
    folder = path / "original"
    for file in list_annotations(folder):
        name = file.relative_to(folder).with_suffix("")
        text = read_text(path / "text" / f"{name}.txt", longest=longest)
        entities, _ = read_entities(file, text)
        concepts = path / "sct" / f"{name}.ann"
        found: Entities = {}
        for number, line in read_lines(concepts):
            if not line.strip() or line.startswith("#"):
                continue
            key, span = read_concept(concepts, number, line, text, (file, entities))
            if key in found:
                raise SapbertError(
                    Errors.E721.format(
                        path=concepts, line=number, first=found[key].line
                    )
                )
            found[key] = span
        spans = list({**entities, **found}.values())
        yield GoldDocument(name.as_posix(), text, spans)
