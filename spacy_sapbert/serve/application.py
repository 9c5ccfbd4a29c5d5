"""The application: all routes, and how their errors are answered."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ..errors import SapbertError
from ..io.version import __version__
from .api import columns, concepts, health, linking, reviews
from .description import describe_api, list_fields
from .guard import Application, Guard
from .logs import EventLog
from .page import routes
from .problems import (
    FAILED,
    RequestError,
    describe_invalid,
    failed,
    status_of,
    wrong_request,
)
from .protocols import fhir, inception, reconcile
from .protocols.errors import describe_answer
from .reviews.store import ReviewStore
from .reviews.taught import Teacher
from .service import Service
from .settings import Settings
from .versions import Watcher

DESCRIPTION = (
    "Links texts and mentions to the concepts of one knowledge base. Errors have the "
    "form of `ErrorAnswer`, below /fhir of `OperationOutcome`."
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
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = service
    app.state.settings = settings
    app.state.store = store
    app.state.teacher = teacher
    if teacher is not None:
        teacher.restore()
    own = (health, linking, concepts, columns, reviews, routes)
    for part in (*own, reconcile, inception, fhir):
        app.include_router(part.router)

    @cache
    def describe() -> dict[str, Any]:
        return describe_api(app, needs_token=bool(settings.tokens))

    app.openapi = describe
    app.add_exception_handler(SapbertError, answer_error)
    app.add_exception_handler(RequestValidationError, answer_invalid)
    app.add_exception_handler(HTTPException, answer_unknown)
    app.add_exception_handler(Exception, answer_failure)
    return Guard(app, settings, log=log, metrics=service.metrics)


def respond(error: SapbertError, request: Request) -> Response:
    """Return the answer to an error."""
    headers = {}
    if isinstance(error, RequestError) and error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    status, media, body = describe_answer(error, request.url.path)
    return Response(body, status, headers, media)


async def answer_error(request: Request, error: Exception) -> Response:
    """Answer an error of a request; the guard logs one of the service."""
    assert isinstance(error, SapbertError)
    if status_of(error) == FAILED:
        raise error
    return respond(error, request)


async def answer_invalid(request: Request, error: Exception) -> Response:
    """Answer a body or a parameter that is not as the schema says; it is not quoted."""
    assert isinstance(error, RequestValidationError)
    known = list_fields(request.app.openapi())
    return respond(describe_invalid(error.errors()[0], known), request)


async def answer_unknown(request: Request, error: Exception) -> Response:
    """Answer a path or a method that there is not, or a body that cannot be parsed."""
    assert isinstance(error, HTTPException)
    if error.status_code in (404, 405):
        answer = respond(
            RequestError(
                "E464",
                "Expected a path and a method of /openapi.json, but got others.",
                error.status_code,
            ),
            request,
        )
        answer.headers.update(error.headers or {})  # which methods there are
        return answer
    return respond(wrong_request("a body of JSON"), request)


async def answer_failure(request: Request, _: Exception) -> Response:
    """Answer an error that was not expected; the guard logs it."""
    return respond(failed(), request)
