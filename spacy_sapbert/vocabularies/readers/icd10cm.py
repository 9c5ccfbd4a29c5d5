"""ICD-10-CM: the tabular list as XML, and the lists of codes of ICD-10-CM and PCS.

Source: The files of the National Center for Health Statistics, and those of the Centers
for Medicare & Medicaid Services.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from ...io.xml_blocks import read_children
from ..concepts import clean_name, has_letter_or_digit
from ..facts import CODE, NAME, PARENT, Fact
from ..locate import has_name, list_folder
from ..options import ReadOptions
from ..report import Report, nested_too_deep, read_good_lines

SOURCE = "ICD10CM"
NODES = ("chapter", "section", "diag")
DEPTH = 50  # nodes in each other; the published files have 7
# the range after the name of a chapter or block, e.g. "(A00-B99)"
RANGE = re.compile(r"\s*\(([A-Z][0-9A-Z]*(?:-[A-Z][0-9A-Z]*)?)\)\s*$")
STEM = 6  # characters of a code without its dot, before the seventh
# "7th characters D and S do not apply to codes in category S06 with 6th character 7 -
# death …, or 8 - death …"
EXCEPTION = re.compile(
    r"7th characters? (.+) do not apply to codes in category (\w+) "
    r"with 6th character (.+)"
)
LISTS = ("icd10cm?order*.txt", "icd10cm?codes*.txt")
# Rows of a list: its number, the code, whether it is billable, two names; or code, name
ORDER_ROW = re.compile(r"\d{5} (\w{3,7}) +([01]) (.{60}) (.+)")
CODE_ROW = re.compile(r"(\w{3,7}) +(\S.*)")


class SeventhCharacters(NamedTuple):
    """Seventh characters for the codes in a node.

    Attributes:
        meanings: By character.
        category, sixth, excluded: Codes of this category with one of these sixth
            characters do not have the excluded ones.
    """

    meanings: Mapping[str, str] = {}
    category: str = ""
    sixth: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()

    def apply(self, stem: str, character: str) -> bool:
        """Return whether a code without its dot has a seventh character."""
        return not (
            self.category
            and stem.startswith(self.category)
            and stem[STEM - 1] in self.sixth
            and character in self.excluded
        )


def read_icd10cm(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read the tabular list: codes with their inclusion terms as further names.

    Chapters and blocks are concepts too; their id is the range of their codes. The file
    lists seventh characters once for many codes: each code that gets one is a concept,
    with the name of the code and the meaning of the character, as the order file has
    it: "S52.521A", "Torus fracture …, initial encounter for closed fracture".
    """
    beside = list_folder(path.parent)
    lists = [file for name in LISTS for file in beside if has_name(file, name)]
    billable = {code for code, _, _ in read_rows(lists[0], report)} if lists else None
    for line, element in read_children(path, lambda *_: None):
        if element.tag == "version":
            report.add_release(SOURCE, element.text or "")
        elif element.tag in NODES:
            characters = SeventhCharacters()
            yield from node_facts(element, "", characters, path, line, report, billable)


def read_code_list(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read a list of codes: `icd10cm_order_2026.txt`, `icd10cm_codes_2026.txt`.

    The long name is preferred; the parent is the longest code that begins the code.
    """
    source = "ICD10PCS" if "pcs" in path.name.lower() else SOURCE
    above: list[str] = []
    for code, name, short in read_rows(path, report):
        while above and not code.startswith(above[-1]):
            above.pop()
        id = code if source != SOURCE else add_dot(code)
        yield Fact(id, CODE, id, source=source)
        yield Fact(id, NAME, name, 0, source)
        if short:
            yield Fact(id, NAME, short, 1, source)
        if above:
            parent = above[-1]
            yield Fact(id, PARENT, parent if source != SOURCE else add_dot(parent))
        above.append(code)


def read_rows(path: Path, report: Report) -> Iterator[tuple[str, str, str]]:
    """Yield code, long name and short name (or "") of each row of a list of codes."""
    for number, line in read_good_lines(path, report):
        if row := ORDER_ROW.match(line):
            yield row[1], clean_name(row[4]), clean_name(row[3])
        elif row := CODE_ROW.match(line):
            yield row[1], clean_name(row[2]), ""
        else:
            report.bad_line(path, number, "a code and a name")


def add_dot(code: str) -> str:
    return f"{code[:3]}.{code[3:]}" if len(code) > 3 else code


def read_characters(node: Element) -> SeventhCharacters | None:
    """Return the seventh characters that a node defines; None if it does not."""
    meanings = {
        extension.get("char", ""): read_text(extension)
        for extension in node.iterfind("sevenChrDef/extension")
    }
    if not meanings:
        return None
    for note in node.iterfind("notes/note"):
        if match := EXCEPTION.search(read_text(note)):
            excluded = frozenset(re.findall(r"\b[A-Z]\b", match[1]))
            sixth = frozenset(re.findall(r"(?:^|\bor )(\w)\b", match[3]))
            return SeventhCharacters(meanings, match[2], sixth, excluded)
    return SeventhCharacters(meanings)


def node_facts(
    node: Element,
    parent: str,
    characters: SeventhCharacters,
    path: Path,
    line: int,
    report: Report,
    billable: set[str] | None,
    depth: int = 0,
) -> Iterator[Fact]:
    """Yield the facts of a chapter, block or code, and of those in it.

    Args:
        parent: The code of what it is in.
        characters: For the codes in it.
        line: Of the chapter.
        billable: The codes of a list beside the file, without dots; None = unknown.
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
    characters = read_characters(node) or characters
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
            yield from extend_code(code, title, characters, report, billable)
    else:
        expected = f"a code and a name of each {node.tag}, also of one in {parent}"
        report.bad_line(path, line, expected, "bad nodes")
    for child in node:
        if child.tag in NODES:
            yield from node_facts(
                child,
                code or parent,
                characters,
                path,
                line,
                report,
                billable,
                depth + 1,
            )


def extend_code(
    code: str,
    title: str,
    characters: SeventhCharacters,
    report: Report,
    billable: set[str] | None,
) -> Iterator[Fact]:
    """Yield the facts of the codes with a seventh character; X fills the gap."""
    stem = code.replace(".", "").ljust(STEM, "X")
    for character, meaning in characters.meanings.items():
        longer = f"{stem[:3]}.{stem[3:]}{character}"
        if len(stem) != STEM or not character or not meaning:
            continue
        unknown = billable is not None and stem + character not in billable
        if unknown or not characters.apply(stem, character):
            report.dropped["seventh characters that do not apply"] += 1
        else:
            yield Fact(longer, CODE, longer, source=SOURCE)
            yield Fact(longer, NAME, f"{title}, {meaning}", 0, SOURCE)
            yield Fact(longer, PARENT, code)


def read_text(element: Any) -> str:
    """Return the text of an element, cleaned; "" if there is none."""
    return "" if element is None else clean_name("".join(element.itertext()))
