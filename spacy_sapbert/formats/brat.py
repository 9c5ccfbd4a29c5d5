"""brat's standoff format: a folder of `.txt` files, each with an `.ann` file."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import SapbertError, missing_in_folder
from ..io.reading import read_lines
from .documents import TEXT_SUFFIXES, OnError, raise_error, read_text
from .entities import (
    BREAKS,
    UNBROKEN,
    LinkedDoc,
    LinkedEntity,
    Losses,
    blank_breaks,
    name_type,
    needs_text,
    quote_id,
    trim_place,
    warn_losses,
)
from .gold import (
    LONGEST,
    SEPARATORS,
    GoldDocument,
    GoldMention,
    check_count,
    failed_document,
    is_no_id,
    parse_fragments,
    place_mention,
)

ENTITY, NORMALISATION = "T", "N"
OTHERS = tuple("REAM*#")  # relations, events, attributes, equivalences, notes
RESOURCE = "KB:"  # before ids that name no source, which brat requires
NOTED = ("score", "probability", "types", "codes", "note", "tie")  # fields of an entity
NOT_IN_FILES = frozenset('\\:*?"<>|')
NAME_BYTES = 200  # of a file, of the 255 that most systems take
DEPTH = 8  # folders in each other

Entities = dict[str, GoldMention]  # by the name, e.g. "T1"
NumberedLine = tuple[int, str]


def list_annotations(folder: Path) -> list[Path]:
    """Return the `.ann` files in a folder and below, sorted, or that of a file."""
    if folder.is_file():
        return [folder.with_suffix(".ann")]
    files = sorted(folder.rglob("*.ann"))
    if not files:
        raise missing_in_folder(file="`.ann` files", folder=folder)
    return files


def read_entity(
    path: Path, number: int, line: str, text: str
) -> tuple[str, GoldMention]:
    """Parse a line `T1`, tab, `Type start end`, tab, mention."""
    fields = line.split("\t", 2)
    if len(fields) != 3 or not fields[1].strip():
        raise wrong_annotation(path, number, "`T1`, `Type start end`, the mention")
    name, place, mention = fields
    type, _, offsets = place.strip().partition(" ")
    fragments = parse_fragments(path, number, offsets)
    start, end, mention = place_mention(path, number, text, fragments, mention)
    return name.strip(), GoldMention(start, end, type, mention, [], number)


def read_entities(path: Path, text: str) -> tuple[Entities, list[NumberedLine]]:
    """Return the mentions of a file without ids, and the lines with their ids."""
    entities: Entities = {}
    normalisations: list[NumberedLine] = []
    for number, line in read_lines(path):
        if not line.strip() or line.startswith(OTHERS):
            continue
        if line.startswith(NORMALISATION):
            check_count(path, number, normalisations)
            normalisations.append((number, line))
            continue
        if not line.startswith(ENTITY):
            raise wrong_annotation(path, number, "one of T N R E A M * # first")
        name, span = read_entity(path, number, line, text)
        if name in entities:
            first = entities[name].line
            raise SapbertError(
                "E117",
                f"{path}:{number}: Expected each annotation once, but it has the name "
                f"of the one in line {first}. Rename one of them.",
            )
        check_count(path, number, entities)
        entities[name] = span
    return entities, normalisations


def add_ids(path: Path, entities: Entities, lines: list[NumberedLine]) -> None:
    """Add the ids of lines `N1`, tab, `Reference T1 SOURCE:ID`, tab, name to mentions.

    Several ids of one mention are alternatives.
    """
    for number, line in lines:
        fields = line.split("\t", 2)
        words = fields[1].split() if len(fields) > 1 else []
        if len(words) != 3 or SEPARATORS.search(words[2]):
            raise wrong_annotation(path, number, "`N1`, `Reference T1 SOURCE:ID`")
        _, name, cui = words
        if name not in entities:
            raise SapbertError(
                "E117",
                f"{path}:{number}: Expected the line to name a mention of {path}, but "
                "it names another. Correct the line.",
            )
        span = entities[name]
        cui = cui.removeprefix(RESOURCE)
        known = [each for part in span.parts for each in part]
        if not is_no_id(cui) and cui not in known:
            entities[name] = span._replace(parts=[[*known, cui]])


def read_file(path: Path, name: str, *, longest: int = LONGEST) -> GoldDocument:
    """Read an `.ann` file with the `.txt` file beside it."""
    text = read_text(path.with_suffix(".txt"), longest=longest)
    entities, lines = read_entities(path, text)
    add_ids(path, entities, lines)
    return GoldDocument(name, text, list(entities.values()))


def read_gold(
    path: Path, *, longest: int = LONGEST, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read texts with standoff annotations; ids are in the normalisation lines.

    A mention with gaps starts at its first fragment and ends at its last; its text is
    that of the annotation. The id of a document is the relative path of its `.ann` file
    without the ending.

    Source: https://brat.nlplab.org/standoff.html
    """
    folder = path.parent if path.is_file() else path
    for file in list_annotations(path):
        name = file.relative_to(folder).with_suffix("").as_posix()
        try:
            document = read_file(file, name, longest=longest)
        except SapbertError as error:
            on_error(error)
            yield failed_document(name, error)
        else:
            yield document


def file_name(number: Any) -> str:
    """Return an id as a path without an ending that is valid on every system.

    `/` in the id separates folders.
    """
    name = str(number)
    for suffix in TEXT_SUFFIXES:
        name = name.removesuffix(suffix)
    parts = []
    for part in name.split("/"):
        plain = "".join(
            c if c.isprintable() and c not in NOT_IN_FILES else "_" for c in part
        )
        short = plain.encode("utf8")[:NAME_BYTES].decode("utf8", "ignore").strip(" .")
        parts += [short] if short else []
    # a folder must not have the name of a file
    folders = [f"{p}_" if p.endswith((".txt", ".ann")) else p for p in parts[:-1]]
    return "/".join((*folders, *parts[-1:])[-DEPTH:]) or "_"


def free_name(folder: Path, number: Any, taken: Counter[str]) -> str:
    """Return the `file_name` of a document, with a number if it exists already."""
    name = free = file_name(number)
    while (folder / f"{free}.txt").exists():
        taken[name] += 1
        free = f"{name}-{taken[name] + 1}"
    return free


def to_json_line(values: dict[str, Any]) -> str:
    """Return JSON with all line ends escaped, also those of Unicode."""
    data = json.dumps(values, ensure_ascii=False, allow_nan=False)
    return BREAKS.sub(lambda match: f"\\u{ord(match.group()):04x}", data)


def annotation_lines(
    number: int, text: str, entity: LinkedEntity, losses: Losses
) -> list[str] | None:
    """Return the lines of a mention: T, N for its concept, and # for other fields.

    None if the mention is blank.
    """
    runs = UNBROKEN.finditer(text, entity["start"], entity["end"])
    places = (trim_place(text, *run.span()) for run in runs)
    # an annotation is one line, so the mention has a gap for each line end
    fragments = [place for place in places if place]
    if not fragments:
        losses["mentions of blanks left out"] += 1
        return None
    offsets = ";".join(f"{start} {end}" for start, end in fragments)
    mention = " ".join(text[start:end] for start, end in fragments)
    lines = [f"T{number}\t{name_type(entity['label'], losses)} {offsets}\t{mention}"]
    if entity["cui"] is not None:
        cui = quote_id(entity["cui"], losses)
        if ":" not in cui or cui.startswith(RESOURCE):
            cui = RESOURCE + cui
        name = blank_breaks(entity["name"] or "")
        lines.append(f"N{number}\tReference T{number} {cui}\t{name}")
    fields = dict(entity)
    if noted := {key: fields[key] for key in NOTED if fields[key]}:
        lines.append(f"#{number}\tAnnotatorNotes T{number}\t{to_json_line(noted)}")
    return lines


def write_docs(
    docs: Iterable[LinkedDoc], folder: Path, *, include_text: bool = True
) -> None:
    if not include_text:
        raise needs_text(format="brat")
    losses, taken = Losses(), Losses()
    for doc in docs:
        text = doc.text
        if text.startswith("\ufeff"):  # it would be taken for a mark of the file
            losses["byte order marks made blanks"] += 1
            text = " " + text[1:]
        lines: list[str] = []
        if doc.error:
            lines.append(f"#1\tAnnotatorNotes T0\t{to_json_line({'error': doc.error})}")
        for count, entity in enumerate(doc.entities, 1):
            lines += annotation_lines(count, text, entity, losses) or ()
        name = free_name(folder, doc.id, taken)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.txt").write_bytes(text.encode("utf8"))
        annotations = "".join(f"{line}\n" for line in lines)
        (folder / f"{name}.ann").write_bytes(annotations.encode("utf8"))
    losses["documents of one name numbered"] = taken.total()
    warn_losses("brat", losses)


def wrong_annotation(path: Path, line: int, expected: str) -> SapbertError:
    return SapbertError(
        "E117",
        f"{path}:{line}: Expected an annotation, parted by tabs: {expected}; but got "
        "something else. Correct the line.",
    )
