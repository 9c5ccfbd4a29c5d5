"""/reviews: documents, decisions, agreement, export and teaching."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from ...errors import Errors
from ...formats.gold import NIL
from ...kb.database import is_encodable
from ...linking.candidates import Candidate
from ...linking.link import Linked
from ..depends import ServiceDep, StoreDep, TeacherDep
from ..lookup import find_concept
from ..problems import RequestError
from ..requests import LONGEST_VALUE, check_texts
from ..reviews.agreement import Agreement, compare_reviewers
from ..reviews.export import export_reviews, list_exports
from ..reviews.quality import NEAR, Quality, list_mentions, measure_quality
from ..reviews.store import Decision, DocumentCount, ReviewedDocument, ReviewStore
from ..reviews.taught import TeachingState
from .answers import describe_file, to_file, to_json

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


class DocumentId(BaseModel):
    """The id of a document, which is made of its text."""

    document: str


class DocumentsAnswer(BaseModel):
    """The documents, the names of reviewers, and the formats of /reviews/export."""

    documents: list[DocumentCount]
    reviewers: list[str]
    formats: list[str]


class DocumentAnswer(BaseModel):
    """A document with the decisions that count."""

    id: str
    name: str
    text: str
    decisions: list[Decision]


class DecisionKey(BaseModel):
    """The key of the request, which is on the disk."""

    key: str


class AgreementAnswer(BaseModel):
    """How far each two reviewers agree."""

    pairs: list[Agreement]


def find_document(store: ReviewStore, id: str) -> ReviewedDocument:
    """Return a document."""
    document = store.document(id) if is_encodable(id) else None
    if document is None:
        expected = "`document` to be an id of /reviews/documents"
        raise RequestError(Errors.E457.format(expected=expected), 404)
    return document


@router.post("/documents", response_model=DocumentId)
def add_document(service: ServiceDep, store: StoreDep, body: NewDocument) -> Response:
    """Keep a document to review, and return its id."""
    check_texts([body.text, body.name], service.limits, "texts")
    return to_json({"document": store.add_document(body.name, body.text)})


@router.get("/documents", response_model=DocumentsAnswer)
def list_documents(store: StoreDep) -> Response:
    """The documents, without their texts, and what the page offers."""
    documents = [asdict(one) for one in store.documents()]
    others = {"reviewers": store.reviewers(), "formats": [*list_exports()]}
    return to_json({"documents": documents, **others})


@router.get("/documents/{id}", response_model=DocumentAnswer)
def read_document(store: StoreDep, id: str) -> Response:
    """A document with the decisions of all reviewers that count."""
    document = find_document(store, id)
    decisions = [asdict(one) for one in store.latest(document=id)]
    return to_json({**asdict(document), "decisions": decisions})


@router.post("/decisions", response_model=DecisionKey)
def add_decision(service: ServiceDep, store: StoreDep, body: NewDecision) -> Response:
    """Write a decision; the answer comes when it is on the disk."""
    document = find_document(store, body.document)
    check_texts([body.reviewer, body.label], service.limits, "names")
    if not body.start < body.end <= len(document.text):
        expected = "`start` and `end` inside the text"
        raise RequestError(Errors.E457.format(expected=expected), 422)
    if body.chosen not in (None, NIL):
        find_concept(service.kb, body.chosen or "")
    store.add_decision(**body.model_dump())
    return to_json({"key": body.key})


@router.get("/agreement", response_model=AgreementAnswer)
def agreement(store: StoreDep) -> Response:
    """Cohen's kappa of each two reviewers, on the mentions that both have decided."""
    pairs = compare_reviewers(store.latest())
    return to_json({"pairs": [asdict(pair) for pair in pairs]})


@router.get(
    "/export",
    response_class=Response,
    responses=describe_file(*(media for media, _ in list_exports().values())),
)
def export(
    service: ServiceDep,
    store: StoreDep,
    format: Annotated[str, Query(max_length=LONGEST_VALUE)] = "jsonl",
    reviewer: Annotated[str | None, Query(max_length=LONGEST_NAME)] = None,
) -> Response:
    """The decisions as an annotated file; `teach`, `evaluate` and others read it."""
    data = export_reviews(store, service.kb, format, reviewer)
    media, ending = list_exports()[format]
    return to_file(data, f"reviews{ending}", media)


@router.get("/quality", response_model=Quality)
async def quality(service: ServiceDep, store: StoreDep) -> Response:
    """How the knowledge base in use answers the mentions that were decided."""
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
    return to_json(asdict(found))


@router.get("/teach", response_model=TeachingState)
def read_teaching(teacher: TeacherDep) -> Response:
    """How far the teaching is, and its report."""
    return to_json(teacher.describe())


@router.post("/teach", response_model=TeachingState, status_code=202)
def teach(teacher: TeacherDep, body: Teach) -> Response:
    """Make a copy of the knowledge base that has learned from all decisions."""
    teacher.start(force=body.force)
    return to_json(teacher.describe(), 202)


@router.post("/switch", response_model=TeachingState)
async def switch(teacher: TeacherDep) -> Response:
    """Use the taught copy from the next request on."""
    await run_in_threadpool(teacher.switch)
    return to_json(teacher.describe())
