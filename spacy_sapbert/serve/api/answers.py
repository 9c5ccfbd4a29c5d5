"""Answers in JSON, and files."""

import json
from typing import Any

from fastapi import Response

FHIR_JSON = "application/fhir+json"


def encode(data: Any) -> str:
    """Return JSON without blanks, with characters of ASCII only.

    So a name with half a surrogate pair is no error.
    """
    return json.dumps(data, allow_nan=False, separators=(",", ":"))


class JsonResponse(Response):
    """An answer that is not a model; see `encode`."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the body; see `Response`."""
        return encode(content).encode()


class FhirResponse(JsonResponse):
    """A resource of FHIR."""

    media_type = FHIR_JSON


def describe_file(*media: str) -> dict[int | str, dict[str, Any]]:
    """Return how OpenAPI describes an answer that is a file of one of some types."""
    file = {"schema": {"type": "string", "format": "binary"}}
    return {200: {"content": dict.fromkeys(media, file)}}


def to_file(data: bytes, name: str, media: str) -> Response:
    """Return a file to download."""
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(data, headers=headers, media_type=media)
