"""The operations of FHIR R4 on the code systems of a knowledge base.

SOURCE: https://hl7.org/fhir/R4/operations.html
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import uuid4

from ...kb.knowledge_base import KnowledgeBase
from ...vocabularies.concepts import (
    BROADER,
    NARROWER,
    RELATED,
    Concept,
    list_related_codes,
)
from .fhir_codes import (
    CodeSystem,
    choose_display,
    codes_of,
    codes_of_cuis,
    count_codes,
    find_concepts,
    find_related,
    find_set,
    find_system,
    is_name,
    is_synonym,
    list_designations,
    list_systems,
    make_not_found,
    need,
    need_concepts,
)
from .fhir_parameters import (
    CODING,
    CONCEPT,
    FLAG,
    NUMBER,
    TEXT,
    Coding,
    FhirError,
    Given,
    Operation,
    make_invalid,
    make_parameter,
    make_parameters,
    make_required,
)

MOST = 1_000  # codes of an expansion, and children of a code
MAP = "urn:spacy-sapbert:same-concept"  # from a code to the codes of its concept
# What the target is to the source, in R4, for what a code is to its concept. In R5
# `wider` is `source-is-narrower-than-target`.
EQUIVALENCES = {BROADER: "wider", NARROWER: "narrower", RELATED: "relatedto"}
INVERSE = {BROADER: NARROWER, NARROWER: BROADER}
VERSIONS = ("system-version", "check-system-version", "force-system-version")
LANGUAGE = {"displayLanguage": TEXT}
CODED = {"code": TEXT, "version": TEXT, "coding": CODING}

LOOKUP = Operation(
    "CodeSystem",
    "lookup",
    {**CODED, **LANGUAGE, "system": TEXT, "property": TEXT},
    refused=("date",),
    repeated=("property",),
)
VALIDATE = {**CODED, **LANGUAGE, "display": TEXT, "codeableConcept": CONCEPT}
VALIDATE_IN_SYSTEM = Operation(
    "CodeSystem",
    "validate-code",
    {**VALIDATE, "url": TEXT},
    refused=("codeSystem", "date", "abstract"),
)
VALIDATE_IN_SET = Operation(
    "ValueSet",
    "validate-code",
    {
        **{name: kind for name, kind in VALIDATE.items() if name != "version"},
        "url": TEXT,
        "valueSetVersion": TEXT,
        "system": TEXT,
        "systemVersion": TEXT,
    },
    refused=("valueSet", "context", "date", "abstract"),
)
EXPAND = Operation(
    "ValueSet",
    "expand",
    {
        **LANGUAGE,
        "url": TEXT,
        "valueSetVersion": TEXT,
        "filter": TEXT,
        "offset": NUMBER,
        "count": NUMBER,
        "includeDesignations": FLAG,
        "activeOnly": FLAG,
    },
    refused=("valueSet", "context", "date", "designation", "exclude-system", *VERSIONS),
)
TRANSLATE = Operation(
    "ConceptMap",
    "translate",
    {
        **CODED,
        "url": TEXT,
        "conceptMapVersion": TEXT,
        "system": TEXT,
        "codeableConcept": CONCEPT,
        "source": TEXT,
        "target": TEXT,
        "targetsystem": TEXT,
        "reverse": FLAG,
    },
    refused=("conceptMap", "dependency"),
)
OPERATIONS = (LOOKUP, VALIDATE_IN_SYSTEM, VALIDATE_IN_SET, EXPAND, TRANSLATE)
# What $lookup can return of a code beside name and display; see `find_properties`.
PROPERTIES = {
    "definition": "What it is.",
    "parent": "A code one step up in the hierarchy.",
    "child": "A code one step down; only if it is asked for.",
    "concept": "The id in the knowledge base.",
    "semanticType": "A semantic type of the concept.",
    "inactive": "The id was retired; `concept` is the id in use.",
}


def read_codings(given: Given, system_in: str = "system") -> list[Coding]:
    """Return the codes of a request, which has one of three parameters.

    Args:
        system_in: The parameter with the system of `code`.

    Raises:
        FhirError: If it has none, or several; or a code without a system.
    """
    names = [name for name in ("code", "coding", "codeableConcept") if name in given]
    if not names:
        raise make_required("code", "coding")
    if len(names) > 1:
        raise make_invalid("only one of `code`, `coding` and `codeableConcept`")
    if "codeableConcept" in given:
        return list(given.first("codeableConcept").coding)
    if "coding" in given:
        return [given.first("coding")]
    system = given.first(system_in)
    if not system:
        raise make_required(system_in)
    version = given.first("version", given.first("systemVersion"))
    return [
        Coding(
            system=system,
            version=version,
            code=given.first("code"),
            display=given.first("display"),
        )
    ]


def read_coding(given: Given) -> tuple[str, str]:
    """Return system and code of the only code of a request.

    Raises:
        FhirError: If one is missing.
    """
    (coding,) = read_codings(given)
    if not coding.system:
        raise make_required("system")
    if not coding.code:
        raise make_required("code")
    return coding.system, coding.code


def look_up(kb: KnowledgeBase, given: Given) -> dict[str, Any]:
    """Return all about a code: names, definition, parents.

    Raises:
        FhirError: If there is no such code.
    """
    url, code = read_coding(given)
    system = need(find_system(kb, url))
    concepts = need_concepts(kb, system, code)
    asked = {*given.get("property", ())}
    shown = choose_display(concepts[0], system, given.first("displayLanguage"))
    parameters = [
        make_parameter("name", valueString=system.name),
        make_parameter("display", valueString=shown),
    ]
    tags = {name[5:] for name in asked if name.startswith("lang.")}
    for concept in concepts:
        for alias, tag in list_designations(concept):
            if asked and "designation" not in asked and tag not in tags:
                continue
            language = [make_parameter("language", valueCode=tag)] if tag else []
            part = [*language, make_parameter("value", valueString=alias)]
            designation = make_parameter("designation", part=part)
            if designation not in parameters:
                parameters.append(designation)
    for name, value in find_properties(kb, system, concepts, code, asked):
        part = [make_parameter("code", valueCode=name), {"name": "value", **value}]
        parameters.append(make_parameter("property", part=part))
    return make_parameters(parameters)


def find_properties(
    kb: KnowledgeBase,
    system: CodeSystem,
    concepts: list[Concept],
    code: str,
    asked: set[str],
) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield the properties of a code that are asked for; see `PROPERTIES`.

    Args:
        asked: Empty = all but the children.

    Raises:
        FhirError: If it has too many children.
    """
    wanted = asked or PROPERTIES.keys() - {"child"}
    values: dict[str, list[str]] = {name: [] for name in PROPERTIES}
    for concept in concepts:
        values["definition"] += [concept.definition] if concept.definition else []
        values["semanticType"] += concept.types
        values["concept"].append(concept.cui)
    if "parent" in wanted:
        parents = {parent for concept in concepts for parent in concept.parents}
        values["parent"] = codes_of_cuis(kb, parents, system)
    if "child" in wanted:
        children = {child for concept in concepts for child in kb.children(concept.cui)}
        if len(children) > MOST:
            raise make_too_costly(len(children))
        values["child"] = codes_of_cuis(kb, children, system)
    for name in ("definition", "semanticType", "concept", "parent", "child"):
        if name in wanted:
            kind = "valueString" if name == "definition" else "valueCode"
            for value in dict.fromkeys(values[name]):
                yield name, {kind: value}
    if "inactive" in wanted and not system.sources:
        yield "inactive", {"valueBoolean": code != concepts[0].cui}


def make_too_costly(count: int) -> FhirError:
    """Return the error for more codes than an answer has."""
    return FhirError(
        "E481",
        f"Expected at most {MOST:,} codes in an answer, but there are {count:,}. Send "
        "`count` and `offset`.",
        400,
        "too-costly",
    )


def check_versions(versions: Iterable[str | None]) -> list[str]:
    """Return a hint if a version was asked for, which nobody can check here."""
    if any(versions):
        return ["The version was not checked: the knowledge base has none."]
    return []


def validate_in_system(kb: KnowledgeBase, given: Given) -> dict[str, Any]:
    """Return whether a code is in a code system."""
    codings = read_codings(given, system_in="url")
    return validate(kb, given, codings, given.first("url"), find_system)


def validate_in_set(kb: KnowledgeBase, given: Given) -> dict[str, Any]:
    """Return whether a code is in the value set of a code system."""
    url = given.first("url")
    if url is None:
        raise make_required("url")
    codings = read_codings(given)
    return validate(kb, given, codings, url, find_set)


def validate(
    kb: KnowledgeBase,
    given: Given,
    codings: list[Coding],
    url: str | None,
    find: Callable[[KnowledgeBase, str], CodeSystem | None],
) -> dict[str, Any]:
    """Return whether one of several codes is right, and its name.

    Args:
        url: Of what must have the code; None = the code system of the code.
        find: Finds it.
    """
    language = given.first("displayLanguage")
    allowed = [*list_systems(kb)] if url is None else [find(kb, url)]
    checked = [check_coding(kb, coding, allowed, language) for coding in codings]
    right = next((one for one in checked if not one[0]), None)
    messages = [] if right else [message for message, _ in checked if message]
    if not codings:
        messages = ["The concept has no code."]
    versions = [coding.version for coding in codings if coding.version]
    asked = (url or "").partition("|")[2]
    messages += check_versions([*versions, asked, given.first("valueSetVersion")])
    parameters = make_result(right is not None, messages)
    shown = right[1] if right else next((one[1] for one in checked if one[1]), None)
    if shown is not None:
        parameters.append(make_parameter("display", valueString=shown))
    return make_parameters(parameters)


def make_result(result: bool, messages: Iterable[str]) -> list[dict[str, Any]]:
    """Return the parameters that say whether something holds, and why not."""
    parameters = [make_parameter("result", valueBoolean=result)]
    if text := " ".join(dict.fromkeys(messages)):
        parameters.append(make_parameter("message", valueString=text))
    return parameters


def check_coding(
    kb: KnowledgeBase,
    coding: Coding,
    allowed: Sequence[CodeSystem | None],
    language: str | None,
) -> tuple[str, str | None]:
    """Check that a code exists in a code system, and that its `display` is a name.

    Args:
        allowed: The code systems that it may be of; None = one that is unknown.

    Returns:
        What is wrong, empty = nothing; the name of the code, if it exists.
    """
    if not coding.system or not coding.code:
        return "A code needs a system, and a system a code.", None
    if None in allowed:
        return "The code system or value set is unknown.", None
    system = find_system(kb, coding.system)
    if system is None:
        return "The code system is unknown.", None
    if system not in allowed:
        return "The code is of another code system than the value set.", None
    concepts = find_concepts(kb, system, coding.code)
    if not concepts:
        return "The code is unknown.", None
    shown = choose_display(concepts[0], system, language)
    if coding.display is not None and not is_name(kb, concepts, coding.display):
        return "The code exists, but it does not have this name.", shown
    return "", shown


def translate(kb: KnowledgeBase, given: Given) -> dict[str, Any]:
    """Return the codes that the concepts of a code have in other code systems.

    `equivalent` = both vocabularies give names to the concept; `relatedto` = one is a
    cross reference; `wider` and `narrower` = what the code of the target is, where the
    vocabulary says so. Two codes that are both only related to a concept are no
    translation. `reverse` changes nothing.

    Raises:
        FhirError: If the map or a code system is unknown, or a system is missing.
    """
    if given.first("url", MAP).partition("|")[0] != MAP:
        raise make_not_found()
    targets = {need(find_set(kb, url)) for url in given.get("target", ())}
    targets |= {need(find_system(kb, url)) for url in given.get("targetsystem", ())}
    if len(targets) > 1:
        raise make_invalid("`target` and `targetsystem` of the same code system")
    codings = read_codings(given)
    source = need(find_set(kb, given.first("source"))) if "source" in given else None
    matches: list[dict[str, Any]] = []
    for coding in codings:
        system = find_system(kb, coding.system)
        if system is None or not coding.code or source not in (None, system):
            continue
        others = targets or {*list_systems(kb)} - {system}
        for concept in find_concepts(kb, system, coding.code):
            for target in others:
                shown = choose_display(concept, target)
                equal = is_synonym(concept, system, target)
                equivalence = "equivalent" if equal else "relatedto"
                for code in codes_of(concept, target):
                    matches.append(make_match(target, code, shown, equivalence))
                for relation, vocabulary, code in list_related_codes(concept):
                    if vocabulary in target.sources:
                        equivalence = EQUIVALENCES[relation]
                        matches.append(make_match(target, code, shown, equivalence))
        for concept, relation in find_related(kb, system, coding.code):
            for target in others:
                shown = choose_display(concept, target)
                for code in codes_of(concept, target):
                    equivalence = EQUIVALENCES[INVERSE.get(relation, relation)]
                    matches.append(make_match(target, code, shown, equivalence))
    matches.sort(key=lambda match: [str(part) for part in match["part"]])
    found = [one for place, one in enumerate(matches) if one not in matches[:place]]
    missing = "The code is unknown, or its concept has no such code."
    parameters = make_result(bool(found), [] if found else [missing])
    return make_parameters([*parameters, *found[:MOST]])


def make_match(
    system: CodeSystem, code: str, display: str, equivalence: str
) -> dict[str, Any]:
    """Return a translation of a code."""
    coding = {"system": system.url, "code": code, "display": display}
    part = [
        make_parameter("equivalence", valueCode=equivalence),
        make_parameter("concept", valueCoding=coding),
        make_parameter("source", valueUri=MAP),
    ]
    return make_parameter("match", part=part)


def list_page(
    kb: KnowledgeBase, system: CodeSystem, cuis: list[str] | None, given: Given
) -> tuple[int, list[str]]:
    """Return the number of codes of a value set, and those of a page.

    Args:
        cuis: The concepts that a filter leaves, in order; None = all, by code.

    Raises:
        FhirError: If there are too many for one answer.
    """
    offset, count = given.first("offset", 0), given.first("count")
    if cuis is not None:
        concepts = (kb.concept(cui) for cui in cuis)
        codes = [codes_of(concept, system) for concept in concepts if concept]
        found = [*dict.fromkeys(code for some in codes for code in some)]
        total, page = len(found), found[offset:]
    else:
        total = count_codes(kb, system)
        if count is None and total - offset > MOST:
            raise make_too_costly(total)
        most = MOST if count is None else min(count, MOST)
        page = kb.store.list_codes(system.sources, most, offset)
    return total, page[: MOST if count is None else min(count, MOST)]


def expand(
    kb: KnowledgeBase, given: Given, cuis: list[str] | None, now: str
) -> dict[str, Any]:
    """Return a value set with a page of its codes.

    Args:
        cuis: See `list_page`.
        now: The time.
    """
    system = need(find_set(kb, given.first("url")))
    total, codes = list_page(kb, system, cuis, given)
    language = given.first("displayLanguage")
    contains = []
    for code in codes:
        concept = find_concepts(kb, system, code)[0]
        shown = choose_display(concept, system, language)
        entry: dict[str, Any] = {"system": system.url, "code": code, "display": shown}
        if given.first("includeDesignations"):
            entry["designation"] = [
                {**({"language": tag} if tag else {}), "value": alias}
                for alias, tag in list_designations(concept)
            ]
        contains.append(entry)
    kinds = {"offset": "valueInteger", "count": "valueInteger"}
    kinds |= {"includeDesignations": "valueBoolean", "activeOnly": "valueBoolean"}
    kinds |= {"filter": "valueString", "displayLanguage": "valueCode"}
    parameters = [
        {"name": name, kind: given.first(name)}
        for name, kind in kinds.items()
        if name in given
    ]
    return {
        "resourceType": "ValueSet",
        "url": system.value_set,
        "status": "active",
        "expansion": {
            "identifier": f"urn:uuid:{uuid4()}",
            "timestamp": now,
            "total": total,
            "offset": given.first("offset", 0),
            **({"parameter": parameters} if parameters else {}),
            **({"contains": contains} if contains else {}),
        },
    }
