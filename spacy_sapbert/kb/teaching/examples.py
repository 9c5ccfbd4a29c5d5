"""Annotated mentions → candidates and features, without what their own fold says."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

import numpy as np

from ...io.progress import show_progress
from ...linking.candidates import Entry
from ...linking.decisions import Decision, find_decision
from ...linking.features import (
    POOL_ROWS,
    Features,
    FoundName,
    Pool,
    Provenance,
    Surroundings,
    pool_concepts,
)
from ...linking.filters import Filter
from ...linking.ranker import Ranker
from ...linking.text import name_form
from ..agreement import Without
from ..edits.change import TaughtDocument, count_votes
from ..knowledge_base import KnowledgeBase
from ..learned_order.fit import Example
from ..parts import MENTIONS_AT_ONCE
from ..search import MentionSearch

FOLDS = 5
SEARCHED_ROWS = 3 * POOL_ROWS  # some of them are names of folds that do not count


@dataclass(frozen=True)
class TaughtExample(Example):
    """The candidates of an annotated mention."""

    text: str  # what the linker searches for
    fold: int  # of its document
    cuis: list[str]  # candidates by cosine (n,)
    first: str | None  # answer with the names and counts of the folds that count
    plain: bool  # whether the answer before anything is taught is right
    named: bool  # whether `first` is right
    seen: bool  # whether a fold that counts has it with its concept
    nil: bool  # whether it has no concept
    decision: Decision | None = None  # of the folds that count


class FoldCounts:
    """How often texts were annotated with concepts, by fold."""

    def __init__(self, documents: Sequence[TaughtDocument], folds: Sequence[int]):
        self.pairs: dict[str, Counter[tuple[str, int]]] = {}  # form → (cui, fold)
        self.concepts: dict[str, Counter[int]] = {}
        for document, fold in zip(documents, folds, strict=True):
            for text, cui in document.mentions:
                self.pairs.setdefault(name_form(text), Counter())[cui, fold] += 1
                if cui:
                    self.concepts.setdefault(cui, Counter())[fold] += 1

    def counts(self, form: str, fold: int) -> Counter[str]:
        """Return the counts of a form in the other folds, by concept."""
        counts: Counter[str] = Counter()
        for (cui, other), count in self.pairs.get(form, {}).items():
            if other != fold:
                counts[cui] += count
        return counts

    def concept_counts(self, cuis: Sequence[str], fold: int) -> dict[str, int]:
        known = {cui: self.concepts[cui] for cui in cuis if cui in self.concepts}
        return {cui: some.total() - some[fold] for cui, some in known.items()}


def assign_folds(documents: Sequence[TaughtDocument]) -> list[int]:
    """Return a fold for each document: the same for all documents of one note."""
    notes = sorted({document.note for document in documents})
    folds = {note: number % FOLDS for number, note in enumerate(notes)}
    return [folds[document.note] for document in documents]


def make_examples(
    kb: KnowledgeBase,
    documents: Sequence[TaughtDocument],
    *,
    before: KnowledgeBase,
    prior: Ranker,
    most: int,
    progress: bool = False,
) -> list[TaughtExample]:
    """Compute the features of the candidates of annotated mentions.

    What its own fold annotated does not count for a mention: the ranker would learn to
    rely on it, and fail for new texts. `kb` has the mentions as names; `before`, which
    embeds them, has not, since each would be a name there. `most` is the maximum of
    mentions, which are those of the first notes by digest.
    """
    searcher, folds = kb.searcher, assign_folds(documents)
    fold_counts = FoldCounts(documents, folds)
    known = {
        fold: KnownNames(searcher, fold_counts, fold) for fold in (None, *range(FOLDS))
    }
    votes = [
        count_votes(d for d, f in zip(documents, folds, strict=True) if f != fold)
        for fold in range(FOLDS)
    ]
    queries = list_queries(documents, folds, most)
    texts = list(dict.fromkeys(text for text, _ in queries))
    nearest = search_names(kb, before, texts, progress=progress)
    found = dict(zip(texts, nearest, strict=True))
    plain: dict[str, str | None] = {}  # the first answers before anything is taught
    for text, (names, named, _) in found.items():
        pool = pool_concepts(names, known[None].find_provenance)
        without = known[None].hidden(pool)
        features = searcher.agreement.features(
            [text], [pool], Filter(), without=without
        )
        plain[text] = first_answer(prior, pool, features, {}, named=named)
    examples: list[TaughtExample] = []
    for (text, fold), cuis in queries.items():
        counts = fold_counts.counts(name_form(text), fold)
        pool = pool_concepts(found[text][0], known[fold].find_provenance)
        concept_counts = fold_counts.concept_counts(pool.cuis, fold)
        features = searcher.agreement.features(
            [text],
            [pool],
            Filter(),
            around=[found[text][2]],
            without=known[fold].hidden(pool),
            counts=[counts],
            concept_counts=concept_counts,
        )
        named = found[text][1]
        first = first_answer(prior, pool, features, counts, named=named)
        decision = find_decision(text, votes[fold])
        if decision is not None:
            first = decision.cui or None
        for cui, number in cuis.items():
            example = TaughtExample(
                right=pool.cuis.index(cui) if cui in pool.near else None,
                features=features,
                is_name=named,
                text=text,
                fold=fold,
                cuis=pool.cuis,
                first=first,
                plain=plain[text] == cui,
                named=first == cui,
                seen=bool(cui) and counts.get(cui, 0) > 0,
                nil=not cui,
                decision=decision,
            )
            examples += [example] * number
    return examples


def list_queries(
    documents: Sequence[TaughtDocument], folds: Sequence[int], most: int
) -> dict[tuple[str, int], Counter[str]]:
    """Count how often each text was annotated with each concept, by text and fold.

    What two annotators of a note agree on counts once, so that no note counts more.
    """
    notes: dict[tuple[str, int], Counter[tuple[str, str]]] = {}
    for document, fold in zip(documents, folds, strict=True):
        note = (document.note, fold)
        notes[note] = notes.get(note, Counter()) | Counter(document.mentions)
    mentions = (
        (text, fold, cui)
        for (_, fold), mentioned in sorted(notes.items(), key=lambda item: item[0])
        for text, cui in mentioned.elements()
    )
    queries: dict[tuple[str, int], Counter[str]] = {}
    for text, fold, cui in islice(mentions, most):
        queries.setdefault((text, fold), Counter())[cui] += 1
    return queries


class KnownNames:
    """The names that count for the mentions of a fold.

    Without what the fold annotated, and without the words of these names; they would
    say which concept is right. A fold of None knows no annotation.
    """

    def __init__(
        self, searcher: MentionSearch, fold_counts: FoldCounts, fold: int | None
    ) -> None:
        self.searcher, self.fold_counts, self.fold = searcher, fold_counts, fold
        self.find_provenance = cache(self.compute_provenance)
        self.hidden_rows = cache(self.list_hidden_rows)

    def compute_provenance(self, entry: Entry) -> Provenance:
        """Return where an entry is from; from nowhere if only the fold has it."""
        provenance = self.searcher.find_provenance(entry)
        if not provenance.annotated or self.fold is None:
            return provenance._replace(annotated=False)
        others = self.fold_counts.counts(name_form(entry.alias), self.fold)
        return provenance._replace(annotated=others[entry.cui] > 0)

    def list_hidden_rows(self, cui: str) -> frozenset[int]:
        """Return the rows of a concept with no name that counts."""
        names = self.searcher.store.entries_of(cui)
        known = {entry.row for entry in names if any(self.find_provenance(entry))}
        return frozenset(entry.row for entry in names) - known

    def hidden(self, pool: Pool) -> list[Without]:
        """Return the names of the concepts of a pool that do not count."""
        hidden: list[Without] = []
        for cui, names in pool.near.items():
            own = self.fold_counts.concepts.get(cui)
            if own and (self.fold is None or own[self.fold]):
                rows = self.hidden_rows(cui)
                hidden += [Without(names.nearest.concept, rows)] if rows else []
        return hidden


def search_names(
    kb: KnowledgeBase, before: KnowledgeBase, texts: Sequence[str], *, progress: bool
) -> Iterator[tuple[list[FoundName], bool, Surroundings]]:
    """Yield the names nearest to each text as it is written, and whether it is a name.

    Also how near other texts are.

    An order learned from corrected mentions was not better: NCBI disease dev 0.889
    instead of 0.894, BC5CDR disease dev 0.911 instead of 0.912.
    """
    starts = range(0, len(texts), MENTIONS_AT_ONCE)
    for start in show_progress(
        starts, unit="batches", desc="Search", quiet=not progress
    ):
        batch = texts[start : start + MENTIONS_AT_ONCE]
        embedded = before.embed(batch)
        usable = embedded.usable
        vectors = np.where(usable[:, None], embedded.vectors, 0).astype(np.float32)
        mentions = before.searcher.nearest.name(batch, vectors, Filter())
        found = kb.searcher.nearest.find_names(mentions, Filter(), rows=SEARCHED_ROWS)
        around = kb.searcher.nearest.surround(mentions.vectors)
        for number, (names, near) in enumerate(zip(found, around, strict=True)):
            is_name = bool(mentions.named[number])
            yield names if usable[number] else [], is_name, near


def first_answer(
    prior: Ranker,
    pool: Pool,
    features: Features,
    counts: Mapping[str, int],
    *,
    named: bool,
) -> str | None:
    """Return the first concept as the linker orders them without a taught order.

    Counts break ties of cosines, which alone order the concepts of a `named` mention.
    """
    if not pool.near:
        return None
    if not named and prior.known is not None:
        return pool.cuis[int(prior.scores(features).argmax())]
    highest = next(iter(pool.near.values())).cosine
    tied = [n.nearest for n in pool.near.values() if n.cosine == highest]
    tied.sort(key=lambda e: (-counts.get(e.cui, 0), not e.preferred, e.cui))
    return tied[0].cui
