"""BioC in JSON, as the library `bioc` and PubTator Central have it."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from bioc import biocjson

from .bioc_documents import make_collection, make_document, read_collection
from .entities import ATTRIBUTE_NAMES, AttributeNames, NamedDoc, describe_entities
from .gold import LONGEST, GoldDocument

END = "]}"  # of a collection whose last field is its documents


def write_docs(
    docs: Iterable[NamedDoc],
    file: IO[bytes],
    *,
    spans_key: str | None = None,
    include_text: bool = True,
    names: AttributeNames = ATTRIBUTE_NAMES,
) -> None:
    """Write a BioC collection in JSON, a document a line; see `formats.Writer`."""
    file.write(biocjson.dumps(make_collection()).removesuffix(END).encode())
    between = "\n"
    for number, doc in docs:
        entities = describe_entities(doc, spans_key=spans_key, names=names)
        document = make_document(number, doc.text, entities, include_text=include_text)
        data = biocjson.dumps(document, ensure_ascii=False)
        file.write(f"{between}{data}".encode())
        between = ",\n"
    file.write(f"\n{END}\n".encode())


def parse_documents(file: IO[bytes]) -> Iterator[Any]:
    """Parse a collection, which has to be held as a whole.

    file (IO[bytes]): The file.
    YIELDS (BioCDocument): Each document.
    """
    for document in json.load(file)["documents"]:
        yield biocjson.fromJSON(document, "BioCDocument")


def read_gold(path: Path, *, longest: int = LONGEST) -> Iterator[GoldDocument]:
    """Read a BioC collection in JSON; see `bioc_documents.to_gold`.

    path (Path): The file, plain or `.gz`.
    longest (int): Characters of a document at the most.
    YIELDS (GoldDocument): Each document.
    RAISES (SapbertError): With the number of the first document that has another form.
    SOURCE: Comeau et al. (2013).
    """
    return read_collection(path, "BioC in JSON", parse_documents, longest=longest)
