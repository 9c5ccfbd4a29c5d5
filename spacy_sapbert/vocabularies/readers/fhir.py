"""FHIR in JSON: code systems, value sets, concept maps, and bundles of them.

Source: hl7.org/fhir, R4 and R5: CodeSystem, ValueSet, ConceptMap.
"""

from collections.abc import Iterator
from collections.abc import Mapping as Map
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import SapbertError
from ...io.json_members import JSONError, Place, read_members
from ...io.reading import read_start
from ...linking.languages import language_code
from ...linking.sources import SOURCES
from ..concepts import BROADER, NARROWER, RELATED, clean_name
from ..facts import ABOVE, CODE, DEFINITION, NAME, NODE, TYPE, Fact
from ..ontologies.obographs import text_of
from ..options import ReadOptions
from ..report import Report
from ..sssom import EXACT, Mapping
from .snomed import FULL_NAME, TAG
from .sssom import mapping_facts

# Where the lists of a resource are
CONCEPTS, INCLUDES = ("concept",), ("compose", "include")
CONTAINS, GROUPS = ("expansion", "contains"), ("group",)
LISTS = (CONCEPTS, INCLUDES, CONTAINS, GROUPS)
ENTRIES = ("entry",)  # of a bundle
HEAD = ("url", "version", "copyright", "language")
PREFERRED = ("preferredForLanguage", "display")  # uses of a designation
# Properties of a concept that is retired
INACTIVE: set[tuple[str, Any]] = {
    *(("status", value) for value in ("retired", "deprecated", "inactive")),
    ("inactive", True),
}
# What the target is to the source: `equivalence` of R4, `relationship` of R5
RELATIONS = {
    **dict.fromkeys(("equivalent", "equal"), EXACT),
    **dict.fromkeys(("wider", "subsumes", "source-is-narrower-than-target"), BROADER),
    **dict.fromkeys(
        ("narrower", "specializes", "source-is-broader-than-target"), NARROWER
    ),
    **dict.fromkeys(("inexact", "relatedto", "related-to"), RELATED),
}
SYSTEMS = {source.fhir: source for source in SOURCES if source.fhir}
WRONG = (AttributeError, KeyError, TypeError)  # of a record with something else in it


def read_fhir(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read the concepts of code systems and value sets, and those of concept maps.

    The id is the prefix of the system and the code. Nested concepts, and the property
    `parent`, make the hierarchy.
    """
    last = None
    for number, (place, member, head) in enumerate(read_lists(path), 1):
        report.read(path.name, 1)
        if place == GROUPS:
            yield from mapping_facts(group_mappings(member, path, report), report)
            continue
        try:
            if place == CONCEPTS and head is not last:
                last = head
                version, copyright = (f"{head.get(key, '')}" for key in HEAD[1:3])
                source = name_system(text_of(head["url"]))[1]
                report.add_release(source, version, copyright)
            facts = [*CodeReader(head, options, report).read(place, member)]
        except WRONG:
            report.skip("bad records", bad_fhir(path, f"{place[-1]} {number}"))
        else:
            yield from facts


def read_fhir_mappings(
    path: Path, report: Report, options: ReadOptions
) -> Iterator[Mapping]:
    """Yield the mappings of concept maps."""
    for place, member, _ in read_lists(path):
        if place == GROUPS:
            yield from group_mappings(member, path, report)


def bad_fhir(path: Path, where: str, got: str = "something else") -> SapbertError:
    return SapbertError(
        "E117",
        f"{path}: Expected a CodeSystem, ValueSet, ConceptMap or Bundle of FHIR in "
        f"JSON, but {where} has: {got}. Download the file again.",
    )


def read_lists(path: Path) -> Iterator[tuple[Place, Any, Map[str, Any]]]:
    """Yield the place and each member of the lists of resources, and the resource.

    The latter has only its `HEAD`, unless it is in a bundle.
    """
    if read_start(path).lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"<":
        raise SapbertError(
            "E110",
            f"{path}: Expected FHIR in JSON, but got XML. Fetch the resource as JSON: "
            "with `Accept: application/fhir+json`, or the file that ends with `.json`.",
        )
    try:
        head = read_head(path)
        for place, member in read_members(path, (*LISTS, ENTRIES)):
            if place != ENTRIES:
                yield place, member, head
                continue
            resource = member.get("resource") if isinstance(member, dict) else None
            if isinstance(resource, dict):
                for inner in LISTS:
                    for each in find_list(resource, inner):
                        yield inner, each, resource
    except JSONError as error:
        raise bad_fhir(path, "the file", str(error)) from None


def read_head(path: Path) -> dict[str, Any]:
    """Read what is known of a resource before its first list, or after if need be."""
    head: dict[str, Any] = {}
    values = [(key,) for key in HEAD]
    for place, value in read_members(path, (*LISTS, ENTRIES), values):
        if place in values:
            head[place[0]] = value
        elif place != CONCEPTS or "url" in head:
            break
    return head


def find_list(resource: Any, place: Place) -> list[Any]:
    """Return the list at a place in a resource; empty if there is none."""
    for key in place:
        resource = resource.get(key) if isinstance(resource, dict) else None
    return resource if isinstance(resource, list) else []


@lru_cache(1 << 10)
def name_system(url: str) -> tuple[str, str]:
    """Return the prefix of ids of a code system, and its name as a source of codes."""
    url = url.partition("|")[0]  # a version
    if source := SYSTEMS.get(url):
        return source.prefix or source.name, source.name
    name = url.rstrip("/").rpartition("/")[2].rpartition(":")[2]
    return name, name


def make_id(prefix: str, code: str) -> str:
    """Return the id of a code, which may begin with the prefix: HP:0001945."""
    return code if code.startswith(f"{prefix}:") else f"{prefix}:{code}"


class CodeReader:
    """Yields the facts of the codes of a resource; see `read_fhir`."""

    def __init__(
        self, head: Map[str, Any], options: ReadOptions, report: Report
    ) -> None:
        self.head, self.report = head, report
        self.language = language_code(head.get("language") or "")
        self.languages = [*(options.languages or ())]
        self.obsolete = options.obsolete

    def read(self, place: Place, member: Map[str, Any]) -> Iterator[Fact]:
        """Yield the facts of a member of a list."""
        if place == INCLUDES:
            for concept in find_list(member, CONCEPTS):
                yield from self.read_concept(concept, text_of(member["system"]))
            if not find_list(member, CONCEPTS):
                self.report.dropped["includes without a list of codes"] += 1
        else:
            system = text_of(self.head["url"]) if place == CONCEPTS else ""
            yield from self.read_concept(member, system)

    def read_concept(
        self, concept: Map[str, Any], system: str, parent: str = ""
    ) -> Iterator[Fact]:
        """Yield the facts of a concept and of those in it.

        Args:
            system: Address of its code system, if it does not say so itself.
            parent: Id of the concept that it is in.
        """
        system = text_of(concept.get("system") or system)
        prefix, source = name_system(system)
        id = parent  # a group without a code is no concept
        if "code" in concept or not concept.get("contains"):
            code = text_of(concept["code"]).strip()
            if not code:
                raise KeyError("code")
            id = make_id(prefix, code)
            properties = [
                (text_of(each["code"]), each.get("valueCode", each.get("valueBoolean")))
                for each in concept.get("property") or ()
            ]
            is_inactive = INACTIVE.intersection(properties) or concept.get("inactive")
            if is_inactive and not self.obsolete:
                self.report.dropped["inactive concepts"] += 1
            else:
                yield Fact(id, CODE, code, source=source)
                yield Fact(id, NODE, id)
                yield Fact(id, ABOVE, parent)
                for key, value in properties:
                    if key in ("parent", "subsumedBy") and value is not None:
                        yield Fact(id, ABOVE, make_id(prefix, text_of(value)))
                if definition := concept.get("definition"):
                    yield Fact(id, DEFINITION, clean_name(text_of(definition)))
                yield from self.read_names(concept, id, source)
        for key in ("concept", "contains"):
            for inner in concept.get(key) or ():
                yield from self.read_concept(inner, system, id)

    def read_names(
        self, concept: Map[str, Any], id: str, source: str
    ) -> Iterator[Fact]:
        """Yield the names of a concept: its display, then its designations.

        That of a fully specified name of SNOMED CT is without its tag, the type.
        """
        names = [(0, text_of(concept.get("display") or ""), self.language)]
        for designation in concept.get("designation") or ():
            name = text_of(designation["value"])
            use = (designation.get("use") or {}).get("code")
            if use == FULL_NAME and (tag := TAG.search(name)):
                name = name[: tag.start()]
                yield Fact(id, TYPE, tag[1])
            language = language_code(designation.get("language") or "")
            names.append((1 if use in PREFERRED else 2, name, language))
        order = self.languages
        for rank, name, language in names:
            if order and language and language not in order:
                self.report.dropped["names in other languages"] += 1
            elif name:
                place = order.index(language) if language in order else len(order)
                yield Fact(id, NAME, name, 3 * place + rank, source, language)


def group_mappings(group: Any, path: Path, report: Report) -> Iterator[Mapping]:
    """Yield the mappings of a group of a concept map; a bad element is counted."""
    try:
        source = name_system(text_of(group["source"]))[0]
        target = name_system(text_of(group["target"]))[0]
        elements = [*group["element"]]
    except WRONG:
        report.skip("bad records", bad_fhir(path, "a group"))
        return
    for number, element in enumerate(elements, 1):
        try:
            rows = [*element_mappings(element, source, target, report)]
        except WRONG:
            report.skip("bad records", bad_fhir(path, f"element {number} of a group"))
        else:
            yield from rows


def element_mappings(
    element: Map[str, Any], source: str, target: str, report: Report
) -> Iterator[Mapping]:
    """Yield the mappings of an element of a group, whose systems have prefixes."""
    label = text_of(element.get("display") or "")
    for each in element.get("target") or ():
        kind = each.get("relationship") or each.get("equivalence")
        if kind not in RELATIONS or "code" not in each:
            report.dropped["mappings with other predicates"] += 1
            continue
        yield Mapping(
            0,
            make_id(source, text_of(element["code"])),
            make_id(target, text_of(each["code"])),
            label,
            text_of(each.get("display") or ""),
            RELATIONS[kind],
        )
