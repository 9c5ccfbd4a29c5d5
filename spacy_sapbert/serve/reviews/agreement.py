"""What reviewers agree on, and where they differ.

`judge_places` is the one definition of *agreed*: Agree, export, teaching and quality
read it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from ...kb.knowledge_base import KnowledgeBase
from ..lookup import FoundConcept, name_chosen
from .decisions import NO_MENTION, OPEN, Decision, Spot
from .queue import Place, group_by_document, show_place
from .store import ReviewedDocument, ReviewStore

MOST_DIFFERENCES = 10_000


class Judged(NamedTuple):
    """What reviewers say of a place.

    Attributes:
        decision: One of those on it, of which the label counts.
        choices: What each says; None = the text is not a mention.
        agreed: What holds: an id, "NIL" or `NO_MENTION`; None = nothing yet.
        differs: Whether they differ, also if it is settled.
    """

    decision: Decision
    choices: dict[str, str | None]
    agreed: str | None
    differs: bool


@dataclass(frozen=True)
class Difference:
    """A place where reviewers differ.

    Attributes:
        choices, agreed: See `Judged`.
    """

    place: Place
    choices: dict[str, str | None]
    agreed: str | None


@dataclass(frozen=True)
class Differences:
    """The first places where reviewers differ, and the concepts that were chosen.

    Attributes:
        total: Number of all places.
    """

    total: int
    places: list[Difference]
    concepts: list[FoundConcept]


def judge_places(
    decisions: Iterable[Decision], done: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, list[Judged]]]:
    """Yield the id of each document, and what reviewers say of each place in it.

    A place is the span of a decision. What holds there is

    1. what was settled; a mention that was settled also settles the differences that it
       overlaps: these are no mentions;
    2. else what all say who say something: by a decision on the span, or on a mention
       that overlaps it (then this is none), or by having done the document and being
       silent on it (then it is none). If only one says something, that holds;
    3. else nothing. It is also nothing as long as another reviewer, who says nothing of
       the place, has left a mention `OPEN` in the document: the reviewer is at work.

    Args:
        decisions: Those that count; see `ReviewStore.latest`.
        done: Who has done each document.
    """
    for id, every in group_by_document(decisions).items():
        settled = {one.spot: one for one in every if one.settles}
        answers: dict[str, dict[Spot, Decision]] = {n: {} for n in done.get(id, ())}
        for one in every:
            if not one.settles and one.chosen != OPEN:
                answers.setdefault(one.reviewer, {})[one.spot] = one
        at_work = {one.reviewer for one in every if one.chosen == OPEN}
        places = {one.spot: one for one in reversed(every) if one.chosen != OPEN}
        judged = []
        for spot, decision in sorted(places.items()):
            _, start, end = spot
            choices: dict[str, str | None] = {}
            for name, own in sorted(answers.items()):
                if spot in own:
                    choices[name] = own[spot].chosen if own[spot].is_mention else None
                elif name in done.get(id, ()) or any(
                    one.is_mention and one.overlaps(start, end) for one in own.values()
                ):
                    choices[name] = None
            differs = len({*choices.values()}) > 1
            agreed: str | None = None
            if spot in settled:
                agreed = settled[spot].chosen
            elif differs:
                over = [one for one in settled.values() if one.overlaps(start, end)]
                agreed = NO_MENTION if any(one.is_mention for one in over) else None
            elif choices and not at_work - choices.keys():
                agreed = next(iter(choices.values())) or NO_MENTION
            judged.append(Judged(decision, choices, agreed, differs))
        yield id, judged


def list_agreed(
    store: ReviewStore,
) -> Iterator[tuple[ReviewedDocument, list[Decision]]]:
    """Return what holds in each document: mentions, and spans that are not mentions.

    A document is left out as long as nothing in it holds, unless it was done and nobody
    differs.
    """
    done = store.done()
    found: dict[str, list[Decision]] = {id: [] for id in done}
    for id, judged in judge_places(store.latest(), done):
        found[id] = [
            decision.model_copy(update={"chosen": agreed})
            for decision, _, agreed, _ in judged
            if agreed is not None
        ]
        if not found[id]:
            del found[id]
    return store.with_documents(found.items())


def find_differences(store: ReviewStore, kb: KnowledgeBase) -> Differences:
    """Find where reviewers differ, those that are not settled first."""
    found: list[Difference] = []
    read = cache(store.document)
    for id, judged in judge_places(store.latest(), store.done()):
        for one, choices, agreed, differs in judged:
            if differs and (note := read(id)) is not None:
                place = show_place(note, one.start, one.end, one.label)
                found.append(Difference(place, choices, agreed))
    found.sort(key=lambda one: one.agreed is not None)
    first = found[:MOST_DIFFERENCES]
    ids = {id for one in first for id in (*one.choices.values(), one.agreed)}
    return Differences(len(found), first, name_chosen(kb, ids))
