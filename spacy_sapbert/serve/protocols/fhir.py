"""/fhir: codes of the knowledge base by the terminology operations of FHIR R4.

An operation is a model of its parameters and a function. A GET request has them in its
query, a POST request in a resource `Parameters`.

SOURCE: https://hl7.org/fhir/R4/terminology-service.html
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...kb.knowledge_base import KnowledgeBase
from ...vocabularies.concepts import (
    BROADER,
    NARROWER,
    RELATED,
    Concept,
    list_related_codes,
)
from ..api.answers import FhirResponse
from ..depends import KbDep
from ..description import describe_errors
from ..lookup import describe_codes, find_names, merge_found
from ..problems import INVALID, RequestError, wrong_request
from ..requests import Value, validate
from .errors import FHIR, OperationOutcome
from .fhir_codes import (
    ALL,
    CodeSystem,
    choose_display,
    codes_of,
    codes_of_cuis,
    count_codes,
    find_concepts,
    find_system,
    is_synonym,
    list_designations,
    list_systems,
)

MOST = 1_000  # codes of an answer
MOST_FOUND = 100  # concepts that a filter leaves
MOST_PARAMETERS = 50
MOST_NUMBER = 10**9
MAP = "urn:spacy-sapbert:same-concept"  # from a code to the codes of its concept
# What the target is to the source, in R4, for what a code is to its concept. In R5
# `wider` is `source-is-narrower-than-target`.
EQUIVALENCES = {BROADER: "wider", NARROWER: "narrower", RELATED: "relatedto"}
INVERSE = {BROADER: NARROWER, NARROWER: BROADER}
# What $lookup returns of a code if nothing is asked for, else also "child".
USUAL = ["designation", "definition", "semanticType", "concept", "parent", "inactive"]
Number = Annotated[int, Field(ge=0, le=MOST_NUMBER)]


class Resource(BaseModel):
    """A resource of FHIR R4; see https://hl7.org/fhir/R4."""

    model_config = ConfigDict(extra="allow")

    resourceType: str


class Parameter(BaseModel):
    """A parameter of an operation; its value is the field that begins with `value`."""

    model_config = ConfigDict(extra="allow")

    name: str


class Parameters(BaseModel):
    """The parameters of an operation.

    A `coding`, or a `codeableConcept` with one, stands for its system and code.
    """

    resourceType: Literal["Parameters"]
    parameter: Annotated[list[Parameter], Field(max_length=MOST_PARAMETERS)] = []


class Shown(BaseModel):
    """How names are shown: `displayLanguage` is e.g. "es" or "es-MX"."""

    displayLanguage: Value | None = None


class LookUp(Shown):
    """A code, and what of it is wanted."""

    system: Value
    code: Value
    property: Annotated[list[Value], Field(max_length=MOST_PARAMETERS)] = []


class ValidateCode(Shown):
    """A code, and what must have it: a value set, or a code system.

    Each of these has all codes of one system, so that one of the two addresses is
    enough.
    """

    url: Value = ""
    system: Value = ""
    code: Value
    display: Value | None = None

    @model_validator(mode="after")
    def complete(self) -> "ValidateCode":
        """Check that `url` or `system` is there; the other one gets its value."""
        self.url, self.system = self.url or self.system, self.system or self.url
        if not self.url:
            raise ValueError("`url` or `system` is missing")
        return self


class Expand(Shown):
    """The codes of a value set, or those of them that a `filter` finds, a page."""

    url: Value
    filter: Value | None = None
    offset: Number = 0
    count: Number | None = None


class Translate(BaseModel):
    """A code, and the code system or value set of the codes that are wanted."""

    system: Value
    code: Value
    url: Value = MAP
    targetsystem: Value | None = None
    target: Value | None = None
    reverse: bool = False


def need_system(kb: KnowledgeBase, url: str) -> CodeSystem:
    """Return the code system with an address, or of the value set with it."""
    system = find_system(kb, url)
    if system is None:
        raise unknown_code()
    return system


def unknown_code() -> RequestError:
    return RequestError(
        "E480",
        "Expected a code and a code system of the knowledge base, but got others. "
        "/fhir/metadata?mode=terminology lists the code systems.",
        404,
    )


def too_costly(count: int, fix: str) -> RequestError:
    return RequestError(
        "E481",
        f"Expected at most {MOST:,} codes in an answer, but there are {count:,}. {fix}",
        INVALID,
    )


def make_parameters(parameters: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the resource of an answer."""
    return {"resourceType": "Parameters", "parameter": parameters}


def look_up(kb: KnowledgeBase, given: LookUp) -> dict[str, Any]:
    """Name, names, definition and parents of a code."""
    system = need_system(kb, given.system)
    concepts = find_concepts(kb, system, given.code)
    if not concepts:
        raise unknown_code()
    wanted = given.property or USUAL
    shown = choose_display(concepts[0], system, given.displayLanguage)
    found: list[dict[str, Any]] = [
        {"name": "name", "valueString": system.name},
        {"name": "display", "valueString": shown},
    ]
    for concept in concepts if "designation" in wanted else ():
        for alias, tag in list_designations(concept):
            part = [{"name": "language", "valueCode": tag}] if tag else []
            part.append({"name": "value", "valueString": alias})
            found.append({"name": "designation", "part": part})
    for name in wanted:
        for value in list_values(kb, system, concepts, given.code, name):
            kind = "valueBoolean" if isinstance(value, bool) else "valueCode"
            kind = "valueString" if name == "definition" else kind
            part = [{"name": "code", "valueCode": name}, {"name": "value", kind: value}]
            found.append({"name": "property", "part": part})
    unique = [one for place, one in enumerate(found) if one not in found[:place]]
    return make_parameters(unique)


def list_values(
    kb: KnowledgeBase,
    system: CodeSystem,
    concepts: list[Concept],
    code: str,
    property: str,
) -> list[Any]:
    """Return the values of a property of a code."""
    match property:
        case "definition":
            return [one.definition for one in concepts if one.definition]
        case "semanticType":
            return [type for one in concepts for type in one.types]
        case "concept":
            return [one.cui for one in concepts]
        case "parent":
            parents = (parent for one in concepts for parent in one.parents)
            return codes_of_cuis(kb, parents, system)
        case "child":
            children = {cui for one in concepts for cui in kb.children(one.cui)}
            if len(children) > MOST:
                raise too_costly(len(children), "Leave out `child`.")
            return codes_of_cuis(kb, children, system)
        case "inactive" if not system.sources:
            return [code != concepts[0].cui]
    return []


def validate_code(kb: KnowledgeBase, given: ValidateCode) -> dict[str, Any]:
    """Whether a code system or a value set (`url`) has a code, and its `display`.

    What is unknown is not an error: the `result` is false.
    """
    system, of = find_system(kb, given.system), find_system(kb, given.url)
    concepts = find_concepts(kb, system, given.code) if system else []
    message, shown = "", None
    if system is None or of is None:
        message = "The code system or value set is unknown."
    elif system != of:
        message = "The code is of another code system than the value set."
    elif not concepts:
        message = "The code is unknown."
    else:
        shown = choose_display(concepts[0], system, given.displayLanguage)
        names = kb.searcher.names
        cuis = [concept.cui for concept in concepts]
        if given.display and not any(names.is_name(given.display, cui) for cui in cuis):
            message = "The code exists, but it does not have this name."
    parameters: list[dict[str, Any]] = [{"name": "result", "valueBoolean": not message}]
    if message:
        parameters.append({"name": "message", "valueString": message})
    if shown is not None:
        parameters.append({"name": "display", "valueString": shown})
    return make_parameters(parameters)


class Match(NamedTuple):
    """A translation of a code.

    Attributes:
        equivalence: What it is to that code.
        display: "" = the knowledge base has no name of it.
    """

    equivalence: str
    system: str
    code: str
    display: str


def find_matches(
    kb: KnowledgeBase, system: CodeSystem, code: str, target: CodeSystem
) -> Iterator[Match]:
    """Yield the codes that the concepts of a code have in another code system.

    Two codes that are both only related to a concept are no translation.
    """
    for concept in find_concepts(kb, system, code):
        shown = choose_display(concept, target)
        equal = is_synonym(concept, system, target)
        for other in codes_of(concept, target):
            kind = "equivalent" if equal else "relatedto"
            yield Match(kind, target.url, other, shown)
        for relation, source, other in list_related_codes(concept):
            if source in target.sources:
                own = find_concepts(kb, target, other)
                shown = choose_display(own[0], target) if own else ""
                kind = EQUIVALENCES[relation]
                yield Match(kind, target.url, target.show(other), shown)
    for spelled in system.list_spellings(code) if system.sources else ():
        for cui, relation in kb.store.find_related_codes(system.sources, spelled):
            if concept_of := kb.concept(cui):
                kind = EQUIVALENCES[INVERSE.get(relation, relation)]
                for other in codes_of(concept_of, target):
                    shown = choose_display(concept_of, target)
                    yield Match(kind, target.url, other, shown)


def translate(kb: KnowledgeBase, given: Translate) -> dict[str, Any]:
    """The codes of the same concept in other code systems.

    `equivalent` = both vocabularies give names to the concept; `relatedto` = one is a
    cross reference; `wider` and `narrower` = what the code of the target is, where the
    vocabulary says so.
    """
    if given.url != MAP:
        raise unknown_code()
    if given.reverse:
        raise RequestError(
            "E482",
            "Expected `reverse` to be false, but got true. Send the code system of the "
            "codes that are wanted as `target`: what they are to the code is in each "
            "`equivalence`.",
            INVALID,
        )
    system = find_system(kb, given.system)
    wanted = given.targetsystem or given.target
    targets = [need_system(kb, wanted)] if wanted else list_systems(kb)
    found: set[Match] = set()
    for target in targets:
        if system and (wanted or target != system):
            found.update(find_matches(kb, system, given.code, target))
    parameters: list[dict[str, Any]] = [{"name": "result", "valueBoolean": bool(found)}]
    if not found:
        text = "The code is unknown, or its concept has no such code."
        parameters.append({"name": "message", "valueString": text})
    for one in sorted(found)[:MOST]:
        coding = {"system": one.system, "code": one.code}
        coding |= {"display": one.display} if one.display else {}
        part: list[dict[str, Any]] = [
            {"name": "equivalence", "valueCode": one.equivalence},
            {"name": "concept", "valueCoding": coding},
            {"name": "source", "valueUri": MAP},
        ]
        parameters.append({"name": "match", "part": part})
    return make_parameters(parameters)


def list_page(
    kb: KnowledgeBase, system: CodeSystem, given: Expand
) -> tuple[int, list[str]]:
    """Return the number of codes of a value set, and those of a page.

    With a filter they are those of the concepts that a search finds, the best first.
    """
    count = MOST if given.count is None else min(given.count, MOST)
    if text := (given.filter or "").strip():
        coded = describe_codes(kb, text, MOST_FOUND)
        named = find_names(kb, text, MOST_FOUND)
        found = merge_found(text, coded, named, (), MOST_FOUND)
        concepts = [kb.concept(one["cui"]) for one in found]
        codes = [code for one in concepts if one for code in codes_of(one, system)]
        codes = [*dict.fromkeys(codes)]
        return len(codes), codes[given.offset :][:count]
    total = count_codes(kb, system)
    if given.count is None and total - given.offset > MOST:
        raise too_costly(total, "Send `count` and `offset`.")
    codes = kb.store.list_codes(system.sources, count, given.offset)
    return total, [*map(system.show, codes)]


def expand(kb: KnowledgeBase, given: Expand) -> dict[str, Any]:
    """The codes of a value set (`url`), or those that a `filter` finds, best first."""
    system = need_system(kb, given.url)
    total, codes = list_page(kb, system, given)
    contains = []
    for code in codes:
        concept = find_concepts(kb, system, code)[0]
        shown = choose_display(concept, system, given.displayLanguage)
        contains.append({"system": system.url, "code": code, "display": shown})
    return {
        "resourceType": "ValueSet",
        "url": f"{system.url}{ALL}",
        "status": "active",
        "expansion": {
            "timestamp": now(),
            "total": total,
            "offset": given.offset,
            **({"contains": contains} if contains else {}),
        },
    }


Answer = Callable[[KnowledgeBase, Any], dict[str, Any]]
OPERATIONS: list[tuple[str, str, type[BaseModel], Answer]] = [
    ("CodeSystem", "lookup", LookUp, look_up),
    ("CodeSystem", "validate-code", ValidateCode, validate_code),
    ("ConceptMap", "translate", Translate, translate),
    ("ValueSet", "expand", Expand, expand),
    ("ValueSet", "validate-code", ValidateCode, validate_code),
]


router = APIRouter(
    tags=["FHIR"],
    prefix=FHIR,
    default_response_class=FhirResponse,
    responses=describe_errors(OperationOutcome),
)


def now() -> str:
    """Return the time as FHIR writes it."""
    return datetime.now(tz=UTC).isoformat(timespec="seconds")


def read_parameters(sent: Parameters, model: type[BaseModel]) -> BaseModel:
    """Return the parameters of a POST request."""
    given: dict[str, Any] = {"property": []}
    for one in sent.parameter:
        extra = one.model_extra or {}
        if "resource" in extra:
            expected = "the address of a code system or value set, not a resource"
            raise wrong_request(expected)
        value = next((extra[name] for name in extra if name.startswith("value")), None)
        match one.name, value:
            case "property", _:
                given["property"].append(value)
            case ("coding", {**coding}) | ("codeableConcept", {"coding": [{**coding}]}):
                names = ("system", "code", "display")
                given |= {name: coding[name] for name in names if name in coding}
            case "codeableConcept", _:
                expected = "a `codeableConcept` with one coding"
                raise wrong_request(expected)
            case name, _:
                given[name] = value
    return validate(model, given)


def add_operation(
    resource: str, name: str, model: type[BaseModel], answer: Answer
) -> None:
    """Add the routes of an operation."""

    def get(kb: KbDep, given: Annotated[Any, Query()]) -> Response:
        return FhirResponse(answer(kb, given))

    def post(kb: KbDep, body: Parameters) -> Response:
        return FhirResponse(answer(kb, read_parameters(body, model)))

    get.__annotations__["given"] = Annotated[model, Query()]
    for endpoint in (get, post):
        id = f"{resource}_{name}_{endpoint.__name__}".replace("-", "_").lower()
        router.add_api_route(
            f"/{resource}/${name}",
            endpoint,
            methods=[endpoint.__name__.upper()],
            name=id,
            summary=f"{resource}/${name}",
            description=answer.__doc__,
            response_model=Resource,
        )


for operation in OPERATIONS:
    add_operation(*operation)


@router.get("/metadata", response_model=Resource)
def metadata(kb: KbDep, mode: str = "full") -> Response:
    """What of FHIR the service has; `mode=terminology`: its code systems."""
    described: dict[str, Any] = {
        "status": "active",
        "date": now(),
        "kind": "instance",
        "implementation": {"description": "The codes of one knowledge base."},
    }
    if mode == "terminology":
        return FhirResponse(
            {
                "resourceType": "TerminologyCapabilities",
                **described,
                "codeSystem": [{"uri": one.url} for one in list_systems(kb)],
            }
        )
    operations: dict[str, list[dict[str, str]]] = {}
    for kind, name, *_ in OPERATIONS:
        definition = f"http://hl7.org/fhir/OperationDefinition/{kind}-{name}"
        one = {"name": name, "definition": definition}
        operations.setdefault(kind, []).append(one)
    resources = [{"type": one, "operation": operations[one]} for one in operations]
    return FhirResponse(
        {
            "resourceType": "CapabilityStatement",
            **described,
            "fhirVersion": "4.0.1",
            "format": ["json"],
            "rest": [{"mode": "server", "resource": resources}],
        }
    )
