"""/link, /mentions and /verify."""

from collections.abc import Sequence

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from ...formats.entities import LinkedEntity
from ...linking.certainty import judge_link
from ...verification.verdicts import Verdict
from ..depends import ServiceDep
from ..problems import describe_problem, wrong_request
from ..requests import (
    JudgedEntity,
    LinkAnswer,
    LinkedMention,
    LinkRequest,
    MentionsAnswer,
    MentionsRequest,
    VerifyAnswer,
    VerifyRequest,
    check_texts,
    read_settings,
)
from ..service import TextResult
from .answers import encode

router = APIRouter(tags=["linking"])


def judge_entity(entity: LinkedEntity) -> JudgedEntity:
    """Return an entity with how far its link can be trusted."""
    certainty = judge_link(
        entity["text"], entity["cui"], entity["candidates"], note=entity["note"]
    )
    return {**entity, "certainty": certainty}


def write_answer(kb: str, results: Sequence[TextResult]) -> Response:
    """Return the results of texts as JSON.

    It is written an entity at a time, so that other requests are answered meanwhile:
    a million characters may have 100 MB of candidates.
    """
    parts: list[str] = []
    for result in results:
        error = result.error and describe_problem(result.error).model_dump()
        entities = [encode(judge_entity(one)) for one in result.entities]
        text = f'{{"entities":[{",".join(entities)}],"error":{encode(error)}}}'
        parts.append(text)
    text = f'{{"kb":{encode(kb)},"documents":[{",".join(parts)}]}}'
    return Response(text, media_type="application/json")


@router.post("/link", response_model=LinkAnswer)
async def link_texts(service: ServiceDep, body: LinkRequest) -> Response:
    """Detect the mentions of texts, and link them.

    Offsets are in characters (code points).
    """
    check_texts(body.texts, service.limits, "texts")
    results = await service.link_texts(body.texts, read_settings(body))
    kb = results[-1].kb if results else service.kb.manifest.digest
    return await run_in_threadpool(write_answer, kb, results)


@router.post("/mentions")
async def link_mentions(service: ServiceDep, body: MentionsRequest) -> MentionsAnswer:
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


@router.post("/verify")
async def verify_ids(service: ServiceDep, body: VerifyRequest) -> VerifyAnswer:
    """Find out whether ids that somebody wrote are the right ones for texts.

    Each id, or code of a vocabulary, is for one text; `labels` are the names beside
    them, `contexts` the texts around. `verdict`: right = keep it; retired = write
    `cui`; near, wrong = `better` is what the text means; unknown = there is no such id,
    `meant` may be; unsure = ask a person. `label` and `label_text` judge the label
    against id and text.
    """
    for what, values in body:
        if values is not None:
            check_texts(values, service.limits, what)
            if len(values) != len(body.texts):
                expected = f"as many `{what}` as `texts`"
                raise wrong_request(expected)
    kb, given = service.kb, {n: values for n, values in body if values is not None}

    def verify(pairs: Sequence[tuple[str, ...]]) -> list[Verdict]:
        if not pairs:
            return []
        columns = dict(zip(given, zip(*pairs, strict=True), strict=True))
        return service.use_verifier(kb).verify(**columns)

    verdicts = await service.work(verify, [*zip(*given.values(), strict=True)])
    return VerifyAnswer(kb=kb.manifest.digest, verdicts=verdicts)
