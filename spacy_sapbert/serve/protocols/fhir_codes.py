"""Codes of the code systems of a knowledge base, as resources of FHIR."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import Errors
from ...kb.knowledge_base import KnowledgeBase
from ...linking.sources import SOURCES, normalize_prefix
from ...linking.surface_forms import name_form
from ...vocabularies.concepts import Concept
from ..problems import RequestError

OWN = "urn:spacy-sapbert:concepts"  # the ids of the knowledge base itself
ALL = "?fhir_vs"  # ending of the address of the value set of a whole code system
SYSTEMS = {normalize_prefix(each.name): each.fhir for each in SOURCES if each.fhir}


def not_found() -> RequestError:
    """Return the error for a code that there is not."""
    return RequestError(Errors.E463, 404)


def address_of(source: str) -> str:
    """Return the address of a code system that the knowledge base has."""
    return SYSTEMS.get(normalize_prefix(source), f"urn:spacy-sapbert:{source}")


def find_source(kb: KnowledgeBase, system: str | None) -> str | None:
    """Return the name of a code system in the knowledge base.

    Args:
        system: Its address or name, or that of the set of all its codes; None or `OWN`
            = the ids of the concepts.

    Returns:
        None = the ids of the concepts.

    Raises:
        RequestError: If the knowledge base has no code of it.
    """
    name = (system or "").partition("|")[0].removesuffix(ALL)
    if name in ("", OWN):
        return None
    for source in kb.store.sources_of_codes():
        same = normalize_prefix(source) == normalize_prefix(name)
        if name == address_of(source) or same:
            return source
    raise not_found()


def find_code(kb: KnowledgeBase, source: str | None, code: str) -> Concept | None:
    """Return the concept of a code, of several the first; None if there is none."""
    if source is None:
        return kb.concept(code)
    cuis = kb.cuis(source, code)
    return kb.concept(cuis[0]) if cuis else None


def display(concept: Concept, source: str | None) -> str:
    """Return the name of a concept in a code system, else its preferred name."""
    places = concept.sources.get(source or "", [])
    return concept.aliases[places[0]] if places else concept.name


def look_up(kb: KnowledgeBase, codings: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return all about a code.

    Args:
        codings: Of which the first is used.
    """
    source = find_source(kb, codings[0].get("system"))
    concept = find_code(kb, source, codings[0].get("code", ""))
    if concept is None:
        raise not_found()
    shown = display(concept, source)
    parameters: list[dict[str, Any]] = [
        {"name": "name", "valueString": source or "concepts of the knowledge base"},
        {"name": "display", "valueString": shown},
    ]
    if concept.definition:
        parameters.append({"name": "definition", "valueString": concept.definition})
    parameters += [
        {"name": "designation", "part": [{"name": "value", "valueString": alias}]}
        for alias in concept.aliases
        if alias != shown
    ]
    properties = [("concept", concept.cui)]
    properties += [("semanticType", type) for type in concept.types]
    properties += [("parentConcept", parent) for parent in concept.parents]
    parameters += [
        {
            "name": "property",
            "part": [
                {"name": "code", "valueCode": code},
                {"name": "value", "valueString": value},
            ],
        }
        for code, value in properties
    ]
    return {"resourceType": "Parameters", "parameter": parameters}


def validate(kb: KnowledgeBase, codings: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return whether one of several codings is right, and the name of its code.

    Args:
        codings: At least one; see `check_coding`.
    """
    checked = [check_coding(kb, coding) for coding in codings]
    message, shown = next((one for one in checked if not one[0]), checked[0])
    parameters: list[dict[str, Any]] = [{"name": "result", "valueBoolean": not message}]
    if message:
        parameters.append({"name": "message", "valueString": message})
    if shown is not None:
        parameters.append({"name": "display", "valueString": shown})
    return {"resourceType": "Parameters", "parameter": parameters}


def check_coding(
    kb: KnowledgeBase, coding: Mapping[str, str]
) -> tuple[str, str | None]:
    """Check that a code exists and that its `display` is one of its names.

    Args:
        coding: With the `url` of a value set or code system, of which the `io` must
            be.

    Returns:
        What is wrong, empty = nothing; the name of the code, if it exists.
    """
    addresses = {coding.get("url"), coding.get("system")} - {None, ""} or {None}
    try:
        sources = {find_source(kb, address) for address in addresses}
    except RequestError:
        return "There is no such code system or value set.", None
    if len(sources) > 1:
        return "The code system is not that of the value set.", None
    (source,) = sources
    concept = find_code(kb, source, coding.get("code", ""))
    if concept is None:
        return "There is no such code.", None
    shown = coding.get("display")
    names = {name_form(alias) for alias in concept.aliases}
    wrong = shown is not None and name_form(shown) not in names
    message = "The code exists, but it has no such name." if wrong else ""
    return message, display(concept, source)


def list_codes(
    kb: KnowledgeBase, source: str | None, cuis: list[str], count: int
) -> list[dict[str, str]]:
    """Return the codes of concepts in a code system, in order."""
    found = []
    for cui in cuis:
        concept = kb.concept(cui)
        if concept is None:
            continue
        codes = [cui] if source is None else concept.codes.get(source, [])
        system = OWN if source is None else address_of(source)
        shown = display(concept, source)
        found += [{"system": system, "code": c, "display": shown} for c in codes]
    return found[:count]
