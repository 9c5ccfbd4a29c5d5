"""The application: all routes, and how their errors are answered."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ..errors import Errors, SapbertError
from ..io.version import __version__
from .api import columns, concepts, health, linking, reviews
from .columns import MappedTerms
from .guard import Application, Guard
from .logs import EventLog
from .page import routes
from .problems import (
    FAILED,
    ErrorAnswer,
    RequestError,
    describe_problem,
    failed,
    status_of,
)
from .protocols import fhir, inception, reconcile
from .reviews.store import ReviewStore
from .reviews.taught import Teacher
from .service import Service
from .settings import Settings
from .versions import Watcher

DESCRIPTION = """Links texts and mentions to the concepts of one knowledge base.

All errors have the form of `ErrorAnswer`."""
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": text}
    for status, text in {
        401: "No token, or another.",
        403: "A page of another origin.",
        413: "Too large.",
        422: "Not what the schema says, or a setting that is not possible.",
        429: "Too many requests of this client at once.",
        500: "The service failed; its log has the cause.",
        501: "A library for the format is not installed.",
        503: "The queue is full, the service ends, it took too long, or cannot write.",
    }.items()
}


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
    watcher = Watcher(service, log)

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
        responses=PROBLEMS,
        redirect_slashes=False,
    )
    app.state.service = service
    app.state.settings = settings
    app.state.store = store
    app.state.mapped = MappedTerms()
    app.state.teacher = store and Teacher(service, store, log)
    if app.state.teacher:
        app.state.teacher.restore()
    own = (health, linking, concepts, columns, reviews, routes)
    for part in (*own, reconcile, inception, fhir):
        app.include_router(part.router)
    app.add_exception_handler(SapbertError, answer_error)
    app.add_exception_handler(RequestValidationError, answer_invalid)
    app.add_exception_handler(HTTPException, answer_unknown)
    app.add_exception_handler(Exception, answer_failure)
    return Guard(app, settings, log=log, metrics=service.metrics)


def respond(error: SapbertError) -> Response:
    """Return the answer to an error."""
    headers = {}
    if isinstance(error, RequestError) and error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    return Response(
        json.dumps(describe_problem(error)),
        status_of(error),
        headers,
        "application/json",
    )


async def answer_error(_: Request, error: Exception) -> Response:
    """Answer an error of a request; the guard logs one of the service."""
    assert isinstance(error, SapbertError)
    if status_of(error) == FAILED:
        raise error
    return respond(error)


async def answer_invalid(_: Request, error: Exception) -> Response:
    """Answer a body or a parameter that is not as the schema says; it is not quoted."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = [part for part in first["loc"] if isinstance(part, int)]
    known = [part for part in first["loc"] if isinstance(part, str)]
    if first["type"] in ("extra_forbidden", "json_invalid"):
        known = known[:1]  # the next one is of the request
    where = ".".join([*known, *map(str, place[:1])])
    expected = f"{where} as in the schema ({first['type']})"
    return respond(RequestError(Errors.E457.format(expected=expected), 422))


async def answer_unknown(_: Request, error: Exception) -> Response:
    """Answer a path or a method that there is not, or a body that cannot be parsed."""
    assert isinstance(error, HTTPException)
    if error.status_code in (404, 405):
        return respond(RequestError(Errors.E464, error.status_code))
    expected = Errors.E457.format(expected="a body of JSON")
    return respond(RequestError(expected, 422))


async def answer_failure(_: Request, __: Exception) -> Response:
    """Answer an error that was not expected; the guard logs it."""
    return respond(failed())
