"""What BioC in XML and in JSON share: linked Doc → BioC document → gold document."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import bioc

from ..errors import Errors, SapbertError
from ..system.reading import check_file
from .gold import NO_ID, GoldDocument, GoldSpan

# What the library and the parsers below it say of a file that is not BioC.
UNREADABLE = (
    AttributeError,
    EOFError,
    KeyError,
    OSError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
    zlib.error,
)
SOURCE = "spacy-sapbert"
TYPE, ID = "type", "identifier"  # keys of infons, as PubTator Central has them


Fail = Callable[[str], SapbertError]


def make_collection() -> Any:
    """Make what a file begins with; without a date, so that equal input is equal bytes.

    RETURNS (BioCCollection): Without documents.
    """
    collection = bioc.BioCCollection()
    collection.source, collection.date, collection.key = SOURCE, "", ""
    return collection


def make_infons(entity: dict[str, Any]) -> dict[str, str]:
    """Write what is known of an entity as BioC has it: texts with keys.

    entity (dict[str, Any]): From `describe_entities`.
    RETURNS (dict[str, str]): Lists and dicts as JSON; without what is None or empty,
        but for the type.
    """
    infons = {TYPE: entity["label"]}
    named = {ID: entity["cui"]}
    for key in ("name", "score", "probability", "types", "codes", "candidates", "note"):
        named[key] = entity[key]
    for key, value in named.items():
        if isinstance(value, (list, dict)) and value:
            infons[key] = json.dumps(value, ensure_ascii=False, allow_nan=False)
        elif value not in (None, [], {}):
            infons[key] = str(value)
    return infons


def make_document(
    number: Any, text: str, entities: Iterable[dict[str, Any]], *, include_text: bool
) -> Any:
    """Make a BioC document: one passage, all of the text.

    number (Any): Id of the document.
    text (str): Its text.
    entities (Iterable[dict[str, Any]]): From `describe_entities`.
    include_text (bool): Give the text of the document and of the mentions.
    RETURNS (BioCDocument): Offsets are in characters.
    """
    passage = bioc.BioCPassage()
    passage.offset = 0
    passage.text = text if include_text else ""
    for count, entity in enumerate(entities, 1):
        annotation = bioc.BioCAnnotation()
        annotation.id = str(count)
        annotation.infons = make_infons(entity)
        annotation.text = entity["text"] if include_text else ""
        start, end = entity["start"], entity["end"]
        annotation.add_location(bioc.BioCLocation(start, end - start))
        passage.add_annotation(annotation)
    document = bioc.BioCDocument()
    document.id = str(number)
    document.add_passage(passage)
    return document


def join_text(document: Any, fail: Fail, *, longest: int) -> str:
    """Put the passages of a document where their offsets say that they are.

    document (BioCDocument): With texts in its passages, or in their sentences.
    fail (Fail): Words an error.
    longest (int): Characters of a document at the most.
    RETURNS (str): With line feeds where there is a gap.
    RAISES (SapbertError): If passages overlap or are not in order, or it is too long.
    """
    pieces: list[str] = []
    length = 0
    for passage in document.passages:
        for part in [passage] if passage.text else passage.sentences:
            text = part.text or ""
            if part.offset < length or part.offset + len(text) > longest:
                raise fail(f"passages in order, of at most {longest} characters")
            pieces += ["\n" * (part.offset - length), text]
            length = part.offset + len(text)
    return "".join(pieces)


def list_annotations(document: Any) -> Iterator[Any]:
    """Return all annotations: of the document, its passages and their sentences.

    document (BioCDocument): The document.
    YIELDS (BioCAnnotation): Each.
    """
    yield from document.annotations
    for passage in document.passages:
        yield from passage.annotations
        for sentence in passage.sentences:
            yield from sentence.annotations


def read_annotation(annotation: Any, text: str, fail: Fail) -> GoldSpan:
    """Hold an annotation against the text that it is from.

    annotation (BioCAnnotation): One with gaps goes from its first character to its
        last.
    text (str): Of the document.
    fail (Fail): Words an error.
    RETURNS (GoldSpan): The mention.
    RAISES (SapbertError): If it is not in the text, or something else is there.
    """
    places: list[tuple[int, int]] = sorted(
        (location.offset, location.end) for location in annotation.locations
    )
    if not places or any(not 0 <= start < end <= len(text) for start, end in places):
        raise fail("annotations with locations inside the text")
    start, end = places[0][0], max(last for _, last in places)
    found = " ".join(text[first:last] for first, last in places)
    if annotation.text and annotation.text.split() != found.split():
        raise fail("annotations whose locations give their text")
    cui, label = (str(annotation.infons.get(key) or "") for key in (ID, TYPE))
    parts = [] if cui in NO_ID else [[cui]]
    return GoldSpan(start, end, label, annotation.text or found, parts, 0)


def to_gold(document: Any, fail: Fail, *, longest: int) -> GoldDocument:
    """Read a BioC document.

    document (BioCDocument): As the library parsed it.
    fail (Fail): Words an error.
    longest (int): Characters of a document at the most.
    RETURNS (GoldDocument): The id of a mention is its infon `identifier`, as it is, and
        its type the infon `type`.
    RAISES (SapbertError): If it has another form.
    """
    text = join_text(document, fail, longest=longest)
    text.encode()  # JSON can hold half characters, which no Doc takes
    spans = [read_annotation(each, text, fail) for each in list_annotations(document)]
    return GoldDocument(document.id or "", text, spans)


def open_unpacked(path: Path) -> IO[bytes]:
    """Open a file, and unpack `.gz`."""
    return cast(IO[bytes], gzip.open(path) if path.suffix == ".gz" else path.open("rb"))


def read_collection(
    path: Path,
    format: str,
    open_collection: Callable[[IO[bytes]], Iterator[Any]],
    *,
    longest: int,
) -> Iterator[GoldDocument]:
    """Read a file of BioC.

    path (Path): The file, plain or `.gz`.
    format (str): "BioC in XML" or "BioC in JSON", for the error.
    open_collection (Callable): Parses a file, and gives its documents.
    longest (int): Characters of a document at the most.
    YIELDS (GoldDocument): Each document.
    RAISES (SapbertError): With the number of the first document that has another form.
        Nothing that it says is quoted.
    """
    check_file(path)
    number = 1

    def fail(expected: str) -> SapbertError:
        return SapbertError(
            Errors.E532.format(
                path=path, format=format, number=number, expected=expected
            )
        )

    try:
        with open_unpacked(path) as file:
            for document in open_collection(file):
                yield to_gold(document, fail, longest=longest)
                number += 1
    except SapbertError:
        raise
    except UNREADABLE as error:
        raise fail(f"no {type(error).__name__}") from None
