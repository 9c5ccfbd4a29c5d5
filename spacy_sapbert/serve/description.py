"""/openapi.json: what FastAPI cannot know of the requests, in one place."""

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from .access import needed_role
from .problems import ErrorAnswer

ERRORS = {
    401: "No token, or another.",
    403: "A page of another origin, or a role that may not.",
    404: "An unknown id, or a service without reviews.",
    408: "The body is not whole in time.",
    409: "Something else runs, or is missing, so that it cannot be done now.",
    413: "Too large.",
    421: "A name of this service that it does not have.",
    422: "Not what the schema says, or a setting that is not possible.",
    429: "Too many requests of this client at once.",
    500: "The service failed; its log has the cause.",
    501: "A library for the format is not installed.",
    503: "The queue is full, the service ends, it took too long, or cannot write.",
    507: "No room for what was sent.",
}
ALWAYS = (401, 403, 421, 429, 500, 503)
BODY = (408, 413)
Errors = dict[int | str, dict[str, Any]]  # how OpenAPI describes them


def describe_errors(
    statuses: Iterable[int], model: type[BaseModel] = ErrorAnswer
) -> Errors:
    """Return how OpenAPI describes the errors of some requests.

    Args:
        statuses: Which they may have beside those that all may have.
    """
    return {
        status: {"model": model, "description": ERRORS[status]}
        for status in sorted({*ALWAYS, *statuses})
    }


@cache
def read_examples() -> dict[str, dict[str, Any]]:
    """Return the examples: by request, its `body`, `query`, `path` and `answer`."""
    text = files(__package__).joinpath("api", "examples.json").read_text("utf8")
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found


def describe_api(app: FastAPI, *, needs_token: bool) -> dict[str, Any]:
    """Return what OpenAPI 3.1 says of the service.

    Args:
        needs_token: Whether requests need a token; else it may be sent.
    """
    api: dict[str, Any] = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        separate_input_output_schemas=False,
    )
    token = {"type": "http", "scheme": "bearer", "description": "Of `--token-file`."}
    api["components"]["securitySchemes"] = {"token": token}
    api["security"] = [{"token": []}] if needs_token else [{}, {"token": []}]
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            role = needed_role(method.upper(), path)
            if role is None:
                operation["security"] = []
                operation["responses"].pop("401", None)
            else:
                operation["x-role"] = role.name.lower()
            example = read_examples().get(f"{method.upper()} {path}", {})
            add_examples(operation, example)
    return api


def add_examples(operation: dict[str, Any], example: dict[str, Any]) -> None:
    """Add the examples of a request and its answer."""
    given = {**example.get("query", {}), **example.get("path", {})}
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in given:
            parameter["example"] = given[parameter["name"]]
    responses = operation["responses"]
    answer = next(responses[status] for status in responses if status[0] == "2")
    for name, shown in (("body", operation.get("requestBody")), ("answer", answer)):
        if shown and name in example:
            for content in shown["content"].values():
                content["example"] = example[name]
