"""Features of the candidates of a mention, by which a `Ranker` orders them."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import OSA

from .candidates import Entry
from .opposites import LOSS, NEGATING_WORDS, list_lost_functions, list_opposites
from .text import (
    GREEK_NAMES,
    LINKING_WORDS,
    Rules,
    describe_name,
    fold_letters,
    list_words,
)
from .word_likeness import is_slip, spell_like

POOL = 10  # concepts with the highest cosines that are ordered anew …
POOL_BY_NGRAMS = 6  # … and with the highest similarities of 3-grams
POOL_ROWS = 32  # rows with the highest cosines, and as many with the most 3-grams
SHARPNESS = 20.0  # of the share of a concept in the nearest names
MOST_EDITS = 5  # more are as many
MISSING = 30  # rank of a concept without such a name
EXACT = 0.9999  # cosine of equal token ids, less the rounding of float32
AFTER_HEAD = LINKING_WORDS | {"type"}
LITTLE = frozenset({"and", "in", "of", "the", "to", "type", "with"})

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
# It would be excluded, but the mention only says more than one of its names.
NARROWED = "narrowed"
FEATURES = tuple(name for group in GROUPED.values() for name in group)
# Those that mean something without annotated mentions, and do not break ties by chance.
OF_NAMES = (
    "cosine",
    "cosine_gap",
    "vocabulary_share",
    "vocabulary_rank",
    *(n for g in ("3-grams", "characters", "words", "coverage") for n in GROUPED[g]),
)

Features = Mapping[str, np.ndarray]  # by name, one value for each candidate


class Words(NamedTuple):
    """What is compared of a text.

    Attributes:
        words: Folded, see `text`.
        content: Those with a meaning of their own.
        numbers, letters: Those that tell concepts apart, with how often they occur.
        negated: Whether a word negates the others.
        head: What kind of thing it is: "cancer" in "cancer of lung, type 2".
        text: In lower case, without accents.
    """

    words: tuple[str, ...]
    content: frozenset[str]
    numbers: Counter[str]
    letters: Counter[str]
    negated: bool
    head: str
    text: str


@lru_cache(maxsize=10_000)  # about 2 KB each
def split_words(text: str, rules: Rules = "english") -> Words:
    """Split a text into what is compared."""
    words = tuple(list_words(text, rules))
    content = frozenset(words) - LITTLE or frozenset(words)
    order = describe_name(text, rules, False).orders[-1] if "," in text else words
    return Words(
        words,
        content,
        Counter(word for word in words if word.isdigit()),
        Counter(
            word
            for word in words
            if (len(word) == 1 and word.isalpha()) or word in GREEK_NAMES
        ),
        not NEGATING_WORDS.isdisjoint(words),
        find_head(order),
        fold_letters(text),
    )


def find_head(words: Sequence[str]) -> str:
    """Return the last word before a preposition or "type 2"; "" without words."""
    head = ""
    for word in words:
        if head and word in AFTER_HEAD:
            break
        if len(word) > 1 and not word.isdigit():
            head = word
    return head


def excludes(mention: Words, name: Words) -> bool:
    """Return whether a name is none of the concept that a mention means.

    Their numerals or single letters differ, one is negated, or one has a word that is
    the opposite of a word of the other one.
    """
    for mine, its in (
        (mention.numbers, name.numbers),
        (mention.letters, name.letters),
    ):
        if mine and its and not mine <= its and not its <= mine:
            return True
    if mention.negated != name.negated:
        return True
    only_mention = mention.content - name.content
    only_name = name.content - mention.content
    if not only_mention or not only_name:
        return False
    lost = not (LOSS.isdisjoint(only_mention) and LOSS.isdisjoint(only_name))
    for word in only_mention:
        opposites = list_opposites(word)
        if lost:
            opposites -= list_lost_functions(word)
        if not only_name.isdisjoint(opposites):
            return True
    return False


def says_more(mention: Words, name: Words) -> bool:
    """Return whether a mention is a name with more words: a kind of what it names.

    "malignant neoplasm" is one of "neoplasm", also if another name of that concept is
    "benign neoplasm". What is negated is none.
    """
    words = {*name.words}
    return mention.head in words and words < {*mention.words} and not mention.negated


class Shared(NamedTuple):
    """What a mention and the concepts of its pool have in common.

    Attributes:
        words: The distinct words of the mention.
        weights: How rare they are. Shape: (words,).
        real: Which are words of names or of the encoder, bool. Shape: (words,).
        covered: Which are in a name of each concept, bool. Shape: (concepts, words).
        excluded: Which concepts are none that the mention means, bool; a numeral, a
            letter or an opposite says so. Shape: (concepts,).
        narrowed: Which would be excluded, but the mention only says more than one of
            their names, bool. Shape: (concepts,).
        name_weights: How rare the words of the nearest names are.
        most: The highest weight that there can be.
    """

    words: Sequence[str]
    weights: np.ndarray
    real: np.ndarray
    covered: np.ndarray
    excluded: np.ndarray
    narrowed: np.ndarray
    name_weights: Mapping[str, float]
    most: float


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
    usable = [(name, find_provenance(name.entry)) for name in found]
    usable = [pair for pair in usable if any(pair[1])]
    usable.sort(key=sort_by_cosine)
    near: dict[str, NearNames] = {}
    for name, provenance in keep_rows(usable):
        entry = name.entry
        names = near.get(entry.cui)
        if names is None:
            names = NearNames(entry, entry, name.cosine, name.similarity)
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
            names.similarity, names.similar = name.similarity, entry
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


def list_near(
    mention: str, pool: Pool, rules_of: Callable[[Entry], Rules]
) -> list[list[tuple[Words, Words]]]:
    """Return the nearest names of each concept of a pool, each with the mention.

    A name and the mention are split by the rules of the language of the name.
    """
    pairs: list[list[tuple[Words, Words]]] = []
    for names in pool.near.values():
        of_concept: list[tuple[Words, Words]] = []
        # The best by 3-grams comes first.
        for entry in {
            names.similar.alias: names.similar,
            names.nearest.alias: names.nearest,
        }.values():
            rules = rules_of(entry)
            pair = split_words(entry.alias, rules), split_words(mention, rules)
            of_concept.append(pair)
        pairs.append(of_concept)
    return pairs


def compute_features(
    pool: Pool,
    pairs: Sequence[Sequence[tuple[Words, Words]]],
    shared: Shared,
    *,
    counts: Mapping[str, int] | None = None,
    concept_counts: Mapping[str, int] | None = None,
) -> Features:
    """Compute the features of the candidates of a mention, float64, by name.

    They are `FEATURES`, `MISSPELLED`, `REAL`, `EXCLUDED` and `NARROWED`. `pairs` is
    from `list_near`. `counts` says how often the mention was annotated with each
    concept, "" = with none; None = there are no annotations, so only `OF_NAMES` and
    `mention_share` are computed. Shape of each: (concepts of the pool,).
    """
    near = [*pool.near.values()]
    compared = [
        compare_words(of_concept[0][1], of_concept[0][0]) for of_concept in pairs
    ]
    table = np.array(compared, dtype=np.float64).reshape(-1, len(GROUPED["words"]))
    cosines = [names.cosine for names in near]
    similarities = [names.similarity for names in near]
    vocabulary = [names.vocabulary for names in near]
    edits, characters = count_edits(pairs)
    doubtful = {
        w for w, real in zip(shared.words, shared.real, strict=True) if not real
    }
    slips = [
        bool(doubtful) and any(is_slip(m.text, name.text) for name, m in of_concept)
        for of_concept in pairs
    ]
    shares = np.array(
        [cover_words(shared, number, names) for number, names in enumerate(pairs)]
    ).reshape(len(near), len(shared.words))
    near_words = (shares > 0) & ~shared.covered & ~shared.real
    misspelled = (near_words.any(axis=1) | np.array(slips, dtype=bool)).tolist()
    weight = shared.weights.sum()
    covered = [divide(each, weight) for each in (shares @ shared.weights).tolist()]
    name_covered = [
        max((cover_name(shared, doubtful, *pair) for pair in of_concept), default=0.0)
        for of_concept in pairs
    ]
    rarest = np.where((shares == 0) & shared.real, shared.weights, 0)
    columns: dict[str, Sequence[float]] = {
        "cosine": cosines,
        "cosine_gap": find_gaps(cosines),
        "vocabulary_share": [
            divide(names.vocabulary_weight, pool.vocabulary_weight) for names in near
        ],
        "vocabulary_rank": rank_values(vocabulary),
        "ngrams": similarities,
        "ngrams_gap": find_gaps(similarities),
        "ngrams_share": [
            divide(names.ngrams_weight, pool.ngrams_weight) for names in near
        ],
        "ngrams_rank": rank_values(similarities),
        "characters": characters,
        "characters_gap": find_gaps(characters),
        "edits": edits,
        "edits_gap": [edit - min(edits) for edit in edits],
        "slip": slips,
        "covered": covered,
        "covered_gap": find_gaps(covered),
        "unnamed": (rarest.max(axis=1, initial=0) / shared.most).tolist(),
        "name_covered": name_covered,
        "name_covered_gap": find_gaps(name_covered),
        "head_covered": [
            max((cover_head(doubtful, *pair) for pair in of_concept), default=0.0)
            for of_concept in pairs
        ],
        MISSPELLED: misspelled,
        REAL: [not doubtful] * len(near),
        EXCLUDED: shared.excluded.tolist(),
        NARROWED: shared.narrowed.tolist(),
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
    features = dict(zip(GROUPED["words"], table.T, strict=True))
    values = np.array([*columns.values()], dtype=np.float64)
    features |= zip(columns, values.reshape(len(columns), len(near)), strict=True)
    return features


def all_excluded(features: Features) -> bool:
    """Return whether a mention means none of its candidates."""
    return bool(features[EXCLUDED].all())


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
        "annotated_share": [divide(n.annotated_weight, weight) for n in near],
        "annotated_rank": rank_values(annotated),
        "exact_annotated": [float(cosine > EXACT) for cosine in annotated],
        "mention_share": [divide(count, total) for count in of_mention],
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
    numbers, others = {*mention.numbers}, {*name.numbers}
    return (
        divide(shared, len(mention.content)),
        divide(shared, len(name.content)),
        divide(shared, len(mention.content | name.content)),
        len(name.words) - len(mention.words),
        mention.words[-1:] == name.words[-1:],
        mention.words[:1] == name.words[:1],
        numbers == others,
        bool(numbers and others and numbers != others),
    )


def cover_words(
    shared: Shared, number: int, pairs: Sequence[tuple[Words, Words]]
) -> np.ndarray:
    """Return how far names of a concept have each word of a mention, 0 to 1.

    A word of the mention may be a misspelled word of one of its nearest names in
    `pairs`, or be derived from one. `number` is that of the concept in the pool.
    Shape: (words,).
    """
    covered = shared.covered[number].astype(np.float64)
    missing = np.flatnonzero(covered == 0).tolist()
    if missing:
        others = {w for name, m in pairs for w in name.content - m.content}
        for place in missing:
            real = bool(shared.real[place])
            covered[place] = spell_like(shared.words[place], others, real=real)
    return covered


def cover_name(
    shared: Shared, doubtful: set[str], name: Words, mention: Words
) -> float:
    """Return the share of a name, by rarity, that a mention has."""
    total = value = 0.0
    rest = mention.content - name.content
    for word in name.content:
        weight = shared.name_weights.get(word, shared.most)
        total += weight
        if word in mention.content:
            value += weight
        elif rest:
            alike = (spell_like(o, [word], real=o not in doubtful) for o in rest)
            value += weight * max(alike)
    return divide(value, total)


def cover_head(doubtful: set[str], name: Words, mention: Words) -> float:
    """Return how far a mention has the head of a name, 0 to 1."""
    if name.head in mention.content:
        return 1.0
    return max(
        (spell_like(w, [name.head], real=w not in doubtful) for w in mention.content),
        default=0.0,
    )


def divide(part: float, whole: float) -> float:
    """Return a share; 0 of nothing."""
    return part / whole if whole else 0.0


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


def count_edits(
    pairs: Sequence[Sequence[tuple[Words, Words]]],
) -> tuple[list[int], list[float]]:
    """Count the letters dropped, added, changed or swapped between a mention and names.

    Returns for each concept, of the nearest of its names in `pairs`: the number, up to
    `MOST_EDITS`; and one minus the number relative to the longer text, 0 to 1.
    """
    edits: list[int] = []
    similarities: list[float] = []
    for of_concept in pairs:
        counted = [
            (OSA.distance(m.text, name.text), max(len(m.text), len(name.text)) or 1)
            for name, m in of_concept
        ]
        edits.append(min((n for n, _ in counted), default=MOST_EDITS))
        similarities.append(max((1 - n / most for n, most in counted), default=0.0))
    return [min(edit, MOST_EDITS) for edit in edits], similarities
