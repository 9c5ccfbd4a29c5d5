"""Search results → links: ties broken, reasons given. Pure functions."""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from html import escape
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..errors import SapbertError
from .candidates import Candidate, Entry, RankedEntry, round_score
from .certainty import AMBIGUOUS, DECIDED
from .decisions import Decision
from .filters import UNTYPED, Filter, expand_types
from .options import LinkOptions
from .probability import DIGITS, Correction
from .ranking import BY_ID, TieKeys, break_ties

# Note of mentions that differ from the first candidate in what is never linked
EXCLUDED = "excluded"
# Notes of mentions without a concept; they may have candidates all the same.
NIL_NOTES = (
    *("empty", "no_vector", "filtered", "below_threshold"),
    *(AMBIGUOUS, EXCLUDED, DECIDED),
)
TRUNCATED = "truncated"  # note of mentions longer than the maximum of the encoder
# Of the mentions that mean one of the concepts with a name, about so many mean the one
# whose preferred name it is; see "Ties at the first place" in experiments/linker.
PREFERRED_SHARE = 0.7
MAX_DISTANCE = 3  # distance of concepts that are not close in the hierarchy

Ranking = list[tuple[RankedEntry, str | None]]  # from `break_ties`


class MentionQuery(NamedTuple):
    """A mention and the filter that holds for it."""

    text: str
    filter: Filter


class SearchResult(NamedTuple):
    """The concepts found for one mention, ties not broken.

    Attributes:
        ranked: The best first, with all that equal the last.
        note: Reason for no concept, or "truncated".
        counts: How often the mention was annotated with each concept.
        probability: That the first concept is right; that one of them is, if several
            have its score.
        excluded: Whether the mention differs from the first concept in what is never
            linked.
        equal: Numbers of the concepts with a name that is written exactly as the
            mention: "Cold" or "COLD".
        decision: What people decided for the mention. Its concept is the first.
    """

    ranked: list[RankedEntry]
    note: str | None
    counts: Mapping[str, int] = MappingProxyType({})
    probability: float = 0.0
    excluded: bool = False
    equal: frozenset[int] = frozenset()
    decision: Decision | None = None


class Limits(NamedTuple):
    """What the first candidate must reach.

    Attributes:
        threshold: Least probability; 0 = any.
        least_cosine: Least score; None = any.
        correction: Of probabilities; None = they count as they are.
    """

    threshold: float
    least_cosine: float | None = None
    correction: Correction | None = None

    def correct(self, result: SearchResult) -> float:
        """Return the probability of a result; what people decided is not corrected."""
        if self.correction is None or result.decision is not None:
            return round(result.probability, DIGITS)
        return self.correction.correct(result.probability)


class Linked(NamedTuple):
    """The link of one mention.

    Attributes:
        candidates: The best first.
        note: Reason for no concept (one of `NIL_NOTES`), or "truncated".
        cui: Id of the linked concept, the first candidate.
    """

    candidates: list[Candidate]
    note: str | None
    cui: str | None

    def _repr_html_(self) -> str:
        """Return a table of the candidates, for notebooks."""
        rows = [
            (one["cui"], one["name"], one["alias"], one["score"], one["probability"])
            for one in self.candidates
        ]
        header = ("concept", "name", "found by", "score", "probability")
        cells = "".join(
            "".join(["<tr>", *(f"<td>{escape(str(cell))}" for cell in row)])
            for row in (header, *rows)
        )
        return (
            f"<b>{escape(self.cui or f'NIL ({self.note})')}</b><table>{cells}</table>"
        )

    @property
    def decided(self) -> bool:
        """Whether people decided what the mention means, and the link follows them."""
        tie = self.candidates[0]["tie"] if self.candidates else None
        return DECIDED in (self.note, tie)

    @property
    def accepted(self) -> list[Candidate]:
        """The candidates, if the mention is linked to the first of them."""
        return self.candidates if self.cui else []

    @property
    def codes(self) -> dict[str, list[str]]:
        """The codes of the concept by source."""
        return self.accepted[0]["codes"] if self.accepted else {}


@dataclass(frozen=True)
class ConceptInfo:
    """Data of the concepts found, by id; sources by `Entry.origin`.

    Parents and sources are there if an option needs them.
    """

    types: Mapping[str, list[str]]
    codes: Mapping[str, dict[str, list[str]]]
    parents: Mapping[str, list[str]] = field(default_factory=dict)
    sources: Mapping[int, list[str]] = field(default_factory=dict)


def check_mentions(mentions: Any, *others: Sized | None) -> None:
    """Raise an error if mentions are no list of texts, or the others are not as many.

    A text is a sequence too, of characters.
    """
    texts = not isinstance(mentions, str) and isinstance(mentions, Sequence)
    if isinstance(mentions, np.ndarray) and mentions.ndim == 1:
        texts = True
    wrong = () if not texts else [m for m in mentions if not isinstance(m, str)]
    if not texts or wrong:
        got = type(wrong[0] if wrong else mentions).__name__
        raise wrong_mentions(got=f"a {got}")
    for other in others:
        if other is not None and len(other) != len(mentions):
            got = f"{len(mentions):,} mentions and {len(other):,} labels or documents"
            raise wrong_mentions(got=got)


def make_queries(
    mentions: Sequence[str], labels: Sequence[str], options: LinkOptions
) -> list[MentionQuery]:
    """Return one query for each mention, its filter narrowed by its label."""
    filters = {label: label_filter(label, options) for label in dict.fromkeys(labels)}
    return [
        MentionQuery(text, filters[label])
        for text, label in zip(mentions, labels, strict=True)
    ]


def label_filter(label: str, options: LinkOptions) -> Filter:
    """Return the filter of the options, narrowed to the types of a label."""
    if options.label_types_use == "filter" and label in options.label_types:
        return options.filter.replace(label_types=options.label_types[label])
    return options.filter


def link_results(
    queries: Sequence[MentionQuery],
    results: Mapping[MentionQuery, SearchResult],
    info: ConceptInfo,
    options: LinkOptions,
    *,
    labels: Sequence[str],
    documents: Sequence[int],
    limits: Limits,
) -> list[Linked]:
    """Break ties and write the link of each mention.

    Queries, labels and numbers of documents are one for each mention.
    """
    known: dict[Any, Ranking] = {}

    def rank(query: MentionQuery, label: str, linked: frozenset[str]) -> Ranking:
        key = (query, label, linked)
        if key not in known:
            result = results[query]
            evidence = make_evidence(result, info, options, label, linked)
            known[key] = break_ties(result.ranked, evidence)
        return known[key]

    rankings = [
        rank(query, label, frozenset())
        for query, label in zip(queries, labels, strict=True)
    ]
    if "coherence" in options.tie_evidence:
        notes = [results[query].note for query in queries]
        linked = unambiguous_concepts(rankings, notes, documents)
        rankings = [
            rank(query, label, linked[document]) if is_tie(ranking) else ranking
            for query, label, document, ranking in zip(
                queries, labels, documents, rankings, strict=True
            )
        ]
    return [
        make_link(ranking, results[query], info, options, limits)
        for query, ranking in zip(queries, rankings, strict=True)
    ]


def is_tie(ranking: Ranking) -> bool:
    """Return whether the first concept shares its score with another."""
    return bool(ranking) and ranking[0][1] is not None


def unambiguous_concepts(
    rankings: Sequence[Ranking],
    notes: Sequence[str | None],
    documents: Sequence[int],
) -> dict[int, frozenset[str]]:
    """Return the ids of linked concepts without a tie, by document."""
    concepts: dict[int, set[str]] = {document: set() for document in documents}
    for ranking, note, document in zip(rankings, notes, documents, strict=True):
        if ranking and not is_tie(ranking) and note in (None, TRUNCATED):
            concepts[document].add(ranking[0][0].entry.cui)
    return {document: frozenset(cuis) for document, cuis in concepts.items()}


def make_link(
    ranking: Ranking,
    result: SearchResult,
    info: ConceptInfo,
    options: LinkOptions,
    limits: Limits,
) -> Linked:
    """Return the link of one mention."""
    note = result.note
    least = options.candidate_threshold
    listed = [
        ranked
        for number, ranked in enumerate(ranking[: options.k])
        if not number or least is None or round_score(ranked[0].score) >= least
    ]
    candidates: list[Candidate] = [
        {
            "cui": candidate.entry.cui,
            "name": candidate.entry.name,
            "alias": candidate.entry.alias,
            "score": round_score(candidate.score),
            "rank": rank,
            "types": list(info.types.get(candidate.entry.cui, ())),
            "codes": {
                s: [*c] for s, c in info.codes.get(candidate.entry.cui, {}).items()
            },
            "tie": tie,
            "probability": None,
        }
        for rank, (candidate, tie) in enumerate(listed, 1)
    ]
    if candidates:
        first, tie = ranking[0]
        ties = sum(o.key == first.key and o.score == first.score for o, _ in ranking)
        share = 1.0 if result.decision else find_share(tie, ties)
        probability = round(limits.correct(result) * share, DIGITS)
        candidates[0]["probability"] = probability
        if result.decision and result.decision.cui:
            candidates[0]["tie"] = tie = DECIDED
        guessed = options.ambiguous == "nil" and tie == BY_ID
        if note in (None, TRUNCATED) and (guessed or probability < limits.threshold):
            note = AMBIGUOUS
    accepted = bool(candidates) and note not in NIL_NOTES
    return Linked(candidates, note, candidates[0]["cui"] if accepted else None)


def find_share(tie: str | None, ties: int) -> float:
    """Return the share that the first of some concepts has of their probability.

    `tie` is the evidence that puts it first, and `ties` their number.
    """
    if tie == BY_ID:
        return 1 / ties
    return PREFERRED_SHARE if tie == "preferred" else 1.0


def make_evidence(
    result: SearchResult,
    info: ConceptInfo,
    options: LinkOptions,
    label: str,
    linked: frozenset[str],
) -> TieKeys:
    """Return the evidence that breaks ties, in the order of the options.

    `linked` are unambiguous concepts of the document, none = coherence does not count.
    """
    expected = expand_types(options.label_types.get(label, ()))
    ranks = {source: rank for rank, source in enumerate(options.source_rank)}

    def rank_sources(entry: Entry) -> int:
        sources = info.sources.get(entry.origin, ())
        return min((ranks.get(s, len(ranks)) for s in sources), default=len(ranks))

    values: dict[str, Callable[[Entry], Any]] = {}
    if expected:
        values["label"] = lambda entry: expected.isdisjoint(
            info.types.get(entry.cui) or (UNTYPED,)
        )
    if result.counts:
        values["annotated"] = lambda entry: -result.counts.get(entry.cui, 0)
    values["case"] = lambda entry: entry.concept not in result.equal
    values["preferred"] = lambda entry: not entry.preferred
    if ranks:
        values["source"] = rank_sources
    if linked:
        values["coherence"] = lambda entry: hierarchy_distance(
            entry.cui, linked, info.parents
        )
    return [(name, values[name]) for name in options.tie_evidence if name in values]


def hierarchy_distance(
    cui: str, others: frozenset[str], parents: Mapping[str, Sequence[str]]
) -> int:
    """Return how close a concept is to the nearest of other concepts.

    0 = one of them, 1 = a sibling, 2 = parent or child, else 3. Source: the distances
    of HiPrBERT (2023).
    """
    above = {*parents.get(cui, ())}
    if cui in others:
        return 0
    theirs = [{*parents.get(other, ())} for other in others]
    if any(above & them for them in theirs):
        return 1
    close = above & others or any(cui in them for them in theirs)
    return 2 if close else MAX_DISTANCE


def wrong_mentions(*, got: object) -> SapbertError:
    return SapbertError(
        "E359",
        "Expected a list of texts as mentions, and as many labels and documents, but "
        f'got {got}. Write `kb.link(["heart attack"])`, and leave out missing values.',
    )
