"""BioC in XML, as PubTator Central and many corpora have it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from bioc import biocxml
from lxml import etree

from .bioc_documents import make_collection, make_document, read_collection
from .entities import ATTRIBUTE_NAMES, AttributeNames, NamedDoc, describe_entities
from .gold import LONGEST, GoldDocument
from .lossy import Losses, warn_losses

NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
LOST = "characters that XML has not replaced by \ufffd"


def to_xml_text(text: str, losses: Losses) -> str:
    """Replace what XML cannot hold, character by character, so that offsets stay.

    text (str): Any text.
    losses (Losses): Is added to.
    RETURNS (str): As long as before.
    """
    plain, count = NOT_IN_XML.subn("\ufffd", text)
    losses[LOST] += count
    return plain


def clean_document(document: Any, losses: Losses) -> None:
    """Replace what XML cannot hold in a document of one passage.

    document (BioCDocument): Changed in place.
    losses (Losses): Is added to.
    """
    (passage,) = document.passages
    document.id = to_xml_text(document.id, losses)
    passage.text = to_xml_text(passage.text, losses)
    for annotation in passage.annotations:
        annotation.text = to_xml_text(annotation.text, losses)
        for key, value in annotation.infons.items():
            annotation.infons[key] = to_xml_text(value, losses)


def write_docs(
    docs: Iterable[NamedDoc],
    file: IO[bytes],
    *,
    spans_key: str | None = None,
    include_text: bool = True,
    names: AttributeNames = ATTRIBUTE_NAMES,
) -> None:
    """Write a BioC collection in XML; see `formats.Writer`."""
    losses: Losses = Counter()
    writer = biocxml.BioCXMLDocumentWriter(file, encoding="UTF-8")
    try:
        writer.write_collection_info(make_collection())
        for number, doc in docs:
            entities = describe_entities(doc, spans_key=spans_key, names=names)
            document = make_document(
                number, doc.text, entities, include_text=include_text
            )
            clean_document(document, losses)
            writer.write_document(document)
    finally:
        writer.close()
    warn_losses("biocxml", losses)


def parse_documents(file: IO[bytes]) -> Iterator[Any]:
    """Parse a collection, one document held at a time.

    The library's own reader keeps all of the file, and follows what a DTD in it says.

    file (IO[bytes]): The file.
    YIELDS (BioCDocument): Each document.
    """
    options = {"resolve_entities": False, "load_dtd": False, "no_network": True}
    for _, element in etree.iterparse(file, tag="document", **options):
        source = etree.tostring(element, encoding="unicode", with_tail=False)
        yield biocxml.loads(f"<collection>{source}</collection>").documents[0]
        element.clear()
        while element.getprevious() is not None:
            del element.getparent()[0]


def read_gold(path: Path, *, longest: int = LONGEST) -> Iterator[GoldDocument]:
    """Read a BioC collection in XML; see `bioc_documents.to_gold`.

    path (Path): The file, plain or `.gz`.
    longest (int): Characters of a document at the most.
    YIELDS (GoldDocument): Each document.
    RAISES (SapbertError): With the number of the first document that has another form.
    SOURCE: Comeau et al. (2013).
    """
    return read_collection(path, "BioC in XML", parse_documents, longest=longest)
