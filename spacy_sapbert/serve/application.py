"""The application: all routes, and how their errors are answered."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from ..errors import SapbertError
from ..io.version import __version__
from .api import columns, concepts, health, kept_columns, linking, reviews
from .description import describe_api, describe_errors
from .guard import METHODS, Application, Guard
from .logs import EventLog
from .page import routes
from .problems import (
    FAILED,
    ErrorAnswer,
    RequestError,
    describe_invalid,
    status_of,
    wrong_request,
)
from .protocols import fhir, inception, reconcile
from .protocols.errors import answer_error
from .reviews.store import ReviewStore
from .reviews.taught import Teacher
from .service import Service
from .settings import Settings
from .versions import Watcher

DESCRIPTION = (
    "Links texts and mentions to the concepts of one knowledge base. Errors have the "
    "form of `ErrorAnswer`, below /fhir of `OperationOutcome`."
)
ROUTERS = (
    health.router,
    linking.router,
    concepts.router,
    columns.router,
    reviews.router,
    kept_columns.router,
    reconcile.router,
    inception.router,
    fhir.router,
    routes.router,
)


def make_application(
    service: Service,
    settings: Settings,
    log: EventLog,
    store: ReviewStore | None = None,
) -> Application:
    """Return the application of a service, with its guard.

    Args:
        store: The decisions of reviewers; None = there are none.
    """
    teacher = None if store is None else Teacher(service, store, log)
    if teacher is None:
        watcher = Watcher(service, log)
    else:
        watcher = Watcher(service, log, teacher.follow)
        teacher.restore()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        watcher.start()
        yield
        watcher.stop()
        service.close()

    app = FastAPI(
        title="spacy-sapbert",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,  # its page loads scripts from other sites
        redoc_url=None,
        lifespan=lifespan,
        responses=describe_errors(ErrorAnswer),
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = service
    app.state.settings = settings
    app.state.store = store
    app.state.teacher = teacher
    for router in ROUTERS:
        app.include_router(router)

    @cache
    def describe() -> dict[str, Any]:
        return describe_api(app, needs_token=bool(settings.tokens))

    app.openapi = describe
    app.add_exception_handler(SapbertError, answer)
    app.add_exception_handler(RequestValidationError, answer)
    app.add_exception_handler(HTTPException, answer)
    app.add_exception_handler(Exception, answer)
    # Browsers are told here what the guard allows.
    return CORSMiddleware(
        Guard(app, settings, log=log, metrics=service.metrics),
        allow_origins=settings.origins,
        allow_methods=METHODS,
        allow_headers=["authorization"],
    )


async def answer(request: Request, error: Exception) -> Response:
    """Answer an error of a request; one of the service is answered by the guard."""
    headers: Any = {}
    match error:
        case RequestValidationError():
            error = describe_invalid(error.errors()[0])
        case HTTPException(status_code=404 | 405):
            headers = error.headers or {}  # which methods there are
            error = RequestError(
                "E464",
                "Expected a path and a method of /openapi.json, but got others.",
                error.status_code,
            )
        case HTTPException():
            error = wrong_request("a body of JSON")
        case _ if status_of(error) == FAILED:
            raise error
    found = answer_error(error, request.url.path)
    found.headers.update(headers)
    return found
