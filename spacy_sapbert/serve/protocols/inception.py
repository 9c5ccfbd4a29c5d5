"""/inception: the remote lookup of INCEpTION.

SOURCE: INCEpTION, user guide, "Remote Lookup Feature".
"""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool
from typing_extensions import TypedDict

from ..api.answers import JsonResponse
from ..depends import ServiceDep
from ..lookup import find_concept
from ..requests import LONGEST_VALUE
from ..search import name_type, search_concepts

router = APIRouter(tags=["INCEpTION"])
FEW, MOST = 20, 100
Text = Annotated[str, Query(max_length=LONGEST_VALUE)]


class Item(TypedDict):
    """A concept: id, label and description."""

    id: str
    l: str  # noqa: E741
    d: str


def describe(cui: str, name: str, types: list[str], about: str | None) -> Item:
    """Return an item."""
    parts = [about, ", ".join(map(name_type, types))]
    return {"id": cui, "l": name, "d": " · ".join(filter(None, parts))}


@router.get("/inception", response_model=Item | list[Item])
async def look_up_inception(
    service: ServiceDep,
    q: Text = "",
    qc: Text = "",
    l: Annotated[int, Query(ge=1, le=MOST)] = FEW,  # noqa: E741
    id: Text | None = None,
) -> Response:
    """The concept with `id`, or those for what a person types.

    `q` is what was typed, `qc` the text of the annotation, which counts if nothing was
    typed, and `l` the number of concepts.
    """
    if id is not None:
        concept = await run_in_threadpool(find_concept, service.kb, id)
        known = concept.cui, concept.name, concept.types, concept.definition
        return JsonResponse(describe(*known))
    text = q.strip() or qc.strip()
    found = await search_concepts(service, text, l) if text else []
    return JsonResponse(
        [
            describe(
                one["cui"],
                one["name"],
                one["types"],
                one["alias"] if one["alias"] != one["name"] else None,
            )
            for one in found
        ]
    )
