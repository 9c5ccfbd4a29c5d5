"""What the handlers of requests get from the application."""

from typing import Annotated, Any

from fastapi import Depends, Request

from ..kb.knowledge_base import KnowledgeBase
from .access import Access
from .problems import RequestError
from .reviews.store import ReviewStore
from .reviews.taught import Teacher
from .service import Service
from .settings import Settings


def read_state(name: str) -> Any:
    """Return a dependency on what the application has under a name."""

    async def read(request: Request) -> Any:  # async: it needs no thread
        return getattr(request.app.state, name)

    return Depends(read)


ServiceDep = Annotated[Service, read_state("service")]
SettingsDep = Annotated[Settings, read_state("settings")]
OptionalStoreDep = Annotated[ReviewStore | None, read_state("store")]


async def read_kb(service: ServiceDep) -> KnowledgeBase:
    """Return the knowledge base in use, which stays the same during a request."""
    return service.kb


async def read_access(request: Request) -> Access:
    """Return what the token of a request allows, which the guard has checked."""
    access: Access = request.state.access
    return access


async def need_store(store: OptionalStoreDep) -> ReviewStore:
    """Return the reviews of a service that keeps them."""
    if store is None:
        raise RequestError(
            "E467",
            "Expected a service with reviews, but it has none. Start it with "
            "`--reviews FILE`.",
            404,
        )
    return store


async def need_one_process(settings: SettingsDep) -> None:
    """Check that no other process would have to know what this one does."""
    if settings.workers > 1:
        raise RequestError(
            "E495",
            "Expected a service of one process for teaching, versions and counters, "
            "but it has several. Start it without `--workers`.",
            409,
        )


KbDep = Annotated[KnowledgeBase, Depends(read_kb)]
AccessDep = Annotated[Access, Depends(read_access)]
StoreDep = Annotated[ReviewStore, Depends(need_store)]
TeacherDep = Annotated[Teacher, read_state("teacher")]  # after `need_store`
