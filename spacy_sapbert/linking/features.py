"""Features of the candidates of mentions, by which a `Ranker` orders them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import OSA

from .candidates import Entry
from .coverage import (
    Likeness,
    Near,
    Shared,
    cover_head,
    cover_name,
    cover_words,
    divide,
    liken_words,
)
from .difference import EXCLUDING, Kind, compare, split_words
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
CHANGED = ("added", "missing", "replaced")
# Of the mention and each candidate, for the probability of the first one alone
OF_MENTION = (
    *("standard", "field", "field_mean", *CHANGED),
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

# What is computed together, see `compare_text` and `weigh_words`. Of the names of a
# concept, the lowest value counts of the first ones, else the highest one.
OF_TEXTS = ("edits", *CHANGED, "characters", "name_covered", "head_covered", EXCLUDED)
LOWEST = 4
OF_WORDS = ("covered", "unnamed", MISSPELLED)
ALONE = frozenset((Kind.ADDED, Kind.MISSING))
ADDED, MISSING_WORD, REPLACED = Kind.ADDED, Kind.MISSING, Kind.REPLACED
# Also how far each candidate is below the best one
GAPPED = ("cosine", "ngrams", "characters", "covered", "name_covered")

Features = Mapping[str, np.ndarray]  # by name, one value for each candidate
Values = Sequence[float]


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
    (cosine, _, entry), _ = pair
    return -cosine, not entry.preferred, entry.cui, entry.alias


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


def is_excluded(near: Sequence[Near], words: Sequence[str], shares: Values) -> bool:
    """Return whether a mention does not mean a concept, by its nearest names.

    All of them differ in a way that excludes them; or one does in a number, a letter or
    an opposite that no name of the concept has. `shares` = from `cover_words`.
    """
    excluding = [each.difference.excluding for each in near]
    if all(excluding):
        return True
    share_of = dict(zip(words, shares, strict=True))
    return any(
        change.kind in IN_WORDS
        and not all(share_of.get(word, 1.0) for word in change.mention.split())
        for changes in excluding
        for change in changes
    )


class Known(NamedTuple):
    """What is known of a mention, and of the words of it and of names near it.

    Attributes:
        words, weights, real, covered: See `Shared`.
        likeness: Of its words to those of names.
        rarity: Of the words of names.
        adds: How far each word changes what a name means that it is added to.
        most: The highest rarity that there can be.
        around: How near other texts are.
    """

    words: Sequence[str]
    weights: Sequence[float]
    real: Sequence[bool]
    covered: Sequence[Sequence[bool]]
    likeness: Likeness
    rarity: Mapping[str, float]
    adds: Mapping[str, float]
    most: float
    around: Surroundings


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
    of_mentions = [[*chain(*near)] for near in near_names]
    every = [*chain(*of_mentions)]
    changes = [change for each in every for change in each.difference.changes]
    rarity = shared.weigh({word for _, name, _ in every for word in name.terms})
    adds = shared.adds({mine or its for k, mine, its in changes if k in ALONE})
    likenesses = liken_words(of_mentions, shared)
    described: list[dict[str, Values]] = []
    for number, (pool, near) in enumerate(zip(pools, near_names, strict=True)):
        known = Known(
            shared.words[number],
            shared.weights[number],
            shared.real[number],
            shared.covered[number],
            likenesses[number],
            rarity,
            adds,
            shared.most,
            around[number] if around else NOWHERE,
        )
        features = describe_candidates(pool, near, known)
        if counts is not None:
            totals = concept_counts or {}
            features |= describe_annotated(pool, counts[number], totals)
        described.append(features)
    names = [*described[0]]
    columns = (features[name] for name in names for features in described)
    table = np.fromiter(chain.from_iterable(columns), np.float64)
    return dict(zip(names, table.reshape(len(names), -1), strict=True))


def describe_candidates(
    pool: Pool, near: Sequence[Sequence[Near]], known: Known
) -> dict[str, Values]:
    """Compute the features of the candidates of a mention, without annotations."""
    concepts, count = [*pool.near.values()], len(near)
    mention = near[0][0].mention if near else split_words("")
    shares = [
        cover_words(names, known.likeness, known.words, covered)
        for names, covered in zip(near, known.covered, strict=True)
    ]
    features = {
        **transpose(OF_TEXTS, [compare_texts(names, known) for names in near]),
        **transpose(GROUPED["words"], [compare_words(names[0]) for names in near]),
        **transpose(
            OF_WORDS,
            [weigh_words(*c, known) for c in zip(shares, known.covered, strict=True)],
        ),
    }
    for number, is_excluding in enumerate(features[EXCLUDED]):
        if is_excluding:
            excluded = is_excluded(near[number], known.words, shares[number])
            features[EXCLUDED][number] = excluded
    is_doubtful = not all(known.real)
    slips = [is_doubtful and has_slip(names) for names in near]
    cosines = [names.cosine for names in concepts]
    ngrams = [names.similarity for names in concepts]
    fewest = min(features["edits"], default=0.0)
    mean, spread, other, others = known.around
    unreal = 1 - divide(sum(known.real), len(known.real))
    is_short = is_abbreviation(mention.clean) or is_acronym(mention.clean)
    more: dict[str, Values] = {
        "cosine": cosines,
        "vocabulary_share": [
            divide(names.vocabulary_weight, pool.vocabulary_weight)
            for names in concepts
        ],
        "vocabulary_rank": rank_values([names.vocabulary for names in concepts]),
        "ngrams": ngrams,
        "ngrams_share": [
            divide(names.ngrams_weight, pool.ngrams_weight) for names in concepts
        ],
        "ngrams_rank": rank_values(ngrams),
        "edits_gap": [edits - fewest for edits in features["edits"]],
        "slip": slips,
        MISSPELLED: [*map(max, features[MISSPELLED], slips)],
        REAL: [not is_doubtful] * count,
        "mention_share": [0.0] * count,
        "standard": [(cosine - mean) / spread for cosine in cosines],
        "field": [(cosine - other) / spread for cosine in cosines],
        "field_mean": [(cosine - others) / spread for cosine in cosines],
        "letters": [min(len(mention.clean), MOST_LETTERS)] * count,
        "mention_words": [min(len(mention.words), MOST_WORDS)] * count,
        "short": [is_short] * count,
        "unreal": [unreal] * count,
    }
    every: dict[str, Values] = {**features, **more}
    return every | {f"{name}_gap": find_gaps(every[name]) for name in GAPPED}


def transpose(names: Sequence[str], rows: Sequence[Values]) -> dict[str, list[float]]:
    """Return the columns of rows, by name."""
    columns = zip(*rows, strict=True) if rows else repeat(())
    return dict(zip(names, map(list, columns), strict=False))


def find_gaps(values: Values) -> Values:
    """Return how far each value is below the highest."""
    highest = max(values, default=0.0)
    return [highest - value for value in values]


def rank_values(values: Values) -> Values:
    """Return how many values are higher than each; `MISSING` of 0."""
    ranks: dict[float, int] = {}
    for rank, value in enumerate(sorted(values, reverse=True)):
        ranks.setdefault(value, rank)
    return [min(ranks[v], MISSING) if v > 0 else MISSING for v in values]


def has_slip(names: Sequence[Near]) -> bool:
    """Return whether a mention may be a misspelled name of a concept."""
    return any(is_slip(mention.text, name.text) for mention, name, _ in names)


def compare_texts(names: Sequence[Near], known: Known) -> Values:
    """Return the features `OF_TEXTS` of a concept: of its names, the best values."""
    first = compare_text(names[0], known)
    for each in names[1:]:
        other = compare_text(each, known)
        lowest = map(min, first[:LOWEST], other[:LOWEST])
        first = (*lowest, *map(max, first[LOWEST:], other[LOWEST:]))
    return first


def compare_text(near: Near, known: Known) -> tuple[float, ...]:
    """Return the features `OF_TEXTS` of a name.

    Letters that are dropped, added, changed or swapped, up to `MOST_EDITS`; how far the
    words that only the mention has change what it means, and those that only the name
    has; how many stand in the place of others; one minus the letters relative to the
    longer text, 0 to 1; how far the mention has the words of the name, and its head;
    whether a change may exclude the concept.
    """
    mention, name, difference = near
    edits = OSA.distance(mention.text, name.text)
    longest = max(len(mention.text), len(name.text)) or 1
    added = missing = replaced = 0.0
    is_excluding = False
    for kind, word, other in difference.changes:
        if kind is ADDED:
            added += known.adds[word]
        elif kind is MISSING_WORD:
            missing += known.adds[other]
        elif kind is REPLACED:
            replaced += 1.0
        elif kind in EXCLUDING:
            is_excluding = True
    return (
        edits if edits < MOST_EDITS else MOST_EDITS,
        added,
        missing,
        replaced,
        1 - edits / longest,
        cover_name(near, known.likeness, known.rarity),
        cover_head(near, known.likeness),
        is_excluding,
    )


def compare_words(near: Near) -> tuple[float, ...]:
    """Return the features of the group "words"."""
    mention, name, _ = near
    shared = len(mention.content & name.content)
    mine, its = len(mention.content), len(name.content)
    numbers, others = mention.numbers, name.numbers
    return (
        *((shared / mine, shared / its) if shared else (0.0, 0.0)),
        shared / (mine + its - shared) if shared else 0.0,
        len(name.words) - len(mention.words),
        mention.words[-1:] == name.words[-1:],
        mention.words[:1] == name.words[:1],
        numbers == others,
        bool(numbers and others and numbers != others),
    )


def weigh_words(
    shares: Values, covered: Sequence[bool], known: Known
) -> tuple[float, ...]:
    """Return the features `OF_WORDS` of a concept.

    The share of the words of the mention, by rarity, that its names have; the rarity of
    the rarest real word that they have not; and whether they have one like a new word.
    """
    part = total = rarest = 0.0
    is_misspelled = False
    for share, weight, is_real, is_covered in zip(
        shares, known.weights, known.real, covered, strict=True
    ):
        part += share * weight  # `sum` would round in another way, from Python 3.12 on
        total += weight
        if is_real and not share:
            rarest = max(rarest, weight)
        elif share and not (is_real or is_covered):
            is_misspelled = True
    return divide(part, total), rarest / known.most, is_misspelled


def all_excluded(features: Features, groups: Groups) -> list[bool]:
    """Return which mentions mean none of their candidates."""
    return [*map(all, groups.split(features[EXCLUDED]))]


def describe_annotated(
    pool: Pool, counts: Mapping[str, int], concept_counts: Mapping[str, int]
) -> dict[str, Values]:
    """Compute the features that annotated mentions make; see `compute_features`."""
    concepts = [*pool.near.values()]
    vocabulary = [names.vocabulary for names in concepts]
    annotated = [names.annotated for names in concepts]
    total = sum(counts.values())
    of_mention = [counts.get(cui, 0) for cui in pool.near]
    of_concept = [math.log1p(concept_counts.get(cui, 0)) for cui in pool.near]
    return {
        "vocabulary_cosine": vocabulary,
        "vocabulary_gap": find_gaps(vocabulary),
        "exact_vocabulary": [cosine > EXACT for cosine in vocabulary],
        "preferred": [names.nearest.preferred for names in concepts],
        "annotated_cosine": annotated,
        "annotated_gap": find_gaps(annotated),
        "annotated_share": [
            divide(names.annotated_weight, pool.annotated_weight) for names in concepts
        ],
        "annotated_rank": rank_values(annotated),
        "exact_annotated": [cosine > EXACT for cosine in annotated],
        "mention_share": [divide(count, total) for count in of_mention],
        "mention_concept_count": [*map(math.log1p, of_mention)],
        "mention_count": [math.log1p(total)] * len(concepts),
        "other_concept": [
            not counts.get(cui) and not counts.keys() <= {cui, ""} for cui in pool.near
        ],
        "concept_count": of_concept,
        "concept_count_gap": find_gaps(of_concept),
    }
