"""Features of the candidates of a mention, by which a `Ranker` orders them."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import OSA

from .candidates import Entry
from .difference import Difference, Kind, Words, compare, split_words
from .text import Rules, is_abbreviation, is_acronym, is_number
from .word_likeness import is_slip, stand_for

POOL = 10  # concepts with the highest cosines that are ordered anew …
POOL_BY_NGRAMS = 6  # … and with the highest similarities of 3-grams
POOL_ROWS = 32  # rows with the highest cosines, and as many with the most 3-grams
SHARPNESS = 20.0  # of the share of a concept in the nearest names
MOST_EDITS = 5  # more are as many
MOST_LETTERS, MOST_WORDS = 60, 10  # of a mention; more are as many
MISSING = 30  # rank of a concept without such a name
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

Features = Mapping[str, np.ndarray]  # by name, one value for each candidate


class Shared(NamedTuple):
    """What a mention and the concepts of its pool have in common.

    Attributes:
        words: The distinct words of the mention.
        weights: How rare they are. Shape: (words,).
        real: Which are words of names or of the encoder, bool. Shape: (words,).
        covered: Which are in a name of each concept, bool. Shape: (concepts, words).
        replaces: How far a word may stand for another one, 0 to 1, by the vocabulary.
        adds: How far a word that is added to a name changes its meaning, 0 to 1.
        name_weights: How rare the words of the nearest names are.
        most: The highest weight that there can be.
    """

    words: Sequence[str]
    weights: np.ndarray
    real: np.ndarray
    covered: np.ndarray
    replaces: Callable[[str, str], float]
    adds: Callable[[str], float]
    name_weights: Mapping[str, float]
    most: float


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


class Near(NamedTuple):
    """A name that is near a mention, and how the mention differs from it."""

    mention: Words
    name: Words
    difference: Difference


def list_near(
    mention: str, pool: Pool, rules_of: Callable[[Entry], Rules]
) -> list[list[Near]]:
    """Return the nearest names of each concept of a pool, compared with the mention.

    A name and the mention are split by the rules of the language of the name.
    """
    near: list[list[Near]] = []
    for names in pool.near.values():
        of_concept: list[Near] = []
        # The best by 3-grams comes first.
        for entry in {
            names.similar.alias: names.similar,
            names.nearest.alias: names.nearest,
        }.values():
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
    pool: Pool,
    near_names: Sequence[Sequence[Near]],
    shared: Shared,
    *,
    around: Surroundings = NOWHERE,
    counts: Mapping[str, int] | None = None,
    concept_counts: Mapping[str, int] | None = None,
) -> Features:
    """Compute the features of the candidates of a mention, float64, by name.

    They are `FEATURES`, `OF_MENTION`, `MISSPELLED`, `REAL` and `EXCLUDED`. `near_names`
    is from `list_near`. `counts` says how often the mention was annotated with each
    concept, "" = with none; None = there are no annotations, so only `OF_NAMES` and
    `mention_share` are computed. Shape of each: (concepts of the pool,).
    """
    near = [*pool.near.values()]
    compared = [compare_words(of_concept[0]) for of_concept in near_names]
    table = np.array(compared, dtype=np.float64).reshape(-1, len(GROUPED["words"]))
    cosines = [names.cosine for names in near]
    similarities = [names.similarity for names in near]
    vocabulary = [names.vocabulary for names in near]
    edits, characters = count_edits(near_names)
    doubtful = {
        w for w, real in zip(shared.words, shared.real, strict=True) if not real
    }
    slips = [
        bool(doubtful) and any(is_slip(e.mention.text, e.name.text) for e in of_concept)
        for of_concept in near_names
    ]
    shares = np.array(
        [cover_words(shared, number, names) for number, names in enumerate(near_names)],
        dtype=np.float64,
    ).reshape(len(near), len(shared.words))
    excluded = [
        is_excluded(of_concept, dict(zip(shared.words, some, strict=True)))
        for of_concept, some in zip(near_names, shares.tolist(), strict=True)
    ]
    near_words = (shares > 0) & ~shared.covered & ~shared.real
    misspelled = (near_words.any(axis=1) | np.array(slips, dtype=bool)).tolist()
    weight = shared.weights.sum()
    covered = [divide(each, weight) for each in (shares @ shared.weights).tolist()]
    name_covered = [
        max((cover_name(shared, doubtful, each) for each in of_concept), default=0.0)
        for of_concept in near_names
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
            max((cover_head(doubtful, each) for each in of_concept), default=0.0)
            for of_concept in near_names
        ],
        MISSPELLED: misspelled,
        REAL: [not doubtful] * len(near),
        EXCLUDED: excluded,
        "mention_share": [0.0] * len(near),
        **describe_mention(near_names, cosines, shared, around),
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


def describe_mention(
    near_names: Sequence[Sequence[Near]],
    cosines: Sequence[float],
    shared: Shared,
    around: Surroundings,
) -> dict[str, Sequence[float]]:
    """Compute `OF_MENTION`."""
    text = near_names[0][0].mention if near_names else split_words("")
    changed = [
        [*map(min, zip(*(weigh_changes(e, shared) for e in names), strict=True))]
        for names in near_names
    ]
    same = {
        "letters": float(min(len(text.clean), MOST_LETTERS)),
        "mention_words": float(min(len(text.words), MOST_WORDS)),
        "short": float(is_abbreviation(text.clean) or is_acronym(text.clean)),
        "unreal": 1 - divide(float(shared.real.sum()), len(shared.words)),
    }
    return {
        "standard": [(cosine - around.mean) / around.spread for cosine in cosines],
        "field": [(cosine - around.other) / around.spread for cosine in cosines],
        "field_mean": [(cosine - around.others) / around.spread for cosine in cosines],
        "added": [added for added, _, _ in changed],
        "missing": [missing for _, missing, _ in changed],
        "replaced": [replaced for _, _, replaced in changed],
        **{name: [value] * len(cosines) for name, value in same.items()},
    }


def weigh_changes(near: Near, shared: Shared) -> tuple[float, float, int]:
    """Return how far the words that only a mention has change what it means.

    Also returns the same of the words that only the name has, and how many words stand
    in the place of others.
    """
    added = missing = 0.0
    replaced = 0
    for kind, word, other in near.difference.changes:
        if kind is Kind.ADDED:
            added += shared.adds(word)
        elif kind is Kind.MISSING:
            missing += shared.adds(other)
        elif kind is Kind.REPLACED:
            replaced += 1
    return added, missing, replaced


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


def compare_words(near: Near) -> tuple[float, ...]:
    """Return the features of the group "words", in its order."""
    mention, name, _ = near
    shared = len(mention.content & name.content)
    numbers, others = ({*filter(is_number, text.exact)} for text in (mention, name))
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


def cover_words(shared: Shared, number: int, near: Sequence[Near]) -> list[float]:
    """Return how far names of a concept have each word of a mention, 0 to 1.

    A word of the mention may be a misspelled word of one of its nearest names, or be
    derived from one. `number` is that of the concept in the pool.
    """
    others = {w for e in near for w in e.name.content - e.mention.content}
    covered, real = shared.covered[number].tolist(), shared.real.tolist()
    return [
        1.0 if has else stand_for_any(shared, word, others, real=is_real)
        for word, has, is_real in zip(shared.words, covered, real, strict=True)
    ]


def stand_for_any(
    shared: Shared, word: str, others: Collection[str], *, real: bool
) -> float:
    """Return how far a word of a mention may stand for one of others, 0 to 1."""
    alike = max([stand_for(word, other, real) for other in others], default=0.0)
    if alike or not real:
        return alike
    return max([shared.replaces(word, other) for other in others], default=0.0)


def cover_name(shared: Shared, doubtful: set[str], near: Near) -> float:
    """Return the share of a name, by rarity, that a mention has."""
    mention, name, _ = near
    total = value = 0.0
    rest = mention.content - name.content
    for word in name.content:
        weight = shared.name_weights.get(word, shared.most)
        total += weight
        if word in mention.content:
            value += weight
        elif rest:
            value += weight * max(
                stand_for_any(shared, other, (word,), real=other not in doubtful)
                for other in rest
            )
    return divide(value, total)


def cover_head(doubtful: set[str], near: Near) -> float:
    """Return how far a mention has the head of a name, 0 to 1."""
    mention, name, _ = near
    if name.head in mention.content:
        return 1.0
    words = mention.content
    return max([stand_for(w, name.head, w not in doubtful) for w in words], default=0.0)


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
    near_names: Sequence[Sequence[Near]],
) -> tuple[list[int], list[float]]:
    """Count the letters dropped, added, changed or swapped between a mention and names.

    Returns for each concept, of the nearest of its names: the number, up to
    `MOST_EDITS`; and one minus the number relative to the longer text, 0 to 1.
    """
    edits: list[int] = []
    similarities: list[float] = []
    for of_concept in near_names:
        texts = [(each.mention.text, each.name.text) for each in of_concept]
        counted = [(OSA.distance(*pair), max(map(len, pair)) or 1) for pair in texts]
        edits.append(min((n for n, _ in counted), default=MOST_EDITS))
        similarities.append(max((1 - n / most for n, most in counted), default=0.0))
    return [min(edit, MOST_EDITS) for edit in edits], similarities
