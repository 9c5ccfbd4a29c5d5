"""Answers in JSON."""

import json
from typing import Any

from fastapi import Response


def to_json(data: Any, status: int = 200) -> Response:
    """Return an answer in JSON.

    Other characters than ASCII are escaped, so that a name with half a surrogate pair
    is no error.
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return Response(text, status, media_type="application/json")
