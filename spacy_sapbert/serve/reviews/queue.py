"""What a reviewer has to do, in all documents: open mentions, and equal texts."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import regex

from ...linking.certainty import Certainty
from .decisions import OPEN, Decision, Spot
from .mentions import ShownMention
from .store import ReviewedDocument, ReviewStore

AROUND = 80  # characters of the text before and after a mention
MOST_GROUPS = 50
MOST_FOUND = 100  # places of a text or a concept
MOST_PLACES = 500  # of a group that one key decides
MOST_OCCURRENCES = 1_000
DOUBT: tuple[Certainty, ...] = ("tied", "unsure", "none", "sure")  # order of the queue


@dataclass(frozen=True)
class Place:
    """Where a mention is, with the text around it."""

    document: str
    name: str
    start: int
    end: int
    label: str
    before: str
    text: str
    after: str


@dataclass
class Group:
    """Open mentions with equal text and proposal."""

    mention: ShownMention
    places: list[Place] = field(default_factory=list)


@dataclass(frozen=True)
class Queue:
    """The first groups of what is open.

    Attributes:
        kb: Digest of the knowledge base.
        mentions: Number of all that are open.
    """

    kb: str
    mentions: int
    first: list[Group]


@dataclass(frozen=True)
class Places:
    """The first places of a text or a concept, and the number of all."""

    total: int
    places: list[Place]


def show_place(document: ReviewedDocument, start: int, end: int, label: str) -> Place:
    """Return a place with the text around it."""
    text = document.text
    return Place(
        document.id,
        document.name,
        start,
        end,
        label,
        text[max(0, start - AROUND) : start],
        text[start:end],
        text[end : end + AROUND],
    )


def find_places(
    store: ReviewStore, *, text: str | None = None, chosen: str | None = None
) -> Places:
    """Find where a text was decided, or where a concept was chosen; each place once."""
    places: dict[Spot, Place] = {}
    read = cache(store.document)
    for one in store.latest():
        document = read(one.document)
        if document is None or one.spot in places or one.chosen == OPEN:
            continue
        same = text is None or document.text[one.start : one.end] == text
        if same and chosen in (None, one.chosen):
            places[one.spot] = show_place(document, one.start, one.end, one.label)
    return Places(len(places), [*places.values()][:MOST_FOUND])


def is_open(start: int, end: int, decided: Collection[Decision]) -> bool:
    """Return whether a span has no decision, and overlaps no decided mention."""
    return not any(
        one.chosen != OPEN if (one.start, one.end) == (start, end) else one.is_mention
        for one in decided
        if one.overlaps(start, end)
    )


def group_by_document(decisions: Iterable[Decision]) -> dict[str, list[Decision]]:
    """Return decisions by the id of their document."""
    found: dict[str, list[Decision]] = {}
    for one in decisions:
        found.setdefault(one.document, []).append(one)
    return found


def make_queue(
    store: ReviewStore,
    kb: str,
    reviewer: str,
    marked: Mapping[str, Sequence[ShownMention]],
) -> Queue:
    """Return what a reviewer has not decided, of the documents that are linked.

    Args:
        kb: Digest of the knowledge base.
        marked: What the reviewer has marked and not decided, by document.
    """
    decided = group_by_document(store.latest(reviewer=reviewer))
    groups: dict[tuple[str, str], Group] = {}
    total = 0
    for document in store.to_do(reviewer):
        found: list[ShownMention] = store.links(document.id, kb) or []
        own = decided.get(document.id, [])
        open_ones = [one for one in found if is_open(one["start"], one["end"], own)]
        mentions = {
            (one["start"], one["end"]): one
            for one in (*marked.get(document.id, ()), *open_ones)
        }
        total += len(mentions)
        for (start, end), mention in mentions.items():
            words = " ".join(mention["text"].casefold().split())
            group = groups.setdefault((words, mention["cui"] or ""), Group(mention))
            if len(group.places) < MOST_PLACES:
                place = show_place(document, start, end, mention["label"])
                group.places.append(place)
    ordered = sorted(groups.values(), key=doubt)
    return Queue(kb, total, ordered[:MOST_GROUPS])


def doubt(group: Group) -> tuple[int, float, int]:
    """Return the sort key of a group: what most needs a person comes first.

    Of equal certainty, that is the least probable link, and the mention without a link
    to which a concept is nearest.
    """
    mention = group.mention
    first = next(iter(mention["candidates"]), None)
    chance = (first["probability"] or 0.0) if first else 0.0
    return (
        DOUBT.index(mention["certainty"]),
        chance if mention["cui"] else -chance,
        -len(group.places),
    )


def find_occurrences(
    store: ReviewStore, kb: str, reviewer: str, text: str, here: str
) -> Places:
    """Find a text, as whole words in any case, where a reviewer may decide it too.

    That is in documents that the reviewer has not done, where nothing is decided, and
    where no mention of other words is.

    Args:
        kb: Digest of the knowledge base, whose mentions are looked at.
        here: Id of the document that comes first.
    """
    words = r"\s+".join(map(regex.escape, text.split()))
    pattern = regex.compile(rf"(?<!\w){words}(?!\w)", regex.IGNORECASE)
    matching = [
        document
        for document in store.to_do(reviewer)
        if words and pattern.search(document.text)
    ]
    matching.sort(key=lambda one: one.id != here)
    places: list[Place] = []
    total = 0
    for document in matching:
        found: list[ShownMention] = store.links(document.id, kb) or []
        spans = [(one["start"], one["end"], True) for one in found]
        spans += [
            (one.start, one.end, one.chosen == OPEN)
            for one in store.latest(document=document.id, reviewer=reviewer)
        ]
        for match in pattern.finditer(document.text):
            start, end = match.span()
            free = all(
                undecided and (first, last) == (start, end)
                for first, last, undecided in spans
                if first < end and start < last
            )
            total += free
            if free and len(places) < MOST_OCCURRENCES:
                places.append(show_place(document, start, end, ""))
    return Places(total, places)
