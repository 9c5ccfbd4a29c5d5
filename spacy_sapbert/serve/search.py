"""Search for concepts by text, as /search and the protocols do."""

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from starlette.concurrency import run_in_threadpool

from ..formats.page.groups import BY_TYPE
from ..formats.page.groups import name_type as words_of
from ..kb.knowledge_base import KnowledgeBase
from ..linking.candidates import Candidate
from .lookup import (
    FoundConcept,
    SearchedConcept,
    describe_codes,
    find_names,
    is_being_typed,
    merge_found,
)
from .service import Service

TYPES: "WeakKeyDictionary[KnowledgeBase, dict[str, int]]" = WeakKeyDictionary()


async def search_concepts(
    service: Service,
    text: str,
    k: int,
    types: Sequence[str] = (),
) -> list[SearchedConcept]:
    """Find concepts by an id or code, by a name that begins with a text or has its
    words inside, then, if these are fewer than `k`, the nearest ones.

    A text whose last word is only the beginning of a word of the names found is still
    being typed, and has nothing near it yet.

    Args:
        types: Allowed semantic types; empty = all.

    Raises:
        SapbertError: If a type is unknown, or the queue is full.
    """
    kb = service.kb

    def find() -> tuple[list[FoundConcept], list[FoundConcept]]:
        coded = describe_codes(kb, text, k)
        if types:
            coded = [one for one in coded if {*types} & {*one["types"]}]
        return coded, find_names(kb, text, k, types)

    coded, named = await run_in_threadpool(find)
    candidates: Sequence[Candidate] = ()
    few = len({one["cui"] for one in (*coded, *named)}) < k
    if few and not is_being_typed(text, named):
        settings: dict[str, Any] = {"k": k}
        if types:
            settings["filter"] = {"types": sorted(types)}
        (result,) = await service.link_mentions([text], settings)
        candidates = result.linked.candidates
    return merge_found(text, coded, named, candidates, k)


def count_types(kb: KnowledgeBase) -> dict[str, int]:
    """Return the number of concepts by semantic type, the most frequent first."""
    if kb not in TYPES:
        TYPES[kb] = kb.store.count_types()
    return TYPES[kb]


def name_type(type: str) -> str:
    """Return how a semantic type is listed: its name, and its group if it has one."""
    group = BY_TYPE.get(type)
    return f"{words_of(type)} ({group.name})" if group else words_of(type)
