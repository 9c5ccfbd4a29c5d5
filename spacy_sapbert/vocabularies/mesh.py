"""MeSH in the XML of its publisher: descriptors, and supplementary records."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder

from ..errors import Errors, SapbertError
from .checks import nothing_left
from .clean import clean_name, has_letter_or_digit
from .concepts import Concept
from .merge import sort_concepts
from .report import Report
from .xml_blocks import feed_blocks, make_parser

PREFIX = "MESH"
SOURCE = "MSH"  # what UMLS calls it
# record: where its id and its heading are
RECORDS = {
    "DescriptorRecord": ("DescriptorUI", "DescriptorName"),
    "SupplementalRecord": ("SupplementalRecordUI", "SupplementalRecordName"),
}
ROOTS = tuple(f"{record}Set" for record in RECORDS)
RECORD_BYTES = 1 << 22  # more is a mistake: records have some ten thousand


def read_mesh(
    path: Path, *, on_error: str = "fail", report: Report | None = None
) -> Iterator[Concept]:
    """Read descriptors or supplementary records, one record at a time.

    path (Path): The file, plain or `.gz`.
    on_error (str): "fail", or "skip" to count bad records and go on.
    report (Report | None): Filled while reading.
    YIELDS (Concept): Each concept, sorted by its id: `MESH:` and that of the record.
    RAISES (SapbertError): If the file is no whole MeSH; with file and line, at the
        first bad record; if nothing is left.
    SOURCE: nlm.nih.gov/mesh/xml_data_elements.html.
    """
    report = Report() if report is None else report
    report.path, report.format = str(path), "mesh"
    cuis: dict[str, str] = {}
    concepts = make_concepts(path, cuis, on_error=on_error, report=report)
    for concept in sort_concepts(concepts):
        # all records are read by now, so every tree number is known
        above = (number.rpartition(".")[0] for number in concept.parents)
        parents = {cuis[number] for number in above if number in cuis}
        concept.parents = sorted(parents - {concept.cui})
        report.concepts += 1
        report.names += len(concept.aliases)
        report.counts["concepts with a definition"] += concept.definition is not None
        report.counts["parents"] += len(concept.parents)
        yield concept
    if not report.concepts:
        raise SapbertError(nothing_left(report))


def make_concepts(
    path: Path, cuis: dict[str, str], *, on_error: str, report: Report
) -> Iterator[Concept]:
    """Make concepts of the records of a file.

    path (Path): The file.
    cuis (dict[str, str]): Filled with the id of the concept at each tree number.
    on_error (str): See `read_mesh`.
    report (Report): Is told what is kept and dropped.
    YIELDS (Concept): In the order of the file, with tree numbers for parents.
    RAISES (SapbertError): If the file or a record is not as it should be.
    """
    for line, language, record in parse_records(path):
        report.read(path.name, 1)
        try:
            concept = make_concept(record, language, report)
        except ValueError as error:
            if on_error == "fail":
                raise SapbertError(
                    Errors.E153.format(path=path, line=line, expected=error)
                ) from None
            report.dropped["bad records"] += 1
            continue
        if concept is None:
            report.dropped["records without a name"] += 1
            continue
        for number in concept.parents:
            cuis.setdefault(number, concept.cui)
        yield concept


def parse_records(path: Path) -> Iterator[tuple[int, str, Element]]:
    """Parse the records of a file, with memory for a few of them.

    path (Path): The file.
    YIELDS (tuple[int, str, Element]): The line where a record begins, the language of
        the file as in UMLS, and what stands in the root element, if it is a record or
        not.
    RAISES (SapbertError): If the file is missing, cut, no XML, or other XML.
    """
    parser = make_parser(path)
    found: list[tuple[int, str, Element]] = []
    builder, record = TreeBuilder(), Element("")
    language, line, begin = "", 1, 0

    def start_root(tag: str, attributes: dict[str, str]) -> None:
        nonlocal language
        if tag not in ROOTS:
            known = " or ".join(ROOTS)
            raise at_line(Errors.E151, known=known, got=tag[:40])
        language = attributes.get("LanguageCode", "eng").upper()
        parser.StartElementHandler = start_record

    def start_record(tag: str, attributes: dict[str, str]) -> None:
        nonlocal builder, record, line, begin
        line, begin = parser.CurrentLineNumber, parser.CurrentByteIndex
        builder = TreeBuilder()
        record = builder.start(tag, attributes)
        parser.StartElementHandler = builder.start
        parser.CharacterDataHandler = builder.data
        parser.EndElementHandler = end

    def end(tag: str) -> None:
        nonlocal begin
        if builder.end(tag) is record:
            found.append((line, language, record))
            begin = parser.CurrentByteIndex
            parser.StartElementHandler = start_record
            parser.CharacterDataHandler = parser.EndElementHandler = None

    def at_line(text: str, **values: Any) -> SapbertError:
        return SapbertError(
            text.format(path=path, line=parser.CurrentLineNumber, **values)
        )

    parser.StartElementHandler = start_root
    for fed in feed_blocks(parser, path):
        if fed - begin > RECORD_BYTES:
            raise at_line(Errors.E154, limit=RECORD_BYTES)
        yield from found
        found.clear()


def make_concept(record: Element, language: str, report: Report) -> Concept | None:
    """Make a concept of a record.

    record (Element): The record.
    language (str): Of its names.
    report (Report): Is told what is kept and dropped.
    RETURNS (Concept | None): The concept, with its own tree numbers for parents;
        None if no name is left.
    RAISES (ValueError): With what was expected, if the record lacks it.
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
            report.counts[f"records of class {number}"] += 1
    report.rows_kept += len(names)
    places = list(range(len(names)))
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
        languages={language: places},
        sources={SOURCE: list(places)},
    )


def record_names(record: Element, heading_tag: str, report: Report) -> list[str]:
    """Choose and clean the names of a record.

    record (Element): The record.
    heading_tag (str): The element that has its heading.
    report (Report): Is told what is dropped.
    RETURNS (list[str]): Distinct names, the heading first.
    RAISES (ValueError): If the heading or a term is absent.
    """
    heading = text_at(record, f"{heading_tag}/String")
    said, permuted = [heading], 0
    for term in record.iterfind("ConceptList/Concept/TermList/Term"):
        name = text_at(term, "String")
        if term.get("IsPermutedTermYN") == "Y":
            permuted += 1
        elif name != heading:
            # the heading is a term as well, and no second name by that
            said.append(name)
    names = [name for name in said if has_letter_or_digit(name)]
    distinct = list(dict.fromkeys(names))
    report.dropped["permuted terms"] += permuted
    report.dropped["names without a letter or digit"] += len(said) - len(names)
    report.dropped["repeated names"] += len(names) - len(distinct)
    return distinct


def text_at(element: Element, place: str) -> str:
    """Find a text that has to be there.

    element (Element): Where to look.
    place (str): Tags that lead to it.
    RETURNS (str): The text with its white space cleaned.
    RAISES (ValueError): If there is none, with what was expected.
    """
    found = element.find(place)
    text = "" if found is None else text_of(found)
    if not text:
        raise ValueError(f"a text as `{place}` in `{element.tag}`")
    return text


def text_of(element: Element) -> str:
    """RETURNS (str): All text in an element, with its white space cleaned."""
    return clean_name("".join(element.itertext()))


def distinct_texts(elements: Iterator[Element]) -> list[str]:
    """RETURNS (list[str]): The texts of elements, each once, without empty ones."""
    return list(dict.fromkeys(filter(None, map(text_of, elements))))
