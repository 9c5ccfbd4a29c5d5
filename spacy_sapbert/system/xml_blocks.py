"""Parse XML in UTF-8 in bounded memory; entities are refused."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from ..errors import Errors, SapbertError
from .reading import read_blocks


def make_parser(path: Path) -> Any:
    """Return a parser of expat that loads no DTD and expands no entity.

    path (Path): The file, for errors.
    """
    # a declared encoding must not select a codec of Python
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True

    def refuse_entity(*_: Any) -> None:
        raise SapbertError(Errors.E152.format(path=path, line=parser.CurrentLineNumber))

    # Declared entities can expand to any size; expat skips undeclared ones silently.
    parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse_entity
    return parser


def feed_blocks(parser: Any, path: Path) -> Iterator[int]:
    """Feed a file, plain or `.gz`, to a parser of `make_parser`.

    YIELDS (int): After each block, the number of bytes so far.
    RAISES (SapbertError): With file and line, if the file is missing, truncated or
        damaged, not in UTF-8, or declares or uses an entity.
    """
    fed = 0
    try:
        for block in read_blocks([path]):
            if not fed and block[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise SapbertError(Errors.E006.format(path=path))
            parser.Parse(block, False)
            fed += len(block)
            yield fed
        parser.Parse(b"", True)
        yield fed
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise SapbertError(
            Errors.E150.format(path=path, line=error.lineno, reason=reason)
        ) from None
    except (EOFError, zlib.error) as error:
        line = parser.CurrentLineNumber
        raise SapbertError(
            Errors.E008.format(path=path, line=line, reason=error)
        ) from None
