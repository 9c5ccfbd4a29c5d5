"""A file of RDF for rdflib, which itself has no limits."""

import io
from pathlib import Path
from typing import Any
from xml.parsers import expat

from ...errors import Errors, SapbertError
from ...system.reading import RECORD_BYTES, USUAL_BYTES, read_blocks, record_error

DEPTH = 100  # elements in each other
ENTITY = 1000  # characters of an entity; Protégé declares namespaces as entities
TURTLE_BYTES = 1 << 27  # of a file, which rdflib holds in memory several times


class RdfStream(io.RawIOBase):
    """The bytes of a file, plain or `.gz`, checked before they are parsed.

    path (Path): The file.
    syntax (str): "xml", "turtle" or "nt".
    RAISES (SapbertError): While reading: if XML is nested too deep or declares an
        entity that expands, a line or a text is too large, or Turtle is.
    """

    def __init__(self, path: Path, syntax: str) -> None:
        self.path, self.syntax = path, syntax
        self.blocks = read_blocks([path])
        self.rest = b""
        self.size = self.since = self.depth = 0
        self.checker = self.make_checker() if syntax == "xml" else None

    def make_checker(self) -> Any:
        """Return a parser that only checks."""
        parser = expat.ParserCreate()

        def start(*_: Any) -> None:
            self.depth += 1
            self.since = 0
            if self.depth > DEPTH:
                raise self.error("elements that are nested too deep")

        def end(*_: Any) -> None:
            self.depth -= 1
            self.since = 0

        def declare(name: str, is_parameter: int, value: str | None, *_: Any) -> None:
            if is_parameter or value is None or len(value) > ENTITY or "&" in value:
                raise self.error("an entity that is external or expands")

        def add(text: str) -> None:
            self.since += len(text)

        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.EntityDeclHandler, parser.CharacterDataHandler = declare, add
        return parser

    def error(self, reason: str) -> SapbertError:
        """Return the error of a hostile file."""
        return SapbertError(Errors.E421.format(path=self.path, reason=reason))

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Return at most so many bytes; all for -1."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        if not self.rest:
            self.rest = next(self.blocks, b"")
            self.check(self.rest)
        found, self.rest = self.rest[:size], self.rest[size:]
        return found

    def check(self, block: bytes) -> None:
        """Check a block before it is parsed."""
        self.size += len(block)
        if self.syntax == "turtle" and self.size > TURTLE_BYTES:
            values = {"path": self.path, "limit": TURTLE_BYTES >> 20}
            raise SapbertError(Errors.E422.format(**values))
        if self.checker is not None:
            try:
                self.checker.Parse(block, not block)
            except expat.ExpatError as error:
                raise self.error(f"line {error.lineno}: {error}"[:80]) from None
            if self.since > RECORD_BYTES:
                raise record_error(self.path, self.checker.CurrentLineNumber)
        elif self.syntax == "nt":
            end = block.rfind(b"\n")
            self.since = self.since + len(block) if end < 0 else len(block) - end
            if self.since > USUAL_BYTES:
                raise record_error(self.path, 1)
