"""Errors of requests: their status, and their answer in JSON."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from ..errors import SapbertError

INVALID, FAILED, NOT_IMPLEMENTED = 422, 500, 501
# Codes of errors that a client is told: of texts of a request, and of decisions that
# cannot be taught. All others are of the service: of its files and libraries, whose
# messages may have paths.
TOLD = {"E506", "E513", "E536", "E362"}
# Of settings of a request; a client is told what was expected, not what it sent.
OF_SETTINGS = {"E331", "E332", "E333", "E470"}
LENGTH = re.compile(r"at (?:most|least) \d+ \w+")  # in a text of pydantic
MISSING = "E521"  # a library, which is named without the reason


class RequestError(SapbertError):
    """An error that is answered with a status of HTTP."""

    def __init__(self, code: str, text: str, status: int) -> None:
        super().__init__(code, text)
        self.status = status


class Problem(BaseModel):
    """What went wrong.

    Attributes:
        code: Of the error, e.g. "E456".
        message: *Expected X, but got Y.*, then what to do. It has no text of the
            request.
    """

    code: str
    message: str


class ErrorAnswer(BaseModel):
    """The body of each answer that is no success."""

    error: Problem


def describe_problem(error: Exception) -> Problem:
    """Return what the answer to an error says."""
    told = tell(error)
    return Problem(code=told.code, message=told.text)


def status_of(error: Exception) -> int:
    """Return the status of an error: 4xx is of the request, 5xx of the service."""
    return tell(error).status


def tell(error: Exception) -> RequestError:
    """Return what a client is told of an error; see `TOLD`."""
    if isinstance(error, RequestError):
        return error
    if not isinstance(error, SapbertError):
        return failed()
    code, text = error.code, error.text
    if code == MISSING:
        library, _, rest = text.partition(", but ")
        fix = rest.rpartition(". ")[2]
        return RequestError(code, f"{library}, but it is not. {fix}", NOT_IMPLEMENTED)
    if code in OF_SETTINGS:
        expected, _, rest = text.partition(", but ")
        fix = rest.rpartition(". ")[2]
        told = f"{expected}, but got something else. {fix}"
        return RequestError(code, told, INVALID)
    return RequestError(code, text, INVALID) if code in TOLD else failed()


def failed() -> RequestError:
    """Return the error of a service that failed."""
    return RequestError(
        "E465",
        "Expected the service to answer, but it failed. Report the line of its log "
        "with the same `request`.",
        FAILED,
    )


def describe_invalid(problem: Mapping[str, Any]) -> RequestError:
    """Return the error of a value that is not as its schema says, without the value.

    Args:
        problem: Of pydantic, whose text and place may quote the request: a name below
            the first field may be a key of the client.
    """
    kind, text = problem["type"], problem["msg"]
    place = problem["loc"][: 1 if kind == "extra_forbidden" else 2]
    place += tuple(part for part in problem["loc"][2:] if isinstance(part, int))
    where = ".".join(map(str, place))
    expected = f"{where} as in the schema ({kind})"
    match kind.partition("_")[0]:
        case "greater" | "less":
            expected = f"{where} to be {text.removeprefix('Input should be ')}"
        case "missing":
            expected = f"{where}, which is required"
        case "extra":
            expected = f"{where} with only fields of the schema"
        case "model":
            expected = f"{where} as an object, with `content-type: application/json`"
        case "string" | "too" if length := LENGTH.search(text):
            expected = f"{where} with {length[0]}"
    return wrong_request(expected)


def wrong_request(expected: str, status: int = INVALID) -> RequestError:
    return RequestError(
        "E457",
        f"Expected {expected}, but got something else. Correct it as the schema of the "
        "request says.",
        status,
    )


def queue_full() -> RequestError:
    return RequestError(
        "E460",
        "Expected a service with room in its queue, but it is full or ends. Send the "
        "request again later.",
        503,
    )


def too_much_in_request(limit: int, what: str, got: int) -> RequestError:
    return RequestError(
        "E458",
        f"Expected at most {limit:,} {what} in a request, but got {got:,}. Send "
        "several requests.",
        413,
    )


def check_format(format: str, known: Iterable[str]) -> None:
    """Raise an error if a file cannot have a format."""
    if format not in known:
        expected = f"`format` to be one of {', '.join(known)}"
        raise wrong_request(expected)
