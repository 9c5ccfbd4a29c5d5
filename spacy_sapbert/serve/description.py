"""/openapi.json: the errors, the token and the roles, which FastAPI cannot know."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from .access import needed_role

Errors = dict[int | str, dict[str, Any]]  # how OpenAPI describes them


def describe_errors(model: type[BaseModel]) -> Errors:
    """Return how OpenAPI describes the errors of requests, which have one body."""
    return {
        "4XX": {"model": model, "description": "The request cannot be answered."},
        "5XX": {"model": model, "description": "The service cannot answer now."},
    }


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
            else:
                operation["x-role"] = role.name.lower()
    return api
