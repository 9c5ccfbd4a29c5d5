"""ClaML: classifications in XML, e.g. ICD-10, ICD-10-GM, OPS, ICF and ATC."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

from ...errors import Errors, SapbertError
from ...system.xml_blocks import read_children
from ..concepts import Concept, clean_name
from ..facts import (
    CODE,
    DEFINITION,
    NAME,
    PARENT,
    TYPE,
    Fact,
    build_concepts,
    check_count,
    language_code,
)
from ..report import Report

ROOT = "ClaML"
NAMES = {"preferred": 0, "preferredLong": 1, "inclusion": 2}  # kinds of rubrics
LANGUAGE = "xml:lang"
DEPTH = 50  # elements in a label; the published files have 4
# the name of a classification without its language and year: ICD-10-EN-2016
NAME_END = re.compile(r"(?:[-_ .]?(?:EN|DE|FR|ES|NL|CS|\d+))*$", re.IGNORECASE)
SOURCES = {"ICD10": "ICD10", "ICD10GM": "ICD10GM", "ICD10WHO": "ICD10"}


class Modifier(NamedTuple):
    """A class of a modifier: the end of codes, and of names.

    code (str), name (str), language (str): E.g. ".0" and "With coma".
    """

    code: str
    name: str
    language: str


def read_claml(
    path: Path, report: Report, *, type: str | None = None
) -> Iterator[Concept]:
    """Read the classes of a classification, with inclusion terms as further names.

    A class that names modifiers gets a subclass for each of their classes.

    path (Path): The XML file, plain or `.gz`.
    type (str | None): Semantic type of all concepts.
    YIELDS (Concept): Each concept, sorted by id.
    RAISES (SapbertError): With file and line, at the first class without a code or a
        name, or at malformed XML.
    SOURCE: EN ISO 13120, and the files of the WHO and the BfArM.
    """
    return build_concepts(find_facts(path, type, report), report)


def find_facts(path: Path, type: str | None, report: Report) -> Iterator[Fact]:
    """Yield the facts of all classes."""
    source = ""
    modifiers: dict[str, list[Modifier]] = {}
    count = 0

    def check_root(tag: str, attributes: dict[str, str], line: int) -> None:
        if tag != ROOT:
            values = {"path": path, "line": line, "got": tag[:40]}
            raise SapbertError(Errors.E420.format(**values))

    for line, element in read_children(path, check_root):
        if element.tag == "Title":
            source = find_source(element.get("name", ""))
        elif element.tag == "ModifierClass":
            name, language = preferred_name(element)
            found = modifiers.setdefault(element.get("modifier", ""), [])
            found.append(Modifier(element.get("code", ""), name, language))
            count += 1
            check_count(count, "ModifierClass")
        elif element.tag == "Class":
            report.read(path.name, 1)
            code = (element.get("code") or "").strip()
            if not code or not preferred_name(element)[0]:
                values = {"path": path, "line": line}
                text = Errors.E117.format(expected="a code and a name", **values)
                report.skip("bad nodes", SapbertError(text))
                continue
            yield from class_facts(element, code, source)
            yield from modified_facts(element, code, source, modifiers)
            if type:
                yield Fact(code, TYPE, type)


def find_source(name: str) -> str:
    """Return the vocabulary of a classification: "ICD-10-EN-2016" → "ICD10"."""
    base = re.sub(r"[^A-Z0-9]", "", NAME_END.sub("", name[:40].upper()))
    if name.upper().startswith("ICD-10") and base in ("", "ICD"):
        return "ICD10"
    return SOURCES.get(base, base or "CLAML")


def class_facts(element: Element, code: str, source: str) -> Iterator[Fact]:
    """Yield the facts of a class without modifiers."""
    yield Fact(code, CODE, code, source=source)
    for other in element.iterfind("SuperClass"):
        if parent := (other.get("code") or "").strip():
            yield Fact(code, PARENT, parent)
    for rubric in element.iterfind("Rubric"):
        kind = rubric.get("kind", "")
        for label in rubric.iterfind("Label"):
            text = label_text(label)
            if kind == "definition":
                yield Fact(code, DEFINITION, text)
            elif kind in NAMES and text:
                language = language_code(label.get(LANGUAGE, ""))
                yield Fact(code, NAME, text, NAMES[kind], source, language)


def modified_facts(
    element: Element, code: str, source: str, modifiers: dict[str, list[Modifier]]
) -> Iterator[Fact]:
    """Yield the facts of the subclasses that the modifiers of a class make."""
    name, language = preferred_name(element)
    for used in element.iterfind("ModifiedBy"):
        valid = {each.get("code") for each in used.iterfind("ValidModifierClass")}
        for modifier in modifiers.get(used.get("code", ""), ()):
            if (valid and modifier.code not in valid) or not modifier.name:
                continue
            own = code + modifier.code
            yield Fact(own, CODE, own, source=source)
            yield Fact(own, PARENT, code)
            text = f"{name}, {modifier.name}"
            yield Fact(own, NAME, text, 1, source, modifier.language or language)


def preferred_name(element: Element) -> tuple[str, str]:
    """Return the preferred name of an element and its language; both may be empty."""
    for rubric in element.iterfind("Rubric"):
        if rubric.get("kind") == "preferred":
            for label in rubric.iterfind("Label"):
                if text := label_text(label):
                    return text, language_code(label.get(LANGUAGE, ""))
    return "", ""


def label_text(element: Element, depth: int = 0) -> str:
    """Return the text of a label, without references to other codes."""
    texts = [element.text or ""]
    for inner in element:
        if inner.tag != "Reference" and depth < DEPTH:
            texts.append(label_text(inner, depth + 1))
        texts.append(inner.tail or "")
    # fragments of a list, such as "fever: blue", follow each other without a space
    return clean_name(" ".join(filter(None, map(str.strip, texts))))
