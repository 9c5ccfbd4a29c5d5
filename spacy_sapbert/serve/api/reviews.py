"""/reviews: documents, decisions, queue, differences, export and teaching."""

import base64
import json
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Query, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from ...formats.gold import NIL
from ..depends import (
    AccessDep,
    ServiceDep,
    StoreDep,
    TeacherDep,
    need_one_process,
    need_store,
)
from ..lookup import FoundConcept, find_concept, name_chosen
from ..problems import wrong_request
from ..requests import LONGEST_VALUE, check_texts
from ..reviews import agreement, export, quality, queue
from ..reviews.decisions import (
    AGREED,
    LONGEST_NAME,
    NO_CONCEPTS,
    OPEN,
    Decision,
    Name,
    NewDecision,
    NewRemark,
    Remark,
    Request,
)
from ..reviews.imports import import_uploads
from ..reviews.mentions import ShownMention, link_document, link_marks, link_some
from ..reviews.store import Added, DocumentCount, NewNote, ReviewedDocument, ReviewStore
from ..reviews.taught import TeachingState
from ..service import Service
from .answers import describe_file, to_file

router = APIRouter(
    tags=["reviews"], prefix="/reviews", dependencies=[Depends(need_store)]
)
OF_TEACHER = [Depends(need_one_process)]
MOST_DECISIONS = 1_000  # that are written together
MOST_FILES = 1_000
Reviewer = Annotated[str | None, Query(max_length=LONGEST_NAME)]
Text = Annotated[str, Field(max_length=LONGEST_VALUE)]
OneReviewer = Annotated[str, Query(min_length=1, max_length=LONGEST_NAME)]


class NewFile(Request):
    """A file of documents; `name` may have folders, and `content` is in base64."""

    name: Annotated[str, Field(min_length=1, max_length=LONGEST_VALUE)]
    content: str


class DocumentId(BaseModel):
    """The id of a document, which is made of its name and text."""

    document: str


class DocumentsAnswer(BaseModel):
    """The documents, and the formats of /reviews/export."""

    documents: list[DocumentCount]
    formats: list[str]


class DocumentAnswer(BaseModel):
    """A document with its mentions, the decisions that count, and who has done it.

    Attributes:
        kb: Digest of the knowledge base that the mentions are linked to.
        concepts: Those that were chosen, which mentions may not have as candidates.
        filter: The part of the vocabulary that its mentions may be linked to.
    """

    id: str
    name: str
    text: str
    filter: dict[str, list[str]]
    kb: str
    mentions: list[ShownMention]
    decisions: list[Decision]
    concepts: list[FoundConcept]
    remarks: list[Remark]
    done: list[str]


class DeletedAnswer(BaseModel):
    """The number of taught versions that were removed with a document."""

    versions: int


class LeftAnswer(BaseModel):
    """Number of documents whose mentions are not linked yet."""

    left: int


def find_document(store: ReviewStore, id: str) -> ReviewedDocument:
    """Return a document."""
    document = store.document(id)
    if document is None:
        expected = "`document` to be an id of /reviews/documents"
        raise wrong_request(expected, 404)
    return document


@router.post("/documents")
def add_document(
    service: ServiceDep,
    store: StoreDep,
    name: Annotated[Name, Body()],
    text: Annotated[str, Body()],
) -> DocumentId:
    """Keep a document to review, and return its id."""
    check_texts([text, name], service.limits, "texts")
    (id,) = store.add_documents([NewNote(name, text)]).documents
    return DocumentId(document=id)


@router.post("/import")
def import_documents(
    service: ServiceDep,
    store: StoreDep,
    files: Annotated[
        list[NewFile], Body(embed=True, min_length=1, max_length=MOST_FILES)
    ],
) -> Added:
    """Keep the documents of files, all or none; what mentions have becomes a proposal.

    Formats: those that `link` reads, and archives of brat, whose two files belong
    together. Documents of equal text and different names are kept apart.
    """
    try:
        read = [(o.name, base64.b64decode(o.content, validate=True)) for o in files]
    except ValueError:
        raise wrong_request("`content` in base64") from None
    return import_uploads(store, service.kb, read)


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
        documents=store.documents(reviewer), formats=[*export.list_exports()]
    )


@router.get("/reviewers")
def list_reviewers(store: StoreDep) -> list[str]:
    """The names of those who have decided a mention or done a document."""
    return store.reviewers()


@router.get("/documents/{id}")
async def read_document(
    service: ServiceDep, store: StoreDep, id: str, reviewer: Reviewer = None
) -> DocumentAnswer:
    """A document with its mentions, and the decisions of all reviewers that count.

    With `reviewer`, the mentions have those that the reviewer has marked.
    """
    document = await run_in_threadpool(find_document, store, id)
    kb = service.kb.manifest.digest
    mentions = [*await link_document(service, store, document)]
    decisions = await run_in_threadpool(store.latest, document=id)
    known = {(one["start"], one["end"]) for one in mentions}
    marks = [
        one
        for one in decisions
        if one.reviewer == reviewer and not one.settles
        if (one.is_mention or one.chosen == OPEN) and one.spot[1:] not in known
    ]
    mentions += (await link_marks(service, store, marks)).get(id, [])
    mentions.sort(key=lambda one: (one["start"], -one["end"]))
    done = await run_in_threadpool(store.done)
    return DocumentAnswer(
        **{**asdict(document), "filter": json.loads(document.filter or "{}")},
        kb=kb,
        mentions=mentions,
        decisions=decisions,
        concepts=name_chosen(service.kb, [one.chosen for one in decisions]),
        remarks=await run_in_threadpool(store.remarks, id),
        done=done.get(id, []),
    )


@router.delete("/documents/{id}")
def delete_document(store: StoreDep, teacher: TeacherDep, id: str) -> DeletedAnswer:
    """Remove a document for good: text, decisions, and what learned from it."""
    find_document(store, id)
    return DeletedAnswer(versions=teacher.forget(id))


@router.post("/documents/{id}/done")
def set_done(
    access: AccessDep,
    store: StoreDep,
    id: str,
    reviewer: Annotated[Name, Body()],
    done: Annotated[bool, Body()],
) -> bool:
    """Record that a reviewer has done a document, or has not."""
    access.check_names([reviewer])
    store.set_done(find_document(store, id).id, reviewer, done)
    return done


def check_decision(service: Service, store: ReviewStore, body: NewDecision) -> None:
    """Raise an error for a decision that is not possible."""
    document = find_document(store, body.document)
    if body.reviewer == AGREED:
        expected = f"the name of a person as `reviewer` (not {AGREED!r}), and `settles`"
        raise wrong_request(expected)
    if not body.start < body.end <= len(document.text):
        expected = "`start` and `end` inside the text"
        raise wrong_request(expected)
    if body.settles and body.chosen == OPEN:
        raise wrong_request("`chosen` to say what holds, with `settles`")
    chosen = body.chosen or NIL
    if chosen not in NO_CONCEPTS and service.kb.concept(chosen) is None:
        proposed = {span.cui for span in store.proposals(body.document) or ()}
        if chosen not in proposed:  # of another vocabulary, with its note
            find_concept(service.kb, chosen)


@router.post("/decisions")
def add_decisions(
    access: AccessDep,
    service: ServiceDep,
    store: StoreDep,
    decisions: Annotated[
        list[NewDecision], Body(embed=True, min_length=1, max_length=MOST_DECISIONS)
    ],
) -> list[str]:
    """Write decisions, all or none, and return their keys when that is done."""
    access.check_names(one.reviewer for one in decisions)
    for one in decisions:
        check_decision(service, store, one)
    store.add_decisions(decisions)
    return [one.key for one in decisions]


@router.post("/remarks")
def add_remarks(
    access: AccessDep,
    store: StoreDep,
    decisions: Annotated[
        list[NewRemark], Body(embed=True, min_length=1, max_length=MOST_DECISIONS)
    ],
) -> list[str]:
    """Write remarks, all or none, and return their keys when that is done."""
    access.check_names(one.reviewer for one in decisions)
    for one in decisions:
        text = find_document(store, one.document).text
        if not one.start < one.end <= len(text):
            raise wrong_request("`start` and `end` inside the text")
    store.add_remarks(decisions)
    return [one.key for one in decisions]


@router.get("/queue")
async def list_queue(
    service: ServiceDep,
    store: StoreDep,
    reviewer: OneReviewer,
) -> queue.Queue:
    """What a reviewer has not decided, in all documents: the most uncertain first.

    Equal mentions with the same proposal are a group. Documents that are not linked yet
    are left out; see /reviews/prepare.
    """
    digest = service.kb.manifest.digest
    decisions = await run_in_threadpool(store.latest, reviewer=reviewer)
    marks = [one for one in decisions if one.chosen == OPEN]
    marked = await link_marks(service, store, marks)
    return await run_in_threadpool(queue.make_queue, store, digest, reviewer, marked)


@router.post("/occurrences")
def list_occurrences(
    service: ServiceDep,
    store: StoreDep,
    text: Annotated[Text, Body(min_length=1)],
    document: Annotated[Name, Body()],
    reviewer: Annotated[Name, Body()],
) -> queue.Places:
    """Where a text stands, as whole words in any case, that is open for a reviewer."""
    digest = service.kb.manifest.digest
    return queue.find_occurrences(store, digest, reviewer, text, document)


@router.post("/places")
def list_places(
    store: StoreDep,
    text: Annotated[Text | None, Body()] = None,
    chosen: Annotated[Name | None, Body()] = None,
) -> queue.Places:
    """Where a text was decided, or where a concept was chosen."""
    return queue.find_places(store, text=text, chosen=chosen)


@router.get("/differences")
def list_differences(service: ServiceDep, store: StoreDep) -> agreement.Differences:
    """Where reviewers differ, with the text around; what is not settled first."""
    return agreement.find_differences(store, service.kb)


@router.get(
    "/export",
    response_class=Response,
    responses=describe_file(*(media for media, _ in export.list_exports().values())),
)
def export_decisions(
    service: ServiceDep,
    store: StoreDep,
    format: Annotated[str, Query(max_length=LONGEST_VALUE)] = "jsonl",
    reviewer: Reviewer = None,
) -> Response:
    """The decisions as an annotated file; `teach`, `evaluate` and others read it.

    The reviewer "agreed" stands for what all reviewers agree on.
    """
    data = export.export_reviews(store, service.kb, format, reviewer)
    media, ending = export.list_exports()[format]
    return to_file(data, f"reviews{ending}", media)


@router.post("/quality")
async def compute_quality(service: ServiceDep, store: StoreDep) -> quality.Quality:
    """How the knowledge base in use answers the mentions that were decided.

    It is a POST, since it links all of them again.
    """
    return await quality.compute_quality(service, store)


@router.get("/teach", dependencies=OF_TEACHER)
def read_teaching(teacher: TeacherDep) -> TeachingState:
    """How far the teaching is, and its report."""
    return teacher.describe()


@router.post("/teach", status_code=202, dependencies=OF_TEACHER)
def teach(teacher: TeacherDep) -> TeachingState:
    """Make a copy of the knowledge base that has learned from all decisions."""
    teacher.start()
    return teacher.describe()


@router.post("/switch", dependencies=OF_TEACHER)
def switch_version(
    teacher: TeacherDep, number: Annotated[int | None, Body(embed=True, ge=1)]
) -> TeachingState:
    """Use a taught version from the next request on; null = that of the start."""
    teacher.use(number)
    return teacher.describe()


@router.delete("/teach/{number}", dependencies=OF_TEACHER)
def remove_version(teacher: TeacherDep, number: int) -> TeachingState:
    """Remove a taught version for good."""
    teacher.remove(number)
    return teacher.describe()
