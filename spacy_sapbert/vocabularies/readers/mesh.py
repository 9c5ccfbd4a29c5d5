"""MeSH in the XML of its publisher: descriptors, and supplementary records.

Source: nlm.nih.gov/mesh/xml_data_elements.html.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

from ...errors import SapbertError
from ...io.xml_blocks import read_children
from ..concepts import clean_name, has_letter_or_digit
from ..facts import ABOVE, CODE, DEFINITION, NAME, NODE, TYPE, Fact
from ..options import SCOPES, ReadOptions
from ..report import Report

PREFIX = "MESH"
SOURCE = "MSH"  # what UMLS calls it
# the tags of the id and the heading of each kind of record
RECORDS = {
    "DescriptorRecord": ("DescriptorUI", "DescriptorName"),
    "SupplementalRecord": ("SupplementalRecordUI", "SupplementalRecordName"),
}
# What a concept of a record is to the preferred one → scopes of its terms, as in OBO
RELATIONS = {"NRW": "NARROW", "BRD": "BROAD", "REL": "RELATED"}
INVERSE = {"NARROW": "BROAD", "BROAD": "NARROW"}
ROOTS = tuple(f"{record}Set" for record in RECORDS)
YEAR = re.compile(r"(?:19|20)\d\d")  # desc2026.gz


def read_mesh(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read descriptors or supplementary records; the id is `MESH:` and theirs.

    The terms of the preferred concept of a record are its names, those of the narrower,
    broader and related concepts only if `scopes` asks for them.
    """
    language, scopes = "", options.scopes or SCOPES

    def check_root(tag: str, attributes: dict[str, str], line: int) -> None:
        nonlocal language
        if tag not in ROOTS:
            raise SapbertError(
                "E117",
                f"{path}:{line}: Expected MeSH in XML with the root element "
                f"{' or '.join(ROOTS)}, but got {tag[:40]!r}. Pass a file like "
                "desc2024.xml or supp2024.xml.",
            )
        language = attributes.get("LanguageCode", "eng").upper()
        if year := YEAR.search(path.name):
            report.add_release(SOURCE, year[0])

    for line, record in read_children(path, check_root):
        report.read(path.name, 1)
        try:
            facts = record_facts(record, language, scopes, report)
        except ValueError as error:
            bad = SapbertError(
                "E117",
                f"{path}:{line}: Expected {error}, but got something else in the "
                "record that begins here. Correct it.",
            )
            report.skip("bad records", bad)
        else:
            yield from facts


def record_facts(
    record: Element, language: str, scopes: Sequence[str], report: Report
) -> list[Fact]:
    """Return the facts of a record."""
    if record.tag not in RECORDS:
        raise ValueError(f"the element {' or '.join(RECORDS)}")
    id_tag, heading_tag = RECORDS[record.tag]
    id = text_at(record, id_tag)
    cui = f"{PREFIX}:{id}"
    names = record_names(record, heading_tag, scopes, report)
    for key in ("DescriptorClass", "SCRClass"):
        if (number := record.get(key)) is not None:
            report.counts[f"records of class {number[:1]}"] += 1
    facts = [Fact(cui, NAME, name, 0, SOURCE, language) for name in names]
    facts.append(Fact(cui, CODE, id, 0, SOURCE))
    types = "ConceptList/Concept/SemanticTypeList/SemanticType/SemanticTypeUI"
    for element in record.iterfind(types):
        if type := text_of(element):
            facts.append(Fact(cui, TYPE, type))
    is_kept = any(map(has_letter_or_digit, names))
    for element in record.iterfind("TreeNumberList/TreeNumber"):
        if is_kept and (number := text_of(element)):
            facts.append(Fact(cui, NODE, number))
            facts.append(Fact(number, ABOVE, number.rpartition(".")[0]))
    note = record.find("ConceptList/Concept[@PreferredConceptYN='Y']/ScopeNote")
    if note is not None:
        facts.append(Fact(cui, DEFINITION, text_of(note)))
    return facts


def record_names(
    record: Element, heading_tag: str, scopes: Sequence[str], report: Report
) -> list[str]:
    """Return the names of a record, the heading first."""
    heading = text_at(record, f"{heading_tag}/String")
    names, permuted, others = [heading], 0, 0
    scope_of = find_scopes(record)
    for concept in record.iterfind("ConceptList/Concept"):
        scope = scope_of.get(concept.findtext("ConceptUI", ""), "EXACT")
        for term in concept.iterfind("TermList/Term"):
            name = text_at(term, "String")
            if term.get("IsPermutedTermYN") == "Y":
                permuted += 1
            elif scope not in scopes:
                others += 1
            elif name != heading:  # the heading is a term as well
                names.append(name)
    report.dropped["permuted terms"] += permuted
    report.dropped["synonyms of other scopes"] += others
    return names


def find_scopes(record: Element) -> dict[str, str]:
    """Return the scopes of the terms of concepts that are not the preferred one.

    Source: nlm.nih.gov/mesh/concept_structure.html.
    """
    preferred = record.findtext(
        "ConceptList/Concept[@PreferredConceptYN='Y']/ConceptUI"
    )
    scopes = {}
    for relation in record.iterfind("ConceptList/Concept/ConceptRelationList/*"):
        scope = RELATIONS.get(relation.get("RelationName", ""), "RELATED")
        first = relation.findtext("Concept1UI", "")
        second = relation.findtext("Concept2UI", "")
        if first == preferred:  # the second one is narrower
            scopes[second] = scope
        elif second == preferred:
            scopes[first] = INVERSE.get(scope, scope)
    return scopes


def text_at(element: Element, place: str) -> str:
    """Return the cleaned text of the first element at a path of tags."""
    child = element.find(place)
    text = "" if child is None else text_of(child)
    if not text:
        raise ValueError(f"a text as `{place}` in `{element.tag}`")
    return text


def text_of(element: Element) -> str:
    """Return all text in an element, cleaned."""
    return clean_name("".join(element.itertext()))
