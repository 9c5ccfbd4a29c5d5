"""/concepts/{cui}, /search and /codes."""

from typing import Annotated

from fastapi import APIRouter, Query

from ...kb.search import choose_threshold
from ..depends import KbDep, OptionalStoreDep, ServiceDep
from ..lookup import ConceptAnswer, describe_concept, list_roots
from ..requests import (
    MOST_FOUND,
    CodesAnswer,
    CodesRequest,
    KbAnswer,
    RootsAnswer,
    SearchAnswer,
    SearchRequest,
)
from ..search import search_concepts

router = APIRouter(tags=["concepts"])


@router.get("/concepts/{cui:path}")
def get_concept(
    kb: KbDep,
    cui: str,
    related: Annotated[int, Query(ge=0, le=MOST_FOUND)] = 10,
) -> ConceptAnswer:
    """All about a concept; retired ids are found too."""
    return describe_concept(kb, cui, related=related)


# A POST, since the text may be of a document, and others log addresses.
@router.post("/search")
async def search_names(service: ServiceDep, body: SearchRequest) -> SearchAnswer:
    """Search for concepts by a name, its beginning, a code or an id.

    Those with the most similar names come last.
    """
    found = await search_concepts(service, body.text, body.k, body.types)
    return SearchAnswer(concepts=found)


@router.post("/codes")
def find_codes(service: ServiceDep, body: CodesRequest) -> CodesAnswer:
    """The codes of concepts, in the vocabularies of the option `codes`."""
    wanted, kb = service.options.codes, service.kb
    codes = kb.store.codes(body.cuis)
    if wanted:
        codes = {
            cui: {source: of[source] for source in wanted if source in of}
            for cui, of in codes.items()
        }
    return CodesAnswer(codes=codes)


@router.get("/roots")
def get_roots(kb: KbDep) -> RootsAnswer:
    """Concepts at the top of the hierarchy: with children and without parents."""
    return RootsAnswer(concepts=list_roots(kb))


@router.get("/kb")
def get_kb(service: ServiceDep, store: OptionalStoreDep) -> KbAnswer:
    """Digest, counts, sources, threshold and teaching of the knowledge base in use."""
    manifest = service.kb.manifest
    return KbAnswer(
        digest=manifest.digest,
        counts=manifest.counts,
        sources=manifest.sources,
        threshold=choose_threshold(manifest, service.options),
        least_cosine=service.options.least_cosine,
        calibration=manifest.calibration,
        taught=manifest.taught,
        reviews=store is not None,
        codes=[*service.options.codes] or service.kb.store.sources_of_codes,
    )
