"""/healthz, /readyz and /metrics."""

from typing import Any

from fastapi import APIRouter, Request, Response

from ...system.version import __version__
from ..service import require_open

router = APIRouter(tags=["service"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(request: Request) -> dict[str, Any]:
    """The service accepts requests: 200, or 503."""
    service = request.app.state.service
    require_open(service)
    return {"status": "ok", "version": __version__}


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Counters for Prometheus."""
    text = request.app.state.service.metrics.format()
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
