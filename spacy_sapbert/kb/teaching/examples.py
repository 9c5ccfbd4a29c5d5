"""Annotated mentions → candidates and features, without what their own fold says."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...io.progress import show_progress
from ...linking.candidates import Entry
from ...linking.features import (
    EXACT,
    POOL_ROWS,
    Features,
    FoundName,
    Pool,
    Provenance,
    pool_concepts,
)
from ...linking.filters import Filter
from ...linking.ranker import Ranker
from ...linking.text import name_form
from ..edits.edits import TaughtDocument
from ..knowledge_base import KnowledgeBase
from ..search import MENTIONS_AT_ONCE

FOLDS = 5
SEARCHED_ROWS = 3 * POOL_ROWS  # some of them are names of folds that do not count


class Example(NamedTuple):
    """The candidates of an annotated mention.

    Attributes:
        text: What the linker searches for.
        first: The first answer with the names and counts of the folds that count.
        fold: Fold of its document.
        right: Number of its concept among the candidates; None = it is not among them,
            or the mention has no concept.
        cuis: The candidates by cosine. Shape: (n,).
        features: See `compute_features`.
        plain: Whether the first answer is right before anything is taught.
        named: Whether it is with the names and counts of the folds that count.
        seen: Whether a fold that counts has the mention with its concept.
        nil: Whether the mention has no concept.
    """

    text: str
    first: str | None
    fold: int
    right: int | None
    cuis: list[str]
    features: Features
    plain: bool
    named: bool
    seen: bool
    nil: bool


class Nearest(NamedTuple):
    """The names nearest to a text, and whether it is a name of the vocabulary."""

    found: list[FoundName]
    named: bool


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
        """Return the counts of concepts in the other folds."""
        known = {cui: self.concepts[cui] for cui in cuis if cui in self.concepts}
        return {cui: some.total() - some[fold] for cui, some in known.items()}


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
        prior: The order before; without weights, that of the cosines.
        most: Maximum of mentions, which are those of the first notes by digest.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        documents: Sequence[TaughtDocument],
        *,
        before: KnowledgeBase,
        prior: Ranker,
        most: int,
        progress: bool = False,
    ) -> None:
        self.kb = kb
        self.prior = prior
        folds = assign_folds(documents)
        self.fold_counts = FoldCounts(documents, folds)
        # What two annotators of a note agree on is one example, so that notes which
        # several have read do not count more than others.
        notes: dict[tuple[str, int], Counter[tuple[str, str]]] = {}
        for document, fold in zip(documents, folds, strict=True):
            mentioned = Counter(document.mentions)
            note = (document.note, fold)
            notes[note] = notes.get(note, Counter()) | mentioned
        mentions = [
            (text, fold, cui)
            for (_, fold), mentioned in sorted(notes.items(), key=lambda item: item[0])
            for text, cui in mentioned.elements()
        ]
        # text, fold → concepts
        self.queries: dict[tuple[str, int], Counter[str]] = {}
        for text, fold, cui in mentions[:most]:
            self.queries.setdefault((text, fold), Counter())[cui] += 1
        texts = list(dict.fromkeys(text for text, _ in self.queries))
        nearest = search_names(kb, before, texts, progress=progress)
        self.nearest: dict[str, Nearest] = dict(zip(texts, nearest, strict=True))
        self.plain = {text: self.find_plain(text) for text in texts}

    def find_plain(self, text: str) -> str | None:
        """Return the first answer for a mention before anything is taught."""
        found, named = self.nearest[text]
        find_provenance = self.kb.searcher.ordering.find_provenance
        vocabulary = [n for n in found if find_provenance(n.entry).vocabulary]
        pool = pool_concepts(vocabulary, find_provenance)
        features = self.kb.searcher.agreement.features(text, pool, Filter())
        return first_answer(self.prior, pool, features, {}, named=named)

    def examples(self) -> list[Example]:
        """Compute the features of the candidates of all mentions.

        Names and counts of the documents of its own fold do not count for a mention:
        otherwise the ranker would learn to rely on them, and fail for new texts.
        """
        return [
            example
            for (text, fold), cuis in self.queries.items()
            for example in self.list_examples(text, fold, cuis)
        ]

    def list_examples(
        self, text: str, fold: int, cuis: Mapping[str, int]
    ) -> Iterator[Example]:
        """Yield the examples of one text in one fold: one for each annotation.

        Args:
            cuis: How often the text was annotated with each concept in its fold.
        """
        searcher, fold_counts = self.kb.searcher, self.fold_counts
        provenances: dict[Entry, Provenance] = {}

        def find_provenance(entry: Entry) -> Provenance:
            if entry not in provenances:
                provenance = searcher.ordering.find_provenance(entry)
                if provenance.annotated:
                    others = fold_counts.counts(name_form(entry.alias), fold)
                    provenance = provenance._replace(annotated=others[entry.cui] > 0)
                provenances[entry] = provenance
            return provenances[entry]

        counts = fold_counts.counts(name_form(text), fold)
        pool = pool_concepts(self.nearest[text].found, find_provenance)
        concept_counts = fold_counts.concept_counts(pool.cuis, fold)
        features = searcher.agreement.features(
            text, pool, Filter(), counts=counts, concept_counts=concept_counts
        )
        named = bool(pool.near) and next(iter(pool.near.values())).cosine > EXACT
        first = first_answer(self.prior, pool, features, counts, named=named)
        for cui, number in cuis.items():
            example = Example(
                text=text,
                first=first,
                fold=fold,
                right=pool.cuis.index(cui) if cui in pool.near else None,
                cuis=pool.cuis,
                features=features,
                plain=self.plain[text] == cui,
                named=first == cui,
                seen=bool(cui) and counts.get(cui, 0) > 0,
                nil=not cui,
            )
            yield from [example] * number


def search_names(
    kb: KnowledgeBase, before: KnowledgeBase, texts: Sequence[str], *, progress: bool
) -> Iterator[Nearest]:
    """Yield the names nearest to each text as it is written; see `AnnotatedMentions`.

    An order that was learned from corrected mentions was not better: NCBI disease dev
    0.889 instead of 0.894, BC5CDR disease dev 0.911 instead of 0.912.
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
        for number, names in enumerate(found):
            yield Nearest(names if usable[number] else [], bool(mentions.named[number]))


def first_answer(
    prior: Ranker,
    pool: Pool,
    features: Features,
    counts: Mapping[str, int],
    *,
    named: bool,
) -> str | None:
    """Return the first concept as the linker orders them without a taught order.

    Args:
        counts: They break ties of cosines.
        named: Whether the mention is a name, so that the cosines order concepts.
    """
    if not pool.near:
        return None
    if not named and prior.known is not None:
        return pool.cuis[int(prior.scores(features).argmax())]
    highest = next(iter(pool.near.values())).cosine
    tied = [n.nearest for n in pool.near.values() if n.cosine == highest]
    tied.sort(key=lambda e: (-counts.get(e.cui, 0), not e.preferred, e.cui))
    return tied[0].cui
