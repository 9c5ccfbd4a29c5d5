"""Errors of requests: their status, and their answer in JSON."""

import json
import re
from typing import Any

from pydantic import BaseModel

from ..errors import Errors, SapbertError

CODE = re.compile(r"\[([EW]\d{3})\] ")
INVALID = 422


class RequestError(SapbertError):
    """An error that is answered with a status.

    status (int): Of HTTP.
    retry_after (int | None): Seconds after which the request may succeed.
    """

    def __init__(
        self, message: str, status: int, *, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class Problem(BaseModel):
    """What went wrong.

    code: Of the error, e.g. "E456".
    message: *Expected X, but got Y.*, then what to do. It has no text of the request.
    """

    code: str
    message: str


class ErrorAnswer(BaseModel):
    """The body of each answer that is no success."""

    error: Problem


def describe_problem(error: SapbertError) -> dict[str, Any]:
    """Return the body of the answer to an error."""
    text = str(error)
    found = CODE.match(text)
    code = found[1] if found else "E465"
    return {"error": {"code": code, "message": CODE.sub("", text, count=1)}}


def encode_problem(error: SapbertError) -> bytes:
    """Return the body of the answer to an error, encoded."""
    return json.dumps(describe_problem(error)).encode()


def status_of(error: SapbertError) -> int:
    """Return the status of an error; one of the settings of a request is 422."""
    return error.status if isinstance(error, RequestError) else INVALID


def failed() -> RequestError:
    """Return the error of a request that this package did not expect."""
    return RequestError(Errors.E465, 500)
