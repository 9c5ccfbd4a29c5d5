"""/concepts/{cui} and /search."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ..depends import OptionalStoreDep, ServiceDep
from ..lookup import ConceptAnswer, describe_concept, list_roots
from ..requests import (
    LONGEST_VALUE,
    MOST_VALUES,
    KbAnswer,
    RootsAnswer,
    SearchAnswer,
)
from ..search import search_concepts
from .answers import to_json

router = APIRouter(tags=["concepts"])
MOST_FOUND = 100


@router.get("/concepts/{cui:path}", response_model=ConceptAnswer)
def concept(
    service: ServiceDep,
    cui: str,
    related: Annotated[int, Query(ge=0, le=MOST_FOUND)] = 10,
) -> Response:
    """All about a concept; retired ids are found too."""
    return to_json(describe_concept(service.kb, cui, related=related))


@router.get("/search", response_model=SearchAnswer)
async def search(
    service: ServiceDep,
    q: Annotated[str, Query(min_length=1, max_length=LONGEST_VALUE)],
    k: Annotated[int, Query(ge=1, le=MOST_FOUND)] = 10,
    types: Annotated[list[str] | None, Query(max_length=MOST_VALUES)] = None,
) -> Response:
    """Concepts with a name that begins with `q`, then those with the nearest names."""
    return to_json({"concepts": await search_concepts(service, q, k, types or ())})


@router.get("/roots", response_model=RootsAnswer)
def roots(service: ServiceDep) -> Response:
    """Concepts at the top of the hierarchy: with children and without parents."""
    return to_json({"concepts": list_roots(service.kb)})


@router.get("/kb", response_model=KbAnswer)
def describe(service: ServiceDep, store: OptionalStoreDep) -> Response:
    """Digest, counts, sources, threshold and teaching of the knowledge base in use."""
    manifest = service.kb.manifest
    names = KbAnswer.model_fields.keys() - {"taught", "reviews"}
    found = {name: getattr(manifest, name) for name in names}
    answer = KbAnswer(**found, taught=manifest.taught, reviews=store is not None)
    return to_json(answer.model_dump(mode="json"))
