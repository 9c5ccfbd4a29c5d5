"""/healthz, /readyz and /metrics."""

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel

from ...io.version import __version__
from ..access import Access
from ..depends import OptionalStoreDep, ServiceDep, need_one_process
from ..service import require_open
from .answers import describe_file

router = APIRouter(tags=["service"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
def readyz(service: ServiceDep, store: OptionalStoreDep) -> dict[str, str]:
    """The service accepts requests, and can keep decisions: 200, or 503 and 507."""
    require_open(service)
    if store is not None:
        store.check_ready()
    return {"status": "ok", "version": __version__}


class AccessAnswer(BaseModel):
    """What the token of the request allows; see docs/access.md.

    Attributes:
        reviewer: The only name under which it may decide; null = any.
    """

    role: str
    reviewer: str | None


@router.get("/access")
async def get_access(request: Request) -> AccessAnswer:
    """Role and name of who asks."""
    found: Access = request.state.access
    return AccessAnswer(role=found.role.name.lower(), reviewer=found.reviewer)


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
