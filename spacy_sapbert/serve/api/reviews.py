"""/reviews: documents, decisions, agreement, export and teaching."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from ...errors import Errors
from ...formats.gold import NIL
from ...kb.database import is_encodable
from ...linking.candidates import Candidate
from ...linking.link import Linked
from ..lookup import find_concept
from ..problems import RequestError
from ..requests import LONGEST_VALUE, check_texts
from ..reviews.agreement import compare_reviewers
from ..reviews.export import FORMATS, export_reviews
from ..reviews.quality import NEAR, list_mentions, measure_quality
from ..reviews.store import ReviewedDocument, ReviewStore
from ..reviews.taught import Teacher
from ..service import Service
from .answers import to_json

router = APIRouter(tags=["reviews"], prefix="/reviews")
LONGEST_NAME = 200  # characters
MOST_SHOWN = 1_000  # candidates of a decision
MENTIONS_TOGETHER = 256  # decided mentions that are linked between other requests
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


class NewDocument(BaseModel):
    """A document to review."""

    model_config = ConfigDict(strict=True, extra="forbid")

    name: Name
    text: str


class Shown(BaseModel):
    """A candidate that the reviewer saw."""

    model_config = ConfigDict(strict=True, extra="forbid")

    cui: Name
    score: Annotated[float | None, Field(allow_inf_nan=False)] = None


class NewDecision(BaseModel):
    """What a reviewer chose: an id, "NIL", or null to withdraw the decision before.

    Attributes:
        key: A random text; a request that is repeated with it is written once.
        kb: The digest of the knowledge base, as the answer of /link has it.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    key: Annotated[str, Field(pattern=r"^[\w-]{8,64}$")]
    reviewer: Name
    document: Name
    start: Annotated[int, Field(ge=0, le=10**9)]
    end: Annotated[int, Field(ge=1, le=10**9)]
    label: Annotated[str, Field(max_length=LONGEST_NAME)] = ""
    chosen: Name | None
    shown: Annotated[list[Shown], Field(max_length=MOST_SHOWN)] = []
    kb: Annotated[str, Field(max_length=LONGEST_NAME)] = ""


class Teach(BaseModel):
    """How to teach; `force` makes a new version also if nothing gets better."""

    model_config = ConfigDict(strict=True, extra="forbid")

    force: bool = False


def need_store(request: Request) -> ReviewStore:
    """Return the reviews of a service.

    Raises:
        RequestError: If it has none.
    """
    store: ReviewStore | None = request.app.state.store
    if store is None:
        raise RequestError(Errors.E467, 404)
    return store


def need_teacher(request: Request) -> Teacher:
    """Return the teacher of a service with reviews."""
    need_store(request)
    teacher: Teacher = request.app.state.teacher
    return teacher


def find_document(store: ReviewStore, id: str) -> ReviewedDocument:
    """Return a document."""
    document = store.document(id) if is_encodable(id) else None
    if document is None:
        expected = "`document` to be an id of /reviews/documents"
        raise RequestError(Errors.E457.format(expected=expected), 404)
    return document


@router.post("/documents")
def add_document(request: Request, body: NewDocument) -> Response:
    """Keep a document to review, and return its id."""
    store = need_store(request)
    service: Service = request.app.state.service
    check_texts([body.text, body.name], service.limits, "texts")
    return to_json({"document": store.add_document(body.name, body.text)})


@router.get("/documents")
def list_documents(request: Request) -> Response:
    """The documents, without their texts, and the names of the reviewers."""
    store = need_store(request)
    documents = [one._asdict() for one in store.documents()]
    return to_json({"documents": documents, "reviewers": store.reviewers()})


@router.get("/documents/{id}")
def read_document(request: Request, id: str) -> Response:
    """A document with the decisions of all reviewers that count."""
    store = need_store(request)
    document = find_document(store, id)
    decisions = [one._asdict() for one in store.latest(document=id)]
    return to_json({**document._asdict(), "decisions": decisions})


@router.post("/decisions")
def add_decision(request: Request, body: NewDecision) -> Response:
    """Write a decision; the answer comes when it is on the disk."""
    store = need_store(request)
    document = find_document(store, body.document)
    check_texts([body.reviewer, body.label], request.app.state.service.limits, "names")
    if not body.start < body.end <= len(document.text):
        expected = "`start` and `end` inside the text"
        raise RequestError(Errors.E457.format(expected=expected), 422)
    if body.chosen not in (None, NIL):
        find_concept(request.app.state.service.kb, body.chosen or "")
    store.add_decision(**body.model_dump())
    return to_json({"key": body.key})


@router.get("/agreement")
def agreement(request: Request) -> Response:
    """Cohen's kappa of each two reviewers, on the mentions that both have decided."""
    store = need_store(request)
    pairs = compare_reviewers(store.latest())
    return to_json({"pairs": [pair._asdict() for pair in pairs]})


@router.get("/export")
def export(
    request: Request,
    format: Annotated[str, Query(max_length=LONGEST_VALUE)] = "jsonl",
    reviewer: Annotated[str | None, Query(max_length=LONGEST_NAME)] = None,
) -> Response:
    """The decisions as an annotated file; `teach`, `evaluate` and others read it."""
    store = need_store(request)
    data = export_reviews(store, request.app.state.service.kb, format, reviewer)
    media, ending = FORMATS[format]
    disposition = f'attachment; filename="reviews{ending}"'
    return Response(
        data, headers={"content-disposition": disposition}, media_type=media
    )


@router.get("/quality")
async def quality(request: Request) -> Response:
    """How the knowledge base in use answers the mentions that were decided."""
    store = need_store(request)
    service: Service = request.app.state.service
    kb = service.kb
    mentions = await run_in_threadpool(list_mentions, store, kb)
    ranked: list[list[Candidate]] = []
    linked: list[Linked] = []
    for first in range(0, len(mentions), MENTIONS_TOGETHER):
        some = mentions[first : first + MENTIONS_TOGETHER]
        texts, labels = [one.text for one in some], [one.label for one in some]
        all = {"threshold": -1.0, "k": NEAR}
        results = await service.link_mentions(texts, all, labels)
        ranked += [result.linked.candidates for result in results]
        results = await service.link_mentions(texts, {}, labels)
        linked += [result.linked for result in results]
    found = await run_in_threadpool(measure_quality, kb, mentions, ranked, linked)
    return to_json(
        {
            **found._asdict(),
            "shares": found.shares._asdict(),
            "bins": [one._asdict() for one in found.bins],
            "causes": [one._asdict() for one in found.causes],
        }
    )


@router.get("/teach")
def read_teaching(request: Request) -> Response:
    """How far the teaching is, and its report."""
    return to_json(need_teacher(request).describe())


@router.post("/teach")
def teach(request: Request, body: Teach) -> Response:
    """Make a copy of the knowledge base that has learned from all decisions."""
    teacher = need_teacher(request)
    teacher.start(force=body.force)
    return to_json(teacher.describe(), 202)


@router.post("/switch")
async def switch(request: Request) -> Response:
    """Use the taught copy from the next request on."""
    teacher = need_teacher(request)
    await run_in_threadpool(teacher.switch)
    return to_json(teacher.describe())
