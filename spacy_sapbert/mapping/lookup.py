"""Terms → their links: the best of the readings of each term."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from ..linking.candidates import Candidate
from ..linking.certainty import Certainty, judge_link
from ..linking.link import Linked
from ..linking.options import LinkOptions
from ..linking.text import list_words
from .terms import has_side, list_readings

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

EXACT, LINKED, REVIEW, NONE = "exact", "linked", "review", "none"
STATUSES = {
    EXACT: "the term is a name of the concept, and the link is sure",
    LINKED: "the link is sure",
    REVIEW: "not sure, or ambiguous: choose a candidate, or NIL",
    NONE: "no candidate",
}
TERMS_AT_ONCE = 256
NO_THRESHOLD = "no_threshold"  # a note


@dataclass(frozen=True)
class Found:
    """What was found for a term; `note` says why there is no concept, see `Linked`.

    Only what is sure has the status `EXACT` or `LINKED`; see `judge_link`.
    """

    read_as: str
    status: str
    cui: str | None
    note: str | None
    candidates: list[Candidate]
    certainty: Certainty = "none"

    @property
    def final(self) -> str | None:
        """The concept that holds without a person."""
        return self.cui if self.status in (EXACT, LINKED) else None


class Query(NamedTuple):
    """A term, and the types and languages that its row allows; empty = all."""

    term: str
    types: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()


def map_queries(
    kb: "KnowledgeBase", queries: Iterable[Query], options: LinkOptions
) -> Iterator[Found]:
    """Look up terms; the best of their readings counts.

    A reading that is a name comes before all others, then the one with the highest
    score. But "left heart failure" is rather "Left-sided heart failure" than the name
    "Heart failure": a reading keeps its side if its name has all of its words.
    """
    queries = iter(queries)
    while batch := list(islice(queries, TERMS_AT_ONCE)):
        yield from map_batch(kb, batch, options)


def map_batch(
    kb: "KnowledgeBase", queries: Sequence[Query], options: LinkOptions
) -> list[Found]:
    """Look up some terms, together if they allow the same concepts."""
    results: list[Found] = [Found("", NONE, None, "empty", []) for _ in queries]
    k = options.k
    options = options.replace(k=max(2, k))  # a link is sure if no other is near
    groups: dict[tuple[tuple[str, ...], ...], list[int]] = {}
    for index, query in enumerate(queries):
        groups.setdefault((query.types, query.languages), []).append(index)
    is_limited = has_threshold(kb, options)
    for (types, languages), indices in groups.items():
        allowed = options.filter.replace(
            types=types or options.filter.types,
            languages=languages or options.filter.languages,
        )
        readings = [list_readings(queries[index].term) for index in indices]
        texts = list(dict.fromkeys(chain(*readings)))
        links = kb.link(texts, options=options, filter=allowed)
        by_text = dict(zip(texts, links, strict=True))
        for index, texts_of_term in zip(indices, readings, strict=True):
            if texts_of_term:
                sided = has_side(queries[index].term)
                named = {t: is_name(kb, t, by_text[t]) for t in texts_of_term}
                best = max(
                    texts_of_term,
                    key=lambda text: quality(text, by_text[text], named[text], sided),
                )
                found = describe(best, by_text[best], named[best], is_limited)
                results[index] = replace(found, candidates=found.candidates[:k])
    return results


def has_threshold(kb: "KnowledgeBase", options: LinkOptions) -> bool:
    thresholds = (options.threshold, kb.manifest.threshold, kb.ranker)
    return any(threshold is not None for threshold in thresholds)


def is_name(kb: "KnowledgeBase", text: str, linked: Linked) -> bool:
    if not linked.candidates:
        return False
    first = linked.candidates[0]
    return kb.searcher.names.is_name(text, first["cui"], first["alias"])


def quality(text: str, linked: Linked, named: bool, sided: bool) -> tuple[int, float]:
    """Return the sort key of a reading: how far it is a name, and its score."""
    if not linked.candidates:
        return 0, -2.0
    first = linked.candidates[0]
    if sided and has_side(text):
        alias = list_words(first["alias"], "english")
        return 2 * ({*list_words(text, "english")} <= {*alias}), first["score"]
    return named * (1 if sided else 2), first["score"]


def describe(text: str, linked: Linked, named: bool, has_threshold: bool) -> Found:
    """Return what a reading found, and what a person has to do.

    `named`: it is the name of its first candidate. Without a threshold, only names are
    links.
    """
    cui, note, candidates = linked.cui, linked.note, linked.candidates
    if cui is not None and not (named or has_threshold):
        cui, note = None, NO_THRESHOLD
    certainty = judge_link(text, cui, candidates, note=note)
    status = REVIEW if candidates else NONE
    if certainty == "sure":
        status = EXACT if named else LINKED
    return Found(text, status, cui, note, candidates, certainty)
