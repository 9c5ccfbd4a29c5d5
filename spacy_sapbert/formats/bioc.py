"""BioC in XML and in JSON, as PubTator Central and many corpora use it."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import index
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element, SubElement, tostring

from ..errors import SapbertError
from ..io.json_members import JSONError, read_members
from ..io.xml_blocks import read_children
from ..linking.sources import PREFIXES, normalize_prefix
from .documents import OnError, raise_error
from .entities import COLUMNS, LinkedDoc, LinkedEntity, Losses, warn_losses
from .gold import (
    LONGEST,
    GoldDocument,
    GoldMention,
    collect_mentions,
    failed_document,
    is_no_id,
    split_ids,
)

# of a document that has another structure
UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
TYPE, ID = "type", "identifier"  # keys of infons, as in PubTator Central
# Vocabularies whose names are keys of infons
VOCABULARIES = {
    *PREFIXES.values(),
    *("CUI", "GENE", "NCBI GENE", "NCBI TAXONOMY", "NCBIGENE", "NCBITAXON", "TAXONOMY"),
}
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

LISTED = ("passage", "sentence", "annotation", "location")  # in lists of JSON

Fail = Callable[[str], SapbertError]
# A document, passage, sentence, annotation or location, as in JSON.
Node = dict[str, Any]


def make_infons(entity: LinkedEntity) -> dict[str, str]:
    """Return the fields that are not empty, and the type; lists and dicts as JSON."""
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
        "infons": {"error": doc.error} if doc.error else {},
        "passages": [passage],
        "annotations": [],
        "relations": [],
    }


def write_json(
    docs: Iterable[LinkedDoc], file: IO[bytes], *, include_text: bool = True
) -> None:
    """Write JSON, one document per line."""
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
    """Write XML; U+FFFD replaces each character that it cannot contain."""
    losses: Losses = Counter()

    def add(parent: Element, tag: str, text: str, **attributes: str) -> None:
        plain, count = NOT_IN_XML.subn("\ufffd", text)
        losses[LOST] += count
        SubElement(parent, tag, attributes).text = plain

    file.write(XML_START.encode())
    for doc in docs:
        data = make_document(doc, include_text)
        (content,) = data["passages"]
        document = Element("document")
        add(document, "id", data["id"])
        for key, value in data["infons"].items():
            add(document, "infon", value, key=key)
        passage = SubElement(document, "passage")
        add(passage, "offset", str(content["offset"]))
        if content["text"]:
            add(passage, "text", content["text"])
        for found in content["annotations"]:
            annotation = SubElement(passage, "annotation", id=found["id"])
            for key, value in found["infons"].items():
                add(annotation, "infon", value, key=key)
            (location,) = found["locations"]
            offsets = {name: str(value) for name, value in location.items()}
            add(annotation, "location", "", **offsets)
            add(annotation, "text", found["text"])
        # Readers of XML turn a carriage return that is not escaped into a line feed.
        text = tostring(document, "unicode").replace("\r", "&#13;")
        file.write(f"{text}\n".encode())
    file.write(b"</collection>\n")
    warn_losses("biocxml", losses)


def to_node(element: Element) -> Node:
    """Return an element of XML as the object that it is in JSON."""
    node: Node = {**element.attrib, "infons": {}}
    for child in element:
        if child.tag == "infon":
            node["infons"][child.attrib["key"]] = child.text
        elif child.tag in LISTED:
            node.setdefault(f"{child.tag}s", []).append(to_node(child))
        else:
            node.setdefault(child.tag, child.text)
    return node


def get_text(node: Node) -> str:
    """Return the text of a node; "" if it has none."""
    text = node.get("text") or ""
    if not isinstance(text, str):
        raise TypeError
    return text


def get_number(node: Node, key: str) -> int:
    value = node[key]
    return int(value) if isinstance(value, str) else index(value)


def get_nodes(node: Node, key: str) -> Sequence[Node]:
    return node.get(key) or ()


def join_text(document: Node, fail: Fail, *, longest: int) -> str:
    """Join the passages of a document at their offsets, with line feeds in the gaps."""
    pieces: list[str] = []
    length = 0
    for passage in get_nodes(document, "passages"):
        parts = [passage] if get_text(passage) else get_nodes(passage, "sentences")
        for part in parts:
            text, offset = get_text(part), get_number(part, "offset")
            if offset < length or offset + len(text) > longest:
                raise fail(f"passages in order, of at most {longest} characters")
            pieces += ["\n" * (offset - length), text]
            length = offset + len(text)
    return "".join(pieces)


def list_annotations(document: Node) -> Iterator[Node]:
    """Yield all annotations with a place; others are relations."""
    for annotation in get_nodes(document, "annotations"):
        if get_nodes(annotation, "locations"):
            yield annotation
    for passage in get_nodes(document, "passages"):
        yield from get_nodes(passage, "annotations")
        for sentence in get_nodes(passage, "sentences"):
            yield from get_nodes(sentence, "annotations")


def read_annotation(annotation: Node, text: str, fail: Fail) -> GoldMention:
    """Check an annotation against the text; one with gaps includes its gaps."""
    places: list[tuple[int, int]] = []
    for location in get_nodes(annotation, "locations"):
        start = get_number(location, "offset")
        places.append((start, start + get_number(location, "length")))
    places.sort()
    if not places or any(not 0 <= start < end <= len(text) for start, end in places):
        raise fail("annotations with locations inside the text")
    if sum(end - start for start, end in places) > len(text):
        raise fail("annotations whose locations do not overlap each other")
    start, end = places[0][0], max(last for _, last in places)
    written = " ".join(text[first:last] for first, last in places)
    mention = get_text(annotation)
    if mention and mention.split() != written.split():
        raise fail("annotations whose locations give their text")
    infons = annotation.get("infons") or {}
    label = str(infons.get(TYPE) or "")
    return GoldMention(start, end, label, mention or written, find_ids(infons), 0)


def find_ids(infons: Node) -> list[list[str]]:
    """Return the ids of each part of a mention.

    They are the infon `identifier`, else those with the name of a vocabulary: `MESH` in
    BC5CDR.
    """
    if not is_no_id(cui := str(infons.get(ID) or "")):
        return [[cui]]
    named = [
        split_ids(str(value or ""), bars_join_parts=True)
        for key, value in infons.items()
        if normalize_prefix(key) in VOCABULARIES
    ]
    found = [parts for parts in named if parts]
    if len(found) > 1:  # ids of one concept
        return [[cui for parts in found for cui in chain.from_iterable(parts)]]
    return found[0] if found else []


def to_gold(document: Node, fail: Fail, *, longest: int) -> GoldDocument:
    """Convert a document; see `find_ids`. Types are the infons `type`."""
    text = join_text(document, fail, longest=longest)
    text.encode()  # JSON can escape lone surrogates, which a Doc cannot contain
    spans = (read_annotation(each, text, fail) for each in list_annotations(document))
    return GoldDocument(read_id(document), text, collect_mentions(spans, fail))


def read_id(document: Node) -> str:
    return str(document.get("id") or "").encode("utf8", "replace").decode()


def parse_json(path: Path, fail: Fail) -> Iterator[Node]:
    """Yield the documents of a collection; one is in memory."""
    try:
        for _, document in read_members(path, [("documents",)]):
            yield document
    except JSONError:
        raise fail("valid JSON in UTF-8 and a list of documents") from None


def parse_xml(path: Path, fail: Fail) -> Iterator[Element]:
    """Yield the documents of a collection; one is in memory."""

    def check_root(tag: str, _: dict[str, str], __: int) -> None:
        if tag != "collection":
            raise fail("`collection` as the root element")

    for _, element in read_children(path, check_root):
        if element.tag == "document":
            yield element


def read_collection(
    path: Path,
    format: str,
    parse: Callable[[Path, Fail], Iterator[Node | Element]],
    longest: int,
    on_error: OnError,
) -> Iterator[GoldDocument]:
    """Read a file of BioC; an error has the number of the document, and not its text.

    Source: Comeau et al. (2013).
    """
    number = 1

    def fail(expected: str) -> SapbertError:
        return SapbertError(
            "E117",
            f"{path}: Expected {format}, with {expected}, but document {number} has "
            "another structure. Check `format`, or export the file again.",
        )

    for found in parse(path, fail):
        document: Node = {}
        try:
            document = to_node(found) if isinstance(found, Element) else dict(found)
            yield to_gold(document, fail, longest=longest)
        except UNREADABLE as reason:
            error = reason
            if not isinstance(error, SapbertError):
                error = fail(f"no {type(error).__name__}")
            on_error(error)
            if id := read_id(document):
                yield failed_document(id, error)
        number += 1


def read_json(
    path: Path, *, longest: int = LONGEST, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    return read_collection(path, "BioC in JSON", parse_json, longest, on_error)


def read_xml(
    path: Path, *, longest: int = LONGEST, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    return read_collection(path, "BioC in XML", parse_xml, longest, on_error)
