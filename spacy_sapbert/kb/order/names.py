"""The names of a knowledge base → an order of candidates, without any annotation.

Some names are left out, so that a mention must find another name of its concept; some
are disturbed, as people write them; and of some the whole concept is left out, so that
they have none.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import numpy as np

from ...io.progress import show_progress
from ...linking.candidates import Entry
from ...linking.features import (
    MISSPELLED,
    OF_NAMES,
    Features,
    Provenance,
    compute_features,
    pool_concepts,
)
from ...linking.filters import Filter
from ...linking.ranker import Ranker
from ..embedding import EmbeddedTexts
from ..folder.records import Gain, NamesOrder
from ..knowledge_base import KnowledgeBase
from ..probe import choose_rows
from ..search import MENTIONS_AT_ONCE, VOCABULARY_NAME, Mentions
from .fit import (
    Example,
    check_right,
    compute_chances,
    fit_probability,
    fit_weights,
)
from .noise import KINDS, disturb_names

SEED = 1
MOST_NAMES = 5_000  # that are left out, and as many that are disturbed
NIL_SHARE = 0.1  # of the left-out names: their whole concept is left out
SHORTEST = 5  # characters of a name that is disturbed
FEWEST = 100  # examples with known words, and as many without …
MANY = 1_000  # … or of both together
FOLDS = 2
# For mentions with known words, and for others. Both are corrections of the cosine; for
# misspelled words, other features may count more.
PENALTIES = {True: 0.03, False: 0.002}
LOST = 0.003  # of the right answers that the threshold turns into no concept, at most
DIGITS = 4
LEFT_OUT = "left out"
NO_CONCEPT = "without its concept"
NEITHER = Provenance(vocabulary=False, annotated=False)
KEPT = (*OF_NAMES, MISSPELLED, "mention_share")


class NameMention(NamedTuple):
    """A mention made of a name.

    Attributes:
        kind: Of noise; or `LEFT_OUT` or `NO_CONCEPT`.
        row: The row of the name, which is left out; −1 = none.
    """

    text: str
    cui: str
    kind: str
    row: int = -1


@dataclass(frozen=True)
class NameExample:
    """The candidates of a mention; see `Example`.

    Attributes:
        by_cosine: Whether the cosines alone have the right answer.
    """

    kind: str
    right: int | None
    features: Features
    known: bool
    by_cosine: bool


def learn_order(kb: KnowledgeBase, *, progress: bool = False) -> NamesOrder | None:
    """Learn an order of candidates from names; None if there are too few.

    The knowledge base must have 3-grams. Equal knowledge bases give equal orders.

    Returns:
        The order, what it was learned from, and what it gains.
    """
    examples = list(make_examples(kb, progress=progress))
    if not has_enough(examples):
        return None
    numbers = np.arange(len(examples)) % FOLDS
    scores: list[np.ndarray] = [np.zeros(0)] * len(examples)
    for fold in range(FOLDS):
        others = [e for e, n in zip(examples, numbers, strict=True) if n != fold]
        if not has_enough(others, folds=FOLDS):
            return None
        fitted = fit_order(others, folds=FOLDS)
        for number in np.flatnonzero(numbers == fold).tolist():
            example = examples[number]
            scores[number] = fitted.scores(example.features, known=example.known)
    ranker = fit_probability(fit_order(examples), examples, scores)
    right = check_right(examples, scores)
    chances = compute_chances(ranker, examples, scores)
    threshold = float(np.quantile(chances[right], LOST, method="lower"))
    ranker = ranker.model_copy(update={"threshold": round(threshold, DIGITS)})
    linked = chances >= ranker.threshold
    nil = np.array([example.kind == NO_CONCEPT for example in examples])
    return NamesOrder(
        ranker=ranker,
        examples=len(examples),
        seed=SEED,
        gains=measure_gains(examples, right),
        precision=round(float(right[linked].mean()), DIGITS),
        recall=round(float((right & linked).sum() / (~nil).sum()), DIGITS),
        nil_recall=round(float((~linked)[nil].mean()), DIGITS) if nil.any() else None,
    )


def has_enough(examples: Sequence[Example], *, folds: int = 1) -> bool:
    """Return whether there are enough examples of both kinds, or enough in all.

    Args:
        folds: The examples are one part of so many.
    """
    usable = [example.known for example in examples if example.right is not None]
    fewest = min(usable.count(True), usable.count(False))
    return fewest >= FEWEST // folds or len(usable) >= MANY // folds


def choose_examples(
    examples: Sequence[Example], *, known: bool, folds: int
) -> Sequence[Example]:
    """Return the examples with known words or without; all of them if these are few.

    Few names of a language without spaces have words that other names have too.
    """
    some = [example for example in examples if example.known == known]
    usable = sum(example.right is not None for example in some)
    return some if usable >= FEWEST // folds else examples


def fit_order(examples: Sequence[Example], *, folds: int = 1) -> Ranker:
    """Fit the weights of an order, without its probability; see `has_enough`."""
    weights = {
        known: fit_weights(
            choose_examples(examples, known=known, folds=folds),
            OF_NAMES,
            penalty=PENALTIES[known],
            temperature=True,
        )
        for known in (True, False)
    }
    return Ranker(known=weights[True], unknown=weights[False])


def measure_gains(examples: Sequence[NameExample], right: np.ndarray) -> list[Gain]:
    """Return the share of right first answers for each kind of mention."""
    by_kind: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for example, ordered in zip(examples, right.tolist(), strict=True):
        by_kind[example.kind].append((example.by_cosine, ordered))
    return [
        Gain(
            kind=kind,
            names=len(answers),
            cosine=round(float(np.mean([before for before, _ in answers])), DIGITS),
            order=round(float(np.mean([after for _, after in answers])), DIGITS),
        )
        for kind in (LEFT_OUT, *KINDS)
        if (answers := by_kind[kind])
    ]


def make_examples(
    kb: KnowledgeBase, *, progress: bool = False
) -> Iterator[NameExample]:
    """Yield the candidates of mentions that are made of names."""
    mentions = make_mentions(kb)
    starts = range(0, len(mentions), MENTIONS_AT_ONCE)
    bar = show_progress(starts, unit="batches", desc="Order", quiet=not progress)
    for start in bar:
        batch = mentions[start : start + MENTIONS_AT_ONCE]
        embedded = embed_mentions(kb, batch)
        usable = np.isfinite(embedded.vectors).all(axis=1) & embedded.readable
        for number, mention in enumerate(batch):
            # A disturbed name that is another name is found as that.
            if mention.row < 0 and mention.kind != NO_CONCEPT:
                usable[number] &= not embedded.named[number]
        chosen = np.flatnonzero(usable).tolist()
        searched = Mentions(embedded.texts, embedded.vectors, embedded.named)
        found = kb.searcher.find_names(searched.take(chosen), Filter())
        for number, names in zip(chosen, found, strict=True):
            mention, text = batch[number], embedded.texts[number]
            pool = pool_concepts(names, leave_out(mention))
            if not pool.near:
                continue
            features = compute_features(text, pool)
            right = None
            if mention.kind != NO_CONCEPT and mention.cui in pool.near:
                right = pool.cuis.index(mention.cui)
            yield NameExample(
                kind=mention.kind,
                right=right,
                features={name: features[name] for name in KEPT},
                known=kb.searcher.knows(text),
                by_cosine=pool.cuis[0] == mention.cui,
            )


def embed_mentions(kb: KnowledgeBase, mentions: Sequence[NameMention]) -> EmbeddedTexts:
    """Embed mentions, left-out names as if they were not known."""
    texts = [mention.text for mention in mentions]
    embedded = kb.embed(texts, variants=True, respell=True)
    left = [n for n, mention in enumerate(mentions) if mention.row >= 0]
    provenances = [leave_out(mentions[number]) for number in left]
    respelled = kb.searcher.spellings.respell(
        [texts[number] for number in left],
        is_left_out=lambda number, entry: not any(provenances[number](entry)),
    )
    if not respelled:
        return embedded
    vectors, compared = embedded.vectors.copy(), [*embedded.texts]
    corrected = kb.embed([found.text for found in respelled.values()])
    for place, (number, found) in enumerate(respelled.items()):
        vectors[left[number]] = corrected.vectors[place] * found.kept
        if not corrected.named[place]:
            compared[left[number]] = found.text
    return embedded._replace(texts=compared, vectors=vectors)


def leave_out(mention: NameMention) -> Callable[[Entry], Provenance]:
    """Return what says of a name whether it may be found; see `pool_concepts`."""

    def find_provenance(entry: Entry) -> Provenance:
        left_out = entry.row == mention.row
        if mention.kind == NO_CONCEPT:
            left_out = entry.cui == mention.cui
        return NEITHER if left_out else VOCABULARY_NAME

    return find_provenance


def make_mentions(kb: KnowledgeBase) -> list[NameMention]:
    """Return mentions made of the names of rows with one concept, in a fixed order."""
    random = Random(SEED)
    rows = choose_rows(kb, 4 * MOST_NAMES).tolist()
    random.shuffle(rows)
    entries = kb.entries(rows)
    names = [
        (row, entries[row][0])
        for row in rows
        if len({entry.cui for entry in entries.get(row, ())}) == 1
    ]
    left = names[:MOST_NAMES]
    disturbed = [e for _, e in names[MOST_NAMES:] or names if len(e.alias) >= SHORTEST]
    disturbed = disturbed[:MOST_NAMES]
    mentions: list[NameMention] = []
    for row, entry in left:
        others = {other.row for other in kb.store.entries_of(entry.cui)} - {row}
        nil = not others or random.random() < NIL_SHARE
        kind = NO_CONCEPT if nil else LEFT_OUT
        mentions.append(NameMention(entry.alias, entry.cui, kind, row))
    noisy = disturb_names([entry.alias for entry in disturbed], random)
    for (kind, text), entry in zip(noisy, disturbed, strict=True):
        if text != entry.alias:
            mentions.append(NameMention(text, entry.cui, kind))
    random.shuffle(mentions)
    return mentions
