"""/fhir: three operations of a FHIR R4 terminology service.

SOURCE: https://hl7.org/fhir/R4/terminology-service.html: CodeSystem/$lookup,
CodeSystem/$validate-code, ValueSet/$validate-code, ValueSet/$expand.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import chain
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool

from ...errors import Errors
from ...io.version import __version__
from ...kb.database import is_encodable
from ...kb.knowledge_base import KnowledgeBase
from ..depends import ServiceDep
from ..problems import RequestError
from ..requests import LONGEST_VALUE
from ..search import search_concepts
from ..service import Service
from .fhir_codes import (
    ALL,
    OWN,
    address_of,
    find_source,
    list_codes,
    look_up,
    validate,
)


class FhirResponse(Response):
    media_type = "application/fhir+json"


router = APIRouter(tags=["FHIR"], prefix="/fhir", default_response_class=FhirResponse)
FEW, MOST = 20, 100  # codes of an expansion
MOST_PARAMETERS = 50


class Coding(BaseModel):
    """A code, its system and how it is shown."""

    system: str | None = None
    code: str | None = None
    display: str | None = None


class CodeableConcept(BaseModel):
    """A concept as one or more codes."""

    coding: Annotated[list[Coding], Field(max_length=MOST_PARAMETERS)] = []


class Parameter(BaseModel):
    """A parameter of an operation."""

    name: str
    valueUri: str | None = None
    valueUrl: str | None = None
    valueCanonical: str | None = None
    valueCode: str | None = None
    valueString: str | None = None
    valueInteger: int | None = None
    valueCoding: Coding | None = None
    valueCodeableConcept: CodeableConcept | None = None

    @property
    def text(self) -> str | None:
        """The value as a text."""
        number = None if self.valueInteger is None else str(self.valueInteger)
        values = (self.valueUri, self.valueUrl, self.valueCanonical, self.valueCode)
        texts = (value for value in (*values, self.valueString, number) if value)
        return next(texts, None)


class Parameters(BaseModel):
    """The resource that a POST request sends."""

    parameter: Annotated[list[Parameter], Field(max_length=MOST_PARAMETERS)] = []


PARAMETERS = TypeAdapter(Parameters)
Resource = dict[str, Any]  # see the specification


def to_fhir(data: dict[str, Any], status: int = 200) -> Response:
    """Return a resource."""
    return FhirResponse(json.dumps(data), status)


def outcome(error: RequestError, code: str) -> Response:
    """Return an error as an OperationOutcome.

    Args:
        code: Of FHIR's IssueType.
    """
    issue = {"severity": "error", "code": code, "diagnostics": str(error)}
    return to_fhir({"resourceType": "OperationOutcome", "issue": [issue]}, error.status)


async def read_parameters(request: Request) -> list[dict[str, str]]:
    """Return the parameters of a GET or POST request as texts, by name.

    Returns:
        Of each coding that is given, else one.

    Raises:
        RequestError: If the body is no `Parameters`.
    """
    found = {name: value for name, value in request.query_params.items() if value}
    codings: list[Coding] = []
    if request.method == "POST" and (body := await request.body()):
        try:
            given = PARAMETERS.validate_json(body).parameter
        except ValidationError:
            expected = "a resource `Parameters` of FHIR R4"
            raise RequestError(Errors.E457.format(expected=expected), 422) from None
        for one in given:
            if one.valueCoding is not None:
                codings.append(one.valueCoding)
            elif one.valueCodeableConcept is not None:
                codings += one.valueCodeableConcept.coding
            elif one.text is not None:
                found[one.name] = one.text
    texts = [found | coding.model_dump(exclude_none=True) for coding in codings]
    for value in chain.from_iterable(one.values() for one in (found, *texts)):
        if not is_encodable(value) or len(value) > LONGEST_VALUE:
            expected = f"parameters of at most {LONGEST_VALUE} characters"
            raise RequestError(Errors.E457.format(expected=expected), 422)
    return texts or [found]


async def answer(
    request: Request,
    service: Service,
    operation: Callable[[KnowledgeBase, list[dict[str, str]]], dict[str, Any]],
) -> Response:
    """Return what an operation gives for the parameters, or why it gives nothing."""
    given = await read_parameters(request)
    try:
        return to_fhir(await run_in_threadpool(operation, service.kb, given))
    except RequestError as error:
        return outcome(error, "not-found")


@router.get("/CodeSystem/$lookup", response_model=Resource)
@router.post("/CodeSystem/$lookup", response_model=Resource)
async def code_system_lookup(request: Request, service: ServiceDep) -> Response:
    """Name, names, definition and properties of a code (`io`, `code`)."""
    return await answer(request, service, look_up)


@router.get("/CodeSystem/$validate-code", response_model=Resource)
@router.post("/CodeSystem/$validate-code", response_model=Resource)
@router.get("/ValueSet/$validate-code", response_model=Resource)
@router.post("/ValueSet/$validate-code", response_model=Resource)
async def validate_code(request: Request, service: ServiceDep) -> Response:
    """Whether a code (`code`, `io`) is in a value set (`url`), and its `display`.

    Of several codings, one must be. What is unknown is no error, but not in the set.
    """
    return await answer(request, service, validate)


@router.get("/ValueSet/$expand", response_model=Resource)
@router.post("/ValueSet/$expand", response_model=Resource)
async def expand(request: Request, service: ServiceDep) -> Response:
    """The codes of a code system (`url`) for a text (`filter`), the nearest first."""
    given = (await read_parameters(request))[0]
    try:
        text, number = given.get("filter", "").strip(), given.get("count", str(FEW))
        if not text or not number.isdecimal() or given.get("offset", "0") != "0":
            expected = "`filter` with a text, `count` with a number, and no `offset`"
            raise RequestError(Errors.E457.format(expected=expected), 422)
        count = min(int(number[:6]), MOST)
        url = given.get("url")
        source = await run_in_threadpool(find_source, service.kb, url)
        found = await search_concepts(service, text, max(count, 1))
        cuis = [one["cui"] for one in found]
        codes = await run_in_threadpool(list_codes, service.kb, source, cuis, count)
    except RequestError as error:
        kind = "not-found" if error.status == 404 else "invalid"
        return outcome(error, kind)
    expansion: dict[str, Any] = {"timestamp": now()}
    if codes:  # there are no empty arrays in FHIR
        expansion["contains"] = codes
    address = OWN if source is None else address_of(source)
    return to_fhir(
        {
            "resourceType": "ValueSet",
            "url": f"{address}{ALL}",
            "status": "active",
            "expansion": expansion,
        }
    )


def now() -> str:
    """Return the time as FHIR writes it."""
    return datetime.now(tz=UTC).isoformat(timespec="seconds")


@router.get("/metadata", response_model=Resource)
async def metadata(service: ServiceDep) -> Response:
    """What of FHIR the service has."""
    sources = await run_in_threadpool(service.kb.store.sources_of_codes)
    operations = {
        "CodeSystem": ("lookup", "validate-code"),
        "ValueSet": ("expand", "validate-code"),
    }
    resources = [
        {
            "type": kind,
            "operation": [
                {
                    "name": name,
                    "definition": (
                        f"http://hl7.org/fhir/OperationDefinition/{kind}-{name}"
                    ),
                }
                for name in names
            ],
        }
        for kind, names in operations.items()
    ]
    return to_fhir(
        {
            "resourceType": "CapabilityStatement",
            "status": "active",
            "date": now(),
            "kind": "instance",
            "software": {"name": "spacy-sapbert", "version": __version__},
            "implementation": {
                "description": "Code systems: "
                + ", ".join([OWN, *map(address_of, sources)])
            },
            "fhirVersion": "4.0.1",
            "format": ["json"],
            "rest": [{"mode": "server", "resource": resources}],
        }
    )
