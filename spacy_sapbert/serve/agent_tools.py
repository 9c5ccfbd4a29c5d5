"""What an agent may ask: the requests of the service as tools with bounded answers."""

import json
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from .api import columns, concepts, linking
from .lookup import ConceptAnswer
from .requests import (
    LONGEST_VALUE,
    JudgedEntity,
    SearchAnswer,
    SearchRequest,
    VerifyAnswer,
    VerifyRequest,
)
from .service import Service

LONGEST_NOTE = 200_000  # characters
MOST_SHOWN = 50  # entries of a list in an answer, and items of a call
MOST_CANDIDATES = 10
LONGEST_NAME, LONGEST_DEFINITION = 120, 3_000  # characters in an answer
LONGEST_PAGE = 30_000  # characters of the mentions in an answer

Note = Annotated[
    str,
    Field(max_length=LONGEST_NOTE, description="The text of a note, in any language."),
]
Short = Annotated[str, Field(min_length=1, max_length=LONGEST_VALUE)]
Candidates = Annotated[
    int,
    Field(
        ge=0,
        le=MOST_CANDIDATES,
        description="Number of candidates to return for each, best first.",
    ),
]


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


class AgentTools:
    """The tools of an agent; the first line of each docstring is what the agent reads.

    Args:
        service: Started.
    """

    def __init__(self, service: Service) -> None:
        self.service = service

    async def link_text(
        self,
        text: Note,
        first: Annotated[
            int, Field(ge=0, description="Place of the first mention, from 0.")
        ] = 0,
        limit: Annotated[int, Field(ge=1, le=MOST_SHOWN)] = MOST_SHOWN,
        candidates: Candidates = 0,
    ) -> LinkedNote:
        """Find the mentions of biomedical concepts in a note, and link each to an id.

        A mention without id was found but not linked; `note` says why. If `next` is a
        number, call again with it as `first` for the rest.
        """
        (result,) = await self.service.link_texts([text], {})
        if result.error is not None:
            raise result.error
        mentions: list[JudgedEntity] = []
        length = 0
        for entity in result.entities[first : first + limit]:
            mention = linking.judge_entity(entity)
            mention["candidates"] = mention["candidates"][:candidates]
            length += len(json.dumps(shorten(mention)))
            if mentions and length > LONGEST_PAGE:
                break
            mentions.append(mention)
        total, end = len(result.entities), first + len(mentions)
        return LinkedNote(
            kb=result.kb,
            total=total,
            next=end if end < total else None,
            mentions=mentions,
        )

    async def link_terms(
        self,
        terms: Annotated[
            list[Short],
            Field(
                min_length=1,
                max_length=MOST_SHOWN,
                description="Terms, each on its own, e.g. cells of a column.",
            ),
        ],
        candidates: Candidates = 3,
    ) -> columns.FoundTerms:
        """Find the concept of each of some terms, as for a column of diagnoses.

        `status`: exact and linked = `cui` is the concept; review = choose one of the
        candidates, or none; none = nothing is like it.
        """
        body = columns.TermsRequest(terms=terms, k=MOST_CANDIDATES)
        answer = await columns.map_column(self.service, body)
        answer.found = [
            replace(one, candidates=one.candidates[:candidates]) for one in answer.found
        ]
        return answer

    async def search_concepts(
        self,
        query: Annotated[Short, Field(description="A name, its beginning, or a code.")],
        limit: Annotated[int, Field(ge=1, le=MOST_SHOWN)] = 10,
        types: Annotated[
            list[Short],
            Field(max_length=MOST_SHOWN, description="Semantic types; empty = all."),
        ] = [],  # noqa: B006
    ) -> SearchAnswer:
        """Search for concepts by name: those that begin so, then the most similar."""
        body = SearchRequest(text=query, k=limit, types=types)
        return await concepts.search_names(self.service, body)

    async def get_concept(
        self,
        id: Annotated[
            Short, Field(description="Id of a concept, as other tools return it.")
        ],
    ) -> ConceptAnswer:
        """Get names, definition, codes, parents and children of a concept.

        Of each list the first 50.
        """
        return await run_in_threadpool(
            concepts.get_concept, self.service.kb, id, related=MOST_CANDIDATES
        )

    async def verify_id(
        self,
        text: Annotated[Short, Field(description="What the id shall stand for.")],
        id: Annotated[Short, Field(description="The id, or a code of a vocabulary.")],
        label: Annotated[
            str, Field(max_length=LONGEST_VALUE, description="The name beside the id.")
        ] = "",
        context: Annotated[Note, Field(description="The text around, if any.")] = "",
    ) -> VerifyAnswer:
        """Find out whether an id that somebody wrote is the right one for a text.

        `verdict`: right = keep it; retired = write `cui`; near, wrong = `better` is
        what the text means; unknown = there is no such id, `meant` may be; unsure = ask
        a person. `label` and `label_text` judge the label against id and text.
        """
        body = VerifyRequest(texts=[text], ids=[id], labels=[label], contexts=[context])
        return await linking.verify_ids(self.service, body)
