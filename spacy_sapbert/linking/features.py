"""Features of the candidates of a mention, by which a `Ranker` orders them."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from .candidates import Entry, RankedEntry

POOL = 10  # concepts that are ordered anew
POOL_ROWS = 64  # nearest rows that the features are made of
NAMES = 2  # nearest names of a concept that are compared with the mention
SHARPNESS = 20.0  # of the share of a concept in the nearest names
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
        "vocabulary_cosine",
        "vocabulary_gap",
        "annotated_cosine",
        "annotated_gap",
        "cosine",
        "cosine_gap",
    ),
    "nearest names": (
        "vocabulary_share",
        "annotated_share",
        "vocabulary_rank",
        "annotated_rank",
    ),
    "characters": ("characters", "characters_gap"),
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
FEATURES = tuple(name for group in GROUPS.values() for name in group)


class NearNames(NamedTuple):
    """The nearest names of one concept, each a cosine and a text, the nearest first.

    Attributes:
        preferred: Whether the nearest name is the preferred one.
    """

    vocabulary: list[tuple[float, str]]
    annotated: list[tuple[float, str]]
    preferred: bool


class Words(NamedTuple):
    """What is compared of a text.

    Attributes:
        words: In lower case, without plural s, Roman numerals as digits.
        content: Those with a meaning of their own.
        numbers: All numbers, also within words.
        grams: Character 3-grams.
    """

    words: tuple[str, ...]
    content: frozenset[str]
    numbers: frozenset[str]
    grams: frozenset[str]


@lru_cache(maxsize=50_000)
def split_words(text: str) -> Words:
    """Split a text into what is compared."""
    words = tuple(map(fold_word, WORD.findall(text.lower())))
    joined = f"##{' '.join(words)}##"
    grams = frozenset(joined[i : i + 3] for i in range(len(joined) - 2))
    content = frozenset(words) - LITTLE or frozenset(words)
    return Words(words, content, frozenset(NUMBER.findall(joined)), grams)


def fold_word(word: str) -> str:
    """Return a word without plural s, and a Roman numeral as a digit."""
    if len(word) > 4 and word[-1] == "s" and word[-2] not in "sui":
        return word[:-3] + "y" if word.endswith("ies") else word[:-1]
    return NUMERALS.get(word, word)


class Provenance(NamedTuple):
    """Whether a name is of the vocabulary, and whether it is an annotated mention."""

    vocabulary: bool
    annotated: bool


def pool_concepts(
    ranked: Iterable[RankedEntry], find_provenance: Callable[[Entry], Provenance]
) -> tuple[list[RankedEntry], dict[str, NearNames]]:
    """Return the nearest concepts of a mention, and their nearest names.

    Args:
        ranked: From `order_entries`; read as far as `POOL_ROWS`.
        find_provenance: Of a name; a name that is neither is left out.

    Returns:
        The nearest name of each of at most `POOL` concepts, and the names of all
        concepts on these rows.
    """
    best: dict[str, RankedEntry] = {}
    near: dict[str, NearNames] = {}
    rows: set[int] = set()
    for hit in ranked:
        entry = hit.entry
        provenance = find_provenance(entry)
        if not any(provenance):
            continue
        rows.add(entry.row)
        if len(rows) > POOL_ROWS:
            break
        if entry.cui not in best:
            best[entry.cui] = hit
            near[entry.cui] = NearNames([], [], entry.preferred)
        names = near[entry.cui]
        if provenance.vocabulary:
            names.vocabulary.append((hit.score, entry.alias))
        if provenance.annotated:
            names.annotated.append((hit.score, entry.alias))
    return list(islice(best.values(), POOL)), near


def compute_features(
    mention: str,
    pool: Sequence[RankedEntry],
    near: Mapping[str, NearNames],
    counts: Mapping[str, int],
    concept_counts: Mapping[str, int],
) -> np.ndarray:
    """Compute the features of the candidates of a mention.

    Args:
        pool, near: From `pool_concepts`.
        counts: How often the mention was annotated with each concept, "" = with none.
        concept_counts: How often each concept was annotated.

    Returns:
        Float32. Shape: (candidates, len(FEATURES)).
    """
    words = split_words(mention)
    total = sum(counts.values())
    others = {cui for cui in counts if cui}
    vocabulary = {cui: names.vocabulary for cui, names in near.items()}
    annotated = {cui: names.annotated for cui, names in near.items()}
    tops = [nearest_cosine(vocabulary.values()), nearest_cosine(annotated.values())]
    shares = [name_shares(vocabulary), name_shares(annotated)]
    ranks = [rank_by_cosine(vocabulary), rank_by_cosine(annotated)]
    rows: list[list[float]] = []
    for candidate in pool:
        cui = candidate.entry.cui
        names = near[cui]
        cosines = [
            nearest_cosine([names.vocabulary]),
            nearest_cosine([names.annotated]),
        ]
        texts = [t for _, t in (*names.vocabulary[:NAMES], *names.annotated[:NAMES])]
        name = split_words(candidate.entry.alias)
        shared = len(words.content & name.content)
        union = len(words.content | name.content) or 1
        count = counts.get(cui, 0)
        rows.append(
            [
                cosines[0],
                tops[0] - cosines[0],
                cosines[1],
                tops[1] - cosines[1],
                candidate.score,
                pool[0].score - candidate.score,
                shares[0].get(cui, 0.0),
                shares[1].get(cui, 0.0),
                ranks[0].get(cui, MISSING),
                ranks[1].get(cui, MISSING),
                max(similarity(words.grams, split_words(text).grams) for text in texts),
                0.0,  # the gap, below
                shared / (len(words.content) or 1),
                shared / (len(name.content) or 1),
                shared / union,
                len(name.words) - len(words.words),
                words.words[-1:] == name.words[-1:],
                words.words[:1] == name.words[:1],
                words.numbers == name.numbers,
                bool(words.numbers and name.numbers and words.numbers != name.numbers),
                bool(names.vocabulary) and cosines[0] > EXACT,
                bool(names.annotated) and cosines[1] > EXACT,
                names.preferred,
                count / total if total else 0.0,
                math.log1p(count),
                math.log1p(total),
                bool(others - {cui}) and not count,
                math.log1p(concept_counts.get(cui, 0)),
                0.0,  # the gap, below
            ]
        )
    features = np.array(rows, dtype=np.float32).reshape(len(pool), len(FEATURES))
    for key in ("characters", "concept_count"):
        column = features[:, FEATURES.index(key)]
        features[:, FEATURES.index(f"{key}_gap")] = column.max(initial=0) - column
    return features


def nearest_cosine(names: Iterable[list[tuple[float, str]]]) -> float:
    """Return the cosine of the nearest of some names; 0 if there is none."""
    return max((near[0][0] for near in names if near), default=0.0)


def rank_by_cosine(names: Mapping[str, list[tuple[float, str]]]) -> dict[str, int]:
    """Return the rank of each concept by its nearest name, from 0."""
    order = sorted((-near[0][0], cui) for cui, near in names.items() if near)
    return {cui: rank for rank, (_, cui) in enumerate(order)}


def name_shares(names: Mapping[str, list[tuple[float, str]]]) -> dict[str, float]:
    """Return the share of each concept in the nearest names, weighted by cosine."""
    weights = {
        cui: sum(math.exp(SHARPNESS * (score - 1)) for score, _ in each)
        for cui, each in names.items()
        if each
    }
    total = sum(weights.values())
    return {cui: weight / total for cui, weight in weights.items()}


def similarity(grams: frozenset[str], other: frozenset[str]) -> float:
    """Return the Dice coefficient of two sets, 0 to 1."""
    return 2 * len(grams & other) / (len(grams) + len(other) or 1)
