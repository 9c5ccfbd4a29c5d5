"""BioC in XML and in JSON, as PubTator Central and many corpora use it."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import index
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element

import bioc
from bioc import biocjson, biocxml

from ..errors import Errors, SapbertError
from ..system.json_members import JSONError, read_members
from ..system.xml_blocks import read_children
from .documents import OnError, raise_error
from .entities import COLUMNS, LinkedDoc, LinkedEntity, Losses, warn_losses
from .gold import LONGEST, NO_ID, GoldDocument, GoldSpan, collect_spans

# of a document that has another structure
UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
SOURCE = "spacy-sapbert"
TYPE, ID = "type", "identifier"  # keys of infons, as in PubTator Central
INFONS = COLUMNS[COLUMNS.index("name") :]  # all fields of the concept
JSON_END = "]}"  # of a collection whose last field is its documents
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
LOST = "characters that XML has not replaced by \ufffd"

Fail = Callable[[str], SapbertError]


def make_collection() -> Any:
    """Return an empty collection; without a date, so that output is reproducible."""
    collection = bioc.BioCCollection()
    collection.source, collection.date, collection.key = SOURCE, "", ""
    return collection


def make_infons(entity: LinkedEntity) -> dict[str, str]:
    """Return the fields of an entity as texts; lists and dicts as JSON.

    Empty fields are left out, except for the type.
    """
    infons = {TYPE: entity["label"]}
    fields = {ID if key == "cui" else key: value for key, value in entity.items()}
    for key in (ID, *INFONS):
        value = fields[key]
        if isinstance(value, (list, dict)) and value:
            infons[key] = json.dumps(value, ensure_ascii=False, allow_nan=False)
        elif value not in (None, [], {}):
            infons[key] = str(value)
    return infons


def make_document(doc: LinkedDoc, include_text: bool) -> Any:
    """Return a document with one passage; offsets are in characters."""
    passage = bioc.BioCPassage()
    passage.offset = 0
    passage.text = doc.text if include_text else ""
    for count, entity in enumerate(doc.entities, 1):
        annotation = bioc.BioCAnnotation()
        annotation.id = str(count)
        annotation.infons = make_infons(entity)
        annotation.text = entity["text"] if include_text else ""
        start, end = entity["start"], entity["end"]
        annotation.add_location(bioc.BioCLocation(start, end - start))
        passage.add_annotation(annotation)
    document = bioc.BioCDocument()
    document.id = str(doc.id)
    document.add_passage(passage)
    return document


def write_json(
    docs: Iterable[LinkedDoc], file: IO[bytes], *, include_text: bool = True
) -> None:
    """Write a BioC collection in JSON, one document per line; see `registry.Writer`."""
    file.write(biocjson.dumps(make_collection()).removesuffix(JSON_END).encode())
    between = "\n"
    for doc in docs:
        data = biocjson.dumps(make_document(doc, include_text), ensure_ascii=False)
        file.write(f"{between}{data}".encode())
        between = ",\n"
    file.write(f"\n{JSON_END}\n".encode())


def write_xml(
    docs: Iterable[LinkedDoc], file: IO[bytes], *, include_text: bool = True
) -> None:
    """Write a BioC collection in XML; see `registry.Writer`."""
    losses: Losses = Counter()
    writer = biocxml.BioCXMLDocumentWriter(file, encoding="UTF-8")
    try:
        writer.write_collection_info(make_collection())
        for doc in docs:
            document = make_document(doc, include_text)
            clean_document(document, losses)
            writer.write_document(document)
    finally:
        writer.close()
    warn_losses("biocxml", losses)


def clean_document(document: Any, losses: Losses) -> None:
    """Replace each character that XML cannot contain by U+FFFD; offsets stay."""

    def clean(text: str) -> str:
        plain, count = NOT_IN_XML.subn("\ufffd", text)
        losses[LOST] += count
        return plain

    (passage,) = document.passages
    document.id, passage.text = clean(document.id), clean(passage.text)
    for annotation in passage.annotations:
        annotation.text = clean(annotation.text)
        for key, value in annotation.infons.items():
            annotation.infons[key] = clean(value)


class JsonNode:
    """A document, passage, sentence, annotation or location of a collection in JSON."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def children(self, tag: str) -> Iterator["JsonNode"]:
        """Yield the children of a kind."""
        return map(JsonNode, self.data.get(f"{tag}s") or ())

    def text(self, tag: str = "text") -> str:
        """Return a text; "" if there is none."""
        found = self.data.get(tag) or ""
        if not isinstance(found, str) and tag != "id":
            raise TypeError
        return str(found)

    def number(self, tag: str) -> int:
        """Return a number."""
        return index(self.data[tag])

    def infons(self) -> dict[str, Any]:
        """Return the infons."""
        return self.data.get("infons") or {}


class XmlNode:
    """The same of a collection in XML."""

    def __init__(self, element: Element) -> None:
        self.element = element

    def children(self, tag: str) -> Iterator["XmlNode"]:
        return map(XmlNode, self.element.iterfind(tag))

    def text(self, tag: str = "text") -> str:
        return self.element.findtext(tag) or ""

    def number(self, tag: str) -> int:
        return int(self.element.get(tag) or self.text(tag))

    def infons(self) -> dict[str, Any]:
        return {
            each.attrib["key"]: each.text for each in self.element.iterfind("infon")
        }


Node = JsonNode | XmlNode


def join_text(document: Node, fail: Fail, *, longest: int) -> str:
    """Join the passages of a document at their offsets, with line feeds in the gaps.

    Args:
        fail: Returns the error for what was expected.
        longest: Maximum number of characters.

    Raises:
        SapbertError: If passages overlap or are unordered, or it is too long.
    """
    pieces: list[str] = []
    length = 0
    for passage in document.children("passage"):
        parts = [passage] if passage.text() else passage.children("sentence")
        for part in parts:
            text, offset = part.text(), part.number("offset")
            if offset < length or offset + len(text) > longest:
                raise fail(f"passages in order, of at most {longest} characters")
            pieces += ["\n" * (offset - length), text]
            length = offset + len(text)
    return "".join(pieces)


def list_annotations(document: Node) -> Iterator[Node]:
    """Yield all annotations of a document, its passages and their sentences."""
    yield from document.children("annotation")
    for passage in document.children("passage"):
        yield from passage.children("annotation")
        for sentence in passage.children("sentence"):
            yield from sentence.children("annotation")


def read_annotation(annotation: Node, text: str, fail: Fail) -> GoldSpan:
    """Check an annotation against the text; one with gaps includes its gaps.

    Raises:
        SapbertError: If its locations do not match its text.
    """
    places: list[tuple[int, int]] = []
    for location in annotation.children("location"):
        start = location.number("offset")
        places.append((start, start + location.number("length")))
    places.sort()
    if not places or any(not 0 <= start < end <= len(text) for start, end in places):
        raise fail("annotations with locations inside the text")
    if sum(end - start for start, end in places) > len(text):
        raise fail("annotations whose locations do not overlap each other")
    start, end = places[0][0], max(last for _, last in places)
    found = " ".join(text[first:last] for first, last in places)
    mention = annotation.text()
    if mention and mention.split() != found.split():
        raise fail("annotations whose locations give their text")
    infons = annotation.infons()
    cui, label = (str(infons.get(key) or "") for key in (ID, TYPE))
    parts = [] if cui in NO_ID else [[cui]]
    return GoldSpan(start, end, label, mention or found, parts, 0)


def to_gold(document: Node, fail: Fail, *, longest: int) -> GoldDocument:
    """Convert a document; ids are the infons `identifier`, types the infons `type`."""
    text = join_text(document, fail, longest=longest)
    text.encode()  # JSON can escape lone surrogates, which a Doc cannot contain
    spans = (read_annotation(each, text, fail) for each in list_annotations(document))
    return GoldDocument(document.text("id"), text, collect_spans(spans, fail))


def parse_json(path: Path, fail: Fail) -> Iterator[Node]:
    """Yield the documents of a collection; one is in memory."""
    try:
        for _, document in read_members(path, [("documents",)]):
            yield JsonNode(document)
    except JSONError as error:
        raise fail(f"valid JSON in line {error.line}") from None


def parse_xml(path: Path, fail: Fail) -> Iterator[Node]:
    """Yield the documents of a collection; one is in memory."""

    def check_root(tag: str, _: dict[str, str], __: int) -> None:
        if tag != "collection":
            raise fail("`collection` as the root element")

    for _, element in read_children(path, check_root):
        if element.tag == "document":
            yield XmlNode(element)


def read_collection(
    path: Path,
    format: str,
    parse: Callable[[Path, Fail], Iterator[Node]],
    longest: int,
    on_error: OnError,
) -> Iterator[GoldDocument]:
    """Read a file of BioC, plain or `.gz`.

    Args:
        longest: Maximum number of characters of a document.
        on_error: Called with the error of an invalid document, which is left out.

    Raises:
        SapbertError: With the number of the document after which the file is damaged;
            its text is not quoted.

    Source: Comeau et al. (2013).
    """
    number = 1

    def fail(expected: str) -> SapbertError:
        values = {"path": path, "format": format, "number": number}
        return SapbertError(Errors.E532.format(expected=expected, **values))

    for document in parse(path, fail):
        try:
            gold = to_gold(document, fail, longest=longest)
        except SapbertError as error:
            on_error(error)
        except UNREADABLE as error:
            on_error(fail(f"no {type(error).__name__}"))
        else:
            yield gold
        number += 1


def read_json(
    path: Path, *, longest: int = LONGEST, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read a BioC collection in JSON; see `read_collection`."""
    return read_collection(path, "BioC in JSON", parse_json, longest, on_error)


def read_xml(
    path: Path, *, longest: int = LONGEST, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read a BioC collection in XML; see `read_collection`."""
    return read_collection(path, "BioC in XML", parse_xml, longest, on_error)
