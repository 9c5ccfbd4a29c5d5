"""BioC in XML and in JSON, as PubTator Central and many corpora use it."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import index
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

from ..io.json_members import read_members
from ..io.xml_blocks import read_children
from ..linking.sources import PREFIXES, normalize_prefix
from .documents import OnError, raise_error
from .entities import COLUMNS, LinkedDoc, LinkedEntity, Losses, warn_losses
from .gold import (
    LONGEST,
    GoldDocument,
    GoldMention,
    collect_mentions,
    is_no_id,
    split_ids,
)
from .tools.spans import Fail, read_records

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

# A document, passage, sentence, annotation or location, as in JSON.
Node = dict[str, Any]


class Piece(NamedTuple):
    """A text of a passage: its offset in the file, and its place in the document."""

    offset: int
    text: str
    start: int


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


def place_passages(
    document: Node, fail: Fail, *, longest: int
) -> tuple[str, list[list[Piece]]]:
    """Return the text of a document, and where it has the pieces of each passage.

    A passage, or if it has no text a sentence of it, is at its offset, with line feeds
    in the gaps. One that begins before the end of the piece before it, because
    passages overlap or are in another order, follows after a line feed.
    """
    texts: list[str] = []
    length = 0
    placed: list[list[Piece]] = []
    for passage in get_nodes(document, "passages"):
        parts = [passage] if get_text(passage) else get_nodes(passage, "sentences")
        placed.append([])
        for part in parts:
            text, offset = get_text(part), get_number(part, "offset")
            start = offset if offset >= length else length + bool(text)
            if offset < 0 or start + len(text) > longest:
                raise fail(f"passages of at most {longest} characters in all")
            texts += ["\n" * (start - length), text]
            length = start + len(text)
            placed[-1].append(Piece(offset, text, start))
    return "".join(texts), placed


def list_annotations(
    document: Node, placed: list[list[Piece]]
) -> Iterator[tuple[Node, list[Piece]]]:
    """Yield annotations, and the pieces of their passages; others are relations."""
    for annotation in get_nodes(document, "annotations"):
        if get_nodes(annotation, "locations"):
            yield annotation, []
    for passage, pieces in zip(get_nodes(document, "passages"), placed, strict=True):
        for node in (passage, *get_nodes(passage, "sentences")):
            for annotation in get_nodes(node, "annotations"):
                yield annotation, pieces


def find_place(location: Node, pieces: Iterable[Piece]) -> tuple[int, int] | None:
    """Return the characters of a location in the first piece that has its start."""
    offset, length = get_number(location, "offset"), get_number(location, "length")
    for piece in pieces:
        if piece.offset <= offset < piece.offset + len(piece.text):
            start = piece.start + offset - piece.offset
            return start, start + length
    return None


def read_annotation(
    annotation: Node, text: str, pieces: Iterable[Piece], fail: Fail
) -> GoldMention:
    """Check an annotation against the text; one with gaps includes its gaps."""
    locations = get_nodes(annotation, "locations")
    found = [find_place(location, pieces) for location in locations]
    places = sorted(place for place in found if place is not None)
    outside = any(not 0 <= start < end <= len(text) for start, end in places)
    if not places or len(places) < len(locations) or outside:
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
    text, placed = place_passages(document, fail, longest=longest)
    text.encode()  # JSON can escape lone surrogates, which a Doc cannot contain
    every = [piece for pieces in placed for piece in pieces]
    # an annotation is in its own passage, or else in any other
    spans = (
        read_annotation(each, text, chain(pieces, every), fail)
        for each, pieces in list_annotations(document, placed)
    )
    return GoldDocument(read_id(document), text, collect_mentions(spans, fail))


def read_id(document: Node) -> str:
    return str(document.get("id") or "").encode("utf8", "replace").decode()


def parse_json(path: Path, _: Fail) -> Iterator[Node]:
    """Yield the documents of a collection; one is in memory."""
    return (document for _, document in read_members(path, [("documents",)]))


def parse_xml(path: Path, fail: Fail) -> Iterator[Element]:
    """Yield the documents of a collection; one is in memory."""

    def check_root(tag: str, _: dict[str, str], __: int) -> None:
        if tag != "collection":
            raise fail("`collection` as the root element")

    for _, element in read_children(path, check_root):
        if element.tag == "document":
            yield element


def read_json(
    path: Path, *, longest: int = LONGEST, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read a collection in JSON; source: Comeau et al. (2013)."""
    make = partial(to_gold, longest=longest)
    return read_records(path, "BioC in JSON", parse_json, make, read_id, on_error)


def read_xml(
    path: Path, *, longest: int = LONGEST, on_error: OnError = raise_error
) -> Iterator[GoldDocument]:
    """Read a collection in XML; source: Comeau et al. (2013)."""

    def make(element: Element, fail: Fail) -> GoldDocument:
        return to_gold(to_node(element), fail, longest=longest)

    def read_id(element: Element) -> str:
        return element.findtext("id") or ""

    return read_records(path, "BioC in XML", parse_xml, make, read_id, on_error)
