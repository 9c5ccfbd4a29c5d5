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
from ..problems import wrong_request
from ..requests import LONGEST_VALUE
from ..search import name_type, search_concepts

router = APIRouter(tags=["INCEpTION"])
FEW, MOST = 20, 100
Text = Annotated[str | None, Query(max_length=LONGEST_VALUE)]


class Item(TypedDict):
    """A concept: id, label and description."""

    id: str
    l: str  # noqa: E741
    d: str


def describe(cui: str, name: str, about: list[str]) -> Item:
    """Return an item."""
    return {"id": cui, "l": name, "d": " · ".join(filter(None, about))}


@router.get("/inception", response_model=Item | list[Item])
async def look_up_inception(
    service: ServiceDep,
    q: Text = None,
    qc: Text = None,
    l: Annotated[int, Query(ge=1, le=MOST)] = FEW,  # noqa: E741
    id: Text = None,
) -> Response:
    """The concept with `id`, or those for what a person types.

    `q` is what was typed, `qc` the text of the annotation, which counts if nothing was
    typed, and `l` the number of concepts.
    """
    if id is not None:
        concept = await run_in_threadpool(find_concept, service.kb, id)
        about = [", ".join(map(name_type, concept.types)), concept.definition or ""]
        return JsonResponse(describe(concept.cui, concept.name, about))
    if q is None:
        raise wrong_request("`q` or `id`")
    text = q.strip() or (qc or "").strip()
    if not text:
        return JsonResponse([])
    found = await search_concepts(service, text, l)
    return JsonResponse(
        [
            describe(
                one["cui"],
                one["name"],
                [
                    one["alias"] if one["alias"] != one["name"] else "",
                    ", ".join(map(name_type, one["types"])),
                ],
            )
            for one in found
        ]
    )
