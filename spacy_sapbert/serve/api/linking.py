"""/link, /mentions and /explain."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response

from ...errors import Errors, SapbertError
from ...evaluation.explain import explain_mention
from ...evaluation.regression import read_context
from ...evaluation.regression_cases import Case, place_mention
from ...linking.options import change_options
from ...pipeline.linker import fit_language
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
from ..service import Service, TextResult, require_open
from .answers import to_json

router = APIRouter(tags=["linking"])


def describe_text(result: TextResult) -> dict[str, Any]:
    """Return the result of a text for JSON; see `requests.LinkedText`."""
    error = result.error and describe_problem(result.error)["error"]
    return {"entities": result.entities, "error": error}


@router.post("/link", responses={200: {"model": LinkAnswer}})
async def link(request: Request, body: LinkRequest) -> Response:
    """Detect the mentions of texts, and link them.

    Offsets are in characters (code points).
    """
    service: Service = request.app.state.service
    check_texts(body.texts, service.limits, "texts")
    results = await service.link_texts(body.texts, read_settings(body))
    kb = results[-1].kb if results else service.kb.manifest.digest
    documents = [describe_text(result) for result in results]
    return to_json({"kb": kb, "documents": documents})


@router.post("/mentions", responses={200: {"model": MentionsAnswer}})
async def mentions(request: Request, body: MentionsRequest) -> Response:
    """Link mentions, each on its own."""
    service: Service = request.app.state.service
    check_texts(body.mentions, service.limits, "mentions")
    if body.labels is not None and len(body.labels) != len(body.mentions):
        expected = "as many `labels` as `mentions`"
        raise RequestError(Errors.E457.format(expected=expected), 422)
    results = await service.link_mentions(
        body.mentions, read_settings(body), body.labels
    )
    kb = results[-1].kb if results else service.kb.manifest.digest
    links = [
        {
            "cui": linked.cui,
            "note": linked.note,
            "candidates": linked.candidates,
        }
        for linked, _ in results
    ]
    return to_json({"kb": kb, "mentions": links})


@router.post("/explain")
async def explain(request: Request, body: ExplainRequest) -> Response:
    """Explain why a mention has its concept, or not the expected one.

    The answer is that of `spacy sapbert explain --json`.
    """
    service: Service = request.app.state.service
    require_open(service)
    texts = [text for text in (body.mention, body.context) if text is not None]
    check_texts(texts, service.limits, "texts")

    def fail(what: str, _: str) -> SapbertError:
        return RequestError(Errors.E457.format(expected=what), 422)

    mention, text, start = place_mention(body.mention, body.context, fail)
    if not mention.strip():
        raise fail("a mention that is not blank", "")
    case = Case(Path("request"), 1, text, start, mention, (), body.label, None)

    def run() -> dict[str, Any]:
        linker, kb = service.linker, service.kb
        options = change_options(service.options, read_settings(body))
        return asdict(
            explain_mention(
                kb,
                read_context(service.nlp, linker, case),
                options=fit_language(options, service.nlp.vocab.lang),
                expected=body.expected,
            )
        )

    return to_json(await service.call(run))
