"""/link, /mentions and /explain."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Response

from ...errors import Errors
from ...evaluation.explain import Explanation
from ..depends import ServiceDep
from ..explaining import explain as explanation_of
from ..problems import RequestError, describe_problem
from ..requests import (
    ExplainRequest,
    LinkAnswer,
    LinkRequest,
    MentionsAnswer,
    MentionsRequest,
    check_texts,
    read_settings,
)
from ..service import TextResult
from .answers import to_json

router = APIRouter(tags=["linking"])


def describe_text(result: TextResult) -> dict[str, Any]:
    """Return the result of a text for JSON; see `requests.LinkedText`."""
    error = result.error and describe_problem(result.error)["error"]
    return {"entities": result.entities, "error": error}


@router.post("/link", response_model=LinkAnswer)
async def link(service: ServiceDep, body: LinkRequest) -> Response:
    """Detect the mentions of texts, and link them.

    Offsets are in characters (code points).
    """
    check_texts(body.texts, service.limits, "texts")
    results = await service.link_texts(body.texts, read_settings(body))
    kb = results[-1].kb if results else service.kb.manifest.digest
    documents = [describe_text(result) for result in results]
    return to_json({"kb": kb, "documents": documents})


@router.post("/mentions", response_model=MentionsAnswer)
async def mentions(service: ServiceDep, body: MentionsRequest) -> Response:
    """Link mentions, each on its own."""
    check_texts(body.mentions, service.limits, "mentions")
    if body.labels is not None and len(body.labels) != len(body.mentions):
        expected = "as many `labels` as `mentions`"
        raise RequestError(Errors.E457.format(expected=expected), 422)
    results = await service.link_mentions(
        body.mentions, read_settings(body), body.labels
    )
    kb = results[-1].kb if results else service.kb.manifest.digest
    links = [result.linked._asdict() for result in results]
    return to_json({"kb": kb, "mentions": links})


@router.post("/explain", response_model=Explanation)
async def explain(service: ServiceDep, body: ExplainRequest) -> Response:
    """Explain why a mention has its concept, or not the expected one.

    The answer is that of `spacy sapbert explain --json`.
    """
    return to_json(asdict(await explanation_of(service, body)))
