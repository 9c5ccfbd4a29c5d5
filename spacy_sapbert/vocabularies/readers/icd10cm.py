"""ICD-10-CM: the tabular list as XML, with chapters, blocks, categories and codes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import Errors, SapbertError
from ...system.reading import RECORD_BYTES, record_error
from ...system.xml_blocks import feed_blocks, make_parser
from ..concepts import Concept, clean_name, has_letter_or_digit
from ..merge import sort_concepts
from ..report import Report, clean_names

SOURCE = "ICD10CM"
NODES = ("chapter", "section", "diag")
DEPTH = 100  # elements in each other; the published files have 9
TEXT_BYTES = 100  # that an empty text takes
# the range after the name of a chapter or block, e.g. "(A00-B99)"
RANGE = re.compile(r"\s*\(([A-Z][0-9A-Z]*(?:-[A-Z][0-9A-Z]*)?)\)\s*$")


@dataclass(slots=True)
class Node:
    """An open chapter, block or code.

    Attributes:
        tag: One of `NODES`.
        line: Its first line.
        code: Its id; empty until it is read.
        inclusions: Inclusion terms: further names.
    """

    tag: str
    line: int
    code: str = ""
    title: str = ""
    inclusions: list[str] = field(default_factory=list)
    size: int = 0


class TabularList:
    """Handlers for expat that make a concept of each element with a code.

    Args:
        types: Semantic types of all concepts.
    """

    def __init__(self, path: Path, report: Report, types: list[str]) -> None:
        self.path, self.report, self.types = path, report, types
        self.tags: list[str] = []
        self.nodes: list[Node] = []
        self.text: list[str] = []
        self.made: list[Concept] = []
        self.begin = 0  # the byte at which the open element of `NODES` begins
        self.parser = make_parser(path)
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text.append

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""
        self.tags.append(tag)
        self.text.clear()
        line = self.parser.CurrentLineNumber
        if len(self.tags) > DEPTH:
            values = {"path": self.path, "line": line, "limit": DEPTH}
            raise SapbertError(Errors.E121.format(**values))
        if tag in NODES:
            self.begin = self.parser.CurrentByteIndex
            code = attributes.get("id", "") if tag == "section" else ""
            self.split_title()
            self.nodes.append(Node(tag, line, code.strip()))

    def end(self, tag: str) -> None:
        """Handle the end of an element."""
        self.tags.pop()
        text = clean_name("".join(self.text))
        self.text.clear()
        if tag in NODES:
            self.begin = self.parser.CurrentByteIndex
            self.split_title()
            self.make_concept(self.nodes.pop())
            return
        if tag == "version" and len(self.tags) == 1:
            self.report.add_release(SOURCE, text[:200])
        if not self.nodes:
            return
        node, parent = self.nodes[-1], self.tags[-1]
        node.size += len(text) + TEXT_BYTES
        if sum(each.size for each in self.nodes) > RECORD_BYTES:
            raise record_error(self.path, node.line)
        if tag == "name" and parent == "diag":
            node.code = text
        elif tag == "desc" and parent == node.tag:
            node.title = text
        elif tag == "note" and parent == "inclusionTerm":
            node.inclusions.append(text)

    def split_title(self) -> None:
        """Split the range of codes from the title of the open chapter or block.

        The range is the id of a chapter, and its children need it before it ends.
        """
        if self.nodes and self.nodes[-1].tag != "diag":
            node = self.nodes[-1]
            if found := RANGE.search(node.title):
                node.code = node.code or found[1]
                node.title = node.title[: found.start()]

    def make_concept(self, node: Node) -> None:
        """Make the concept of an element that has ended."""
        self.report.read(self.path.name, 1)
        if not node.code or not has_letter_or_digit(node.title):
            values = {"path": self.path, "line": node.line}
            text = Errors.E117.format(expected="a code and a name", **values)
            self.report.skip("bad nodes", SapbertError(text))
            return
        names = clean_names((node.title, *node.inclusions), self.report)
        parent = self.nodes[-1].code if self.nodes else ""
        self.made.append(
            Concept(
                node.code,
                names,
                types=self.types,
                codes={SOURCE: [node.code]},
                # a block of one category has its code: the two become one concept
                parents=[parent] if parent not in ("", node.code) else [],
                sources={SOURCE: list(range(len(names)))},
            )
        )

    def concepts(self) -> Iterator[Concept]:
        """Read the file; children come before parents, and an id may come twice."""
        for _ in feed_blocks(self.parser, self.path, lambda: self.begin):
            yield from self.made
            self.made.clear()


def read_icd10cm(
    path: Path, report: Report, *, type: str | None = None
) -> Iterator[Concept]:
    """Read the tabular list: codes with their inclusion terms as further names.

    Chapters and blocks are concepts too; their id is the range of their codes. The file
    does not list the codes that a seventh character makes.

    Args:
        path: The XML file, plain or `.gz`.
        type: Semantic type of all concepts.

    Yields:
        Each concept, sorted by id.

    Raises:
        SapbertError: With file and line, at the first element without a code or a name,
            or at malformed XML.

    Source: The files of the National Center for Health Statistics.
    """
    tabular = TabularList(path, report, [type] if type else [])
    return sort_concepts(tabular.concepts())
