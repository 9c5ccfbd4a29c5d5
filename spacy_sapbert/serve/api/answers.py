"""Answers in JSON."""

import json
from typing import Any

from fastapi import Response


def encode(data: Any) -> str:
    """Return JSON without blanks, with characters of ASCII only.

    So a name with half a surrogate pair is no error.
    """
    return json.dumps(data, allow_nan=False, separators=(",", ":"))


def to_json(data: Any, status: int = 200) -> Response:
    """Return an answer in JSON."""
    return Response(encode(data), status, media_type="application/json")


def describe_file(*media: str) -> dict[int | str, dict[str, Any]]:
    """Return how OpenAPI describes an answer that is a file of one of some types."""
    file = {"schema": {"type": "string", "format": "binary"}}
    return {200: {"content": dict.fromkeys(media, file)}}


def to_file(data: bytes, name: str, media: str) -> Response:
    """Return a file to download."""
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(data, headers=headers, media_type=media)
