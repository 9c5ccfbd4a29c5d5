"""/openapi.json: names, examples, security and errors of each request.

FastAPI makes the schemas; what it cannot know is added here, in one place.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from .access import OPEN, needed_role
from .problems import ErrorAnswer
from .protocols.fhir_operations import OPERATIONS
from .protocols.fhir_parameters import (
    CODING,
    CONCEPT,
    FLAG,
    MEDIA_TYPE,
    NUMBER,
    ROOT,
    Operation,
    is_fhir,
)

Described = dict[str, Any]
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
TOKEN = "token"
ERRORS = {
    400: "Not what the specification of FHIR says.",
    401: "No token, or another.",
    403: "A page of another origin, or a role that may not.",
    404: "An unknown id, or a service without reviews.",
    406: "A format other than JSON is asked for.",
    408: "The body is not whole in time.",
    409: "Something else runs, or is missing, so that it cannot be done now.",
    413: "Too large.",
    415: "A body that is not JSON.",
    421: "A name of this service that it does not have.",
    422: "Not what the schema says, or a setting that is not possible.",
    429: "Too many requests of this client at once.",
    500: "The service failed; its log has the cause.",
    501: "A library for the format is not installed.",
    503: "The queue is full, the service ends, it took too long, or cannot write.",
    507: "No room for what was sent.",
}
ALWAYS = (401, 403, 421, 429, 500, 503)
WITH_BODY = (408, 413)
RESOURCE = {
    "type": "object",
    "title": "Resource",
    "description": "A resource of FHIR R4; see https://hl7.org/fhir/R4.",
    "required": ["resourceType"],
    "properties": {"resourceType": {"type": "string"}},
    "additionalProperties": True,
}
PARAMETERS = {
    "type": "object",
    "title": "Parameters",
    "description": "The parameters of an operation of FHIR R4.",
    "required": ["resourceType"],
    "properties": {
        "resourceType": {"const": "Parameters"},
        "parameter": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}},
                "additionalProperties": True,
            },
        },
    },
}
OUTCOME = {
    "type": "object",
    "title": "OperationOutcome",
    "description": "An error of FHIR R4.",
    "required": ["resourceType", "issue"],
    "properties": {
        "resourceType": {"const": "OperationOutcome"},
        "issue": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["severity", "code"],
                "properties": {
                    "severity": {"type": "string"},
                    "code": {"type": "string"},
                    "details": {
                        "type": "object",
                        "properties": {"text": {"type": "string"}},
                    },
                    "diagnostics": {"type": "string"},
                },
            },
        },
    },
}
FIELDS = {
    "queries": "An object of JSON: a query by any key.",
    "extend": "An object of JSON with `ids` and `properties`.",
}


@cache
def read_examples() -> dict[str, Described]:
    """Return the examples: by request, its `body`, `query`, `path` and `answer`."""
    text = files(__package__).joinpath("api", "examples.json").read_text("utf8")
    found: dict[str, Described] = json.loads(text)
    return found


def describe_api(app: FastAPI, *, needs_token: bool) -> Described:
    """Return what OpenAPI 3.1 says of the service.

    Args:
        needs_token: Whether requests need a token; else it may be sent.
    """
    api: Described = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        separate_input_output_schemas=False,
    )
    schemas = api["components"]["schemas"]
    schemas |= {each["title"]: each for each in (RESOURCE, PARAMETERS, OUTCOME)}
    schemas |= make_schemas(ErrorAnswer)
    api["components"]["securitySchemes"] = {
        TOKEN: {"type": "http", "scheme": "bearer", "description": "Of `--token-file`."}
    }
    api["security"] = [{TOKEN: []}] if needs_token else [{}, {TOKEN: []}]
    requests = (
        (path, method, operation)
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
    )
    for path, method, operation in requests:
        summary, _, rest = operation["description"].partition("\n")
        operation["summary"] = summary.strip().rstrip(".")
        operation["description"] = rest.strip() or summary
        role = needed_role(method.upper(), path)
        if role is None:
            operation["security"] = []
        else:
            operation["x-role"] = role.name.lower()
        if is_fhir(path):
            describe_fhir(path, method, operation)
        if path == "/reconcile":
            describe_form(method, operation)
        add_errors(path, operation)
        add_examples(operation, read_examples().get(f"{method.upper()} {path}", {}))
    return api


def make_schemas(model: Any) -> Described:
    """Return the schemas of a model and of its parts, by name."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    parts: Described = schema.pop("$defs", {})
    return {**parts, model.__name__: schema}


def refer_to(title: str) -> Described:
    """Return a reference to a schema."""
    return {"$ref": f"#/components/schemas/{title}"}


def describe_fhir(path: str, method: str, operation: Described) -> None:
    """Describe answer, body and parameters of a request of FHIR."""
    answer = {"schema": refer_to("Resource")}
    operation["responses"]["200"]["content"] = {MEDIA_TYPE: answer}
    taken = next((o for o in OPERATIONS if f"{ROOT}{o.path}" == path), None)
    if taken is not None and method == "post":
        body = {"schema": refer_to("Parameters")}
        operation["requestBody"] = {"content": {MEDIA_TYPE: body, JSON: body}}
    elif taken is not None:
        operation["parameters"] = list_parameters(taken)


def list_parameters(operation: Operation) -> list[Described]:
    """Return the parameters that a GET request of an operation may have."""
    types = {NUMBER: "integer", FLAG: "boolean"}
    found = []
    for name, kind in operation.takes.items():
        if kind in (CODING, CONCEPT):
            continue
        schema: Described = {"type": types.get(kind, "string")}
        if name in operation.repeated:
            schema = {"type": "array", "items": schema}
        found.append({"name": name, "in": "query", "schema": schema})
    return found


def describe_form(method: str, operation: Described) -> None:
    """Describe the fields of a reconciliation request."""
    fields = {n: {"type": "string", "description": d} for n, d in FIELDS.items()}
    if method == "post":
        form = {"schema": {"type": "object", "properties": fields}}
        operation["requestBody"] = {"required": True, "content": {FORM: form}}
    else:
        operation["parameters"] = [
            {"name": name, "in": "query", "schema": schema}
            for name, schema in fields.items()
        ]


def list_fields(api: Described) -> set[str]:
    """Return the names of fields and parameters, and where a request has them."""
    names = {"body", "query", "path"}
    for schema in api["components"]["schemas"].values():
        names |= schema.get("properties", {}).keys()
    for methods in api["paths"].values():
        for operation in methods.values():
            names |= {one["name"] for one in operation.get("parameters", ())}
    return names


def add_errors(path: str, operation: Described) -> None:
    """Describe the errors that a request may have."""
    body, parameters = "requestBody" in operation, operation.get("parameters")
    errors = {*ALWAYS, *(WITH_BODY if body else ())}
    if is_fhir(path):
        errors |= {400, 404, 406, *([415] if body else ())}
    else:
        errors |= {422} if body or parameters else set()
        if "{" in path or path.startswith(("/reviews", "/reconcile/preview")):
            errors.add(404)
        if path.startswith("/column"):
            errors.add(501)
    if path.startswith("/reviews") and body:
        errors.add(507)
    if path.startswith(("/reviews/teach", "/reviews/switch", "/metrics")):
        errors.add(409)
    if path in OPEN:
        errors -= {401}
    media, schema = JSON, refer_to("ErrorAnswer")
    if is_fhir(path):
        media, schema = MEDIA_TYPE, refer_to("OperationOutcome")
    responses = {
        code: answer
        for code, answer in operation["responses"].items()
        if code.startswith("2")
    }
    for status in sorted(errors):
        content = {media: {"schema": schema}}
        responses[str(status)] = {"description": ERRORS[status], "content": content}
    operation["responses"] = responses


def add_examples(operation: Described, example: Described) -> None:
    """Add the examples of a request and its answer."""
    for parameter in operation.get("parameters", ()):
        given = {**example.get("query", {}), **example.get("path", {})}
        if parameter["name"] in given:
            parameter["example"] = given[parameter["name"]]
    if "body" in example:
        for content in operation["requestBody"]["content"].values():
            content["example"] = example["body"]
    if "answer" in example:
        answers = [
            answer
            for code, answer in operation["responses"].items()
            if code.startswith("2")
        ]
        for content in answers[0]["content"].values():
            content["example"] = example["answer"]
