"""Terms → their links: the best of the readings of each term."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from ..kb.filters import choose_codes
from ..kb.ids import read_term
from ..linking.candidates import Candidate
from ..linking.certainty import AMBIGUOUS, DECIDED, Certainty, judge_link
from ..linking.decisions import list_keys
from ..linking.filters import Filter
from ..linking.link import Linked
from ..linking.options import LinkOptions
from ..linking.text import Rules, list_words, read_mention, rules_of
from ..vocabularies.concepts import Concept
from .laboratory import Tests
from .terms import (
    CODE,
    FAMILY,
    MEANING,
    PAST,
    SIDE,
    SUSPECTED,
    Dropped,
    list_dropped,
    list_readings,
    strip_term,
)

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

EXACT, LINKED, REVIEW, NONE = "exact", "linked", "review", "none"
STATUSES = {
    EXACT: "the term is a name or id of the concept, and the link is sure",
    LINKED: "the link is sure",
    REVIEW: "not sure, ambiguous, or the term says more: choose an id, or NIL",
    NONE: "no concept may be right, or people decided so",
}
TERMS_AT_ONCE = 256
HOPELESS = 0.05  # probability below which the first candidate is not to be reviewed
DROPPED, RETIRED = "dropped", "retired"  # notes


@dataclass(frozen=True)
class Found:
    """What was found for a term; `note` says why there is no concept, see `Linked`.

    Only what is sure has the status `EXACT` or `LINKED`; see `judge_link`. `dropped` is
    what the term says and the concept does not, such as "family: F/H".
    """

    read_as: str
    status: str
    cui: str | None
    note: str | None
    candidates: list[Candidate]
    certainty: Certainty = "none"
    dropped: tuple[str, ...] = ()

    @property
    def final(self) -> str | None:
        """The concept that holds without a person."""
        return self.cui if self.status in (EXACT, LINKED) else None


class Query(NamedTuple):
    """A term, and the types and languages that its row allows; empty = all.

    Laboratory tests with another kind of unit or another specimen than those of the row
    are excluded; "" = none is.
    """

    term: str
    types: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    unit: str = ""
    specimen: str = ""


def map_queries(
    kb: "KnowledgeBase", queries: Iterable[Query], options: LinkOptions
) -> Iterator[Found]:
    """Look up terms; the best of their readings counts.

    A reading that is a name comes before all others, then the one that is most likely
    right. But "left heart failure" is rather "Left-sided heart failure" than the name
    "Heart failure": a name that says all that the term says is better.
    """
    queries, tests = iter(queries), Tests(kb)
    while batch := list(islice(queries, TERMS_AT_ONCE)):
        yield from map_batch(kb, batch, options, tests)


def map_batch(
    kb: "KnowledgeBase",
    queries: Sequence[Query],
    options: LinkOptions,
    tests: Tests | None = None,
) -> list[Found]:
    """Look up some terms, together if they allow the same concepts."""
    results: list[Found] = [Found("", NONE, None, "empty", []) for _ in queries]
    k = options.k
    options = options.replace(k=max(2, k))  # a link is sure if no other is near
    tests = tests or Tests(kb)
    groups: dict[tuple[tuple[str, ...], ...], list[int]] = {}
    for index, query in enumerate(queries):
        excluded = tests.list_excluded(query.unit, query.specimen)
        key = query.types, query.languages, excluded
        groups.setdefault(key, []).append(index)
    coded: set[int] = set()
    terms = [read_mention(query.term) for query in queries]
    decisions = kb.searcher.find_decisions(terms)
    for (types, languages, excluded), indices in groups.items():
        allowed = options.filter.replace(
            types=types or options.filter.types,
            languages=languages or options.filter.languages,
            deny=(*options.filter.deny, *excluded),
        )
        for index in indices:
            if decisions[index] is not None:
                continue
            if found := find_coded(kb, queries[index].term, options, allowed):
                coded.add(index)
                results[index] = replace(found, candidates=found.candidates[:k])
        indices = [index for index in indices if index not in coded]
        rules = list_rules(kb, allowed)
        readings = [list_readings(queries[index].term, rules) for index in indices]
        texts = list(dict.fromkeys(chain(*readings)))
        links = kb.link(texts, options=options, filter=allowed)
        by_text = dict(zip(texts, links, strict=True))
        for index, texts_of_term in zip(indices, readings, strict=True):
            if texts_of_term:
                read = [
                    read_link(kb, queries[index].term, text, by_text[text], rules)
                    for text in texts_of_term
                ]
                found = describe(max(read, key=quality))
                results[index] = replace(found, candidates=found.candidates[:k])
    return results


def find_coded(
    kb: "KnowledgeBase", term: str, options: LinkOptions, filter: Filter
) -> Found | None:
    """Return what a term means that is an id or a code; None = it is neither.

    It stands for itself: names that look like it are no candidates. A code is not sure
    if several concepts have it, as their code or name, or if it is broader or narrower.
    """
    id = read_term(kb.store, term)
    if not id.cuis:
        return None
    left = kb.resolve_filter(filter)
    numbers = kb.store.numbers_of_cuis(id.cuis)
    concepts = {numbers[c]: None for c in id.cuis if left.concepts[numbers[c]]}
    if not concepts:
        return None
    if id.is_code:
        mention, language = read_mention(term), filter.document_language
        for named in kb.searcher.names.find_named([mention], language)[mention]:
            if left.matches(named.name):
                concepts.setdefault(named.name.concept)
    sure = len(concepts) == 1 and not id.relation
    candidates = []
    for rank, number in enumerate(concepts, 1):
        one = propose(kb.store.read_concept(number), term.strip(), 1.0, rank)
        one["codes"] = choose_codes(one["codes"], options.codes)
        one["probability"] = 1.0 if sure else None
        candidates.append(one)
    if not sure:
        said = AMBIGUOUS if len(concepts) > 1 else id.relation
        return Found(term, REVIEW, None, said, candidates, "tied")
    note = RETIRED if id.replaced else None
    status, cui = LINKED if note else EXACT, candidates[0]["cui"]
    return Found(term, status, cui, note, candidates, "sure")


def propose(concept: Concept, alias: str, score: float, rank: int = 1) -> Candidate:
    """Return a concept that was not found by a search as a candidate."""
    return {
        "cui": concept.cui,
        "name": concept.name,
        "alias": alias,
        "score": score,
        "rank": rank,
        "types": concept.types,
        "codes": concept.codes,
        "tie": None,
        "probability": None,
    }


def list_rules(kb: "KnowledgeBase", filter: Filter) -> tuple[Rules, ...]:
    """Return the rules of the languages that terms may be in."""
    if filter.languages:
        return tuple(sorted({rules_of([name]) for name in filter.languages}))
    return kb.searcher.names.rules(filter.document_language)


class Reading(NamedTuple):
    """A reading of a term, and its link.

    Attributes:
        named: Whether it is the name of its first candidate.
        whole: Whether that has all words of the term, and its side, family, ….
        dropped: What the term says, and the first candidate does not.
        decided: People decided what the whole term means.
    """

    text: str
    linked: Linked
    named: bool = False
    whole: bool = False
    dropped: tuple[Dropped, ...] = ()
    decided: bool = False


def read_link(
    kb: "KnowledgeBase", term: str, text: str, linked: Linked, rules: tuple[Rules, ...]
) -> Reading:
    """Return a reading of a term, compared with the name that was found for it."""
    # The linker reads "HTN?" as "HTN"; a term in doubt is not sure by that decision.
    if linked.decided and text == " ".join(term.split()) and list_keys(text):
        return Reading(text, linked, named=True, whole=True, decided=True)
    if not linked.candidates:
        return Reading(text, linked)
    alias = linked.candidates[0]["alias"]
    dropped = tuple(list_dropped(term, alias, rules))
    named = is_name(kb, text, linked)
    rest, parts = strip_term(text, rules)
    whole = named
    if {part.kind for part in parts} & {SIDE, FAMILY, PAST, SUSPECTED}:
        words = {*list_words(rest, "english")}
        whole = named or words <= {*list_words(alias, "english")}
    return Reading(text, linked, named, whole and not dropped, dropped)


def is_name(kb: "KnowledgeBase", text: str, linked: Linked) -> bool:
    if not linked.candidates:
        return False
    first = linked.candidates[0]
    return kb.searcher.names.is_name(text, first["cui"], first["alias"])


def quality(reading: Reading) -> tuple[int, int, float, float]:
    """Return the sort key: how far it is a name that says all, and how likely it is."""
    if reading.decided:
        return 3, 0, 1.0, 1.0
    if not reading.linked.candidates:
        return 0, 0, 0.0, -2.0
    first = reading.linked.candidates[0]
    level = 2 if reading.whole else int(reading.named)
    dropped = len(reading.dropped) if level else 0
    return level, -dropped, first["probability"] or 0.0, first["score"]


def describe(reading: Reading) -> Found:
    """Return what a reading found, and what a person has to do.

    What has another meaning without a part of the term is not linked, and a code may be
    the code of another concept.
    """
    linked = reading.linked
    cui, note, candidates = linked.cui, linked.note, linked.candidates
    kinds = {part.kind for part in reading.dropped}
    if cui is not None and kinds.intersection(MEANING):
        cui, note = None, DROPPED
    certainty = judge_link(reading.text, cui, candidates, note=note)
    if certainty == "sure" and CODE in kinds:
        certainty = "unsure"
    status = REVIEW if has_hope(candidates) and note != DECIDED else NONE
    if certainty == "sure":
        status = EXACT if reading.named and SIDE not in kinds else LINKED
    dropped = tuple(map(str, reading.dropped))
    return Found(reading.text, status, cui, note, candidates, certainty, dropped)


def has_hope(candidates: Sequence[Candidate]) -> bool:
    """Return whether a person should look at candidates."""
    return bool(candidates) and (candidates[0]["probability"] or 0) >= HOPELESS
