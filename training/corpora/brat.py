"""brat's standoff format: a folder of `.txt` files, each with an `.ann` file."""

from pathlib import Path
from typing import Dict, Iterator, List, Tuple

from spacy_sapbert.documents import read_text
from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.files import read_lines
from spacy_sapbert.gold_mentions import NO_ID, SEPARATORS
from training.corpora import GoldDocument, GoldSpan
from training.corpora.offsets import parse_fragments, place_fragments

ENTITY, NORMALISATION = "T", "N"
OTHERS = tuple("REAM*#")  # relations, events, attributes, equivalences, notes
LONGEST = 1_000_000  # characters of a document; spaCy's own limit

Entities = Dict[str, GoldSpan]  # by the name, e.g. "T1"
NumberedLine = Tuple[int, str]


def list_annotations(folder: Path) -> List[Path]:
    """List the files with annotations.

    folder (Path): The folder.
    RETURNS (List[Path]): All `.ann` files in it and below, sorted.
    RAISES (SapbertError): If there is none.
    """
    files = sorted(folder.rglob("*.ann"))
    if not files:
        raise SapbertError(Errors.E108.format(file="`.ann` files", folder=folder))
    return files


def read_entity(path: Path, number: int, line: str, text: str) -> Tuple[str, GoldSpan]:
    """Read a line `T1`, tab, `Type start end`, tab, mention.

    path (Path): The file, for the error.
    number (int): The line.
    line (str): The line.
    text (str): Of the document.
    RETURNS (Tuple[str, GoldSpan]): Its name, and the mention without ids.
    RAISES (SapbertError): If it has another form, or the offsets do not give the
        mention.
    """
    fields = line.split("\t", 2)
    if len(fields) != 3 or not fields[1].strip():
        raise SapbertError(
            Errors.E719.format(
                path=path, line=number, expected="`T1`, `Type start end`, the mention"
            )
        )
    name, place, mention = fields
    type, _, offsets = place.strip().partition(" ")
    fragments = parse_fragments(path, number, offsets)
    start, end, mention = place_fragments(path, number, text, fragments, mention)
    return name.strip(), GoldSpan(start, end, type, mention, [], number)


def read_entities(path: Path, text: str) -> Tuple[Entities, List[NumberedLine]]:
    """Read a file of annotations.

    path (Path): The `.ann` file.
    text (str): Of the document.
    RETURNS (Tuple[Entities, List[NumberedLine]]): The mentions without ids, and the
        lines that give them some.
    RAISES (SapbertError): With file and line, at the first bad line.
    """
    entities: Entities = {}
    normalisations: List[NumberedLine] = []
    for number, line in read_lines(path):
        if not line.strip() or line.startswith(OTHERS):
            continue
        if line.startswith(NORMALISATION):
            normalisations.append((number, line))
            continue
        if not line.startswith(ENTITY):
            raise SapbertError(
                Errors.E719.format(
                    path=path, line=number, expected="one of T N R E A M * # first"
                )
            )
        name, span = read_entity(path, number, line, text)
        if name in entities:
            raise SapbertError(
                Errors.E721.format(path=path, line=number, first=entities[name].line)
            )
        entities[name] = span
    return entities, normalisations


def add_ids(path: Path, entities: Entities, lines: List[NumberedLine]) -> None:
    """Give mentions the ids of lines `N1`, tab, `Reference T1 SOURCE:ID`, tab, name.

    path (Path): The file, for the error.
    entities (Entities): Changed in place; several ids of one are alternatives.
    lines (List[NumberedLine]): From `read_entities`.
    RAISES (SapbertError): If a line has another form, or names no mention.
    """
    for number, line in lines:
        fields = line.split("\t", 2)
        words = fields[1].split() if len(fields) > 1 else []
        if len(words) != 3 or SEPARATORS.search(words[2]):
            raise SapbertError(
                Errors.E719.format(
                    path=path, line=number, expected="`N1`, `Reference T1 SOURCE:ID`"
                )
            )
        _, name, cui = words
        if name not in entities:
            raise SapbertError(Errors.E720.format(path=path, line=number, file=path))
        span = entities[name]
        known = [each for part in span.parts for each in part]
        if cui not in NO_ID and cui not in known:
            entities[name] = span._replace(parts=[[*known, cui]])


def read_brat(path: Path, *, longest: int = LONGEST) -> Iterator[GoldDocument]:
    """Read texts with standoff annotations, ids from the normalisation lines.

    A mention with gaps goes from the start of its first fragment to the end of its
    last, and reads as the annotation has it.

    path (Path): A folder; files in folders below count too.
    longest (int): Characters of a document at the most.
    YIELDS (GoldDocument): Each `.ann` file with its `.txt`; its id is the name in the
        folder without the ending.
    RAISES (SapbertError): With file and line, at the first bad line, and where the
        offsets do not give the mention.
    SOURCE: https://brat.nlplab.org/standoff.html
    """
    for file in list_annotations(path):
        text = read_text(file.with_suffix(".txt"), longest=longest)
        entities, lines = read_entities(file, text)
        add_ids(file, entities, lines)
        name = file.relative_to(path).with_suffix("").as_posix()
        yield GoldDocument(name, text, list(entities.values()))
