"""/reviews: documents, decisions, queue, agreement, export and teaching."""

import base64
from dataclasses import asdict
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from ...formats.gold import NIL
from ...kb.database import is_encodable
from ...linking.candidates import Candidate
from ...linking.link import Linked
from ..depends import ServiceDep, StoreDep, TeacherDep
from ..lookup import find_concept
from ..problems import wrong_request
from ..requests import LONGEST_VALUE, check_texts
from ..reviews.agreement import (
    Agreement,
    Differences,
    compare_reviewers,
    find_differences,
)
from ..reviews.export import export_reviews, list_exports
from ..reviews.imports import import_uploads
from ..reviews.mentions import ShownMention, link_document, link_some, link_spans
from ..reviews.quality import NEAR, Quality, list_mentions, measure_quality
from ..reviews.queue import DecidedPlaces, Queue, find_places, make_queue
from ..reviews.store import (
    AGREED,
    NO_MENTION,
    Decision,
    DocumentCount,
    ReviewedDocument,
    ReviewStore,
    Span,
)
from ..reviews.taught import TeachingState, nothing_taught
from ..service import Service
from .answers import describe_file, to_file

router = APIRouter(tags=["reviews"], prefix="/reviews")
LONGEST_NAME = 200  # characters
MOST_SHOWN = 1_000  # candidates of a decision
MOST_DECISIONS = 1_000  # that are written together
MOST_FILES = 1_000
MENTIONS_TOGETHER = 256  # decided mentions that are linked between other requests
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Reviewer = Annotated[str | None, Query(max_length=LONGEST_NAME)]


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
    """What a reviewer chose for a mention.

    That is an id, "NIL" = no concept of the vocabulary, "NO_MENTION" = the text is not
    a mention, or null to withdraw the decision before.

    Attributes:
        key: A random text; a request that is repeated with it is written once.
        kb: The digest of the knowledge base, as the answer of /link has it.
        settles: It says what holds where reviewers differ, and is no answer of the
            reviewer.
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
    settles: bool = False


class NewDecisions(BaseModel):
    """Decisions that are written together, all or none."""

    model_config = ConfigDict(strict=True, extra="forbid")

    decisions: Annotated[
        list[NewDecision], Field(min_length=1, max_length=MOST_DECISIONS)
    ]


class DoneState(BaseModel):
    """Whether a reviewer has done a document."""

    model_config = ConfigDict(strict=True, extra="forbid")

    reviewer: Name
    done: bool


class NewFile(BaseModel):
    """A file of documents; `content` in base64."""

    model_config = ConfigDict(strict=True, extra="forbid")

    name: Name
    content: str


class NewFiles(BaseModel):
    """Files of documents that belong together, e.g. the two of brat."""

    model_config = ConfigDict(strict=True, extra="forbid")

    files: Annotated[list[NewFile], Field(min_length=1, max_length=MOST_FILES)]


class Version(BaseModel):
    """A taught version; null = the knowledge base that the service was started with.

    Without `number` it is the version that was made last.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    number: Annotated[int, Field(ge=1)] | None = None


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
    """A document with its mentions, the decisions that count, and who has done it.

    Attributes:
        kb: Digest of the knowledge base that the mentions are linked to.
    """

    id: str
    name: str
    text: str
    kb: str
    mentions: list[ShownMention]
    decisions: list[Decision]
    done: list[str]


class DeletedAnswer(BaseModel):
    """The number of taught versions that were removed with a document."""

    versions: int


class ImportedAnswer(BaseModel):
    """Ids of the documents that were read, and the number of their mentions."""

    documents: list[str]
    mentions: int


class LeftAnswer(BaseModel):
    """Number of documents whose mentions are not linked yet."""

    left: int


class DecisionKey(BaseModel):
    """The key of the request, which is on the disk."""

    key: str


class DecisionKeys(BaseModel):
    """The keys of the decisions, which are on the disk."""

    keys: list[str]


class AgreementAnswer(BaseModel):
    """How far each two reviewers agree."""

    pairs: list[Agreement]


def find_document(store: ReviewStore, id: str) -> ReviewedDocument:
    """Return a document."""
    document = store.document(id) if is_encodable(id) else None
    if document is None:
        expected = "`document` to be an id of /reviews/documents"
        raise wrong_request(expected, 404)
    return document


@router.post("/documents")
def add_document(service: ServiceDep, store: StoreDep, body: NewDocument) -> DocumentId:
    """Keep a document to review, and return its id."""
    check_texts([body.text, body.name], service.limits, "texts")
    return DocumentId(document=store.add_document(body.name, body.text))


@router.post("/import")
def import_documents(store: StoreDep, body: NewFiles) -> ImportedAnswer:
    """Keep the documents of files; what their mentions have becomes a proposal.

    Formats: those that `link` reads, and archives of brat.
    """
    try:
        files = {
            one.name: base64.b64decode(one.content, validate=True) for one in body.files
        }
    except ValueError:
        expected = "`content` in base64"
        raise wrong_request(expected) from None
    return ImportedAnswer(**asdict(import_uploads(store, files)))


@router.post("/prepare")
async def prepare(service: ServiceDep, store: StoreDep) -> LeftAnswer:
    """Link the mentions of a few documents that are not linked yet."""
    return LeftAnswer(left=await link_some(service, store))


@router.get("/documents")
def list_documents(store: StoreDep, reviewer: Reviewer = None) -> DocumentsAnswer:
    """The documents, without their texts, and what the page offers.

    With `reviewer`, `decisions` are those of one reviewer.
    """
    return DocumentsAnswer(
        documents=store.documents(reviewer),
        reviewers=store.reviewers(),
        formats=[*list_exports()],
    )


@router.get("/documents/{id}")
async def read_document(
    service: ServiceDep, store: StoreDep, id: str, reviewer: Reviewer = None
) -> DocumentAnswer:
    """A document with its mentions, and the decisions of all reviewers that count.

    With `reviewer`, the mentions have those that the reviewer has added.
    """
    document = find_document(store, id)
    kb = service.kb.manifest.digest
    mentions = [*await link_document(service, store, document)]
    decisions = await run_in_threadpool(store.latest, document=id)
    known = {(one["start"], one["end"]) for one in mentions}
    added = [
        Span(one.start, one.end, one.label, "")
        for one in decisions
        if one.reviewer == reviewer
        and not one.settles
        and (one.start, one.end) not in known
        and one.chosen != NO_MENTION
    ]
    mentions += await link_spans(service, [(document.text, span) for span in added])
    mentions.sort(key=lambda one: (one["start"], -one["end"]))
    return DocumentAnswer(
        **asdict(document),
        kb=kb,
        mentions=mentions,
        decisions=decisions,
        done=store.done().get(id, []),
    )


@router.delete("/documents/{id}")
def delete_document(store: StoreDep, teacher: TeacherDep, id: str) -> DeletedAnswer:
    """Remove a document for good: text, decisions, and what learned from it."""
    find_document(store, id)
    return DeletedAnswer(versions=teacher.forget(id))


@router.post("/documents/{id}/done")
def set_done(
    service: ServiceDep, store: StoreDep, id: str, body: DoneState
) -> DoneState:
    """Record that a reviewer has done a document, or has not."""
    document = find_document(store, id)
    check_texts([body.reviewer], service.limits, "names")
    store.set_done(document.id, body.reviewer, body.done)
    return body


def check_decision(service: Service, store: ReviewStore, body: NewDecision) -> None:
    """Raise an error for a decision that is not possible."""
    document = find_document(store, body.document)
    check_texts([body.reviewer, body.label], service.limits, "names")
    if body.reviewer == AGREED:
        expected = f"the name of a person as `reviewer` (not {AGREED!r}), and `settles`"
        raise wrong_request(expected)
    if not body.start < body.end <= len(document.text):
        expected = "`start` and `end` inside the text"
        raise wrong_request(expected)
    if body.chosen not in (None, NIL, NO_MENTION):
        find_concept(service.kb, body.chosen or "")


@router.post("/decisions")
def add_decision(
    service: ServiceDep, store: StoreDep, body: NewDecision
) -> DecisionKey:
    """Write a decision; the answer comes when it is on the disk."""
    check_decision(service, store, body)
    store.add_decisions([cast(Any, body.model_dump())])
    return DecisionKey(key=body.key)


@router.post("/decisions/all")
def add_decisions(
    service: ServiceDep, store: StoreDep, body: NewDecisions
) -> DecisionKeys:
    """Write decisions, all or none; the answer comes when they are on the disk."""
    for one in body.decisions:
        check_decision(service, store, one)
    store.add_decisions([cast(Any, one.model_dump()) for one in body.decisions])
    return DecisionKeys(keys=[one.key for one in body.decisions])


@router.get("/queue")
async def queue(
    service: ServiceDep,
    store: StoreDep,
    reviewer: Annotated[str, Query(max_length=LONGEST_NAME)],
) -> Queue:
    """What a reviewer has not decided, in all documents: the most uncertain first.

    Equal mentions with the same proposal are a group. Documents that are not linked yet
    are left out; see /reviews/prepare.
    """
    digest = service.kb.manifest.digest
    return await run_in_threadpool(make_queue, store, digest, reviewer)


@router.get("/places")
def places(
    store: StoreDep,
    text: Annotated[str | None, Query(max_length=LONGEST_VALUE)] = None,
    chosen: Annotated[str | None, Query(max_length=LONGEST_NAME)] = None,
) -> DecidedPlaces:
    """Where a text was decided, or where a concept was chosen."""
    return find_places(store, text=text, chosen=chosen)


@router.get("/differences")
def differences(service: ServiceDep, store: StoreDep) -> Differences:
    """Where reviewers differ, with the text around; what is not settled first."""
    return find_differences(store, service.kb)


@router.get("/agreement")
def agreement(store: StoreDep) -> AgreementAnswer:
    """Cohen's kappa and F1 of each two reviewers."""
    return AgreementAnswer(pairs=compare_reviewers(store.latest()))


@router.get(
    "/export",
    response_class=Response,
    responses=describe_file(*(media for media, _ in list_exports().values())),
)
def export(
    service: ServiceDep,
    store: StoreDep,
    format: Annotated[str, Query(max_length=LONGEST_VALUE)] = "jsonl",
    reviewer: Reviewer = None,
) -> Response:
    """The decisions as an annotated file; `teach`, `evaluate` and others read it.

    The reviewer "agreed" stands for what all reviewers agree on.
    """
    data = export_reviews(store, service.kb, format, reviewer)
    media, ending = list_exports()[format]
    return to_file(data, f"reviews{ending}", media)


@router.post("/quality")
async def quality(service: ServiceDep, store: StoreDep) -> Quality:
    """How the knowledge base in use answers the mentions that were decided.

    It is a POST, since it links all of them again.
    """
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
    return await run_in_threadpool(measure_quality, kb, mentions, ranked, linked)


@router.get("/teach")
def read_teaching(teacher: TeacherDep) -> TeachingState:
    """How far the teaching is, and its report."""
    return teacher.describe()


@router.post("/teach", status_code=202)
def teach(teacher: TeacherDep, body: Teach) -> TeachingState:
    """Make a copy of the knowledge base that has learned from all decisions."""
    teacher.start(force=body.force)
    return teacher.describe()


@router.post("/switch")
async def switch(teacher: TeacherDep, body: Version) -> TeachingState:
    """Use a taught version from the next request on."""
    number = body.number
    if "number" not in body.model_fields_set:
        number = teacher.last
        if number is None:
            raise nothing_taught()
    await run_in_threadpool(teacher.use, number)
    return teacher.describe()


@router.delete("/teach/{number}")
async def remove_version(teacher: TeacherDep, number: int) -> TeachingState:
    """Remove a taught version for good."""
    await run_in_threadpool(teacher.remove, number)
    return teacher.describe()
