"""The answer to an error, in the form that the protocol of its path has."""

from typing import Any, Literal

from fastapi import Response
from pydantic import BaseModel

from ..api.answers import FHIR_JSON
from ..problems import ErrorAnswer, describe_problem, tell

FHIR = "/fhir"
# FHIR's IssueType by status of HTTP, and of one error by its code; else "invalid".
# SOURCE: https://hl7.org/fhir/R4/valueset-issue-type.html
ISSUES: dict[int | str, str] = {
    401: "login",
    403: "forbidden",
    404: "not-found",
    405: "not-supported",
    408: "timeout",
    413: "too-long",
    429: "throttled",
    500: "exception",
    503: "transient",
    "E481": "too-costly",
    "E482": "not-supported",
}

LATER = {"retry-after": "1"}  # seconds
HEADERS = {401: {"www-authenticate": "Bearer"}, 429: LATER, 503: LATER}


class OperationOutcome(BaseModel):
    """The body of each answer below /fhir that is no success.

    Attributes:
        issue: What went wrong; its `diagnostics` is the code of the error.
    """

    resourceType: Literal["OperationOutcome"] = "OperationOutcome"
    issue: list[dict[str, Any]]


def answer_error(error: Exception, path: str) -> Response:
    """Return the answer to an error of a request with a path."""
    told, media = tell(error), "application/json"
    body: BaseModel = ErrorAnswer(error=describe_problem(told))
    if path.startswith(f"{FHIR}/") or path == FHIR:
        issue = {
            "severity": "error",
            "code": ISSUES.get(told.code) or ISSUES.get(told.status, "invalid"),
            "details": {"text": told.text},
            "diagnostics": told.code,
        }
        body, media = OperationOutcome(issue=[issue]), FHIR_JSON
    headers = HEADERS.get(told.status)
    return Response(body.model_dump_json(), told.status, headers, media)
