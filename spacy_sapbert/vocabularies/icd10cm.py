"""ICD-10-CM: the tabular list as XML, with chapters, blocks, categories and codes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import Errors, SapbertError
from .checks import count_concepts
from .clean import clean_name, has_letter_or_digit
from .concepts import Concept
from .merge import sort_concepts
from .report import Report
from .xml_blocks import feed_blocks, make_parser

SOURCE = "ICD10CM"
NODES = ("chapter", "section", "diag")
# the range behind the name of a chapter or block, e.g. "(A00-B99)"
RANGE = re.compile(r"\s*\(([A-Z][0-9A-Z]*(?:-[A-Z][0-9A-Z]*)?)\)\s*$")


@dataclass(slots=True)
class Node:
    """One chapter, block or code on its way through the file.

    tag (str): One of `NODES`.
    line (int): Where it begins.
    code (str): Its id, once it is known.
    title (str): Its name.
    inclusions (list[str]): Terms that are coded so too.
    """

    tag: str
    line: int
    code: str = ""
    title: str = ""
    inclusions: list[str] = field(default_factory=list)


class TabularList:
    """What expat tells while it reads; makes concepts of it."""

    def __init__(self, path: Path, types: list[str], on_error: str, report: Report):
        self.path, self.types, self.on_error = path, types, on_error
        self.report = report
        self.tags: list[str] = []
        self.nodes: list[Node] = []
        self.text: list[str] = []
        self.made: list[Concept] = []
        self.parser = make_parser(path)
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text.append

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Begin an element."""
        self.tags.append(tag)
        self.text.clear()
        if tag in NODES:
            line = self.parser.CurrentLineNumber
            code = attributes.get("id", "") if tag == "section" else ""
            self.take_title()
            self.nodes.append(Node(tag, line, code.strip()))

    def end(self, tag: str) -> None:
        """End an element."""
        self.tags.pop()
        text = clean_name("".join(self.text))
        self.text.clear()
        if tag in NODES:
            self.take_title()
            self.make_concept(self.nodes.pop())
            return
        if not self.nodes:
            return
        node, above = self.nodes[-1], self.tags[-1]
        if tag == "name" and above == "diag":
            node.code = text
        elif tag == "desc" and above == node.tag:
            node.title = text
        elif tag == "note" and above == "inclusionTerm":
            node.inclusions.append(text)

    def take_title(self) -> None:
        """Take the range off the title of the open chapter or block.

        It is the id of a chapter, which has a number of its own kind otherwise; what is
        below needs it before the chapter ends.
        """
        if self.nodes and self.nodes[-1].tag != "diag":
            node = self.nodes[-1]
            found = RANGE.search(node.title)
            if found:
                node.code = node.code or found[1]
                node.title = node.title[: found.start()]

    def make_concept(self, node: Node) -> None:
        """Make a concept of an element that has ended."""
        self.report.read(self.path.name, 1)
        names = []
        for name in (node.title, *node.inclusions):
            if not has_letter_or_digit(name):
                self.report.dropped["names without a letter or digit"] += 1
            elif name in names:
                self.report.dropped["repeated names"] += 1
            else:
                names.append(name)
        if not node.code or not has_letter_or_digit(node.title):
            if self.on_error == "fail":
                raise SapbertError(
                    Errors.E117.format(
                        path=self.path, line=node.line, expected="a code and a name"
                    )
                )
            self.report.dropped["bad nodes"] += 1
            return
        self.report.rows_kept += len(names)
        above = self.nodes[-1].code if self.nodes else ""
        self.made.append(
            Concept(
                node.code,
                names,
                types=list(self.types),
                codes={SOURCE: [node.code]},
                # a block of one category has its code: the two become one concept
                parents=[above] if above not in ("", node.code) else [],
                sources={SOURCE: list(range(len(names)))},
            )
        )

    def concepts(self) -> Iterator[Concept]:
        """Read the file.

        YIELDS (Concept): Below comes before above; an id may come twice.
        RAISES (SapbertError): See `feed_blocks`.
        """
        for _ in feed_blocks(self.parser, self.path):
            yield from self.made
            self.made.clear()


def read_icd10cm(
    path: Path,
    *,
    type: str | None = None,
    on_error: str = "fail",
    report: Report | None = None,
) -> Iterator[Concept]:
    """Read the tabular list: codes with their inclusion terms as further names.

    Chapters and blocks are concepts too, with the range of their codes as id. Codes
    that are made by a seventh character are not listed in the file, and not made here.

    path (Path): The XML file, plain or `.gz`.
    type (str | None): Semantic type of all concepts.
    on_error (str): "fail", or "skip" to count elements without code or name and go on.
    report (Report | None): Filled while reading.
    YIELDS (Concept): Each concept, sorted by its id.
    RAISES (SapbertError): With file and line, at the first bad element or at XML that
        is not well-formed; if nothing is left.
    SOURCE: The files of the National Center for Health Statistics.
    """
    report = Report() if report is None else report
    report.path, report.format = str(path), "icd10cm"
    tabular = TabularList(path, [type] if type else [], on_error, report)
    yield from count_concepts(sort_concepts(tabular.concepts()), report)
