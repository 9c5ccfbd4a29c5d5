"""ICD-10-CM: the tabular list as XML, with chapters, blocks, categories and codes.

Source: The files of the National Center for Health Statistics.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from ...io.xml_blocks import read_children
from ..concepts import clean_name, has_letter_or_digit
from ..facts import CODE, NAME, PARENT, Fact
from ..options import ReadOptions
from ..report import Report, nested_too_deep

SOURCE = "ICD10CM"
NODES = ("chapter", "section", "diag")
DEPTH = 50  # nodes in each other; the published files have 7
# the range after the name of a chapter or block, e.g. "(A00-B99)"
RANGE = re.compile(r"\s*\(([A-Z][0-9A-Z]*(?:-[A-Z][0-9A-Z]*)?)\)\s*$")
STEM = 6  # characters of a code without its dot, before the seventh


def read_icd10cm(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read the tabular list: codes with their inclusion terms as further names.

    Chapters and blocks are concepts too; their id is the range of their codes. The file
    lists seventh characters once for many codes: each code that gets one is a concept,
    with the name of the code and the meaning of the character, as the order file has
    it: "S52.521A", "Torus fracture …, initial encounter for closed fracture".

    Raises:
        SapbertError: With the line of the chapter, at an element without a code or a
            name.
    """
    for line, element in read_children(path, lambda *_: None):
        if element.tag == "version":
            report.add_release(SOURCE, element.text or "")
        elif element.tag in NODES:
            yield from node_facts(element, "", {}, path, line, report)


def node_facts(
    node: Element,
    parent: str,
    characters: Mapping[str, str],
    path: Path,
    line: int,
    report: Report,
    depth: int = 0,
) -> Iterator[Fact]:
    """Yield the facts of a chapter, block or code, and of those in it.

    Args:
        parent: The code of what it is in.
        characters: Seventh characters and their meanings, for the codes in it.
        line: Of the chapter.
    """
    if depth > DEPTH:
        raise nested_too_deep(path=path, line=line, limit=DEPTH)
    report.read(path.name, 1)
    is_code = node.tag == "diag"
    title = read_text(node.find("desc"))
    code = read_text(node.find("name")) if is_code else node.get("id", "").strip()
    if not is_code and (span := RANGE.search(title)):
        code = code or span[1]
        title = title[: span.start()]
    characters = {
        extension.get("char", ""): read_text(extension)
        for extension in node.iterfind("sevenChrDef/extension")
    } or characters
    if code and has_letter_or_digit(title):
        # A block of one category has its code: the two are one concept, with the name
        # of the category.
        rank = int(not is_code)
        yield Fact(code, CODE, code, source=SOURCE)
        yield Fact(code, NAME, title, rank, SOURCE)
        for note in node.iterfind("inclusionTerm/note"):
            yield Fact(code, NAME, read_text(note), rank, SOURCE)
        if parent not in ("", code):
            yield Fact(code, PARENT, parent)
        if is_code and node.find("diag") is None:
            yield from extend_code(code, title, characters)
    else:
        expected = f"a code and a name of each {node.tag}, also of one in {parent}"
        report.bad_line(path, line, expected, "bad nodes")
    for child in node:
        if child.tag in NODES:
            yield from node_facts(
                child, code or parent, characters, path, line, report, depth + 1
            )


def extend_code(code: str, title: str, characters: Mapping[str, str]) -> Iterator[Fact]:
    """Yield the facts of the codes with a seventh character; X fills the gap."""
    stem = code.replace(".", "").ljust(STEM, "X")
    for character, meaning in characters.items():
        longer = f"{stem[:3]}.{stem[3:]}{character}"
        if len(stem) == STEM and character and meaning:
            yield Fact(longer, CODE, longer, source=SOURCE)
            yield Fact(longer, NAME, f"{title}, {meaning}", 0, SOURCE)
            yield Fact(longer, PARENT, code)


def read_text(element: Any) -> str:
    """Return the text of an element, cleaned; "" if there is none."""
    return "" if element is None else clean_name("".join(element.itertext()))
