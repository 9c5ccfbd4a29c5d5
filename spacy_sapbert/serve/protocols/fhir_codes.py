"""Codes of the code systems of a knowledge base, as resources of FHIR."""

from typing import Any

from ...errors import Errors
from ...kb.filtering import list_sources_of_codes
from ...kb.knowledge_base import KnowledgeBase
from ...linking.surface_forms import name_form
from ...vocabularies.concepts import Concept
from ...vocabularies.ids import normalize_prefix
from ..problems import RequestError

OWN = "urn:spacy-sapbert:concepts"  # the ids of the knowledge base itself
ALL = "?fhir_vs"  # ending of the address of the value set of a whole code system
# Addresses of code systems by what `normalize_prefix` makes of their names.
# SOURCE: https://hl7.org/fhir/R4/terminologies-systems.html
SYSTEMS: dict[str, str] = {
    normalize_prefix(name): address
    for name, address in {
        "SNOMEDCT_US": "http://snomed.info/sct",
        "LNC": "http://loinc.org",
        "LOINC": "http://loinc.org",
        "RXNORM": "http://www.nlm.nih.gov/research/umls/rxnorm",
        "ICD10": "http://hl7.org/fhir/sid/icd-10",
        "ICD10CM": "http://hl7.org/fhir/sid/icd-10-cm",
        "ICD9CM": "http://hl7.org/fhir/sid/icd-9-cm",
        "ATC": "http://www.whocc.no/atc",
        "NCI": "http://ncicb.nci.nih.gov/xml/owl/EVS/Thesaurus.owl",
        "HPO": "http://human-phenotype-ontology.org",
        "OMIM": "http://www.omim.org",
    }.items()
}


def not_found() -> RequestError:
    """Return the error for a code that there is not."""
    return RequestError(Errors.E463, 404)


def address_of(source: str) -> str:
    """Return the address of a code system that the knowledge base has."""
    return SYSTEMS.get(normalize_prefix(source), f"urn:spacy-sapbert:{source}")


def find_source(kb: KnowledgeBase, system: str | None) -> str | None:
    """Return the name of a code system in the knowledge base.

    system (str | None): Its address or name, or that of the set of all its codes;
        None or `OWN` = the ids of the concepts.
    RETURNS (str | None): None = the ids of the concepts.
    RAISES (RequestError): If the knowledge base has no code of it.
    """
    name = (system or "").removesuffix(ALL).partition("|")[0]
    if name in ("", OWN):
        return None
    for source in list_sources_of_codes(kb.store):
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


def look_up(kb: KnowledgeBase, given: dict[str, str]) -> dict[str, Any]:
    """Return all about a code.

    RAISES (RequestError): If there is none.
    """
    source = find_source(kb, given.get("system"))
    concept = find_code(kb, source, given.get("code", ""))
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


def validate(kb: KnowledgeBase, given: dict[str, str]) -> dict[str, Any]:
    """Return whether a code exists, and whether its display is one of its names."""
    system = given.get("system") or given.get("url")
    source = find_source(kb, system)
    concept = find_code(kb, source, given.get("code", ""))
    right, message = concept is not None, "There is no such code."
    shown = given.get("display")
    if concept is not None and shown is not None:
        right = name_form(shown) in {name_form(alias) for alias in concept.aliases}
        message = "The code exists, but it has no such name."
    parameters: list[dict[str, Any]] = [{"name": "result", "valueBoolean": right}]
    if not right:
        parameters.append({"name": "message", "valueString": message})
    if concept is not None:
        name = display(concept, source)
        parameters.append({"name": "display", "valueString": name})
    return {"resourceType": "Parameters", "parameter": parameters}


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
