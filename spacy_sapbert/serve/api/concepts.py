"""/concepts/{cui} and /search."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from ..lookup import ConceptAnswer, describe_concept, list_roots
from ..requests import LONGEST_VALUE, MOST_VALUES, SearchAnswer
from ..search import search_concepts
from ..service import Service
from .answers import to_json

router = APIRouter(tags=["concepts"])
MOST_FOUND = 100


@router.get("/concepts/{cui:path}", responses={200: {"model": ConceptAnswer}})
def concept(
    request: Request,
    cui: str,
    related: Annotated[int, Query(ge=0, le=MOST_FOUND)] = 10,
) -> Response:
    """All about a concept; retired ids are found too."""
    service: Service = request.app.state.service
    return to_json(describe_concept(service.kb, cui, related=related))


@router.get("/search", responses={200: {"model": SearchAnswer}})
async def search(
    request: Request,
    q: Annotated[str, Query(min_length=1, max_length=LONGEST_VALUE)],
    k: Annotated[int, Query(ge=1, le=MOST_FOUND)] = 10,
    types: Annotated[list[str] | None, Query(max_length=MOST_VALUES)] = None,
) -> Response:
    """Concepts with a name that begins with `q`, then those with the nearest names."""
    service: Service = request.app.state.service
    return to_json({"concepts": await search_concepts(service, q, k, types or ())})


@router.get("/roots")
def roots(request: Request) -> Response:
    """Concepts at the top of the hierarchy: with children and without parents."""
    return to_json({"concepts": list_roots(request.app.state.service.kb)})


@router.get("/kb")
def describe(request: Request) -> Response:
    """Digest, counts, sources, threshold and teaching of the knowledge base in use."""
    manifest = request.app.state.service.kb.manifest
    names = {"counts", "sources", "threshold", "calibration", "digest"}
    taught = manifest.overlay.taught if manifest.overlay else None
    return to_json(
        {
            **manifest.model_dump(mode="json", include=names),
            "taught": taught.model_dump(mode="json") if taught else None,
            "reviews": request.app.state.store is not None,
        }
    )
