"""The answer to an error, in the form that the protocol of its path has."""

from typing import Literal

from fastapi import Response
from pydantic import BaseModel

from ..problems import ErrorAnswer, Problem, tell

FHIR = "/fhir"
FHIR_JSON = "application/fhir+json"
# FHIR's IssueType by status of HTTP, and of one error by its code.
# SOURCE: https://hl7.org/fhir/R4/valueset-issue-type.html
ISSUES: dict[int | str, str] = {
    401: "login",
    403: "forbidden",
    404: "not-found",
    405: "not-supported",
    408: "timeout",
    413: "too-long",
    421: "invalid",
    422: "invalid",
    429: "throttled",
    500: "exception",
    503: "transient",
    "E481": "too-costly",
}


class Details(BaseModel):
    """What people read of an issue."""

    text: str


class Issue(BaseModel):
    """What went wrong; `diagnostics` is the code of the error."""

    severity: Literal["error"] = "error"
    code: str
    details: Details
    diagnostics: str


class OperationOutcome(BaseModel):
    """The body of each answer below /fhir that is no success."""

    resourceType: Literal["OperationOutcome"] = "OperationOutcome"
    issue: list[Issue]


def answer_error(error: Exception, path: str) -> Response:
    """Return the answer to an error of a request with a path."""
    told, media = tell(error), "application/json"
    body: BaseModel = ErrorAnswer(error=Problem(code=told.code, message=told.text))
    if path.startswith(f"{FHIR}/") or path == FHIR:
        details = Details(text=told.text)
        kind = ISSUES.get(told.code) or ISSUES[told.status]
        issue = Issue(code=kind, details=details, diagnostics=told.code)
        body, media = OperationOutcome(issue=[issue]), FHIR_JSON
    headers = {} if told.status != 401 else {"www-authenticate": "Bearer"}
    if told.retry_after is not None:
        headers["retry-after"] = str(told.retry_after)
    return Response(body.model_dump_json(), told.status, headers, media)
