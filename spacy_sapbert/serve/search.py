"""Search for concepts by text, as /search and the protocols do."""

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from starlette.concurrency import run_in_threadpool

from ..formats.page.groups import BY_TYPE
from ..kb.knowledge_base import KnowledgeBase
from .lookup import FoundConcept, find_prefix, merge_found
from .service import Service

TYPES: "WeakKeyDictionary[KnowledgeBase, dict[str, int]]" = WeakKeyDictionary()


async def search_concepts(
    service: Service, text: str, k: int, types: Sequence[str] = ()
) -> list[FoundConcept]:
    """Find concepts with a name that begins with a text, then the nearest ones.

    Args:
        types: Allowed semantic types; empty = all.

    Raises:
        SapbertError: If a type is unknown, or the queue is full.
    """
    settings: dict[str, Any] = {"k": k}
    if types:
        settings["filter"] = {"types": sorted(types)}
    (result,) = await service.link_mentions([text], settings)
    prefixed = await run_in_threadpool(find_prefix, service.kb, text, k)
    allowed = [one for one in prefixed if not types or {*types} & {*one["types"]}]
    return merge_found(allowed, result.linked.candidates, k)


def count_types(kb: KnowledgeBase) -> dict[str, int]:
    """Return the number of concepts by semantic type, the most frequent first."""
    if kb not in TYPES:
        TYPES[kb] = kb.store.count_types()
    return TYPES[kb]


def name_type(type: str) -> str:
    """Return how a semantic type is shown: its id, and its group if it has one."""
    group = BY_TYPE.get(type)
    return f"{type} ({group.name})" if group else type
