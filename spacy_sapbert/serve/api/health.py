"""/healthz, /readyz and /metrics."""

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from ...io.version import __version__
from ..depends import ServiceDep
from ..service import require_open

router = APIRouter(tags=["service"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(service: ServiceDep) -> dict[str, str]:
    """The service accepts requests: 200, or 503."""
    require_open(service)
    return {"status": "ok", "version": __version__}


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(service: ServiceDep) -> Response:
    """Counters for Prometheus."""
    text = service.metrics.format()
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
