"""/reconcile: a reconciliation service for OpenRefine and its relatives.

SOURCE: Reconciliation Service API 0.2, W3C Entity Reconciliation Community Group,
https://www.w3.org/community/reports/reconciliation/CG-FINAL-specs-0.2-20230410/
"""

from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool

from ...formats.page.addresses import concept_url
from ...io.html import load_templates
from ..api.answers import to_json
from ..depends import ServiceDep, SettingsDep, find_base
from ..lookup import find_concept
from ..problems import RequestError, too_much_in_request, wrong_request
from ..requests import LONGEST_VALUE
from ..search import count_types, name_type, search_concepts
from ..service import Service
from .reconcile_answers import (
    MOST,
    MOST_TYPES,
    ExtendQuery,
    describe_service,
    describe_type,
    describe_types,
    extend,
    list_properties,
    reconcile,
)

router = APIRouter(tags=["OpenRefine"], prefix="/reconcile")
MOST_FIELDS = 20  # of a form
MOST_NAMES = 20  # of a preview
Answer = dict[str, Any]  # results by the keys of the queries, rows, or the service
BATCH = TypeAdapter(dict[str, Any])
EXTEND = TypeAdapter(ExtendQuery)


class Suggestions(BaseModel):
    """What begins as a person types: each has at least `id` and `name`."""

    result: list[dict[str, Any]]


class PropertiesAnswer(BaseModel):
    """The properties that concepts of a type may have."""

    type: str
    limit: int
    properties: list[dict[str, str]]


def invalid(expected: str) -> RequestError:
    """Return the error of a form that is not as the protocol says."""
    return wrong_request(expected)


def read_form(data: bytes) -> dict[str, str]:
    """Return the first value of each field of a form."""
    try:
        fields = parse_qs(
            data.decode("ascii"), errors="strict", max_num_fields=MOST_FIELDS
        )
    except ValueError:
        raise invalid("a form of `queries` or `extend`") from None
    return {name: values[0] for name, values in fields.items()}


@router.get("", response_model=Answer, operation_id="describe_reconciliation")
@router.post(
    "",
    response_model=Answer,
    operation_id="reconcile",
    openapi_extra={"requestBody": {"content": {}}},
)
async def reconcile_or_describe(
    request: Request, service: ServiceDep, settings: SettingsDep
) -> Response:
    """Answer `queries` or `extend`; without them describe the service."""
    fields = read_form(request.url.query.encode())
    if request.method == "POST":
        fields |= read_form(await request.body())
    if "queries" in fields:
        try:
            batch = BATCH.validate_json(fields["queries"])
        except ValidationError:
            raise invalid("`queries` as an object of JSON") from None
        check_count(len(batch), service)
        return to_json(await reconcile(service, batch))
    if "extend" in fields:
        try:
            query = EXTEND.validate_json(fields["extend"])
        except ValidationError:
            raise invalid("`extend` with `ids` and `properties`") from None
        check_count(len(query.ids) * max(1, len(query.properties)), service)
        return to_json(await run_in_threadpool(extend, service.kb, query))
    if request.method == "POST":
        raise invalid("a form of `queries` or `extend`")
    base = find_base(request, settings)
    return to_json(await run_in_threadpool(describe_service, service.kb, base))


def check_count(count: int, service: Service) -> None:
    """Check the number of queries or values of a request."""
    limit = service.limits.documents
    if count > limit:
        what = "queries or values"
        raise too_much_in_request(limit, what, count)


Prefix = Annotated[str, Query(max_length=LONGEST_VALUE)]
Cursor = Annotated[int, Query(ge=0, le=MOST)]


@router.get("/suggest/entity", response_model=Suggestions)
async def suggest_entity(
    service: ServiceDep, prefix: Prefix, cursor: Cursor = 0
) -> Response:
    """Concepts for a text that a person types."""
    if not prefix.strip():
        return to_json({"result": []})
    found = await search_concepts(service, prefix, min(cursor + 10, MOST))
    result = [
        {
            "id": one["cui"],
            "name": one["name"],
            "description": one["alias"],
            "notable": [describe_type(type) for type in one["types"]],
        }
        for one in found[cursor:]
    ]
    return to_json({"result": result})


@router.get("/suggest/type", response_model=Suggestions)
def suggest_type(service: ServiceDep, prefix: Prefix, cursor: Cursor = 0) -> Response:
    """Semantic types for a text that a person types."""
    known = describe_types([*count_types(service.kb)])
    start = prefix.casefold()
    found = [one for one in known if start in one["name"].casefold()]
    return to_json({"result": found[cursor : cursor + MOST_TYPES]})


@router.get("/suggest/property", response_model=Suggestions)
def suggest_property(
    service: ServiceDep, prefix: Prefix, cursor: Cursor = 0
) -> Response:
    """Properties for a text that a person types."""
    known = list_properties(service.kb)
    start = prefix.casefold()
    found = [
        {"id": id, "name": name}
        for id, name in known.items()
        if start in name.casefold()
    ]
    return to_json({"result": found[cursor : cursor + MOST_TYPES]})


@router.get("/properties", response_model=PropertiesAnswer)
def propose_properties(
    service: ServiceDep,
    type: Annotated[str, Query(max_length=LONGEST_VALUE)] = "",
    limit: Annotated[int, Query(ge=1, le=MOST)] = MOST,
) -> Response:
    """Properties that concepts may have; the same for all types."""
    known = list_properties(service.kb)
    found = [{"id": id, "name": name} for id, name in known.items()]
    return to_json({"type": type, "limit": limit, "properties": found[:limit]})


@router.get("/preview", response_class=HTMLResponse)
def preview(
    service: ServiceDep,
    settings: SettingsDep,
    id: Annotated[str, Query(max_length=LONGEST_VALUE)],
) -> Response:
    """A page on a concept, for a frame."""
    concept = find_concept(service.kb, id)
    text = (
        load_templates(__package__)
        .get_template("preview.html")
        .render(
            concept=concept,
            names=concept.aliases[:MOST_NAMES],
            types=map(name_type, concept.types),
            url=concept_url(concept.cui),
        )
    )
    ancestors = " ".join(["'self'", *sorted(settings.origins)])
    policy = f"default-src 'none'; frame-ancestors {ancestors}"
    return Response(
        text.encode("utf8", "replace"),
        headers={"content-security-policy": policy},
        media_type="text/html; charset=utf-8",
    )
