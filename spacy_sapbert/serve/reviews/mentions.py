"""The mentions of the documents to review, with what the knowledge base says of them.

A document keeps the mentions that it came with; else they are detected. They are linked
once for each version of the knowledge base.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from typing_extensions import TypedDict

from ...kb.knowledge_base import KnowledgeBase
from ..service import Service
from .store import ReviewedDocument, ReviewStore, Span

SHOWN = 9  # candidates, one for each digit of the keyboard
TOGETHER = 16  # documents of a request that links those that are not linked yet
CLEAR_MARGIN = 0.1  # of the scores of two concepts, from which the first is clear


class ShownConcept(TypedDict):
    """A candidate as the page shows it."""

    cui: str
    name: str
    alias: str
    score: float | None
    probability: float | None
    types: list[str]
    tie: str | None


class ShownMention(TypedDict):
    """A mention as the page shows it.

    Attributes:
        cui: The concept that is proposed.
        proposed: It comes from the file of the document.
    """

    start: int
    end: int
    text: str
    label: str
    cui: str | None
    note: str | None
    proposed: bool
    candidates: list[ShownConcept]


def show_candidates(candidates: Iterable[Any]) -> list[ShownConcept]:
    """Return candidates of a link or an entity without what the page does not show."""
    return [
        {
            "cui": one["cui"],
            "name": one["name"],
            "alias": one["alias"],
            "score": one["score"],
            "probability": one["probability"],
            "types": one["types"],
            "tie": one["tie"],
        }
        for one in [*candidates][:SHOWN]
    ]


def propose(kb: KnowledgeBase, mention: ShownMention, cui: str) -> None:
    """Make the concept that a file has for a mention the proposal, as first candidate.

    A concept that the knowledge base does not have is ignored.
    """
    concept = kb.concept(cui) if cui else None
    if concept is None:
        return
    known = [one for one in mention["candidates"] if one["cui"] == concept.cui]
    others = [one for one in mention["candidates"] if one["cui"] != concept.cui]
    first = known or [
        ShownConcept(
            cui=concept.cui,
            name=concept.name,
            alias=concept.name,
            score=None,
            probability=None,
            types=concept.types,
            tie=None,
        )
    ]
    mention["candidates"] = [*first, *others][:SHOWN]
    mention["cui"], mention["note"], mention["proposed"] = concept.cui, None, True


async def link_spans(
    service: Service, spans: Sequence[tuple[str, Span]]
) -> list[ShownMention]:
    """Link texts with their spans, each on its own."""
    texts = [text[span.start : span.end] for text, span in spans]
    labels = [span.label for _, span in spans]
    found: list[ShownMention] = []
    most = service.limits.documents
    for first in range(0, len(texts), most):
        part = slice(first, first + most)
        results = await service.link_mentions(texts[part], {}, labels[part])
        for (_, span), text, result in zip(
            spans[part], texts[part], results, strict=True
        ):
            mention = ShownMention(
                start=span.start,
                end=span.end,
                text=text,
                label=span.label,
                cui=result.linked.cui,
                note=result.linked.note,
                proposed=False,
                candidates=show_candidates(result.linked.candidates),
            )
            propose(service.kb, mention, span.cui)
            found.append(mention)
    return found


async def link_document(
    service: Service, store: ReviewStore, document: ReviewedDocument
) -> list[ShownMention]:
    """Return the mentions of a document; they are kept for the next time."""
    kb = service.kb.manifest.digest
    known: list[ShownMention] | None = store.links(document.id, kb)
    if known is not None:
        return known
    spans = store.proposals(document.id)
    if spans is None:
        (result,) = await service.link_texts([document.text], {})
        kb = result.kb  # a text that cannot be linked has no entities
        found = [
            ShownMention(
                start=one["start"],
                end=one["end"],
                text=one["text"],
                label=one["label"],
                cui=one["cui"],
                note=one["note"],
                proposed=False,
                candidates=show_candidates(one["candidates"]),
            )
            for one in result.entities
        ]
    else:
        found = await link_spans(service, [(document.text, span) for span in spans])
    found.sort(key=lambda one: (one["start"], -one["end"]))
    store.set_links({document.id: found}, kb)
    return found


async def link_some(service: Service, store: ReviewStore) -> int:
    """Link a few documents that are not linked yet.

    Returns:
        How many are left.
    """
    ids = store.unlinked(service.kb.manifest.digest)
    for id in ids[:TOGETHER]:
        document = store.document(id)
        if document is not None:
            await link_document(service, store, document)
    return max(0, len(ids) - TOGETHER)


def measure_doubt(mention: ShownMention) -> float:
    """Return how uncertain a link is: 0 = certain, 1 = equal candidates.

    With probabilities it is 1 minus that of the first candidate, else it falls with the
    margin of the first two scores.
    """
    candidates = mention["candidates"]
    if not candidates:
        return 0.0
    first, *others = candidates
    if mention["proposed"]:
        best = max((one["score"] or 0.0 for one in others), default=0.0)
        return 0.1 if (first["score"] or 0.0) >= best else 0.9
    if first["probability"] is not None:
        chance = first["probability"]
        return 1 - chance if mention["cui"] else min(1.0, 2 * chance)
    if first["tie"] is not None:
        return 1.0
    score = first["score"] or 0.0
    if mention["cui"] is None:
        return max(0.0, score) / 2  # the nearer a concept is, the more it may be meant
    margin = score - max((one["score"] or 0.0 for one in others), default=0.0)
    return max(0.0, 1 - margin / CLEAR_MARGIN) * 0.9 if score < 1 else 0.05
