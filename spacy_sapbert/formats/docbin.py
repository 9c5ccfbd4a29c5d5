"""`.spacy` files (`DocBin`), which are unpacked in memory."""

import zlib
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SapbertError
from ..io.reading import BLOCK_BYTES, read_blocks
from .documents import ID, Document

if TYPE_CHECKING:
    from spacy.vocab import Vocab

# Real files unpack to 13 times their size, most of it arrays, and have about ten values
# a document. A value of one byte, such as an empty dictionary, can take 70 bytes.
UNPACKED_BYTES = 1 << 23  # of any file, or …
UNPACKED_RATIO = 30  # … times its size
VALUES = 1 << 22  # of any file, or …
BYTES_A_VALUE = 32  # … one for so many unpacked bytes
LEVELS = 3  # msgpack is in msgpack: a group of spans, in the groups of a Doc, in a file


class TooManyValuesError(Exception):
    """There are more values than fit in memory."""


def load_docbin(path: Path) -> bytes:
    """Return the content of a file, packed, if it does not unpack to too much."""
    packed = b"".join(read_blocks([path]))
    unpacker, data = zlib.decompressobj(), bytearray()
    rest, limit = packed, max(UNPACKED_BYTES, UNPACKED_RATIO * len(packed))
    while rest and not unpacker.eof and len(data) <= limit:
        data += unpacker.decompress(rest, BLOCK_BYTES)
        rest = unpacker.unconsumed_tail
    most = max(VALUES, len(data) // BYTES_A_VALUE)
    if len(data) > limit or not has_few_values(bytes(data), most):
        raise SapbertError(
            "E007",
            f"{path}: Expected a `.spacy` file that unpacks to at most "
            f"{UNPACKED_RATIO} times its size, and {most:,} texts, numbers and lists, "
            "because it is unpacked in memory, but got more. If it is not a damaged or "
            "hostile file, write the documents into several files.",
        )
    return packed


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

    options: dict[str, Any] = {
        "use_list": False,
        "list_hook": drop,
        "object_pairs_hook": lambda pairs: drop([*chain.from_iterable(pairs)]),
        "strict_map_key": False,
    }
    parts = [data]
    for _ in range(LEVELS):
        for part in parts:
            try:
                unpackb(part, **options)
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

    vocab = Vocab() if vocab is None else vocab  # a vocabulary may be empty
    docs: Iterator[Any] | None = None
    for number in count(1):
        try:
            if docs is None:
                docs = DocBin().from_bytes(load_docbin(path)).get_docs(vocab)
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
        place = f"{name}:{number}"
        id = doc.user_data.get(ID)
        is_id = isinstance(id, str) or type(id) is int
        yield Document(id if is_id else place, text, doc, place=place)
