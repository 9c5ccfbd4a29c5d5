"""ClaML: classifications in XML, e.g. ICD-10, ICD-10-GM, OPS, ICF and ATC.

Source: EN ISO 13120, and the files of the WHO and the BfArM.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

from ...errors import SapbertError
from ...io.xml_blocks import read_children
from ...linking.languages import language_code
from ..concepts import clean_name
from ..facts import CODE, DEFINITION, NAME, PARENT, Fact
from ..options import ReadOptions
from ..report import Report

ROOT = "ClaML"
EXCLUDED = "excludeOnPrecedingModifier"  # of ICD-10-GM
NAMES = {"preferred": 0, "preferredLong": 1, "inclusion": 2}  # kinds of rubrics
LANGUAGE = "xml:lang"
# elements that begin a new line of a label; others, such as Term, are inside a word
MOST_CODES = 10_000  # of a class by modifiers; chapter XX of ICD-10 has some 100
BLOCKS = ("Fragment", "Para", "List", "ListItem", "Caption", "Row", "Cell")
DEPTH = 50  # elements in a label; the published files have 4
# the name of a classification without its language and year: ICD-10-EN-2016
NAME_END = re.compile(r"(?:[-_ .]?(?:EN|DE|FR|ES|NL|CS|\d+))*$", re.IGNORECASE)
SOURCES = {"ICD10": "ICD10", "ICD10GM": "ICD10GM", "ICD10WHO": "ICD10"}
CATEGORY = re.compile(r"[A-Z]\d\d")  # of ICD-10: four characters have a dot


class Modifier(NamedTuple):
    """A class of a modifier: the end of codes, and of names.

    Attributes:
        code, name, language: E.g. ".0" and "With coma".
        after: Modifiers and classes that it must not follow, "S1 .0".
    """

    code: str
    name: str
    language: str
    after: frozenset[str] = frozenset()


class Use(NamedTuple):
    """A modifier of a class, and the codes of its classes that are valid there.

    Attributes:
        valid: Empty = all.
    """

    modifier: str
    valid: frozenset[str]


class Made(NamedTuple):
    """A code that modifiers have made, or the code of the class; `step`: "S1 .0"."""

    code: str
    name: str
    language: str
    step: str = ""


def read_claml(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read the classes of a classification, with inclusion terms as further names.

    A class without subclasses gets those that its modifiers make, and the modifiers of
    the classes above it that come before it in the file: see `apply_modifiers`.
    """
    source = ""
    modifiers: dict[str, list[Modifier]] = {}
    uses: dict[str, list[Use]] = {}  # by class, with those from above

    def check_root(tag: str, attributes: dict[str, str], line: int) -> None:
        if tag != ROOT:
            raise SapbertError(
                "E117",
                f"{path}:{line}: Expected a classification in ClaML, whose root "
                f"element is `ClaML`, but got {tag[:40]!r}. Pass another `--format`.",
            )

    for line, element in read_children(path, check_root):
        if element.tag == "Title":
            source = find_source(element.get("name", ""))
            report.add_release(source, element.get("version", ""))
        elif element.tag == "ModifierClass":
            name, language = preferred_name(element)
            found = modifiers.setdefault(element.get("modifier", ""), [])
            after = frozenset(
                " ".join(each.get("value", "").split())
                for each in element.iterfind("Meta")
                if each.get("name") == EXCLUDED
            )
            found.append(Modifier(element.get("code", ""), name, language, after))
        elif element.tag == "Class":
            report.read(path.name, 1)
            code = (element.get("code") or "").strip()
            if not code or not preferred_name(element)[0]:
                report.bad_line(path, line, "a code and a name", "bad nodes")
                continue
            yield from class_facts(element, code, source)
            if own := find_uses(element, uses):
                uses[code] = own
            if own and element.find("SubClass") is None:
                base = Made(code, *preferred_name(element))
                for parent, each in apply_modifiers(base, own, modifiers, report):
                    yield Fact(each.code, CODE, each.code, source=source)
                    yield Fact(each.code, PARENT, parent)
                    yield Fact(each.code, NAME, each.name, 1, source, each.language)


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


def find_uses(element: Element, above: Mapping[str, Sequence[Use]]) -> list[Use]:
    """Return the modifiers of a class: its own, then those of the class above it."""
    found_uses = {
        used.get("code", ""): Use(
            used.get("code", ""),
            frozenset(
                modifier.get("code", "")
                for modifier in used.iterfind("ValidModifierClass")
            ),
        )
        for used in element.iterfind("ModifiedBy")
    }
    excluded = {
        modifier.get("code") for modifier in element.iterfind("ExcludeModifier")
    }
    for parent in element.iterfind("SuperClass"):
        for use in above.get((parent.get("code") or "").strip(), ()):
            if use.modifier not in excluded:
                found_uses.setdefault(use.modifier, use)
    return list(found_uses.values())


def apply_modifiers(
    base: Made,
    uses: Sequence[Use],
    modifiers: Mapping[str, Sequence[Modifier]],
    report: Report,
) -> Iterator[tuple[str, Made]]:
    """Make the codes of a class with modifiers.

    ".0" is the end of a code without a dot, "0" of one with a dot: "E10" → "E10.0" →
    "E10.00". So modifiers of the fourth place come before those of the fifth. Codes
    that are not written as in ICD-10 may have no dots at all.

    Yields:
        The code that was extended, and the new one.
    """

    def is_fifth(use: Use) -> bool:
        return not any(
            modifier.code[:1] == "." for modifier in modifiers.get(use.modifier, ())
        )

    ends = [base]
    for use in sorted(uses, key=is_fifth):
        longer: list[Made] = []
        for end in ends:
            for modifier in modifiers.get(use.modifier, ()):
                if use.valid and modifier.code not in use.valid:
                    continue
                has_dot = modifier.code[:1] == "."
                fits = has_dot != ("." in end.code)
                if not has_dot and not CATEGORY.fullmatch(end.code):
                    fits = True
                if not fits or not modifier.name or end.step in modifier.after:
                    report.dropped["modifiers that do not fit a code"] += not fits
                    continue
                made = Made(
                    end.code + modifier.code,
                    f"{end.name}, {modifier.name}",
                    modifier.language or end.language,
                    f"{use.modifier} {modifier.code}",
                )
                yield end.code, made
                longer.append(made)
                if len(longer) > MOST_CODES:
                    raise SapbertError(
                        "E007",
                        f"Expected modifiers that make at most {MOST_CODES:,} codes "
                        f"of a class, but those of {base.code[:40]} make more. Check "
                        "that the file is what it should be.",
                    )
        ends = longer or ends


def preferred_name(element: Element) -> tuple[str, str]:
    """Return the preferred name of an element and its language; both may be empty."""
    for rubric in element.iterfind("Rubric"):
        if rubric.get("kind") == "preferred":
            for label in rubric.iterfind("Label"):
                if text := label_text(label):
                    return text, language_code(label.get(LANGUAGE, ""))
    return "", ""


def label_text(element: Element) -> str:
    """Return the text of a label, without references to other codes."""
    return clean_name("".join(iter_text(element)))


def iter_text(element: Element, depth: int = 0) -> Iterator[str]:
    """Yield the parts of a text; those of a word, as in B<Term>12</Term>, are one."""
    yield element.text or ""
    for inner in element:
        # fragments of a list, such as "fever: blue", follow each other without a space
        blank = " " * (inner.tag in BLOCKS)
        yield blank
        if inner.tag != "Reference" and depth < DEPTH:
            yield from iter_text(inner, depth + 1)
        yield blank
        yield inner.tail or ""
