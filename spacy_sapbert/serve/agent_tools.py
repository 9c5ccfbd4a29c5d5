"""What an agent may ask: functions of the service as tools with bounded answers."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter
from starlette.concurrency import run_in_threadpool

from .api import columns, concepts, linking
from .lookup import ConceptAnswer
from .problems import too_much_in_request, wrong_request
from .requests import JudgedEntity, Value
from .service import Service

LONGEST_NOTE = 200_000  # characters
MOST_SHOWN = 50  # entries of a list in an answer, and items of a call
MOST_CANDIDATES = 10
LONGEST_NAME, LONGEST_DEFINITION = 120, 3_000  # characters in an answer
LONGEST_PAGE = 30_000  # characters of the mentions in an answer
Candidates = Annotated[
    int,
    Field(
        ge=0,
        le=MOST_CANDIDATES,
        description="Number of candidates to return for each, best first.",
    ),
]


class NoteRequest(BaseModel):
    """A note, and which of its mentions to return."""

    text: Annotated[
        str,
        Field(
            max_length=LONGEST_NOTE, description="The text of a note, in any language."
        ),
    ]
    first: Annotated[
        int, Field(ge=0, description="Place of the first mention, from 0.")
    ] = 0
    limit: Annotated[int, Field(ge=1, le=MOST_SHOWN)] = MOST_SHOWN
    candidates: Candidates = 0


class LinkedNote(BaseModel):
    """The mentions of a note, a page of them.

    Attributes:
        kb: Digest of the knowledge base.
        total: Number of all mentions.
        next: `first` of the next page; null = this is the last one.
    """

    kb: str
    total: int
    next: int | None
    mentions: list[JudgedEntity]


class SomeTerms(BaseModel):
    """Terms, each on its own, e.g. cells of a column."""

    terms: Annotated[list[Value], Field(min_length=1)]
    candidates: Candidates = 3


class ConceptId(BaseModel):
    """Id of a concept, as other tools return it."""

    id: Value


async def link_text(service: Service, body: NoteRequest) -> LinkedNote:
    """Find the mentions of biomedical concepts in a note, and link each to an id.

    A mention without id was found but not linked; `note` says why. If `next` is a
    number, call again with it as `first` for the rest.
    """
    (result,) = await service.link_texts([body.text], {})
    if result.error is not None:
        raise result.error
    mentions: list[JudgedEntity] = []
    length = 0
    for entity in result.entities[body.first : body.first + body.limit]:
        mention = linking.judge_entity(entity)
        mention["candidates"] = mention["candidates"][: body.candidates]
        length += len(json.dumps(shorten(mention)))
        if mentions and length > LONGEST_PAGE:
            break
        mentions.append(mention)
    total, end = len(result.entities), body.first + len(mentions)
    following = end if end < total else None
    return LinkedNote(kb=result.kb, total=total, next=following, mentions=mentions)


async def link_terms(service: Service, body: SomeTerms) -> columns.FoundTerms:
    """Find the concept of each of some terms, as for a column of diagnoses.

    `status`: exact and linked = `cui` is the concept; review = choose one of the
    candidates, or none; none = nothing is like it.
    """
    wanted = columns.TermsRequest(terms=body.terms, k=MOST_CANDIDATES)
    answer = await columns.map_column(service, wanted)
    answer.found = [
        replace(one, candidates=one.candidates[: body.candidates])
        for one in answer.found
    ]
    return answer


async def get_concept(service: Service, body: ConceptId) -> ConceptAnswer:
    """Get names, definition, codes, parents and children of a concept.

    Of each list the first 50.
    """
    return await run_in_threadpool(
        concepts.get_concept, service.kb, body.id, related=MOST_CANDIDATES
    )


# The function of each tool. The fields of its `body` are the arguments, its docstring
# is what the agent reads, and its answer is shortened.
TOOLS: dict[str, Callable[[Service, Any], Awaitable[Any]]] = {
    "link_text": link_text,
    "link_terms": link_terms,
    "search_concepts": concepts.search_names,
    "get_concept": get_concept,
    "verify_id": linking.verify_ids,
}


async def call_tool(service: Service, tool: str, arguments: dict[str, Any]) -> Any:
    """Call a tool, and return its answer in JSON.

    Raises:
        ValidationError: If the arguments are not those of the tool.
        SapbertError: If there is no such tool, or it cannot answer.
    """
    if tool not in TOOLS:
        raise wrong_request("a tool that is listed")
    types = TOOLS[tool].__annotations__
    body = types["body"].model_validate(arguments)
    for name, value in body:
        if isinstance(value, list) and len(value) > MOST_SHOWN:
            raise too_much_in_request(MOST_SHOWN, f"`{name}`", len(value))
    answer = await TOOLS[tool](service, body)
    return shorten(TypeAdapter(types["return"]).dump_python(answer, mode="json"))


def shorten(value: Any, longest: int = LONGEST_NAME) -> Any:
    """Return data whose texts and lists are not too long for an answer."""
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[: longest - 1]}…"
    if isinstance(value, list):
        return [shorten(one) for one in value[:MOST_SHOWN]]
    if isinstance(value, dict):
        return {
            name: shorten(one, LONGEST_DEFINITION if name == "definition" else longest)
            for name, one in [*value.items()][:MOST_SHOWN]
        }
    return value
