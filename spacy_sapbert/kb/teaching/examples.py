"""Annotated mentions → candidates and features, without what their own fold says."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...io.progress import show_progress
from ...linking.candidates import Entry, RankedEntry
from ...linking.features import POOL_ROWS, Provenance, compute_features, pool_concepts
from ...linking.ranking import order_entries
from ...linking.surface_forms import name_form
from ..edits.taught import TaughtDocument
from ..knowledge_base import KnowledgeBase
from ..search import MENTIONS_AT_ONCE

FOLDS = 5
SEARCHED_ROWS = 2 * POOL_ROWS  # some of them are names of folds that do not count
# fold: those that its mentions are linked with
OTHERS = {fold: frozenset(range(FOLDS)) - {fold} for fold in range(FOLDS)}


class Example(NamedTuple):
    """The candidates of an annotated mention.

    Attributes:
        fold: Fold of its document.
        right: Number of its concept among the candidates; None = it is not among them,
            or the mention has no concept.
        cuis: The candidates by cosine. Shape: (n,).
        features: Shape: (n, len(FEATURES)).
        plain: Whether the vocabulary alone has the right answer.
        named: Whether the names and counts of the folds that count have.
        seen: Whether a fold that counts has the mention with its concept.
        nil: Whether the mention has no concept.
    """

    fold: int
    right: int | None
    cuis: list[str]
    features: np.ndarray
    plain: bool
    named: bool
    seen: bool
    nil: bool


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

    def counts(self, form: str, folds: Collection[int]) -> Counter[str]:
        """Return the counts of a form in some folds, by concept."""
        counts: Counter[str] = Counter()
        for (cui, fold), count in self.pairs.get(form, {}).items():
            if fold in folds:
                counts[cui] += count
        return counts

    def concept_counts(
        self, cuis: Sequence[str], folds: Collection[int]
    ) -> dict[str, int]:
        """Return the counts of concepts in some folds."""
        return {
            cui: sum(self.concepts[cui][fold] for fold in folds)
            for cui in cuis
            if cui in self.concepts
        }


def assign_folds(documents: Sequence[TaughtDocument]) -> list[int]:
    """Return a fold for each document: the same for all documents of one note."""
    notes = sorted({document.note for document in documents})
    folds = {note: number % FOLDS for number, note in enumerate(notes)}
    return [folds[document.note] for document in documents]


class AnnotatedMentions:
    """Annotated mentions and the names nearest to them, from which examples are made.

    Args:
        kb: With the annotated mentions as names.
        before: Without them: it embeds a mention by a variant that is a name, which in
            `kb` would be a name itself.
        most: Maximum of mentions, which are those of the first documents by digest.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        documents: Sequence[TaughtDocument],
        *,
        before: KnowledgeBase,
        most: int,
        progress: bool = False,
    ) -> None:
        self.kb = kb
        self.documents = len(documents)
        folds = assign_folds(documents)
        self.fold_counts = FoldCounts(documents, folds)
        by_digest = sorted(
            zip(documents, folds, strict=True), key=lambda pair: pair[0].digest
        )
        mentions = [
            (text, fold, cui)
            for document, fold in by_digest
            for text, cui in document.mentions
        ]
        # text, fold → concepts
        self.queries: dict[tuple[str, int], Counter[str]] = {}
        for text, fold, cui in mentions[:most]:
            self.queries.setdefault((text, fold), Counter())[cui] += 1
        texts = list(dict.fromkeys(text for text, _ in self.queries))
        nearest = search_names(kb, before, texts, progress=progress)
        self.nearest: dict[str, list[RankedEntry]] = dict(
            zip(texts, nearest, strict=True)
        )

    def examples(
        self, learned: Mapping[int, Collection[int]] = OTHERS
    ) -> list[Example]:
        """Compute the features of the candidates of the mentions of some folds.

        Names and counts of the documents of its own fold do not count for a mention:
        otherwise the ranker would learn to rely on them, and fail for new texts.

        Args:
            learned: For each fold whose mentions are returned, the folds whose names
                and counts count.
        """
        return [
            example
            for (text, fold), cuis in self.queries.items()
            if fold in learned
            for example in list_examples(
                *(self.kb, self.fold_counts, text, fold, learned[fold], cuis),
                self.nearest[text],
            )
        ]


def search_names(
    kb: KnowledgeBase, before: KnowledgeBase, texts: Sequence[str], *, progress: bool
) -> Iterator[list[RankedEntry]]:
    """Yield the names nearest to each text; see `AnnotatedMentions`."""
    starts = range(0, len(texts), MENTIONS_AT_ONCE)
    for start in show_progress(
        starts, unit="batches", desc="Search", quiet=not progress
    ):
        batch = texts[start : start + MENTIONS_AT_ONCE]
        embedded = before.embed(batch, variants=True)
        usable = np.isfinite(embedded.vectors).all(axis=1) & embedded.readable
        vectors = np.where(usable[:, None], embedded.vectors, 0).astype(np.float32)
        rows, scores = kb.search(vectors, min(SEARCHED_ROWS, kb.rows))
        entries = kb.entries(np.unique(rows[rows >= 0]))
        for number in range(len(batch)):
            near = rows[number].tolist(), scores[number].tolist()
            yield list(order_entries(*near, entries)) if usable[number] else []


def list_examples(
    kb: KnowledgeBase,
    fold_counts: FoldCounts,
    text: str,
    fold: int,
    learned: Collection[int],
    cuis: Mapping[str, int],
    ranked: Sequence[RankedEntry],
) -> Iterator[Example]:
    """Yield the examples of one text in one fold: one for each annotation.

    Args:
        learned: The folds whose names and counts count.
        cuis: How often the text was annotated with each concept in its fold.
    """
    known: dict[Entry, Provenance] = {}

    def find_provenance(entry: Entry) -> Provenance:
        if entry not in known:
            provenance = kb.searcher.find_provenance(entry)
            if provenance.annotated:
                others = fold_counts.counts(name_form(entry.alias), learned)
                provenance = provenance._replace(annotated=others[entry.cui] > 0)
            known[entry] = provenance
        return known[entry]

    counts = fold_counts.counts(name_form(text), learned)
    pool, near = pool_concepts(ranked, find_provenance)
    names = [nearest.entry.cui for nearest in pool]
    concept_counts = fold_counts.concept_counts(names, learned)
    features = compute_features(text, pool, near, counts, concept_counts)
    first = best_named(pool, counts)
    vocabulary = (n.entry.cui for n in ranked if find_provenance(n.entry).vocabulary)
    alone = next(vocabulary, None)
    for cui, number in cuis.items():
        example = Example(
            fold=fold,
            right=names.index(cui) if cui in names else None,
            cuis=names,
            features=features,
            plain=alone == cui,
            named=first == cui,
            seen=bool(cui) and counts.get(cui, 0) > 0,
            nil=not cui,
        )
        yield from [example] * number


def best_named(pool: Sequence[RankedEntry], counts: Mapping[str, int]) -> str | None:
    """Return the first concept as the linker orders ties by the counts."""
    tied = [near.entry for near in pool if near.score == pool[0].score]
    tied.sort(key=lambda e: (-counts.get(e.cui, 0), not e.preferred, e.cui))
    return tied[0].cui if tied else None
