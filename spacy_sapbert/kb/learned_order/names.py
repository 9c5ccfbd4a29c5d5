"""The names of a knowledge base → an order of candidates, without any annotation.

Mentions are names that are left out or disturbed; others have no concept.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from ...io.progress import show_progress
from ...linking.candidates import Entry
from ...linking.chance import ORDERED, load_chance
from ...linking.difference import split_words
from ...linking.features import (
    EXCLUDED,
    MISSPELLED,
    OF_MENTION,
    OF_NAMES,
    POOL_ROWS,
    REAL,
    Provenance,
    pool_concepts,
)
from ...linking.filters import GROUPS, UNTYPED, Filter
from ...linking.probability import TopScores
from ...linking.ranker import Ranker
from ...linking.text import fold_piece, hash_word
from ...linking.trees import Trees
from ...linking.word_likeness import read_words
from ..agreement import Without
from ..folder.records import Gain, NamesOrder, NilGain
from ..knowledge_base import KnowledgeBase
from ..parts import MENTIONS_AT_ONCE
from ..search import VOCABULARY_NAME
from .fit import (
    Example,
    check_right,
    compute_chances,
    fit_weights,
    measure_thresholds,
)
from .noise import KINDS, disturb_names

GENERAL_FILE = Path(__file__).with_name("general_order.json")
SEED = 1
MOST_NAMES = 5_000  # that are left out, and as many that are disturbed
MOST_OTHERS = 1_000  # mentions of each kind without a concept
FAR_SHARE = 0.5  # of the others: with them names that are alike are left out
ALIKE = 0.5  # share of the words of two names that both have, from which on they are so
NIL_SHARE = 0.2  # of the left-out names: their whole concept is left out
FEWEST_CONCEPTS = 50  # of a semantic group that is left out
SHORTEST = 5  # characters of a name that is disturbed
LONG_WORD = 7  # letters of a word of which a new one is made
SHORTEST_WORD = 3  # letters of a word that is a mention
FEWEST = 100  # examples with known words, and as many without …
MANY = 1_000  # … or of both together
FOLDS = 2
# For mentions with known words, and for others. Both are corrections of the cosine; for
# misspelled words, other features may count more.
PENALTIES = {True: 0.03, False: 0.002}
DIGITS = 4
LEFT_OUT = "left out"
LEFT_FAR = "left out with names that share words"
NO_CONCEPT = "without its concept"
OTHER_GROUP = "of another semantic group"
NO_NAME = "a word of the language"
NO_WORD = "a new word"
NILS = (NO_CONCEPT, OTHER_GROUP, NO_NAME, NO_WORD)
NEITHER = Provenance(vocabulary=False, annotated=False)
KEPT = (*OF_NAMES, *OF_MENTION, MISSPELLED, REAL, EXCLUDED, "mention_share")
GROUP_OF_TYPE = {t: group for group, types in GROUPS.items() for t in types.split()}


class NameMention(NamedTuple):
    """A mention made of a name, or of a word."""

    text: str
    cui: str  # "" = it has no concept
    kind: str  # of noise; or `LEFT_OUT`, `LEFT_FAR` or one of `NILS`
    rows: frozenset[int] = frozenset()  # of names of its concept that are left out
    concept: int = -1  # number; left out if `cui` is ""; −1 = it is no name
    types: tuple[str, ...] = ()  # of the concepts that are searched; empty = all


@dataclass(frozen=True)
class NameExample(Example):
    """The candidates of a mention; `by_cosine` = the cosines alone are right."""

    kind: str
    by_cosine: bool

    @property
    def known(self) -> bool:
        """Whether all words are real ones."""
        return bool(self.features[REAL].all())


def learn_order(kb: KnowledgeBase, *, progress: bool = False) -> NamesOrder | None:
    """Learn an order of candidates from names, and what it gains; None = too few.

    The knowledge base must have 3-grams. Equal names give equal orders.
    """
    examples = list(make_examples(kb, progress=progress))
    if not has_enough(examples):
        return None
    general = load_general() if language_of(kb) == "en" else None
    scores: list[np.ndarray] = [np.zeros(0)] * len(examples)
    for fold in range(FOLDS):
        others = [e for number, e in enumerate(examples) if number % FOLDS != fold]
        if not has_enough(others, folds=FOLDS):
            return None
        fitted = fit_order(others, general, folds=FOLDS)
        for number in range(fold, len(examples), FOLDS):
            scores[number] = fitted.scores(examples[number].features)
    right = check_right(examples, scores)
    chances = compute_chances(load_chance(ORDERED), examples, scores)
    kinds = np.array([example.kind for example in examples])
    threshold = kb.manifest.threshold
    nils = [
        NilGain(
            kind=kind,
            mentions=int((kinds == kind).sum()),
            recall=share(chances[kinds == kind] < threshold),
        )
        for kind in NILS
        if (kinds == kind).any()
    ]
    by_cosine = np.array([example.by_cosine for example in examples])
    gains = [
        Gain(
            kind=kind,
            names=int((kinds == kind).sum()),
            cosine=share(by_cosine[kinds == kind]),
            order=share(right[kinds == kind]),
        )
        for kind in (LEFT_OUT, LEFT_FAR, *KINDS)
        if (kinds == kind).any()
    ]
    top = TopScores.sorted(chances, right, ~np.isin(kinds, NILS))
    return NamesOrder(
        ranker=fit_order(examples, general),
        examples=len(examples),
        seed=SEED,
        gains=gains,
        nils=nils,
        thresholds=measure_thresholds(top, threshold),
    )


def share(chosen: np.ndarray) -> float:
    return round(float(chosen.mean()), DIGITS)


def has_enough(examples: Sequence[NameExample], *, folds: int = 1) -> bool:
    """Return whether there are enough examples, as one of some folds, of both kinds."""
    usable = [e.known for e in examples if e.right is not None and e.kind != LEFT_FAR]
    fewest = min(usable.count(True), usable.count(False))
    return fewest >= FEWEST // folds or len(usable) >= MANY // folds


def choose_examples(
    examples: Sequence[NameExample], *, known: bool, folds: int
) -> Sequence[NameExample]:
    """Return the examples with known words or without; all of them if these are few."""
    examples = [example for example in examples if example.kind != LEFT_FAR]
    some = [example for example in examples if example.known == known]
    usable = sum(example.right is not None for example in some)
    return some if usable >= FEWEST // folds else examples


def fit_order(
    examples: Sequence[NameExample], general: Trees | None, *, folds: int = 1
) -> Ranker:
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
    return Ranker(known=weights[True], unknown=weights[False], general=general)


@cache
def load_general() -> Trees:
    """Load the trees that are shipped; `benchmarks.general_order` makes them."""
    return Trees.model_validate_json(GENERAL_FILE.read_bytes())


def make_examples(
    kb: KnowledgeBase, *, progress: bool = False
) -> Iterator[NameExample]:
    """Yield the candidates of mentions that are made of names and words.

    Nothing if the mentions are too few for an order; see `has_enough`.
    """
    mentions = make_mentions(kb)
    usable = sum(mention.kind not in (*NILS, LEFT_FAR) for mention in mentions)
    if usable < min(2 * FEWEST, MANY):
        return
    by_types = groupby(sorted(mentions, key=lambda m: m.types), key=lambda m: m.types)
    made: dict[NameMention, NameExample] = {}
    bar = show_progress(
        total=len(mentions), unit="mentions", desc="Order", quiet=not progress
    )
    for types, some in by_types:
        filter = Filter(types=types, document_language=language_of(kb))
        of_types = [*some]
        for start in range(0, len(of_types), MENTIONS_AT_ONCE):
            batch = of_types[start : start + MENTIONS_AT_ONCE]
            made |= make_batch(kb, batch, filter)
            bar.update(len(batch))
    yield from (made[mention] for mention in mentions if mention in made)


def make_batch(
    kb: KnowledgeBase, batch: Sequence[NameMention], filter: Filter
) -> Iterator[tuple[NameMention, NameExample]]:
    """Yield mentions that can be searched for, with their candidates."""
    searcher, texts = kb.searcher, [mention.text for mention in batch]
    embedded = kb.embed(texts)
    mentions = searcher.nearest.name(texts, embedded.vectors, filter)
    usable = embedded.usable
    for number, mention in enumerate(batch):
        # A disturbed name or a word that is a name is found as that.
        if mention.concept < 0:
            usable[number] &= not mentions.named[number]
    chosen = np.flatnonzero(usable).tolist()
    # Left-out names are embedded as if they were not known.
    searched = mentions.take(chosen)._replace(vectors=embedded.vectors[chosen])
    found = searcher.nearest.find_names(searched, filter, rows=2 * POOL_ROWS)
    around = searcher.nearest.surround(searched.vectors)
    for number, names, near in zip(chosen, found, around, strict=True):
        mention = batch[number]
        pool = pool_concepts(names, partial(find_provenance, mention))
        if not pool.near:
            continue
        without: list[Without] = []
        if mention.concept >= 0:
            rows = None if mention.kind in NILS else mention.rows
            without.append(Without(mention.concept, rows))
        features = searcher.agreement.features(
            [mention.text], [pool], filter, around=[near], without=without
        )
        right = None
        if mention.kind not in NILS and mention.cui in pool.near:
            right = pool.cuis.index(mention.cui)
        yield (
            mention,
            NameExample(
                right=None if right is None or features[EXCLUDED][right] else right,
                features={name: features[name] for name in KEPT},
                is_name=False,
                kind=mention.kind,
                by_cosine=pool.cuis[0] == mention.cui,
            ),
        )


def find_provenance(mention: NameMention, entry: Entry) -> Provenance:
    """Return where a name is from; what is left out of a mention is from nowhere."""
    left_out = entry.concept == mention.concept and (
        mention.kind in NILS or entry.row in mention.rows
    )
    return NEITHER if left_out else VOCABULARY_NAME


def language_of(kb: KnowledgeBase) -> str:
    """Return the language of the mentions: English if there are English names."""
    return "en" if kb.parts.words.totals[0] else ""


def make_mentions(kb: KnowledgeBase) -> list[NameMention]:
    """Return mentions, in an order that names in other languages do not change."""
    random = Random(SEED)
    filtered = kb.searcher.nearest.resolve(Filter(document_language=language_of(kb)))
    names = choose_names(kb, 2 * MOST_NAMES)
    left = names[:MOST_NAMES]
    disturbed = [e for e in names[MOST_NAMES:] or names if len(e.alias) >= SHORTEST]
    mentions: list[NameMention] = []
    for entry in left:
        others = [
            other
            for other in kb.store.entries_of(entry.cui)
            if other.row != entry.row and (filtered is None or filtered.matches(other))
        ]
        alike = {other.row for other in others if is_alike(entry.alias, other.alias)}
        nil = not others or random.random() < NIL_SHARE
        far = len(alike) < len({o.row for o in others}) and random.random() < FAR_SHARE
        kind = NO_CONCEPT if nil else LEFT_FAR if far else LEFT_OUT
        rows = frozenset({entry.row, *(alike if far else ())})
        cui = "" if nil else entry.cui
        mentions.append(NameMention(entry.alias, cui, kind, rows, entry.concept))
    noisy = disturb_names([entry.alias for entry in disturbed], random)
    for (kind, text), entry in zip(noisy, disturbed, strict=True):
        if text != entry.alias:
            mentions.append(NameMention(text, entry.cui, kind))
    mentions += make_other_groups(kb, names)
    mentions += make_words(kb, random)
    mentions += make_new_words(names, random)
    distinct = {mention.text: mention for mention in reversed(mentions)}
    mentions = [*distinct.values()]
    random.shuffle(mentions)
    return mentions


def is_alike(name: str, other: str) -> bool:
    """Return whether two names have many words in common."""
    mine, its = split_words(name).content, split_words(other).content
    return len(mine & its) >= ALIKE * len(mine | its)


def make_new_words(names: Sequence[Entry], random: Random) -> Iterator[NameMention]:
    """Yield words that are in no name, of two halves; half of them beside a word."""
    words = [
        word
        for entry in names
        for word in entry.alias.lower().split()
        if word.isalpha() and len(word) >= LONG_WORD
    ]
    for first, second in zip(words[: MOST_OTHERS // 2], words[::-1], strict=False):
        new = first[: len(first) // 2 + 1] + second[len(second) // 2 :]
        parts = [new, random.choice(words)][: random.choice((1, 2))]
        random.shuffle(parts)
        yield NameMention(" ".join(parts), "", NO_WORD)


def choose_names(kb: KnowledgeBase, most: int) -> list[Entry]:
    """Return names on rows with one concept, in an order that is as good as random."""
    filtered = kb.searcher.nearest.resolve(Filter(document_language=language_of(kb)))
    names: list[Entry] = []
    for row in kb.store.rows_by_key(4 * most):
        entries = kb.entries([row]).get(row, [])
        usable = [e for e in entries if filtered is None or filtered.matches(e)]
        if len({entry.cui for entry in usable}) == 1:
            names += usable[:1]
        if len(names) == most:
            break
    return names


def make_other_groups(
    kb: KnowledgeBase, names: Sequence[Entry]
) -> Iterator[NameMention]:
    """Yield names that are searched for among the concepts of other semantic groups."""
    types = kb.store.count_types()
    groups: dict[str, list[str]] = defaultdict(list)
    for name in types:
        groups[GROUP_OF_TYPE.get(name, name)].append(name)
    sizes = {group: sum(types[t] for t in some) for group, some in groups.items()}
    large = {group for group, size in sizes.items() if size >= FEWEST_CONCEPTS}
    if len(large) < 2:
        return
    of_names = kb.store.types(entry.cui for entry in names)
    made = Counter[str]()
    for entry in names:
        own = {GROUP_OF_TYPE.get(t, t) for t in of_names.get(entry.cui, ())}
        (group,) = own if len(own) == 1 else ("",)
        if group in large and made[group] < MOST_OTHERS // len(large):
            made[group] += 1
            rest = sorted({UNTYPED, *types} - {*groups[group]})
            yield NameMention(
                entry.alias,
                "",
                OTHER_GROUP,
                frozenset([entry.row]),
                entry.concept,
                tuple(rest),
            )


def make_words(kb: KnowledgeBase, random: Random) -> Iterator[NameMention]:
    """Yield English words that no name has, words of names, and pairs."""
    table = kb.parts.words
    english = language_of(kb) == "en"
    words = [word for word in read_words() if len(word) >= SHORTEST_WORD]
    words.sort(key=hash_word)
    folded = [fold_piece(word, "english")[0] for word in words]
    weights = table.weigh(folded, english=english)
    most = table.most(english=english)
    new = [w for w, f in zip(words, folded, strict=True) if weights[f] == most]
    old = [w for w, f in zip(words, folded, strict=True) if weights[f] < most]
    half = MOST_OTHERS // 2
    for word in (*new[:half], *old[: half // 2]):
        yield NameMention(word, "", NO_NAME)
    for first, second in zip(new[half : half + half // 2], old[half:], strict=False):
        pair = [first, second]
        random.shuffle(pair)
        yield NameMention(" ".join(pair), "", NO_NAME)
