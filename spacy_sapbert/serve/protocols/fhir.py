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
from ..depends import ServiceDep
from ..search import search_concepts
from ..service import Service
from .fhir_codes import find_set, need
from .fhir_operations import (
    EXPAND,
    LOOKUP,
    TRANSLATE,
    VALIDATE_IN_SET,
    VALIDATE_IN_SYSTEM,
    expand,
    look_up,
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
    describe_terminology,
)


class FhirResponse(Response):
    media_type = MEDIA_TYPE


router = APIRouter(
    tags=["FHIR"],
    prefix=ROOT,
    default_response_class=FhirResponse,
    generate_unique_id_function=lambda route: (
        f"{route.name}_{min(route.methods)}".lower()
    ),
)
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
