"""How the knowledge base in use answers the mentions that reviewers agree on."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool

from ...evaluation.diagnose import CAUSES, find_cause, info_finder, score_candidates
from ...formats.gold import NIL
from ...kb.knowledge_base import KnowledgeBase
from ...linking.candidates import Candidate
from ..service import Service
from .agreement import list_agreed
from .store import ReviewStore

NEAR = 5  # candidates in which the cause of an error is looked for
EXAMPLES = 5  # mentions that are shown of each cause
DIGITS = 4


class DecidedMention(NamedTuple):
    """A text that was decided, and how often; `chosen` is an id or "NIL"."""

    text: str
    label: str
    chosen: str
    times: int


class Answered(NamedTuple):
    """A decided mention, and what the knowledge base says.

    Attributes:
        candidates: The first `NEAR`, without a threshold.
        cui: What it is linked to, with the settings of the service.
    """

    mention: DecidedMention
    candidates: Sequence[Candidate]
    cui: str | None

    @property
    def is_first(self) -> bool:
        """Whether the first candidate is right."""
        return [one["cui"] for one in self.candidates[:1]] == [self.mention.chosen]


@dataclass(frozen=True)
class CauseCount:
    """Why first candidates are wrong; see `CAUSES`."""

    cause: str
    mentions: int
    advice: str
    examples: list[str]


@dataclass(frozen=True)
class Quality:
    """How mentions that reviewers agree on are answered; a share of nothing is None.

    Attributes:
        mentions: Number of mentions.
        first: Of those with a concept, the share whose first candidate is right.
        precision: Of those that are linked, the share that is right.
        recall: Of those with a concept, the share that is linked to it.
    """

    mentions: int
    first: float | None
    precision: float | None
    recall: float | None
    causes: list[CauseCount]


def list_mentions(store: ReviewStore, kb: KnowledgeBase) -> list[DecidedMention]:
    """Return the mentions that reviewers agree on, each text and concept once."""

    @cache
    def find(chosen: str) -> str:
        concept = kb.concept(chosen) if chosen != NIL else None
        return concept.cui if concept else chosen

    counts: Counter[tuple[str, str, str]] = Counter()
    for document, decisions in list_agreed(store):
        for one in decisions:
            if one.is_mention:
                text = document.text[one.start : one.end]
                counts[text, one.label, find(one.chosen or NIL)] += 1
    return [DecidedMention(*key, count) for key, count in counts.items()]


async def compute_quality(service: Service, store: ReviewStore) -> Quality:
    """Link again what reviewers agree on, and compare the answers."""
    kb = service.kb
    mentions = await run_in_threadpool(list_mentions, store, kb)
    texts, labels = [one.text for one in mentions], [one.label for one in mentions]
    linked = await service.link_mentions(texts, {}, labels)
    all = {"threshold": 0.0, "k": NEAR}
    ranked = await service.link_mentions(texts, all, labels)
    answered = [
        Answered(mention, found.candidates, link.cui)
        for mention, (found, _), (link, _) in zip(mentions, ranked, linked, strict=True)
    ]
    return await run_in_threadpool(measure_quality, kb, answered)


def count_mentions(answered: Iterable[Answered]) -> int:
    return sum(one.mention.times for one in answered)


def measure_quality(kb: KnowledgeBase, answered: Sequence[Answered]) -> Quality:
    """Compare the answers of the knowledge base with the decisions."""
    meant = [one for one in answered if one.mention.chosen != NIL]
    linked = [one for one in answered if one.cui is not None]

    def share(
        whole: Sequence[Answered], is_part: Callable[[Answered], bool]
    ) -> float | None:
        if not whole:
            return None
        return round(
            count_mentions(filter(is_part, whole)) / count_mentions(whole), DIGITS
        )

    def is_right(one: Answered) -> bool:
        return one.cui == one.mention.chosen

    return Quality(
        mentions=count_mentions(answered),
        first=share(meant, lambda one: one.is_first),
        precision=share(linked, is_right),
        recall=share(meant, is_right),
        causes=find_causes(kb, [one for one in meant if not one.is_first]),
    )


def find_causes(kb: KnowledgeBase, wrong: Iterable[Answered]) -> list[CauseCount]:
    """Find why first candidates are wrong, the most frequent cause first."""
    info = info_finder(kb, {})
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    for mention, candidates, _ in wrong:
        known = kb.concept(mention.chosen)
        parts = [frozenset([known.cui] if known else [])]
        ranking = score_candidates(candidates)
        cause = find_cause(mention.text, parts, ranking, info, k=NEAR)
        if cause is not None:
            counts[cause] += mention.times
            examples.setdefault(cause, []).append(mention.text)
    return [
        CauseCount(cause, count, CAUSES[cause].text, examples[cause][:EXAMPLES])
        for cause, count in counts.most_common()
    ]
