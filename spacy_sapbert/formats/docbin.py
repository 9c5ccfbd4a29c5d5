"""`.spacy` files (`DocBin`)."""

import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Errors, SapbertError
from ..io.reading import BLOCK_BYTES, read_blocks
from .documents import ID, Document

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

# The values of a file may take 70 times the bytes that it unpacks to, because a value
# of one byte can be an empty dictionary. Real files have a ratio of 13.
UNPACKED_BYTES = 1 << 23
UNPACKED_RATIO = 30


def load_docbin(path: Path) -> bytes:
    """Return the content of a file, packed.

    Raises:
        SapbertError: If it unpacks to more than the limits of this module.
    """
    unpacker, packed, size = zlib.decompressobj(), b"".join(read_blocks([path])), 0
    rest = packed
    while rest and not unpacker.eof:
        size += len(unpacker.decompress(rest, BLOCK_BYTES))
        rest = unpacker.unconsumed_tail
        if size > max(UNPACKED_BYTES, UNPACKED_RATIO * len(packed)):
            raise SapbertError(Errors.E533.format(path=path, ratio=UNPACKED_RATIO))
    return packed


def read_docbin(path: Path, name: str, vocab: "Vocab | None") -> Iterator[Document]:
    """Read a `.spacy` file (a `DocBin`); the whole file is in memory.

    The id of a document is `doc.user_data["id"]`, if it is a text or a whole number.

    Args:
        name: Name of the file for the ids of other documents.
        vocab: Vocabulary of the pipeline; None = an empty one.

    Raises:
        SapbertError: If the file is damaged, too large, or not a `DocBin`.
    """
    from spacy.tokens import DocBin
    from spacy.vocab import Vocab

    docs: Iterator[Doc] | None = None
    for number in count(1):
        try:
            if docs is None:
                docs = DocBin().from_bytes(load_docbin(path)).get_docs(vocab or Vocab())
            doc = next(docs, None)
            text = "" if doc is None else doc.text
        except SapbertError:
            raise
        except Exception as error:  # any error of zlib, msgpack, numpy and spaCy
            raise SapbertError(
                Errors.E512.format(path=path, number=number, kind=type(error).__name__)
            ) from None
        if doc is None:
            return
        where = f"{name}:{number}"
        yield Document(find_id(doc, where), text, doc, place=where)


def find_id(doc: "Doc", place: str) -> str | int:
    """Return the id in the user data of a Doc, else its place."""
    id = doc.user_data.get(ID)
    return id if isinstance(id, str) or type(id) is int else place
