"""/fhir: a terminology service of FHIR R4.

SOURCE: https://hl7.org/fhir/R4/terminology-service.html
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from ...kb.knowledge_base import KnowledgeBase
from ..depends import ServiceDep, SettingsDep, find_base
from ..search import search_concepts
from ..service import Service
from ..settings import Settings
from .fhir_codes import CodeSystem, find_set, list_systems, make_not_found, need
from .fhir_operations import (
    EXPAND,
    LOOKUP,
    SUBSUMES,
    TRANSLATE,
    VALIDATE_IN_SET,
    VALIDATE_IN_SYSTEM,
    expand,
    look_up,
    subsumes,
    translate,
    validate_in_set,
    validate_in_system,
)
from .fhir_parameters import (
    MEDIA_TYPE,
    ROOT,
    Given,
    Operation,
    check_format,
    make_required,
    read_parameters,
)
from .fhir_resources import (
    describe_capabilities,
    describe_system,
    describe_terminology,
    describe_value_set,
    make_bundle,
)


class FhirResponse(Response):
    media_type = MEDIA_TYPE


router = APIRouter(tags=["FHIR"], prefix=ROOT, default_response_class=FhirResponse)
MOST_FOUND = 100  # concepts that a filter leaves
Resource = dict[str, Any]  # see the specification


def to_fhir(data: Resource) -> Response:
    """Return a resource."""
    return FhirResponse(json.dumps(data))


def now() -> str:
    """Return the time as FHIR writes it."""
    return datetime.now(tz=UTC).isoformat(timespec="seconds")


async def run(
    request: Request,
    service: Service,
    operation: Operation,
    function: Callable[[KnowledgeBase, Given], Resource],
) -> Response:
    """Return what an operation gives for the parameters of a request."""
    given = await read_parameters(request, operation)
    return to_fhir(await run_in_threadpool(function, service.kb, given))


@router.get(LOOKUP.path, response_model=Resource)
@router.post(LOOKUP.path, response_model=Resource)
async def code_system_lookup(request: Request, service: ServiceDep) -> Response:
    """Name, names, definition, parents of a code (`system`, `code`)."""
    return await run(request, service, LOOKUP, look_up)


@router.get(SUBSUMES.path, response_model=Resource)
@router.post(SUBSUMES.path, response_model=Resource)
async def code_system_subsumes(request: Request, service: ServiceDep) -> Response:
    """Whether `codeA` is above `codeB` in the hierarchy."""
    return await run(request, service, SUBSUMES, subsumes)


@router.get(VALIDATE_IN_SYSTEM.path, response_model=Resource)
@router.post(VALIDATE_IN_SYSTEM.path, response_model=Resource)
async def code_system_validate_code(request: Request, service: ServiceDep) -> Response:
    """Whether a code is in a code system (`url`), and its `display`."""
    return await run(request, service, VALIDATE_IN_SYSTEM, validate_in_system)


@router.get(VALIDATE_IN_SET.path, response_model=Resource)
@router.post(VALIDATE_IN_SET.path, response_model=Resource)
async def value_set_validate_code(request: Request, service: ServiceDep) -> Response:
    """Whether a code (`system`, `code`) is in a value set (`url`), and its `display`.

    Of several codes, one must be. What is unknown is not an error, but not in the set.
    """
    return await run(request, service, VALIDATE_IN_SET, validate_in_set)


@router.get(TRANSLATE.path, response_model=Resource)
@router.post(TRANSLATE.path, response_model=Resource)
async def concept_map_translate(request: Request, service: ServiceDep) -> Response:
    """The codes of the same concept in other code systems."""
    return await run(request, service, TRANSLATE, translate)


@router.get(EXPAND.path, response_model=Resource)
@router.post(EXPAND.path, response_model=Resource)
async def value_set_expand(request: Request, service: ServiceDep) -> Response:
    """The codes of a value set (`url`), or those that a `filter` finds, best first."""
    given = await read_parameters(request, EXPAND)
    if "url" not in given:
        raise make_required("url")
    kb = service.kb
    need(await run_in_threadpool(find_set, kb, given.first("url")))
    cuis = None
    if text := given.first("filter", "").strip():
        found = await search_concepts(service, text, MOST_FOUND, nearest=False)
        cuis = [concept["cui"] for concept in found]
    return to_fhir(await run_in_threadpool(expand, kb, given, cuis, now()))


@router.get("/metadata", response_model=Resource)
async def metadata(
    request: Request, service: ServiceDep, mode: str = "full"
) -> Response:
    """What of FHIR the service has; `mode=terminology`: its code systems."""
    check_format(request)
    if mode == "terminology":
        found = await run_in_threadpool(describe_terminology, service.kb, now())
        return to_fhir(found)
    return to_fhir(describe_capabilities(now()))


def describe(kb: KnowledgeBase, kind: str, system: CodeSystem) -> Resource:
    """Return a code system, or its value set."""
    if kind == "CodeSystem":
        return describe_system(kb, system)
    return describe_value_set(system)


def search(
    request: Request, kb: KnowledgeBase, settings: Settings, kind: str, url: str | None
) -> Response:
    """Return the resources with an address; all if none is given."""
    check_format(request)
    described = (describe(kb, kind, system) for system in list_systems(kb))
    wanted = [one for one in described if url in (None, one["url"])]
    return to_fhir(make_bundle(find_base(request, settings) + ROOT, wanted))


def read(request: Request, kb: KnowledgeBase, kind: str, id: str) -> Response:
    """Return the resource with an id."""
    check_format(request)
    for system in list_systems(kb):
        if system.id == id:
            return to_fhir(describe(kb, kind, system))
    raise make_not_found()


@router.get("/CodeSystem", response_model=Resource)
def code_system_search(
    request: Request,
    service: ServiceDep,
    settings: SettingsDep,
    url: str | None = None,
) -> Response:
    """The code systems of the knowledge base."""
    return search(request, service.kb, settings, "CodeSystem", url)


@router.get("/CodeSystem/{id}", response_model=Resource)
def code_system_read(request: Request, service: ServiceDep, id: str) -> Response:
    """A code system, without its codes."""
    return read(request, service.kb, "CodeSystem", id)


@router.get("/ValueSet", response_model=Resource)
def value_set_search(
    request: Request,
    service: ServiceDep,
    settings: SettingsDep,
    url: str | None = None,
) -> Response:
    """The value sets: one for each code system."""
    return search(request, service.kb, settings, "ValueSet", url)


@router.get("/ValueSet/{id}", response_model=Resource)
def value_set_read(request: Request, service: ServiceDep, id: str) -> Response:
    """The value set of a code system."""
    return read(request, service.kb, "ValueSet", id)
