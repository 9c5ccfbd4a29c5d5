"""A file of RDF for rdflib, which itself has no limits."""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from ...errors import Errors, SapbertError
from ...system.reading import (
    RECORD_BYTES,
    USUAL_BYTES,
    read_blocks,
    read_line_blocks,
    record_error,
)
from ...system.xml_blocks import TOKEN_BYTES

DEPTH = 100  # elements in each other
ENTITY = 1000  # characters of an entity; Protégé declares namespaces as entities
NAMES = 1_000_000  # names of nodes that rdflib keeps, and a hundredth of prefixes
PREFIXES = NAMES // 100
TURTLE_BYTES = 1 << 27  # of a file, which rdflib holds in memory several times
PREFIX = re.compile(rb"prefix\s", re.IGNORECASE)
# a statement about or with a blank node, which no `Term` has
BLANK = re.compile(rb"\s*(?:<[^>]*>\s*<[^>]*>\s*)?_:")
RDF_NAMES = tuple(
    f"http://www.w3.org/1999/02/22-rdf-syntax-ns# {name}" for name in ("ID", "nodeID")
)


class RdfStream(io.RawIOBase):
    """The bytes of a file, plain or `.gz`, checked before they are parsed.

    Args:
        syntax: "xml", "turtle" or "nt".

    Raises:
        SapbertError: While reading: if XML is nested too deep or declares an entity
            that expands; if a line, a text, Turtle or what rdflib keeps is too large.
    """

    def __init__(self, path: Path, syntax: str) -> None:
        self.path, self.syntax = path, syntax
        self.blocks = self.read_lines() if syntax == "nt" else read_blocks([path])
        self.rest = b""
        self.size = self.since = self.depth = self.names = self.prefixes = 0
        self.checker = self.make_checker() if syntax == "xml" else None

    def make_checker(self) -> Any:
        """Return a parser that only checks."""
        parser = expat.ParserCreate(namespace_separator=" ")

        def start(_: str, attributes: dict[str, str]) -> None:
            self.depth += 1
            self.since = 0
            self.names += sum(name in attributes for name in RDF_NAMES)
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

        def bind(*_: Any) -> None:
            self.prefixes += 1

        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.EntityDeclHandler, parser.CharacterDataHandler = declare, add
        parser.StartNamespaceDeclHandler = bind
        return parser

    def error(self, reason: str) -> SapbertError:
        """Return the error of a hostile file."""
        return SapbertError(Errors.E421.format(path=self.path, reason=reason))

    def readable(self) -> bool:
        return True

    def read_lines(self) -> Iterator[bytes]:
        """Yield N-Triples without blank nodes, whose labels rdflib would keep."""
        for first, lines in read_line_blocks(self.path):
            for number, line in enumerate(lines, first):
                if len(line) > USUAL_BYTES:
                    raise record_error(self.path, number)
            kept = [line for line in lines if not BLANK.match(line)]
            yield b"\n".join(kept) + b"\n"

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
        if self.checker is not None:
            try:
                self.checker.Parse(block, not block)
            except expat.ExpatError as error:
                raise self.error(f"line {error.lineno}: {error}"[:80]) from None
            unread = self.size - self.checker.CurrentByteIndex
            if unread > TOKEN_BYTES:
                raise self.error("a tag or a comment that is too large")
            if self.since > RECORD_BYTES:
                raise record_error(self.path, self.checker.CurrentLineNumber)
        elif self.syntax == "turtle":
            self.names += block.count(b"_:")
            self.prefixes += len(PREFIX.findall(block))
            if self.size > TURTLE_BYTES:
                values = {"path": self.path, "limit": TURTLE_BYTES >> 20}
                raise SapbertError(Errors.E422.format(**values))
        if self.names > NAMES or self.prefixes > PREFIXES:
            raise self.error("too many names of nodes or prefixes")
