"""BioC in XML and in JSON, as PubTator Central and many corpora use it."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import index
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element, SubElement, tostring

from ..errors import Errors, SapbertError
from ..system.json_members import JSONError, read_members
from ..system.xml_blocks import read_children
from .documents import OnError, raise_error
from .entities import COLUMNS, LinkedDoc, LinkedEntity, Losses, warn_losses
from .gold import LONGEST, NO_ID, GoldDocument, GoldSpan, collect_spans

# of a document that has another structure
UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
TYPE, ID = "type", "identifier"  # keys of infons, as in PubTator Central
INFONS = COLUMNS[COLUMNS.index("name") :]  # all fields of the concept
# A collection has no date, so that output is reproducible.
JSON_START = (
    '{"bioctype": "BioCCollection", "source": "spacy-sapbert", "date": "", "key": "", '
    '"version": "1.0", "infons": {}, "documents": ['
)
XML_START = """<?xml version='1.0' encoding='UTF-8' standalone='yes'?>
<collection><source>spacy-sapbert</source><date></date><key></key>
"""
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
LOST = "characters that XML has not replaced by \ufffd"

Fail = Callable[[str], SapbertError]


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


def make_document(doc: LinkedDoc, include_text: bool) -> dict[str, Any]:
    """Return a document with one passage; offsets are in characters."""
    annotations = [
        {
            "id": str(number),
            "infons": make_infons(entity),
            "text": entity["text"] if include_text else "",
            "locations": [
                {"offset": entity["start"], "length": entity["end"] - entity["start"]}
            ],
        }
        for number, entity in enumerate(doc.entities, 1)
    ]
    passage = {
        "bioctype": "BioCPassage",
        "offset": 0,
        "infons": {},
        "text": doc.text if include_text else "",
        "sentences": [],
        "annotations": annotations,
        "relations": [],
    }
    return {
        "bioctype": "BioCDocument",
        "id": str(doc.id),
        "infons": {},
        "passages": [passage],
        "annotations": [],
        "relations": [],
    }


def write_json(
    docs: Iterable[LinkedDoc], file: IO[bytes], *, include_text: bool = True
) -> None:
    """Write a BioC collection in JSON, one document per line; see `registry.Writer`."""
    file.write(JSON_START.encode())
    between = "\n"
    for doc in docs:
        data = json.dumps(make_document(doc, include_text), ensure_ascii=False)
        file.write(f"{between}{data}".encode())
        between = ",\n"
    file.write(b"\n]}\n")


def write_xml(
    docs: Iterable[LinkedDoc], file: IO[bytes], *, include_text: bool = True
) -> None:
    """Write a BioC collection in XML; see `registry.Writer`.

    Each character that XML cannot contain is replaced by U+FFFD; offsets stay.
    """
    losses: Losses = Counter()

    def add(parent: Element, tag: str, text: str, **attributes: str) -> None:
        plain, count = NOT_IN_XML.subn("\ufffd", text)
        losses[LOST] += count
        SubElement(parent, tag, attributes).text = plain

    file.write(XML_START.encode())
    for doc in docs:
        document = Element("document")
        add(document, "id", str(doc.id))
        passage = SubElement(document, "passage")
        add(passage, "offset", "0")
        if include_text and doc.text:
            add(passage, "text", doc.text)
        for number, entity in enumerate(doc.entities, 1):
            annotation = SubElement(passage, "annotation", id=str(number))
            for key, value in make_infons(entity).items():
                add(annotation, "infon", value, key=key)
            start, end = entity["start"], entity["end"]
            add(annotation, "location", "", offset=str(start), length=str(end - start))
            add(annotation, "text", entity["text"] if include_text else "")
        # Readers of XML turn a carriage return that is not escaped into a line feed.
        data = tostring(document, "unicode").replace("\r", "&#13;")
        file.write(f"{data}\n".encode())
    file.write(b"</collection>\n")
    warn_losses("biocxml", losses)


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
