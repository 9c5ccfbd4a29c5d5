"""What the handlers of requests get from the application."""

from typing import Annotated

from fastapi import Depends, Request

from .problems import RequestError
from .reviews.store import ReviewStore
from .reviews.taught import Teacher
from .service import Service
from .settings import Settings

# They are `async`, so that FastAPI calls them without a thread.


async def get_service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def get_settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


async def get_store(request: Request) -> ReviewStore | None:
    store: ReviewStore | None = request.app.state.store
    return store


async def need_store(
    store: Annotated[ReviewStore | None, Depends(get_store)],
) -> ReviewStore:
    """Return the reviews of a service; an error if it has none."""
    if store is None:
        raise RequestError(
            "E467",
            "Expected a service with reviews, but it has none. Start it with "
            "`--reviews FILE`.",
            404,
        )
    return store


async def need_one_process(request: Request) -> None:
    """Check that no other process would have to know what this one does."""
    settings: Settings = request.app.state.settings
    if settings.workers > 1:
        raise RequestError(
            "E495",
            "Expected a service of one process for teaching, versions and counters, "
            "but it has several. Start it without `--workers`.",
            409,
        )


async def get_teacher(
    request: Request, _: Annotated[ReviewStore, Depends(need_store)]
) -> Teacher:
    teacher: Teacher = request.app.state.teacher
    return teacher


async def need_teacher(
    request: Request, teacher: Annotated[Teacher, Depends(get_teacher)]
) -> Teacher:
    """Return the teacher of a service with reviews and one process."""
    await need_one_process(request)
    return teacher


def find_base(request: Request, settings: Settings) -> str:
    """Return the address of the service as its clients see it."""
    return settings.public_url or f"{request.url.scheme}://{request.headers['host']}"


ServiceDep = Annotated[Service, Depends(get_service)]
SettingsDep = Annotated[Settings, Depends(get_settings)]
OptionalStoreDep = Annotated[ReviewStore | None, Depends(get_store)]
StoreDep = Annotated[ReviewStore, Depends(need_store)]
AnyTeacherDep = Annotated[Teacher, Depends(get_teacher)]
TeacherDep = Annotated[Teacher, Depends(need_teacher)]
