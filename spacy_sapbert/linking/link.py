"""Mentions → candidates: what is looked up, ties settled, reasons given."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..kb.store import Entry
from .broader import find_broader
from .candidates import BY_ID, Candidate, Evidence, Hit, make_candidate, settle_ties
from .filters import UNTYPED, Filter, expand_types
from .options import LinkOptions
from .probability import score_probability
from .ranking import Asked, Found, find_concepts
from .searched import Searched

# Notes of mentions that have no concept, though there may be candidates.
NIL_NOTES = ("empty", "no_vector", "filtered", "below_threshold", "ambiguous")
BROADER = "broader"  # note of mentions that have a concept above the candidates
FARTHEST = 3  # distance of concepts that are not close in the hierarchy


class Linked(NamedTuple):
    """What the search says of one mention.

    candidates (list[Candidate]): Concepts, the best first.
    note (str | None): Why there is none ("empty", "no_vector", "filtered",
        "below_threshold", "ambiguous"), that it is a broader one ("broader"), or that
        the mention was cut ("cut").
    cui (str | None): Its concept: the best candidate's, if that counts; or the
        broader one, which need not be a candidate.
    """

    candidates: list[Candidate]
    note: str | None
    cui: str | None

    @property
    def counted(self) -> list[Candidate]:
        """The candidates, where the best of them is what the mention means."""
        return self.candidates if self.cui and self.note != BROADER else []


def link_mentions(
    kb: Searched,
    mentions: Sequence[str],
    options: LinkOptions,
    *,
    labels: Sequence[str] | None = None,
    documents: Sequence[int] | None = None,
) -> list[Linked]:
    """Find the concepts that mentions may mean; see `KnowledgeBase.link`."""
    labels = labels or [""] * len(mentions)
    documents = documents or list(range(len(mentions)))
    asked = [
        (text, mention_filter(label, options))
        for text, label in zip(mentions, labels, strict=True)
    ]
    found = find_concepts(kb, asked, options)
    facts = Facts(kb, [hit.entry for one in found.values() for hit in one.hits])
    settled: dict[Any, list[tuple[Hit, str | None]]] = {}

    def settle(key: Asked, label: str, close: set[str] | None) -> Any:
        named = (key, label, None if close is None else frozenset(close))
        if named not in settled:
            evidence = facts.evidence(options, label, close)
            settled[named] = settle_ties(found[key].hits, evidence)
        return settled[named]

    results = [
        settle(key, label, None) for key, label in zip(asked, labels, strict=True)
    ]
    if "coherence" in options.tie_evidence:
        sure = doubtless_concepts(results, asked, found, documents)
        results = [
            settle(key, label, sure[document]) if is_tie(result) else result
            for key, label, document, result in zip(
                asked, labels, documents, results, strict=True
            )
        ]
    return [
        describe(found[key], result, facts, options, key[1])
        for key, result in zip(asked, results, strict=True)
    ]


def mention_filter(label: str, options: LinkOptions) -> Filter:
    """Tell what a mention may find.

    label (str): Of its entity.
    options (LinkOptions): The options.
    RETURNS (Filter): The filter, narrowed to the types of the label.
    """
    if options.label_types_use == "filter" and label in options.label_types:
        return replace(options.filter, label_types=options.label_types[label])
    return options.filter


def is_tie(result: Sequence[tuple[Hit, str | None]]) -> bool:
    """Return whether the best concept shares its score with another."""
    return bool(result) and result[0][1] is not None


def doubtless_concepts(
    results: Sequence[Sequence[tuple[Hit, str | None]]],
    asked: Sequence[Asked],
    found: dict[Asked, Found],
    documents: Sequence[int],
) -> dict[int, set[str]]:
    """Collect the concepts of each document that no other equals.

    results (Sequence[Sequence[tuple[Hit, str | None]]]): Of each mention.
    asked (Sequence[Asked]): What was looked up.
    found (dict[Asked, Found]): What was found.
    documents (Sequence[int]): The document of each mention.
    RETURNS (dict[int, set[str]]): Their ids, by document.
    """
    sure: dict[int, set[str]] = {document: set() for document in documents}
    for result, key, document in zip(results, asked, documents, strict=True):
        if result and not is_tie(result) and found[key].note in (None, "cut"):
            sure[document].add(result[0][0].entry.cui)
    return sure


def describe(
    found: Found,
    result: Sequence[tuple[Hit, str | None]],
    facts: "Facts",
    options: LinkOptions,
    wanted: Filter,
) -> Linked:
    """Write down what was found for a mention.

    found (Found): Before ties were settled.
    result (Sequence[tuple[Hit, str | None]]): From `settle_ties`.
    facts (Facts): Of the concepts.
    options (LinkOptions): The options.
    wanted (Filter): What it may find.
    RETURNS (Linked): The candidates, the note and the concept.
    """
    candidates = [
        make_candidate(
            rank,
            hit,
            types=list(facts.types.get(hit.entry.cui, ())),
            codes={s: [*c] for s, c in facts.codes.get(hit.entry.cui, {}).items()},
            tie=tie,
            probability=facts.probability(hit.score, options) if rank == 1 else None,
        )
        for rank, (hit, tie) in enumerate(result[: options.k], 1)
    ]
    note = found.note
    if options.ambiguous == "nil" and result and result[0][1] == BY_ID:
        note = "ambiguous" if note in (None, "cut") else note
    if options.broader and note == "below_threshold":
        above = find_broader(facts.kb, candidates, facts.parents, wanted)
        return Linked(candidates, note if above is None else BROADER, above)
    counts = bool(candidates) and note not in NIL_NOTES
    return Linked(candidates, note, candidates[0]["cui"] if counts else None)


class Facts:
    """What is known of some concepts, looked up together.

    kb (Searched): Where.
    entries (Sequence[Entry]): Aliases of the concepts.
    """

    def __init__(self, kb: Searched, entries: Sequence[Entry]) -> None:
        self.kb = kb
        cuis = list(dict.fromkeys(entry.cui for entry in entries))
        facts = kb.facts.recall(cuis)
        if new := [cui for cui in cuis if cui not in facts]:
            types, codes = kb.store.types(new), kb.store.codes(new)
            read = {c: (types.get(c, []), codes.get(c, {})) for c in new}
            kb.facts.keep(read)
            facts.update(read)
        self.types = {cui: types for cui, (types, _) in facts.items() if types}
        self.codes = {cui: codes for cui, (_, codes) in facts.items()}
        self.loaded_parents: dict[str, list[str]] | None = None
        self.cuis = cuis

    @property
    def parents(self) -> dict[str, list[str]]:
        """The ids one step up of each that has any, read when first asked for."""
        if self.loaded_parents is None:
            self.loaded_parents = self.kb.store.parents(self.cuis)
        return self.loaded_parents

    def probability(self, score: float, options: LinkOptions) -> float | None:
        """Return the probability that a best concept of this score is right.

        score (float): Its cosine.
        options (LinkOptions): How it was found.
        RETURNS (float | None): None if nobody calibrated the knowledge base, which
            is done by cosines alone.
        """
        calibration = self.kb.meta.get("calibration")
        if calibration is None or options.fusion is not None:
            return None
        return score_probability(calibration, score)

    def evidence(
        self, options: LinkOptions, label: str, close: set[str] | None
    ) -> Evidence:
        """Return what orders concepts with equal scores.

        options (LinkOptions): Which, and in which order.
        label (str): Of the entity.
        close (set[str] | None): The concepts that the document has without doubt;
            None = not yet known, so that coherence does not count.
        RETURNS (Evidence): For `settle_ties`.
        """
        wanted = expand_types(options.label_types.get(label, ()))
        ranks = {source: rank for rank, source in enumerate(options.source_rank)}

        def source_rank(entry: Entry) -> int:
            sources = self.kb.store.sources_of(entry)
            return min((ranks.get(s, len(ranks)) for s in sources), default=len(ranks))

        values: dict[str, Callable[[Entry], Any]] = {
            "label": lambda entry: wanted.isdisjoint(
                self.types.get(entry.cui, (UNTYPED,))
            ),
            "preferred": lambda entry: not entry.preferred,
            "source": source_rank,
            "coherence": lambda entry: self.distance(entry.cui, close or set()),
        }
        if not wanted:
            del values["label"]
        if not ranks:
            del values["source"]
        if not close:
            del values["coherence"]
        return [(n, values[n]) for n in options.tie_evidence if n in values]

    def distance(self, cui: str, others: set[str]) -> int:
        """Tell how close a concept is to the nearest of others.

        cui (str): The concept.
        others (set[str]): The others.
        RETURNS (int): 0 = one of them, 1 = a sibling, 2 = parent or child, else 3.
        SOURCE: the distances of HiPrBERT (2023).
        """
        parents = {*self.parents.get(cui, ())}
        if cui in others:
            return 0
        theirs = [{*self.parents.get(other, ())} for other in others]
        if any(parents & them for them in theirs):
            return 1
        close = parents & others or any(cui in them for them in theirs)
        return 2 if close else FARTHEST
