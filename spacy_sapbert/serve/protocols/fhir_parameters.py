"""Parameters of FHIR's operations, and the OperationOutcome that answers an error."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ...kb.database import is_encodable
from ..problems import RequestError, describe_problem, status_of, wrong_request
from ..requests import LONGEST_VALUE

ROOT = "/fhir"
MEDIA_TYPE = "application/fhir+json"
JSON_TYPES = (MEDIA_TYPE, "application/json", "application/json+fhir", "text/json")
FORMATS = ("json", *JSON_TYPES)
ANY = "application/*"
MOST_PARAMETERS = 50
MOST_NUMBER = 10**9
# FHIR's IssueType by status of HTTP. SOURCE: https://hl7.org/fhir/R4/valueset-issue-type.html
ISSUES = {
    400: "invalid",
    401: "login",
    403: "forbidden",
    404: "not-found",
    405: "not-supported",
    406: "not-supported",
    408: "timeout",
    413: "too-long",
    415: "not-supported",
    429: "throttled",
    500: "exception",
    501: "not-supported",
    503: "transient",
}


class FhirError(RequestError):
    """An error of an operation.

    Args:
        issue: Of FHIR's IssueType.
    """

    def __init__(self, code: str, text: str, status: int, issue: str) -> None:
        super().__init__(code, text, status)
        self.issue = issue


def make_invalid(expected: str, issue: str = "invalid") -> FhirError:
    """Return the error for parameters that the operation does not have."""
    error = wrong_request(expected)
    return FhirError(error.code, error.text, 400, issue)


def make_required(*names: str) -> FhirError:
    """Return the error for a parameter that is missing."""
    expected = " or ".join(f"`{name}`" for name in names)
    return make_invalid(expected, "required")


def describe_outcome(error: Exception) -> tuple[int, bytes]:
    """Return the status of an error, and its OperationOutcome."""
    status = status_of(error)
    status = 400 if status in (421, 422) else status
    issue = error.issue if isinstance(error, FhirError) else ISSUES[status]
    problem = describe_problem(error)["error"]
    described = {
        "severity": "error",
        "code": issue,
        "details": {"text": problem["message"]},
        "diagnostics": problem["code"],
    }
    outcome = {"resourceType": "OperationOutcome", "issue": [described]}
    return status, json.dumps(outcome).encode()


def is_fhir(path: str) -> bool:
    """Return whether a path is of FHIR, so that errors are OperationOutcomes."""
    return path == ROOT or path.startswith(f"{ROOT}/")


class Coding(BaseModel):
    """A code, its system and how it is shown."""

    model_config = ConfigDict(strict=True)

    system: str | None = None
    version: str | None = None
    code: str | None = None
    display: str | None = None


class CodeableConcept(BaseModel):
    """A concept as several codes."""

    model_config = ConfigDict(strict=True)

    coding: Annotated[list[Coding], Field(max_length=MOST_PARAMETERS)] = []


class Parameter(BaseModel):
    """A parameter of an operation; its value is the field that begins so."""

    model_config = ConfigDict(extra="allow")

    name: str

    @property
    def value(self) -> Any:
        """The value, of any type; None if there is none, or several."""
        extra = self.model_extra or {}
        values = [extra[key] for key in extra if key.startswith("value")]
        return values[0] if len(values) == 1 else None


class Parameters(BaseModel):
    """The resource that a POST request sends."""

    resourceType: Literal["Parameters"]
    parameter: Annotated[list[Parameter], Field(max_length=MOST_PARAMETERS)] = []


PARAMETERS = TypeAdapter(Parameters)
TEXT, NUMBER, FLAG, CODING, CONCEPT = "text", "number", "flag", "coding", "concept"
VALUES: dict[str, TypeAdapter[Any]] = {
    TEXT: TypeAdapter(
        Annotated[str, Field(strict=True, min_length=1, max_length=LONGEST_VALUE)]
    ),
    NUMBER: TypeAdapter(Annotated[int, Field(strict=True, ge=0, le=MOST_NUMBER)]),
    FLAG: TypeAdapter(Annotated[bool, Field(strict=True)]),
    CODING: TypeAdapter(Coding),
    CONCEPT: TypeAdapter(CodeableConcept),
}
FLAGS = {"true": True, "false": False}


@dataclass(frozen=True)
class Operation:
    """An operation on a type of resources.

    Attributes:
        takes: The kinds of its parameters, by name.
        repeated: The parameters of which there may be several.
        refused: Parameters of the specification that would change the answer, but that
            this service does not have.
        form: Parameters that a GET request has with another kind.
    """

    resource: str
    name: str
    takes: dict[str, str]
    refused: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The path below the address of the service."""
        return f"/{self.resource}/${self.name}"


class Given(dict[str, list[Any]]):
    """The values of the parameters of a request, by name."""

    def first(self, name: str, default: Any = None) -> Any:
        """Return the value of a parameter."""
        return self[name][0] if name in self else default


def check_format(request: Request) -> None:
    """Check that the client reads JSON, and sends it.

    Raises:
        FhirError: If it does not.
    """
    asked = request.query_params.get("_format") or request.headers.get("accept", ANY)
    # In a query "+" is a blank.
    names = [name.partition(";")[0].strip() for name in asked.split(",")]
    if not {name.replace(" ", "+").lower() for name in names} & {*FORMATS, ANY, "*/*"}:
        raise not_fhir_json(406)
    sent = request.headers.get("content-type", MEDIA_TYPE).partition(";")[0].strip()
    if request.method == "POST" and sent.lower() not in JSON_TYPES:
        raise not_fhir_json(415)


def list_query(request: Request, operation: Operation) -> Iterator[tuple[str, Any]]:
    """Yield names and values of the query; numbers and flags as such."""
    for name, text in request.query_params.multi_items():
        kind = operation.takes.get(name)
        if kind == NUMBER and text.isdecimal() and text.isascii():
            yield name, int(text[:12])
        elif kind == FLAG:
            yield name, FLAGS.get(text, text)
        else:
            yield name, text


async def read_parameters(request: Request, operation: Operation) -> Given:
    """Return the parameters of a GET or POST request.

    Raises:
        FhirError: If one has another type, there are too many, or the service does not
            have it.
    """
    check_format(request)
    given = [*list_query(request, operation)]
    if request.method == "POST" and (body := await request.body()):
        try:
            sent = PARAMETERS.validate_json(body).parameter
        except ValidationError:
            raise make_invalid("a resource `Parameters` of FHIR R4") from None
        given += [(one.name, one.value) for one in sent]
    found = Given()
    for name, value in given:
        if name in operation.refused:
            raise FhirError(
                "E482",
                f"Expected a request without the parameter `{name}`, which this "
                "service does not have, but got it. Leave it out.",
                400,
                "not-supported",
            )
        if name not in operation.takes:
            continue  # of other versions of FHIR, or of a client
        kind = operation.takes[name]
        try:
            checked = VALUES[kind].validate_python(value)
        except ValidationError:
            raise make_invalid(f"`{name}` as a {kind} of FHIR R4") from None
        if not all(map(is_allowed, list_texts(checked))):
            raise make_invalid(f"`{name}` of at most {LONGEST_VALUE} characters")
        found.setdefault(name, []).append(checked)
    for name in found:
        if len(found[name]) > 1 and name not in operation.repeated:
            raise make_invalid(f"`{name}` once")
    return found


def list_texts(value: Any) -> list[str]:
    """Return the texts of a value."""
    if isinstance(value, CodeableConcept):
        return [text for coding in value.coding for text in list_texts(coding)]
    if isinstance(value, Coding):
        texts = (value.system, value.version, value.code, value.display)
        return [text for text in texts if text is not None]
    return [value] if isinstance(value, str) else []


def is_allowed(text: str) -> bool:
    """Return whether a text may be looked up."""
    return len(text) <= LONGEST_VALUE and is_encodable(text)


def make_parameter(name: str, **value: Any) -> dict[str, Any]:
    """Return a parameter of an answer, e.g. with `valueString`."""
    return {"name": name, **value}


def make_parameters(parameters: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the resource of an answer; there are no empty arrays in FHIR."""
    return {"resourceType": "Parameters", "parameter": parameters}


def not_fhir_json(status: int) -> FhirError:
    return FhirError(
        "E483",
        "Expected a client that sends and reads JSON of FHIR, but got another "
        "format. Send and accept `application/fhir+json`.",
        status,
        "not-supported",
    )
