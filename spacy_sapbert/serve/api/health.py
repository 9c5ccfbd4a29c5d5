"""/healthz, /readyz and /metrics."""

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel

from ...io.version import __version__
from ..depends import AccessDep, OptionalStoreDep, ServiceDep, need_one_process
from ..problems import queue_full
from .answers import describe_file

router = APIRouter(tags=["service"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
def readyz(service: ServiceDep, store: OptionalStoreDep) -> dict[str, str]:
    """The service accepts requests, and can keep decisions: 200, or 503 and 507."""
    if not service.thread.alive:
        raise queue_full()
    if store is not None:
        store.check_ready()
    return {"status": "ok", "version": __version__}


class AccessAnswer(BaseModel):
    """What the token of the request allows.

    See https://spacy-sapbert.github.io/spacy-sapbert/service.html.

    Attributes:
        reviewer: The only name under which it may decide; null = any.
    """

    role: str
    reviewer: str | None


@router.get("/access")
async def get_access(access: AccessDep) -> AccessAnswer:
    """Role and name of who asks."""
    return AccessAnswer(role=access.role.name.lower(), reviewer=access.reviewer)


@router.get(
    "/metrics",
    response_class=Response,
    responses=describe_file("text/plain"),
    dependencies=[Depends(need_one_process)],
)
async def metrics(service: ServiceDep) -> Response:
    """Counters for Prometheus."""
    text = service.metrics.format()
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
