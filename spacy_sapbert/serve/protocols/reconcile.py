"""/reconcile: a reconciliation service for OpenRefine and its relatives.

SOURCE: Reconciliation Service API 0.2, W3C Entity Reconciliation Community Group,
https://www.w3.org/community/reports/reconciliation/CG-FINAL-specs-0.2-20230410/
"""

from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Json
from starlette.concurrency import run_in_threadpool

from ...formats.page.addresses import concept_url
from ...io.html import load_templates
from ..api.answers import JsonResponse, describe_file
from ..depends import KbDep, ServiceDep, SettingsDep
from ..lookup import find_concept
from ..problems import too_much_in_request, wrong_request
from ..requests import LONGEST_VALUE, validate
from ..search import count_types, name_type, search_concepts
from ..service import Service
from .reconcile_answers import (
    MOST,
    ExtendQuery,
    describe_service,
    describe_types,
    extend,
    list_properties,
    reconcile,
)

router = APIRouter(tags=["OpenRefine"], prefix="/reconcile")
MOST_FIELDS = 20  # of a form
MOST_NAMES = 20  # of a preview
MOST_SUGGESTED = 10
Answer = dict[str, Any]  # as the protocol says
Text = Annotated[str, Query(max_length=LONGEST_VALUE)]


class Fields(BaseModel):
    """Queries by any key, or ids and properties; both as a text of JSON."""

    queries: Json[dict[str, Any]] | None = None
    extend: Json[ExtendQuery] | None = None


TEXTS = {name: {"type": "string"} for name in Fields.model_fields}
FORM = {"schema": {"type": "object", "properties": TEXTS}}
FORM_BODY = {
    "requestBody": {"content": {"application/x-www-form-urlencoded": FORM}},
}


def check_count(count: int, service: Service) -> None:
    """Check the number of queries or values of a request."""
    if count > service.limits.documents:
        raise too_much_in_request(service.limits.documents, "queries or values", count)


@router.get("", name="describe_reconciliation", response_model=Answer)
@router.post("", name="reconcile", response_model=Answer, openapi_extra=FORM_BODY)
async def answer_fields(
    request: Request, service: ServiceDep, settings: SettingsDep
) -> Response:
    """The answer to `queries` or `extend` of a form or the address, or the manifest."""
    try:
        form = (await request.body()).decode("ascii") or request.url.query
        given = parse_qs(form, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise wrong_request("a form with `queries` or `extend`") from None
    fields = validate(Fields, {name: values[0] for name, values in given.items()})
    if fields.queries is not None:
        check_count(len(fields.queries), service)
        return JsonResponse(await reconcile(service, fields.queries))
    if (query := fields.extend) is not None:
        check_count(len(query.ids) * max(1, len(query.properties)), service)
        return JsonResponse(await run_in_threadpool(extend, service.kb, query))
    own = f"{request.url.scheme}://{request.headers['host']}"
    base = settings.public_url or own  # as clients see it
    return JsonResponse(await run_in_threadpool(describe_service, service.kb, base))


@router.get("/suggest/entity", response_model=Answer)
async def suggest_entity(service: ServiceDep, prefix: Text) -> Response:
    """Concepts for a text that a person types."""
    text = prefix.strip()
    found = await search_concepts(service, text, MOST_SUGGESTED) if text else []
    result = [
        {
            "id": one["cui"],
            "name": one["name"],
            "description": one["alias"] if one["alias"] != one["name"] else "",
            "notable": describe_types(one["types"]),
        }
        for one in found
    ]
    return JsonResponse({"result": result})


def suggest(known: list[dict[str, str]], prefix: str) -> Response:
    """Return those whose name has what a person types."""
    start = prefix.casefold()
    return JsonResponse(
        {"result": [one for one in known if start in one["name"].casefold()]}
    )


@router.get("/suggest/type", response_model=Answer)
def suggest_type(kb: KbDep, prefix: Text) -> Response:
    """Semantic types for a text that a person types."""
    return suggest(describe_types(count_types(kb)), prefix)


@router.get("/suggest/property", response_model=Answer)
def suggest_property(kb: KbDep, prefix: Text) -> Response:
    """Properties for a text that a person types."""
    return suggest(list_properties(kb), prefix)


@router.get("/properties", response_model=Answer)
def propose_properties(
    kb: KbDep,
    type: Text = "",
    limit: Annotated[int, Query(ge=1, le=MOST)] = MOST,
) -> Response:
    """Properties that concepts may have; the same for all types."""
    found = list_properties(kb)[:limit]
    return JsonResponse({"type": type, "limit": limit, "properties": found})


@router.get("/preview", response_class=Response, responses=describe_file("text/html"))
def preview(kb: KbDep, settings: SettingsDep, id: Text) -> Response:
    """A page on a concept, for a frame."""
    concept = find_concept(kb, id)
    template = load_templates(__package__).get_template("preview.html")
    text = template.render(
        concept=concept,
        names=concept.aliases[:MOST_NAMES],
        types=map(name_type, concept.types),
        url=concept_url(concept.cui),
    )
    ancestors = " ".join(["'self'", *sorted(settings.origins)])
    policy = f"default-src 'none'; frame-ancestors {ancestors}"
    return Response(
        text.encode("utf8", "replace"),
        headers={"content-security-policy": policy},
        media_type="text/html; charset=utf-8",
    )
