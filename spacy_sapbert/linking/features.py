"""Features of the candidates of mentions, by which a `Ranker` orders them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from rapidfuzz.distance import OSA

from .candidates import Entry
from .coverage import (
    Near,
    Shared,
    cover_heads,
    cover_names,
    cover_words,
    divide,
    pair_words,
)
from .difference import Kind, Words, compare, split_words
from .groups import Groups
from .text import Rules, is_abbreviation, is_acronym
from .word_likeness import is_slip

POOL = 10  # concepts with the highest cosines that are ordered anew …
POOL_BY_NGRAMS = 6  # … and with the highest similarities of 3-grams
POOL_ROWS = 32  # rows with the highest cosines, and as many with the most 3-grams
SHARPNESS = 20.0  # of the share of a concept in the nearest names
MOST_EDITS = 5  # more are as many
MOST_LETTERS, MOST_WORDS = 60, 10  # of a mention; more are as many
MISSING = 30  # rank of a concept without such a name
COUNTED = 8  # values of `count_words`
EXACT = 0.9999  # cosine of equal token ids, less the rounding of float32
# What excludes a concept if none of its names has the words of the mention
IN_WORDS = frozenset((Kind.NUMBER, Kind.LETTER, Kind.SIGN, Kind.OPPOSITE, Kind.STEM))

# Group → features. All are larger for a better candidate only by chance: the weights
# of the ranker have signs.
GROUPED: dict[str, tuple[str, ...]] = {
    "cosine": (
        "cosine",
        "cosine_gap",
        "vocabulary_cosine",
        "vocabulary_gap",
        "annotated_cosine",
        "annotated_gap",
    ),
    "nearest names": (
        "vocabulary_share",
        "vocabulary_rank",
        "annotated_share",
        "annotated_rank",
    ),
    "3-grams": ("ngrams", "ngrams_gap", "ngrams_share", "ngrams_rank"),
    "characters": ("characters", "characters_gap", "edits", "edits_gap", "slip"),
    "words": (
        "words_in_name",
        "words_in_mention",
        "words_shared",
        "more_words",
        "same_last_word",
        "same_first_word",
        "same_numbers",
        "other_numbers",
    ),
    "coverage": (
        "covered",
        "covered_gap",
        "unnamed",
        "name_covered",
        "name_covered_gap",
        "head_covered",
    ),
    "exact name": ("exact_vocabulary", "exact_annotated", "preferred"),
    "counts": (
        "mention_share",
        "mention_concept_count",
        "mention_count",
        "other_concept",
        "concept_count",
        "concept_count_gap",
    ),
}
# Of each candidate, without a weight. They decide which weights count, see `Ranker`:
# whether the mention or a word of it may be a misspelled name of the candidate, and
# whether all words of the mention are real ones. An excluded candidate is never right.
MISSPELLED, REAL, EXCLUDED = "misspelled", "real", "excluded"
# Of the mention and each candidate, for the probability of the first one alone
OF_MENTION = (
    *("standard", "field", "field_mean", "added", "missing", "replaced"),
    *("letters", "mention_words", "short", "unreal"),
)
FEATURES = tuple(name for group in GROUPED.values() for name in group)
# Those that mean something without annotated mentions, and do not break ties by chance.
OF_NAMES = (
    "cosine",
    "cosine_gap",
    "vocabulary_share",
    "vocabulary_rank",
    *(n for g in ("3-grams", "characters", "words", "coverage") for n in GROUPED[g]),
)

# Also how far each candidate is below the best one
GAPPED = ("cosine", "ngrams", "characters", "covered", "name_covered")

Features = Mapping[str, np.ndarray]  # by name, one value for each candidate


class Provenance(NamedTuple):
    """Whether a name is of the vocabulary, and whether it is an annotated mention."""

    vocabulary: bool
    annotated: bool


class Surroundings(NamedTuple):
    """How near other texts are to a mention: random names, and English words.

    Attributes:
        mean, spread: Of the cosines of random names.
        other, others: The highest cosine of a word, and the mean of the highest ones.
    """

    mean: float
    spread: float
    other: float
    others: float


NOWHERE = Surroundings(0.0, 1.0, 0.0, 0.0)  # where nothing weighs them


class FoundName(NamedTuple):
    """A name that a search found.

    Attributes:
        cosine: Of the mention and the name, −1 to 1.
        similarity: Cosine of their 3-grams, 0 to 1; 0 without 3-grams.
    """

    cosine: float
    similarity: float
    entry: Entry


@dataclass(slots=True)
class NearNames:
    """What a concept's names that were found are like.

    Attributes:
        nearest: Its name with the highest cosine.
        similar: Its name with the highest similarity of 3-grams.
        cosine: The highest one.
        similarity: The highest one.
        vocabulary, annotated: The highest cosine of a name of the vocabulary, and of an
            annotated mention; 0 = there is none.
        vocabulary_weight, annotated_weight, ngrams_weight: Sums over its names, which
            grow with cosine or similarity; the shares are made of them.
    """

    nearest: Entry
    similar: Entry
    cosine: float
    similarity: float
    vocabulary: float = 0.0
    annotated: float = 0.0
    vocabulary_weight: float = 0.0
    annotated_weight: float = 0.0
    ngrams_weight: float = 0.0


class Pool(NamedTuple):
    """The concepts of a mention that are ordered anew.

    Attributes:
        near: Them, by id, the highest cosine first.
        first: The concept with the highest cosine of a name of the vocabulary; None =
            no such name was found.
        vocabulary_weight, annotated_weight, ngrams_weight: Sums of all concepts found.
    """

    near: dict[str, NearNames]
    first: str | None
    vocabulary_weight: float
    annotated_weight: float
    ngrams_weight: float

    @property
    def cuis(self) -> list[str]:
        """The ids of the concepts."""
        return [*self.near]


def pool_concepts(
    found: Iterable[FoundName], find_provenance: Callable[[Entry], Provenance]
) -> Pool:
    """Return the concepts of a mention that are ordered anew.

    `found` is what a search by cosine and one by 3-grams found; a name without
    provenance is left out.
    """
    usable = [
        (name, provenance)
        for name in found
        if any(provenance := find_provenance(name.entry))
    ]
    usable.sort(key=sort_by_cosine)
    near: dict[str, NearNames] = {}
    for (cosine, similarity, entry), provenance in keep_rows(usable):
        names = near.get(entry.cui)
        if names is None:
            names = near[entry.cui] = NearNames(entry, entry, cosine, similarity)
        weight = math.exp(SHARPNESS * (cosine - 1))
        if provenance.vocabulary:
            names.vocabulary = names.vocabulary or cosine
            names.vocabulary_weight += weight
        if provenance.annotated:
            names.annotated = names.annotated or cosine
            names.annotated_weight += weight
        if similarity > 0:
            names.ngrams_weight += math.exp(SHARPNESS * (similarity - 1))
        if similarity > names.similarity:
            names.similarity, names.similar = similarity, entry
    cuis = list(near)[:POOL]
    by_ngrams = [cui for cui, names in near.items() if names.similarity > 0]
    by_ngrams.sort(key=lambda cui: -near[cui].similarity)
    pooled = {*cuis, *by_ngrams[:POOL_BY_NGRAMS]}
    of_vocabulary = [cui for cui, names in near.items() if names.vocabulary]
    everything = near.values()
    return Pool(
        {cui: names for cui, names in near.items() if cui in pooled},
        max(of_vocabulary, key=lambda cui: near[cui].vocabulary, default=None),
        sum(names.vocabulary_weight for names in everything),
        sum(names.annotated_weight for names in everything),
        sum(names.ngrams_weight for names in everything),
    )


def sort_by_cosine(pair: tuple[FoundName, Provenance]) -> tuple[object, ...]:
    """Return a sort key: by cosine, preferred names first, then by id and alias."""
    name = pair[0]
    return -name.cosine, not name.entry.preferred, name.entry.cui, name.entry.alias


def keep_rows(
    usable: Sequence[tuple[FoundName, Provenance]],
) -> list[tuple[FoundName, Provenance]]:
    """Keep the names on `POOL_ROWS` rows by cosine, and on as many by 3-grams."""
    similarities = {name.entry.row: name.similarity for name, _ in usable}
    if len(similarities) <= POOL_ROWS:
        return list(usable)
    by_ngrams = [row for row, similarity in similarities.items() if similarity > 0]
    by_ngrams.sort(key=similarities.__getitem__, reverse=True)
    kept = {*islice(similarities, POOL_ROWS), *by_ngrams[:POOL_ROWS]}
    return [pair for pair in usable if pair[0].entry.row in kept]


def list_near(
    mention: str, pool: Pool, rules_of: Callable[[Entry], Rules]
) -> list[list[Near]]:
    """Return the nearest names of each concept of a pool, compared with the mention.

    A name and the mention are split by the rules of the language of the name.
    """
    near: list[list[Near]] = []
    for names in pool.near.values():
        entries = [names.similar, names.nearest]  # the best by 3-grams comes first
        if names.similar.alias == names.nearest.alias:
            del entries[0]
        of_concept: list[Near] = []
        for entry in entries:
            rules = rules_of(entry)
            words, name = split_words(mention, rules), split_words(entry.alias, rules)
            of_concept.append(Near(words, name, compare(words, name)))
        near.append(of_concept)
    return near


def is_excluded(near: Sequence[Near], shares: Mapping[str, float]) -> bool:
    """Return whether a mention does not mean a concept, by its nearest names.

    All of them differ in a way that excludes them; or one does in a number, a letter or
    an opposite that no name of the concept has.
    """
    excluding = [each.difference.excluding for each in near]
    if near and all(excluding):
        return True
    return any(
        change.kind in IN_WORDS
        and not all(shares.get(word, 1.0) for word in change.mention.split())
        for changes in excluding
        for change in changes
    )


def compute_features(
    pools: Sequence[Pool],
    near_names: Sequence[Sequence[Sequence[Near]]],
    shared: Shared,
    *,
    around: Sequence[Surroundings] = (),
    counts: Sequence[Mapping[str, int]] | None = None,
    concept_counts: Mapping[str, int] | None = None,
) -> Features:
    """Compute the features of the candidates of mentions, float64, by name.

    They are `FEATURES`, `OF_MENTION`, `MISSPELLED`, `REAL` and `EXCLUDED`, of one
    mention after the other. `near_names` is from `list_near`. `counts` says how often
    each mention was annotated with each concept, "" = with none; None = there are no
    annotations, so only `OF_NAMES` and `mention_share` are computed. Shape of each:
    (concepts of all pools,).
    """
    near = [names for pool in pools for names in pool.near.values()]
    groups = Groups([len(pool.near) for pool in pools])
    of_concepts = [names for of_mention in near_names for names in of_mention]
    names = Groups([*map(len, of_concepts)])
    of_mentions = [[*chain(*of_mention)] for of_mention in near_names]
    compared = [*chain(*of_mentions)]
    pairs = pair_words(of_mentions, shared)

    found = [
        (n.cosine, n.similarity, n.vocabulary, n.vocabulary_weight, n.ngrams_weight)
        for n in near
    ]
    cosines, similarities, vocabulary, *weighed = to_array(found).reshape(-1, 5).T
    totals = to_array([(p.vocabulary_weight, p.ngrams_weight) for p in pools])
    edits, characters = count_edits(compared, names)
    shares = cover_words(pairs, names, shared)
    excluded = find_excluded(near_names, shares, shared)
    doubtful: np.ndarray = np.any(~shared.real, axis=1)
    slips = find_slips(of_mentions, doubtful, names)
    real = shared.real[groups.owners]
    weights = shared.weights[groups.owners]
    covered = divide(add_columns(shares * weights), add_columns(weights))
    name_covered = names.highest(cover_names(pairs, shared), 0.0)
    rarest = np.where((shares == 0) & real, weights, 0).max(axis=1, initial=0.0)
    near_words = (shares > 0) & ~shared.covered & ~real
    features: dict[str, np.ndarray] = {
        "cosine": cosines,
        "vocabulary_share": divide(weighed[0], totals[groups.owners, 0]),
        "vocabulary_rank": rank_values(vocabulary, groups),
        "ngrams": similarities,
        "ngrams_share": divide(weighed[1], totals[groups.owners, 1]),
        "ngrams_rank": rank_values(similarities, groups),
        "characters": characters,
        "edits": edits,
        "edits_gap": edits - groups.lowest(edits)[groups.owners],
        "slip": slips,
        **compare_words([of_concept[0] for of_concept in of_concepts]),
        "covered": covered,
        "unnamed": rarest / shared.most,
        "name_covered": name_covered,
        "head_covered": names.highest(cover_heads(pairs), 0.0),
        MISSPELLED: np.maximum(near_words.any(axis=1), slips),
        REAL: 1.0 - doubtful[groups.owners],
        EXCLUDED: excluded,
        "mention_share": np.zeros(len(near)),
        **describe_mentions(of_mentions, cosines, shared, around, groups),
        **weigh_changes(compared, names, shared),
    }
    gaps = groups.gaps(np.stack([features[name] for name in GAPPED], axis=1))
    features |= {f"{n}_gap": gap for n, gap in zip(GAPPED, gaps.T, strict=True)}
    if counts is not None:
        features |= {
            "vocabulary_cosine": vocabulary,
            "vocabulary_gap": groups.gaps(vocabulary),
            "exact_vocabulary": to_array(vocabulary > EXACT),
            "preferred": to_array([names.nearest.preferred for names in near]),
            **compute_annotated(pools, groups, counts, concept_counts or {}),
        }
    return features


def to_array(values: Any) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def add_columns(values: np.ndarray) -> np.ndarray:
    """Return the sums of rows, from left to right: their width does not change them."""
    total = np.zeros(len(values))
    for column in values.T:
        total = total + column
    return total


def find_excluded(
    near_names: Sequence[Sequence[Sequence[Near]]], shares: np.ndarray, shared: Shared
) -> np.ndarray:
    """Return which concepts `is_excluded`, as 0 or 1. Shape: (candidates,)."""
    excluded = np.zeros(len(shares))
    number = 0
    for of_mention, words in zip(near_names, shared.words, strict=True):
        for of_concept in of_mention:
            if any(each.difference.excluding for each in of_concept):
                of_words = dict(zip(words, shares[number].tolist(), strict=False))
                excluded[number] = is_excluded(of_concept, of_words)
            number += 1
    return excluded


def find_slips(
    near: Sequence[Sequence[Near]], doubtful: np.ndarray, names: Groups
) -> np.ndarray:
    """Return of which concepts a mention with a new word may be a misspelled name.

    As 0 or 1. Shape: (candidates,).
    """
    slips = [
        is_doubtful and is_slip(each.mention.text, each.name.text)
        for of_mention, is_doubtful in zip(near, doubtful.tolist(), strict=True)
        for each in of_mention
    ]
    return to_array(names.any(np.array(slips, dtype=bool)))


def describe_mentions(
    near: Sequence[Sequence[Near]],
    cosines: np.ndarray,
    shared: Shared,
    around: Sequence[Surroundings],
    groups: Groups,
) -> dict[str, np.ndarray]:
    """Compute of `OF_MENTION` what is not of changes."""
    texts = [names[0].mention if names else split_words("") for names in near]
    counts = to_array([*map(len, shared.words)])
    new = (~shared.real).sum(axis=1)
    of_mentions: dict[str, Any] = {
        "letters": [min(len(text.clean), MOST_LETTERS) for text in texts],
        "mention_words": [min(len(text.words), MOST_WORDS) for text in texts],
        "short": [is_abbreviation(t.clean) or is_acronym(t.clean) for t in texts],
        "unreal": 1 - divide(counts - new, counts),
    }
    every = to_array(around or [NOWHERE] * len(near))[groups.owners]
    mean, spread, other, others = every.T
    return {
        "standard": (cosines - mean) / spread,
        "field": (cosines - other) / spread,
        "field_mean": (cosines - others) / spread,
        **{n: to_array(v)[groups.owners] for n, v in of_mentions.items()},
    }


def all_excluded(features: Features, groups: Groups) -> np.ndarray:
    """Return which mentions mean none of their candidates, bool. (mentions,)"""
    return ~groups.any(features[EXCLUDED] == 0)


def compute_annotated(
    pools: Sequence[Pool],
    groups: Groups,
    counts: Sequence[Mapping[str, int]],
    concept_counts: Mapping[str, int],
) -> dict[str, np.ndarray]:
    """Compute the features that annotated mentions make; see `compute_features`."""
    near = [names for pool in pools for names in pool.near.values()]
    cuis = [cui for pool in pools for cui in pool.near]
    annotated = to_array([names.annotated for names in near])
    weights = to_array([names.annotated_weight for names in near])
    of_pools = to_array([pool.annotated_weight for pool in pools])[groups.owners]
    totals = to_array([sum(some.values()) for some in counts])[groups.owners]
    places = [*zip(groups.owners.tolist(), cuis, strict=True)]
    of_mention = to_array([counts[number].get(cui, 0) for number, cui in places])
    others = to_array([len({*counts[n]} - {cui, ""}) for n, cui in places])
    of_concept = log_counts([concept_counts.get(cui, 0) for cui in cuis])
    return {
        "annotated_cosine": annotated,
        "annotated_gap": groups.gaps(annotated),
        "annotated_share": divide(weights, of_pools),
        "annotated_rank": rank_values(annotated, groups),
        "exact_annotated": to_array(annotated > EXACT),
        "mention_share": divide(of_mention, totals),
        "mention_concept_count": log_counts(of_mention),
        "mention_count": log_counts(totals),
        "other_concept": to_array((others > 0) & (of_mention == 0)),
        "concept_count": of_concept,
        "concept_count_gap": groups.gaps(of_concept),
    }


def log_counts(counts: Iterable[float]) -> np.ndarray:
    return to_array([*map(math.log1p, counts)])


def compare_words(near: Sequence[Near]) -> dict[str, np.ndarray]:
    """Return the features of the group "words". Shape of each: (near,)."""
    values = to_array([count_words(each.mention, each.name) for each in near])
    shared, mine, its, *rest = values.reshape(-1, COUNTED).T
    shares = (divide(shared, whole) for whole in (mine, its, mine + its - shared))
    return dict(zip(GROUPED["words"], (*shares, *rest), strict=True))


def count_words(mention: Words, name: Words) -> tuple[float, ...]:
    """Return how many words both have, and each; then the features without shares."""
    numbers, others = mention.numbers, name.numbers
    return (
        len(mention.content & name.content),
        len(mention.content),
        len(name.content),
        len(name.words) - len(mention.words),
        mention.words[-1:] == name.words[-1:],
        mention.words[:1] == name.words[:1],
        numbers == others,
        bool(numbers and others and numbers != others),
    )


def weigh_changes(
    near: Sequence[Near], names: Groups, shared: Shared
) -> dict[str, np.ndarray]:
    """Compute how far the words that only a mention has change what it means.

    Also the same of the words that only the name has, and how many words stand in the
    place of others; of the name of a concept with the least. Shape: (candidates,) each.
    """
    found: dict[Kind, list[tuple[int, str]]] = {
        kind: [] for kind in (Kind.ADDED, Kind.MISSING, Kind.REPLACED)
    }
    for number, (_, _, difference) in enumerate(near):
        for kind, word, other in difference.changes:
            if kind in found:
                found[kind].append((number, word or other))
    adds = shared.adds({w for k in (Kind.ADDED, Kind.MISSING) for _, w in found[k]})
    columns: dict[str, np.ndarray] = {}
    for kind, some in found.items():
        numbers = np.array([number for number, _ in some], dtype=np.int64)
        weights = np.ones(len(some))
        if kind is not Kind.REPLACED:
            weights = to_array([adds[word] for _, word in some])
        sums = np.bincount(numbers, weights, len(near))
        columns[kind.name.lower()] = names.lowest(sums)
    return columns


def rank_values(values: np.ndarray, groups: Groups) -> np.ndarray:
    """Return how many values of a mention are higher than each; `MISSING` of 0."""
    order = np.lexsort((-values, groups.owners))
    ordered, owners = values[order], groups.owners[order]
    new = np.ones(len(order), dtype=bool)  # not equal to the one before
    new[1:] = (ordered[1:] != ordered[:-1]) | (owners[1:] != owners[:-1])
    first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    ranks = np.empty(len(order))
    ranks[order] = groups.places[first]
    return np.where(values > 0, np.minimum(ranks, MISSING), MISSING)


def count_edits(near: Sequence[Near], names: Groups) -> tuple[np.ndarray, np.ndarray]:
    """Count the letters dropped, added, changed or swapped between mentions and names.

    Returns for each concept, of the nearest of its names: the number, up to
    `MOST_EDITS`; and one minus the number relative to the longer text, 0 to 1.
    """
    texts = [(each.mention.text, each.name.text) for each in near]
    counts = to_array([OSA.distance(*pair) for pair in texts])
    longest = to_array([max(map(len, pair)) or 1 for pair in texts])
    edits = np.minimum(names.lowest(counts), MOST_EDITS)
    return edits, names.highest(1 - counts / longest, 0.0)
