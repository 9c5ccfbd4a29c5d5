"""`.spacy` files (`DocBin`)."""

import zlib
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SapbertError
from ..io.reading import BLOCK_BYTES, read_blocks
from .documents import ID, Document

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

# A file is unpacked in memory. Real files unpack to 13 times their size, most of it
# arrays, and have about ten values a document. A value of one byte, such as an empty
# dictionary, can take 70 bytes in memory.
UNPACKED_BYTES = 1 << 23  # of any file, or …
UNPACKED_RATIO = 30  # … times its size
VALUES = 1 << 22  # of any file, or …
BYTES_A_VALUE = 32  # … one for so many unpacked bytes
LEVELS = 3  # msgpack is in msgpack: a group of spans, in the groups of a Doc, in a file


def load_docbin(path: Path) -> bytes:
    """Return the content of a file, packed, if it does not unpack to too much."""
    unpacker, packed, size = zlib.decompressobj(), b"".join(read_blocks([path])), 0
    rest = packed
    while rest and not unpacker.eof:
        size += len(unpacker.decompress(rest, BLOCK_BYTES))
        rest = unpacker.unconsumed_tail
        if size > max(UNPACKED_BYTES, UNPACKED_RATIO * len(packed)):
            raise SapbertError(
                "E007",
                f"{path}: Expected a `.spacy` file that unpacks to at most "
                f"{UNPACKED_RATIO} times its size, because it is unpacked in memory, "
                "but got more. If it is not a damaged or hostile file, write the "
                "documents into several files.",
            )
    most = max(VALUES, size // BYTES_A_VALUE)
    if not has_few_values(zlib.decompress(packed), most):
        raise SapbertError(
            "E007",
            f"{path}: Expected a `.spacy` file of at most {most:,} texts, numbers and "
            "lists, because it is unpacked in memory, but got more. If it is not a "
            "damaged or hostile file, write the documents into several files.",
        )
    return packed


class TooManyValuesError(Exception):
    """There are more values than fit in memory."""


def has_few_values(data: bytes, most: int) -> bool:
    """Return whether msgpack, and msgpack in its bytes, has at most so many values.

    What cannot be read counts up to where it is damaged; spaCy does not read it either.
    """
    from srsly.msgpack import unpackb

    left = most
    inner: list[bytes] = []

    def drop(values: Sequence[Any]) -> None:
        nonlocal left
        left -= 1 + len(values)
        if left < 0:
            raise TooManyValuesError
        inner.extend(value for value in values if isinstance(value, bytes))

    parts = [data]
    for _ in range(LEVELS):
        for part in parts:
            try:
                unpackb(
                    part,
                    use_list=False,
                    list_hook=drop,
                    object_pairs_hook=lambda pairs: drop([*chain.from_iterable(pairs)]),
                    strict_map_key=False,
                )
            except TooManyValuesError:
                return False
            except Exception:  # not msgpack: any error of the library
                continue
        parts, inner = inner, []
    return True


def read_docbin(path: Path, name: str, vocab: "Vocab | None") -> Iterator[Document]:
    """Read a `.spacy` file (a `DocBin`); the whole file is in memory.

    The id of a document is `doc.user_data["id"]`, if it is a text or a whole number;
    else it is made of `name`.
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
            kind = type(error).__name__
            raise SapbertError(
                "E150",
                f"{path}: Expected documents as `DocBin.to_disk` writes them, but "
                f"document {number} cannot be read ({kind}). Write or copy the file "
                "again.",
            ) from None
        if doc is None:
            return
        where = f"{name}:{number}"
        yield Document(find_id(doc, where), text, doc, place=where)


def find_id(doc: "Doc", place: str) -> str | int:
    """Return the id in the user data of a Doc, else its place."""
    id = doc.user_data.get(ID)
    return id if isinstance(id, str) or type(id) is int else place
