"""MeSH in the XML of its publisher: descriptors, and supplementary records."""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from ...errors import Errors, SapbertError
from ...system.xml_blocks import read_children
from ..concepts import Concept, clean_name
from ..merge import sort_concepts
from ..report import Report, clean_names

PREFIX = "MESH"
SOURCE = "MSH"  # what UMLS calls it
# the tags of the id and the heading of each kind of record
RECORDS = {
    "DescriptorRecord": ("DescriptorUI", "DescriptorName"),
    "SupplementalRecord": ("SupplementalRecordUI", "SupplementalRecordName"),
}
ROOTS = tuple(f"{record}Set" for record in RECORDS)
YEAR = re.compile(r"(?:19|20)\d\d")  # desc2026.gz


def read_mesh(path: Path, report: Report) -> Iterator[Concept]:
    """Read descriptors or supplementary records, one record at a time.

    Args:
        path: The file, plain or `.gz`.

    Yields:
        Each concept, sorted by id: `MESH:` and the id of the record.

    Raises:
        SapbertError: If the file is not MeSH or truncated; with file and line, at the
            first invalid record.

    Source: nlm.nih.gov/mesh/xml_data_elements.html.
    """
    cuis: dict[str, str] = {}  # by tree number
    # all records are read before the first sorted concept, so `cuis` is complete
    for concept in sort_concepts(make_concepts(path, report, cuis)):
        above = (number.rpartition(".")[0] for number in concept.parents)
        parents = {cuis[number] for number in above if number in cuis}
        concept.parents = sorted(parents - {concept.cui})
        yield concept


def make_concepts(
    path: Path, report: Report, cuis: dict[str, str]
) -> Iterator[Concept]:
    """Make concepts of the records of a file.

    Args:
        cuis: Filled with the concept at each tree number.

    Yields:
        In the order of the file, with its tree numbers as `parents`.
    """
    language = ""

    def check_root(tag: str, attributes: dict[str, str], line: int) -> None:
        nonlocal language
        if tag not in ROOTS:
            values = {"line": line, "known": " or ".join(ROOTS), "got": tag[:40]}
            raise SapbertError(Errors.E151.format(path=path, **values))
        language = attributes.get("LanguageCode", "eng").upper()
        if year := YEAR.search(path.name):
            report.add_release("MSH", year[0])

    for line, record in read_children(path, check_root):
        report.read(path.name, 1)
        try:
            concept = make_concept(record, language, report)
        except ValueError as error:
            text = Errors.E153.format(path=path, line=line, expected=error)
            report.skip("bad records", SapbertError(text))
            continue
        if concept is None:
            report.dropped["records without a name"] += 1
            continue
        for number in concept.parents:
            cuis.setdefault(number, concept.cui)
        yield concept


def make_concept(record: Element, language: str, report: Report) -> Concept | None:
    """Make a concept of a record.

    Returns:
        The concept, with its own tree numbers as `parents`; None if no name is left.

    Raises:
        ValueError: With what was expected, if the record is invalid.
    """
    if record.tag not in RECORDS:
        raise ValueError(f"the element {' or '.join(RECORDS)}")
    id_tag, heading_tag = RECORDS[record.tag]
    id = text_at(record, id_tag)
    names = record_names(record, heading_tag, report)
    if not names:
        return None
    for key in ("DescriptorClass", "SCRClass"):
        if (number := record.get(key)) is not None:
            report.counts[f"records of class {number[:1]}"] += 1
    types = record.iterfind(
        "ConceptList/Concept/SemanticTypeList/SemanticType/SemanticTypeUI"
    )
    note = record.find("ConceptList/Concept[@PreferredConceptYN='Y']/ScopeNote")
    return Concept(
        f"{PREFIX}:{id}",
        names,
        types=distinct_texts(types),
        codes={SOURCE: [id]},
        parents=distinct_texts(record.iterfind("TreeNumberList/TreeNumber")),
        definition=None if note is None else text_of(note) or None,
        languages={language: list(range(len(names)))},
        sources={SOURCE: list(range(len(names)))},
    )


def record_names(record: Element, heading_tag: str, report: Report) -> list[str]:
    """Return the distinct names of a record, the heading first.

    Raises:
        ValueError: If the heading or a term is absent.
    """
    heading = text_at(record, f"{heading_tag}/String")
    names, permuted = [heading], 0
    for term in record.iterfind("ConceptList/Concept/TermList/Term"):
        name = text_at(term, "String")
        if term.get("IsPermutedTermYN") == "Y":
            permuted += 1
        elif name != heading:  # the heading is a term as well
            names.append(name)
    report.dropped["permuted terms"] += permuted
    return clean_names(names, report)


def text_at(element: Element, place: str) -> str:
    """Return the cleaned text of the first element at a path of tags.

    Raises:
        ValueError: With what was expected, if there is none.
    """
    found = element.find(place)
    text = "" if found is None else text_of(found)
    if not text:
        raise ValueError(f"a text as `{place}` in `{element.tag}`")
    return text


def text_of(element: Element) -> str:
    """Return all text in an element, cleaned."""
    return clean_name("".join(element.itertext()))


def distinct_texts(elements: Iterator[Element]) -> list[str]:
    """Return the distinct texts of elements, without empty ones."""
    return list(dict.fromkeys(filter(None, map(text_of, elements))))
