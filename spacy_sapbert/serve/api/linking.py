"""/link, /mentions and /explain."""

from fastapi import APIRouter

from ...evaluation.explain import Explanation
from ...linking.certainty import judge_link
from ..depends import ServiceDep
from ..explaining import explain as explanation_of
from ..problems import describe_problem, wrong_request
from ..requests import (
    ExplainRequest,
    JudgedEntity,
    LinkAnswer,
    LinkedMention,
    LinkedText,
    LinkRequest,
    MentionsAnswer,
    MentionsRequest,
    check_texts,
    read_settings,
)
from ..service import TextResult

router = APIRouter(tags=["linking"])


def describe_text(result: TextResult) -> LinkedText:
    """Return the result of a text for JSON."""
    error = describe_problem(result.error)["error"] if result.error else None
    entities = [
        JudgedEntity(
            **one,
            certainty=judge_link(
                one["text"], one["cui"], one["candidates"], note=one["note"]
            ),
        )
        for one in result.entities
    ]
    return LinkedText(entities=entities, error=error)


@router.post("/link")
async def link(service: ServiceDep, body: LinkRequest) -> LinkAnswer:
    """Detect the mentions of texts, and link them.

    Offsets are in characters (code points).
    """
    check_texts(body.texts, service.limits, "texts")
    results = await service.link_texts(body.texts, read_settings(body))
    kb = results[-1].kb if results else service.kb.manifest.digest
    documents = [describe_text(result) for result in results]
    return LinkAnswer(kb=kb, documents=documents)


@router.post("/mentions")
async def mentions(service: ServiceDep, body: MentionsRequest) -> MentionsAnswer:
    """Link mentions, each on its own."""
    check_texts(body.mentions, service.limits, "mentions")
    if body.labels is not None and len(body.labels) != len(body.mentions):
        expected = "as many `labels` as `mentions`"
        raise wrong_request(expected)
    results = await service.link_mentions(
        body.mentions, read_settings(body), body.labels
    )
    kb = results[-1].kb if results else service.kb.manifest.digest
    links = [
        LinkedMention(
            **linked._asdict(),
            certainty=judge_link(text, linked.cui, linked.candidates, note=linked.note),
        )
        for text, (linked, _) in zip(body.mentions, results, strict=True)
    ]
    return MentionsAnswer(kb=kb, mentions=links)


@router.post("/explain")
async def explain(service: ServiceDep, body: ExplainRequest) -> Explanation:
    """Explain why a mention has its concept, or not the expected one.

    The answer is that of `spacy sapbert explain --json`.
    """
    return await explanation_of(service, body)
