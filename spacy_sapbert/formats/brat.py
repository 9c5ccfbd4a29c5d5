"""Standoff formats: a folder of `.txt` files, each with annotations beside it.

brat has them in `.ann` files, the BioNLP shared tasks in `.a1` and `.a2` files.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import SapbertError, missing_in_folder, unexpected_line
from ..io.reading import UTF8_MARK, read_blocks, read_lines
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
    LIKE_ID,
    LONGEST,
    SEPARATORS,
    UNSAID,
    GoldDocument,
    GoldMention,
    check_count,
    failed_document,
    is_no_id,
    parse_fragments,
    place_mention,
)
from .tools.spans import warn_left_out

ENTITY, NORMALISATION = "T", "N"
OTHERS = tuple("REAM*#")  # relations, events, attributes, equivalences, notes
RESOURCE = "KB:"  # before ids that name no source, which brat requires
NOTED = ("score", "probability", "types", "codes", "note", "tie")  # fields of an entity
NOT_IN_FILES = frozenset('\\:*?"<>|')
NAME_BYTES = 200  # of a file, of the 255 that most systems take
DEPTH = 8  # folders in each other

NAMED = ("Annotation:", "Referent:")  # before a mention and an id, in shared tasks
STRUCTURE = ("Title", "Paragraph")  # types of parts of a text, in shared tasks
NOTES = "notes that look like ids, in files with references"
MARK = "\ufeff"


@dataclass
class Annotations:
    """What files say of a text: mentions by name, e.g. "T1", and where their ids are.

    Lines have their file and number.
    """

    entities: dict[str, GoldMention] = field(default_factory=dict)
    references: list[tuple[Path, int, str]] = field(default_factory=list)
    # by mention: a note that is an id as a whole, or "" if the mention names an event
    others: dict[str, str] = field(default_factory=dict)


def list_annotations(folder: Path, ending: str) -> list[Path]:
    """Return the files with an ending in a folder and below, or that of a file."""
    if folder.is_file():
        return [folder.with_suffix(ending)]
    files = sorted(folder.rglob(f"*{ending}"))
    if not files:
        raise missing_in_folder(file=f"`{ending}` files", folder=folder)
    return files


def read_entity(
    path: Path, number: int, line: str, text: str
) -> tuple[str, GoldMention]:
    """Parse a line `T1`, tab, `Type start end`, tab, mention."""
    fields = line.split("\t", 2)
    if len(fields) != 3 or not fields[1].strip():
        expected = "`T1`, `Type start end` and the mention, with tabs between them"
        raise unexpected_line(path=path, line=number, expected=expected)
    name, place, mention = fields
    type, _, offsets = place.strip().partition(" ")
    fragments = parse_fragments(path, number, offsets)
    start, end, mention = place_mention(path, number, text, fragments, mention)
    return name.strip(), GoldMention(start, end, type, mention, [], number)


def read_annotations(paths: Iterable[Path], text: str) -> Annotations:
    """Read the files of a text."""
    found = Annotations()
    for path in paths:
        for number, line in read_lines(path):
            if line.startswith(NORMALISATION):
                check_count(path, number, found.references)
                found.references.append((path, number, line))
            elif line.startswith(OTHERS):
                check_count(path, number, found.others)
                add_other(line, found)
            elif line.startswith(ENTITY):
                add_entity(path, number, line, text, found.entities)
            elif line.strip():
                expected = "one of T N R E A M * # first"
                raise unexpected_line(path=path, line=number, expected=expected)
    return found


def add_entity(
    path: Path, number: int, line: str, text: str, entities: dict[str, GoldMention]
) -> None:
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


def add_other(line: str, found: Annotations) -> None:
    """Add the trigger of an event, and a note that has the form of an id."""
    name, target, note, *_ = (*line.split("\t", 2), "", "")
    words = target.split()
    if name.startswith("E") and words:
        found.others[words[0].partition(":")[2]] = ""
    elif name.startswith("#") and words and LIKE_ID.fullmatch(note.strip()):
        found.others[words[-1]] = note.strip()


def add_ids(found: Annotations) -> None:
    """Add the ids of normalisations to mentions, several of one as alternatives.

    A line is `N1`, tab, `Reference T1 SOURCE:ID`, tab, name; or in the shared tasks
    `N1`, tab, `SOURCE Annotation:T1 Referent:ID`. Without any, notes are ids.
    """
    entities = found.entities
    for path, number, line in found.references:
        fields = line.split("\t", 2)
        words = fields[1].split() if len(fields) > 1 else []
        if len(words) != 3 or SEPARATORS.search(words[2]):
            expected = "`N1`, a tab, and `Reference T1 SOURCE:ID`"
            raise unexpected_line(path=path, line=number, expected=expected)
        name, cui = map(str.removeprefix, words[1:], NAMED)
        if name not in entities:
            raise SapbertError(
                "E117",
                f"{path}:{number}: Expected the line to name a mention of {path}, but "
                "it names another. Correct the line.",
            )
        add_id(entities, name, cui.removeprefix(RESOURCE))
    for name, cui in () if found.references else found.others.items():
        if cui and name in entities:
            add_id(entities, name, cui)


def add_id(entities: dict[str, GoldMention], name: str, cui: str) -> None:
    known = [each for part in entities[name].parts for each in part]
    if not is_no_id(cui) and cui not in known:
        entities[name] = entities[name]._replace(parts=[[*known, cui]])


def read_file(paths: Sequence[Path], *, longest: int) -> tuple[str, Annotations]:
    """Read a text, without a byte order mark, and its annotations.

    brat counts the mark as a character; other programs do not.
    """
    path = paths[0].with_suffix(".txt")
    text = read_text(path, longest=longest)
    has_mark = next(read_blocks([path]), b"").startswith(UTF8_MARK)
    try:
        found = read_annotations(paths, MARK + text if has_mark else text)
    except SapbertError as error:
        if not has_mark:
            raise
        with suppress(SapbertError):
            return text, read_annotations(paths, text)
        raise error from None
    for name, span in found.entities.items() if has_mark else ():
        start, mention = max(span.start - 1, 0), span.mention.removeprefix(MARK)
        found.entities[name] = span._replace(
            start=start, end=span.end - 1, mention=mention
        )
    return text, found


def read_standoff(
    endings: Sequence[str], path: Path, *, longest: int, on_error: OnError
) -> Iterator[GoldDocument]:
    """Yield the documents of a folder; their ids are the paths in it."""
    folder = path.parent if path.is_file() else path
    left_out = Counter[str]()
    for file in list_annotations(path, endings[0]):
        name = file.relative_to(folder).with_suffix("").as_posix()
        others = [file.with_suffix(ending) for ending in endings[1:]]
        files = [file, *(other for other in others if other.is_file())]
        try:
            text, found = read_file(files, longest=longest)
            add_ids(found)
        except SapbertError as error:
            on_error(error)
            yield failed_document(name, error)
            continue
        if found.references:
            left_out[NOTES] += sum(map(bool, found.others.values()))
        mentions = [*found.entities.values()]
        if others:
            mentions = [
                span._replace(parts=span.parts or UNSAID)
                for name, span in found.entities.items()
                if found.others.get(name, name) and span.type not in STRUCTURE
            ]
        yield GoldDocument(name, text, mentions)
    warn_left_out(path, left_out)


def read_gold(
    path: Path, *, longest: int = LONGEST, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read texts with annotations of brat; ids are in the normalisation lines.

    In a file without any, a note that is an id as a whole is the id of its mention, as
    in CANTEMIST: `#1`, tab, `AnnotatorNotes T1`, tab, `8140/3`. A mention with gaps
    starts at its first fragment and ends at its last; its text is that of the
    annotation.

    Source: https://brat.nlplab.org/standoff.html
    """
    return read_standoff([".ann"], path, longest=longest, on_error=on_error)


def read_bionlp(
    path: Path, *, longest: int = LONGEST, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read texts of a BioNLP shared task, with `.a1` files, and `.a2` where there are.

    Triggers of events, titles and paragraphs are no mentions. Nobody has said which
    concept a mention without a normalisation is.

    Source: https://2019.bionlp-ost.org/
    """
    return read_standoff([".a1", ".a2"], path, longest=longest, on_error=on_error)


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
        if text.startswith(MARK):  # it would be taken for a mark of the file
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
