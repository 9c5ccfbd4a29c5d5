"""The open mentions of all documents: equal ones together, the most uncertain first."""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache

from .mentions import ShownMention, measure_doubt
from .store import Decision, ReviewedDocument, ReviewStore

AROUND = 80  # characters of the text before and after a mention
MOST_GROUPS = 50
MOST_FOUND = 100  # places of a text or a concept
MOST_PLACES = 500  # of a group that one key decides


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
    """Open mentions with equal text and proposal; `doubt`: see `measure_doubt`."""

    mention: ShownMention
    doubt: float
    documents: int = 0
    places: list[Place] = field(default_factory=list)


@dataclass(frozen=True)
class Queue:
    """The first groups of what is open; `mentions` and `groups` are the numbers of all.

    Attributes:
        kb: Digest of the knowledge base.
    """

    kb: str
    mentions: int
    groups: int
    first: list[Group]


def is_open(mention: ShownMention, decided: Collection[Decision]) -> bool:
    """Return whether a mention has no decision, and overlaps none that has one."""
    return not any(
        one.start < mention["end"] and mention["start"] < one.end for one in decided
    )


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


@dataclass(frozen=True)
class DecidedPlaces:
    """The first places where something was decided, and the number of all."""

    total: int
    places: list[Place]


def find_places(
    store: ReviewStore, *, text: str | None = None, chosen: str | None = None
) -> DecidedPlaces:
    """Find where a text was decided, or where a concept was chosen; each place once."""
    places: dict[tuple[str, int, int], Place] = {}
    read = cache(store.document)
    for one in store.latest():
        document = read(one.document)
        known = (one.document, one.start, one.end)
        if document is None or known in places:
            continue
        same = text is None or document.text[one.start : one.end] == text
        if same and chosen in (None, one.chosen):
            places[known] = show_place(document, one.start, one.end, one.label)
    return DecidedPlaces(len(places), [*places.values()][:MOST_FOUND])


def make_queue(store: ReviewStore, kb: str, reviewer: str) -> Queue:
    """Return what a reviewer has not decided, of the documents that are linked.

    Args:
        kb: Digest of the knowledge base.
    """
    decided: dict[str, list[Decision]] = {}
    for decision in store.latest(reviewer=reviewer):
        decided.setdefault(decision.document, []).append(decision)
    groups: dict[tuple[str, str], Group] = {}
    total = 0
    done = store.done()
    for counted in store.documents():
        links: list[ShownMention] = store.links(counted.id, kb) or []
        document = store.document(counted.id)
        if document is None or reviewer in done.get(counted.id, ()):
            continue
        own = decided.get(counted.id, [])
        for mention in links:
            if own and not is_open(mention, own):
                continue
            total += 1
            words = " ".join(mention["text"].casefold().split())
            key = words, mention["cui"] or ""
            group = groups.setdefault(key, Group(mention, measure_doubt(mention)))
            if len(group.places) < MOST_PLACES:
                place = (mention["start"], mention["end"], mention["label"])
                group.places.append(show_place(document, *place))
    for group in groups.values():
        group.documents = len({place.document for place in group.places})
    ordered = sorted(groups.values(), key=lambda one: (-one.doubt, -len(one.places)))
    return Queue(kb, total, len(groups), ordered[:MOST_GROUPS])
