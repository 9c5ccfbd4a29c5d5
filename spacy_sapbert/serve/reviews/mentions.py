"""The mentions of the documents to review, with what the knowledge base says of them.

A document keeps the mentions that it came with; else they are detected. They are linked
once for each version of the knowledge base.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool
from typing_extensions import TypedDict

from ...formats.entities import Context
from ...kb.knowledge_base import KnowledgeBase
from ...linking.certainty import Certainty, judge_link
from ..lookup import FoundConcept
from ..service import Service
from .decisions import Decision
from .store import ReviewedDocument, ReviewStore, Span

SHOWN = 9  # candidates, one for each digit of the keyboard
TOGETHER = 16  # documents of a request that links those that are not linked yet


class ShownConcept(FoundConcept):
    """A candidate as the page shows it."""

    probability: float | None
    tie: str | None


class ShownMention(TypedDict):
    """A mention as the page shows it.

    Attributes:
        cui: The concept that is proposed.
        proposed: It comes from the file of the document.
        known: The knowledge base has the concept, or none is proposed.
        marked: A reviewer has marked it; nothing else has found it.
        certainty: See `judge_link`.
        context: What a component of the pipeline says of it; see `CONTEXTS`.
    """

    start: int
    end: int
    text: str
    label: str
    cui: str | None
    note: str | None
    proposed: bool
    known: bool
    marked: bool
    certainty: Certainty
    context: Context
    candidates: list[ShownConcept]


def show_mention(
    kb: KnowledgeBase,
    text: str,
    span: Span,
    cui: str | None,
    note: str | None,
    found: Any,
) -> ShownMention:
    """Return a mention as the page shows it.

    Args:
        text: Of the mention.
        span: Its `cui` is what a file has for it, also an id that the knowledge base
            does not have; then it is the proposal, and the first candidate.
        cui, note, found: Its link and the candidates.
    """
    fields = ShownConcept.__annotations__
    candidates: Any = [{name: one[name] for name in fields} for one in found]
    concept = kb.concept(span.cui) if span.cui else None
    if span.cui:
        cui, note = concept.cui if concept else span.cui, None
        name = concept.name if concept else span.cui
        types = concept.types if concept else []
        own: Any = {"cui": cui, "name": name, "alias": name, "score": None}
        own |= {"probability": None, "types": types, "tie": None}
        candidates.sort(key=lambda one: one["cui"] != cui)  # the others stay in order
        if not candidates or candidates[0]["cui"] != cui:
            candidates.insert(0, own)
    known = not span.cui or concept is not None
    proposed = bool(span.cui)
    certainty = judge_link(text, cui, candidates, note=note, proposed=proposed)
    return {
        "start": span.start,
        "end": span.end,
        "text": text,
        "label": span.label,
        "cui": cui,
        "note": note,
        "proposed": proposed,
        "known": known,
        "marked": False,
        "certainty": certainty if known else "unsure",
        "context": "",
        "candidates": candidates[:SHOWN],
    }


def read_settings(document: ReviewedDocument) -> dict[str, Any]:
    """Return the settings with which the mentions of a document are linked."""
    return {"filter": json.loads(document.filter)} if document.filter else {}


async def link_spans(
    service: Service,
    spans: Sequence[tuple[str, Span]],
    settings: dict[str, Any],
) -> list[ShownMention]:
    """Link spans of texts, each on its own."""
    texts = [text[span.start : span.end] for text, span in spans]
    labels = [span.label for _, span in spans]
    kb, results = service.kb, await service.link_mentions(texts, settings, labels)
    return [
        show_mention(kb, text, span, linked.cui, linked.note, linked.candidates)
        for text, (_, span), (linked, _) in zip(texts, spans, results, strict=True)
    ]


async def link_marks(
    service: Service, store: ReviewStore, marks: Iterable[Decision]
) -> dict[str, list[ShownMention]]:
    """Return the mentions that reviewers have marked, linked, by document."""
    documents: dict[str, ReviewedDocument | None] = {}
    groups: dict[str, list[tuple[ReviewedDocument, Span]]] = {}  # by filter
    for one in marks:
        if one.document not in documents:
            found = await run_in_threadpool(store.document, one.document)
            documents[one.document] = found
        if (document := documents[one.document]) is not None:
            span = Span(one.start, one.end, one.label, "")
            groups.setdefault(document.filter, []).append((document, span))
    marked: dict[str, list[ShownMention]] = {}
    for some in groups.values():
        spans = [(document.text, span) for document, span in some]
        linked = await link_spans(service, spans, read_settings(some[0][0]))
        for (document, _), mention in zip(some, linked, strict=True):
            mention["marked"] = True
            marked.setdefault(document.id, []).append(mention)
    return marked


async def link_document(
    service: Service, store: ReviewStore, document: ReviewedDocument
) -> list[ShownMention]:
    """Return the mentions of a document; they are kept for the next time."""
    kb = service.kb.manifest.digest
    known = await run_in_threadpool(store.links, document.id, kb)
    if known is not None:
        return known
    spans = await run_in_threadpool(store.proposals, document.id)
    if spans is None:
        settings = read_settings(document)
        (result,) = await service.link_texts([document.text], settings)
        kb = result.kb  # a text that cannot be linked has no entities
        found: list[ShownMention] = []
        for one in result.entities:
            span = Span(one["start"], one["end"], one["label"], "")
            link = one["cui"], one["note"], one["candidates"]
            shown = show_mention(service.kb, one["text"], span, *link)
            found.append({**shown, "context": one.get("context", "")})
    else:
        texts = [(document.text, span) for span in spans]
        found = await link_spans(service, texts, read_settings(document))
    found.sort(key=lambda one: (one["start"], -one["end"]))
    await run_in_threadpool(store.set_links, document.id, found, kb)
    return found


async def link_some(service: Service, store: ReviewStore) -> int:
    """Link a few documents that are not linked yet, and return how many are left."""
    ids = await run_in_threadpool(store.unlinked, service.kb.manifest.digest)
    for id in ids[:TOGETHER]:
        document = await run_in_threadpool(store.document, id)
        if document is not None:
            await link_document(service, store, document)
    return max(0, len(ids) - TOGETHER)
