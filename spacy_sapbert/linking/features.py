"""Features of the candidates of a mention, by which a `Ranker` orders them."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import OSA

from .candidates import Entry

POOL = 10  # concepts with the highest cosines that are ordered anew …
POOL_BY_NGRAMS = 12  # … and with the highest similarities of 3-grams
POOL_ROWS = 32  # rows with the highest cosines, and as many with the most 3-grams
SHARPNESS = 20.0  # of the share of a concept in the nearest names
MOST_EDITS = 5  # more are as many
SHORTEST = 4  # letters of a misspelled word
LETTERS_PER_SLIP, MOST_SLIPS = 3, 3  # one of three letters may be wrong
MISSING = 30  # rank of a concept without such a name
EXACT = 0.9999  # cosine of equal token ids, less the rounding of float32
WORD = re.compile(r"\w+")
NUMBER = re.compile(r"\d+")
NUMERALS = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6"}
LITTLE = frozenset({"and", "in", "of", "the", "to", "type", "with"})

# Group → features. All are larger for a better candidate only by chance: the weights
# of the ranker have signs.
GROUPS: dict[str, tuple[str, ...]] = {
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
# Of each candidate: whether the mention or a word of it may be a misspelled name of it.
# It has no weight; it decides which weights count, see `Ranker`.
MISSPELLED = "misspelled"
FEATURES = tuple(name for group in GROUPS.values() for name in group)
# Those that mean something without annotated mentions, and do not break ties by chance.
OF_NAMES = (
    "cosine",
    "cosine_gap",
    "vocabulary_share",
    "vocabulary_rank",
    *(n for g in ("3-grams", "characters", "words") for n in GROUPS[g]),
)

Features = Mapping[str, np.ndarray]  # by name, one value for each candidate


class Words(NamedTuple):
    """What is compared of a text.

    Attributes:
        words: In lower case, without plural s, Roman numerals as digits.
        content: Those with a meaning of their own.
        numbers: All numbers, also within words.
        text: From `fold_text`.
    """

    words: tuple[str, ...]
    content: frozenset[str]
    numbers: frozenset[str]
    text: str


@lru_cache(maxsize=10_000)  # about 2 KB each
def split_words(text: str) -> Words:
    """Split a text into what is compared."""
    lower = fold_text(text)
    words = tuple(map(fold_word, WORD.findall(lower)))
    content = frozenset(words) - LITTLE or frozenset(words)
    return Words(words, content, frozenset(NUMBER.findall(" ".join(words))), lower)


def fold_text(text: str) -> str:
    """Return a text in lower case, with single blanks."""
    return " ".join(text.lower().split())


def fold_word(word: str) -> str:
    """Return a word without plural s, and a Roman numeral as a digit."""
    if len(word) > 4 and word[-1] == "s" and word[-2] not in "sui":
        return word[:-3] + "y" if word.endswith("ies") else word[:-1]
    return NUMERALS.get(word, word)


class Provenance(NamedTuple):
    """Whether a name is of the vocabulary, and whether it is an annotated mention."""

    vocabulary: bool
    annotated: bool


class FoundName(NamedTuple):
    """A name that a search found.

    Attributes:
        cosine: Of the mention and the name, −1 to 1.
        similarity: Cosine of their 3-grams, 0 to 1; 0 without 3-grams.
    """

    cosine: float
    similarity: float
    entry: Entry


@dataclass
class NearNames:
    """What a concept's names that were found are like.

    Attributes:
        nearest: Its name with the highest cosine.
        alias: Its name with the highest similarity of 3-grams.
        cosine: The highest one.
        similarity: The highest one.
        vocabulary, annotated: The highest cosine of a name of the vocabulary, and of an
            annotated mention; 0 = there is none.
        vocabulary_weight, annotated_weight, ngrams_weight: Sums over its names, which
            grow with cosine or similarity; the shares are made of them.
    """

    nearest: Entry
    alias: str
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

    Args:
        found: The names that a search by cosine and one by 3-grams found.
        find_provenance: Of a name; a name that is neither is left out.
    """
    usable = [(name, find_provenance(name.entry)) for name in found]
    usable = [pair for pair in usable if any(pair[1])]
    usable.sort(key=sort_by_cosine)
    near: dict[str, NearNames] = {}
    for name, provenance in keep_rows(usable):
        entry = name.entry
        names = near.get(entry.cui)
        if names is None:
            names = NearNames(entry, entry.alias, name.cosine, name.similarity)
            near[entry.cui] = names
        weight = math.exp(SHARPNESS * (name.cosine - 1))
        if provenance.vocabulary:
            names.vocabulary = names.vocabulary or name.cosine
            names.vocabulary_weight += weight
        if provenance.annotated:
            names.annotated = names.annotated or name.cosine
            names.annotated_weight += weight
        if name.similarity > 0:
            names.ngrams_weight += math.exp(SHARPNESS * (name.similarity - 1))
        if name.similarity > names.similarity:
            names.similarity, names.alias = name.similarity, entry.alias
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
    rows = list(dict.fromkeys(name.entry.row for name, _ in usable))
    if len(rows) <= POOL_ROWS:
        return list(usable)
    similarity = {name.entry.row: name.similarity for name, _ in usable}
    by_ngrams = sorted(
        (row for row in rows if similarity[row] > 0), key=lambda row: -similarity[row]
    )
    kept = {*rows[:POOL_ROWS], *by_ngrams[:POOL_ROWS]}
    return [pair for pair in usable if pair[0].entry.row in kept]


def compute_features(
    mention: str,
    pool: Pool,
    *,
    counts: Mapping[str, int] | None = None,
    concept_counts: Mapping[str, int] | None = None,
) -> Features:
    """Compute the features of the candidates of a mention.

    Args:
        pool: From `pool_concepts`.
        counts: How often the mention was annotated with each concept, "" = with none;
            None = there are no annotations: only `OF_NAMES` and `mention_share`.
        concept_counts: How often each concept was annotated.

    Returns:
        By name, as in `FEATURES`, and `MISSPELLED`; one value for each concept of the
        pool, float64.
    """
    near = [*pool.near.values()]
    words = split_words(mention)
    aliases = [split_words(names.alias) for names in near]
    compared = [compare_words(words, alias) for alias in aliases]
    table = np.array(compared, dtype=np.float64).reshape(-1, len(GROUPS["words"]))
    cosines = [names.cosine for names in near]
    similarities = [names.similarity for names in near]
    vocabulary = [names.vocabulary for names in near]
    edits, characters = count_edits(words.text, near)
    slips = [edit <= most_slips(words.text) for edit in edits]
    misspelled = [
        slip or has_misspelled(words, alias)
        for slip, alias in zip(slips, aliases, strict=True)
    ]
    columns: dict[str, Sequence[float]] = {
        "cosine": cosines,
        "cosine_gap": find_gaps(cosines),
        "vocabulary_share": [
            names.vocabulary_weight / (pool.vocabulary_weight or 1) for names in near
        ],
        "vocabulary_rank": rank_values(vocabulary),
        "ngrams": similarities,
        "ngrams_gap": find_gaps(similarities),
        "ngrams_share": [
            names.ngrams_weight / (pool.ngrams_weight or 1) for names in near
        ],
        "ngrams_rank": rank_values(similarities),
        "characters": characters,
        "characters_gap": find_gaps(characters),
        "edits": edits,
        "edits_gap": [edit - min(edits) for edit in edits],
        "slip": slips,
        MISSPELLED: misspelled,
        "mention_share": [0.0] * len(near),
    }
    if counts is not None:
        columns |= {
            "vocabulary_cosine": vocabulary,
            "vocabulary_gap": find_gaps(vocabulary),
            "exact_vocabulary": [float(cosine > EXACT) for cosine in vocabulary],
            "preferred": [float(names.nearest.preferred) for names in near],
            **compute_annotated(pool, counts, concept_counts or {}),
        }
    features = dict(zip(GROUPS["words"], table.T, strict=True))
    values = np.array([*columns.values()], dtype=np.float64)
    features |= zip(columns, values.reshape(len(columns), len(near)), strict=True)
    return features


def compute_annotated(
    pool: Pool, counts: Mapping[str, int], concept_counts: Mapping[str, int]
) -> dict[str, Sequence[float]]:
    """Compute the features that annotated mentions make; see `compute_features`."""
    near = [*pool.near.values()]
    annotated = [names.annotated for names in near]
    weight = pool.annotated_weight
    total = sum(counts.values())
    others = {cui for cui in counts if cui}
    of_mention = [counts.get(cui, 0) for cui in pool.near]
    of_concept = [math.log1p(concept_counts.get(cui, 0)) for cui in pool.near]
    return {
        "annotated_cosine": annotated,
        "annotated_gap": find_gaps(annotated),
        "annotated_share": [names.annotated_weight / (weight or 1) for names in near],
        "annotated_rank": rank_values(annotated),
        "exact_annotated": [float(cosine > EXACT) for cosine in annotated],
        "mention_share": [count / (total or 1) for count in of_mention],
        "mention_concept_count": [math.log1p(count) for count in of_mention],
        "mention_count": [math.log1p(total)] * len(near),
        "other_concept": [
            float(bool(others - {cui}) and not count)
            for cui, count in zip(pool.near, of_mention, strict=True)
        ],
        "concept_count": of_concept,
        "concept_count_gap": find_gaps(of_concept),
    }


def compare_words(mention: Words, name: Words) -> tuple[float, ...]:
    """Return the features of the group "words", in its order."""
    shared = len(mention.content & name.content)
    numbers, others = mention.numbers, name.numbers
    return (
        shared / (len(mention.content) or 1),
        shared / (len(name.content) or 1),
        shared / (len(mention.content | name.content) or 1),
        len(name.words) - len(mention.words),
        mention.words[-1:] == name.words[-1:],
        mention.words[:1] == name.words[:1],
        numbers == others,
        bool(numbers and others and numbers != others),
    )


def most_slips(text: str) -> int:
    """Return how many letters of a text may be wrong by mistake."""
    if len(text) < SHORTEST:
        return 0
    return min(len(text) // LETTERS_PER_SLIP, MOST_SLIPS)


def has_misspelled(mention: Words, name: Words) -> bool:
    """Return whether a word of a mention may be a misspelled word of a name."""
    others = name.content - mention.content
    return any(
        OSA.distance(word, other, score_cutoff=slips) <= slips
        for word in mention.content - name.content
        if (slips := most_slips(word))
        for other in others
    )


def find_gaps(values: Sequence[float]) -> list[float]:
    """Return how far each value is below the highest."""
    highest = max(values, default=0.0)
    return [highest - value for value in values]


def rank_values(values: Sequence[float]) -> list[float]:
    """Return how many values are higher than each, as its rank; `MISSING` of 0."""
    ordered = sorted(values, reverse=True)
    ranks: dict[float, int] = {}
    for rank, value in enumerate(ordered):
        ranks.setdefault(value, rank)
    return [min(ranks[value], MISSING) if value > 0 else MISSING for value in values]


def count_edits(text: str, near: Sequence[NearNames]) -> tuple[list[int], list[float]]:
    """Count the letters that differ between a mention and the nearest names.

    Letters dropped, added, changed or swapped count.

    Args:
        text: The mention, from `fold_text`.

    Returns:
        For each concept, of the better of its nearest name and of that by 3-grams: the
        number, up to `MOST_EDITS`; and one minus the number relative to the longer
        text, 0 to 1.
    """
    edits: list[int] = []
    similarities: list[float] = []
    for names in near:
        counted = [
            (OSA.distance(text, other), max(len(text), len(other)) or 1)
            for alias in {names.alias: None, names.nearest.alias: None}
            if (other := fold_text(alias))
        ]
        edits.append(min((n for n, _ in counted), default=MOST_EDITS))
        similarities.append(max((1 - n / most for n, most in counted), default=0.0))
    return [min(edit, MOST_EDITS) for edit in edits], similarities
