"""Words that exclude each other: who reads one of them does not accept the other.

Each group has a reason to be here: its members name different sides, degrees, causes or
amounts, and vocabularies have concepts of their own for them. Pairs of words that are
names of one concept more often than of two in open vocabularies were left out, such as
"decreased" and "low", "tetra" and "quadri", or "granulo" and "myelo";
`tests/linking/test_opposites.py` counts them.
"""

import json
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from pathlib import Path

from .text import NON, WORDS_KEPT, fold_english

# Groups of whole words, of beginnings and of (folded) endings of words. Within a group,
# each excludes the others; beginnings and endings do so before or after equal stems.
TABLE = json.loads(Path(__file__).with_name("opposites.json").read_text("utf8"))
WORDS = [*chain(*TABLE["words"].values())]
BEGINNINGS = TABLE["beginnings"]
# Beginnings that negate the word that follows.
NEGATIONS = ("non", "anti", "un", "in", "im", "ir", "il", "dis", "de", "dys")
NEGATING_WORDS = frozenset(("no", "not", "non", "without", "never"))
# What is so is no disorder, unless its name says it: "normal pressure hydrocephalus".
NORMAL = frozenset(("normal", "normally", "unremarkable"))
SHORTEST_STEM = 3  # letters that two opposites share
# "Impaired renal function" is renal dysfunction.
FUNCTIONS = frozenset(TABLE["functions"].split())
LOSS = frozenset(map(fold_english, TABLE["loss"].split()))
# What is wrong with something: "creatinine" is not "increased creatinine"; and parts of
# the body, which are not their diseases.
STATES = frozenset(map(fold_english, TABLE["states"].split()))
BODY = frozenset(map(fold_english, TABLE["body"].split()))
# What is about a disease, and none, "hepatitis virus"; and words for diseases.
ABOUT, DISEASES = (
    frozenset(map(fold_english, TABLE[name].split())) for name in ("about", "diseases")
)


def list_others(groups: Iterable[Iterable[str]]) -> dict[str, frozenset[str]]:
    """Return the other members of the groups of each member."""
    others: dict[str, set[str]] = {}
    for group in groups:
        members = {*group}
        for member in members:
            others.setdefault(member, set()).update(members - {member})
    return {member: frozenset(some) for member, some in others.items()}


OF_WORDS = list_others(map(fold_english, group.split()) for group in WORDS)
OF_BEGINNINGS = list_others(group.split() for group in BEGINNINGS)
LONGEST_BEGINNING = max(map(len, OF_BEGINNINGS))
OF_ENDINGS = list_others(group.split() for group in TABLE["endings"])


@lru_cache(maxsize=WORDS_KEPT)
def list_beginnings(word: str) -> dict[str, str]:
    """Return what follows each beginning of a word that has an opposite."""
    parts = (word[:size] for size in range(1, LONGEST_BEGINNING + 1))
    return {part: word.removeprefix(part) for part in parts if part in OF_BEGINNINGS}


@lru_cache(maxsize=WORDS_KEPT)
def list_opposites(word: str) -> frozenset[str]:
    """Return the words that exclude a folded word; most of them do not exist."""
    found = {*OF_WORDS.get(word, ())}
    for part, stem in list_beginnings(word).items():
        if len(stem) >= SHORTEST_STEM:
            found |= {other + stem for other in OF_BEGINNINGS[part]}
    for part, others in OF_ENDINGS.items():
        stem = word.removesuffix(part)
        if stem != word and len(stem) >= SHORTEST_STEM:
            found |= {stem + other for other in others}
    for part in NEGATIONS:
        stem = word.removeprefix(part)
        if stem != word and len(stem) > SHORTEST_STEM:
            found.add(stem)
        if len(word) > SHORTEST_STEM:
            found.add(part + word)
    return frozenset((found | negate(word)) - {word})


def negate(word: str) -> set[str]:
    """Return a word with "non" before it, and without."""
    return {NON + word, word.removeprefix(NON)}


@lru_cache(maxsize=WORDS_KEPT)
def list_lost_functions(word: str) -> frozenset[str]:
    """Return opposites that do not count beside a word of `LOSS`, on either side.

    "Impaired function" is "dysfunction", but no "nonfunction".
    """
    stems = {word, *(word.removeprefix(part) for part in NEGATIONS)} & FUNCTIONS
    negated = {part + stem for part in NEGATIONS for stem in stems}
    return frozenset((stems | negated) - {word} - negate(word))


def has_loss(words: Iterable[str]) -> bool:
    """Return whether one of some folded words says that a function is lost."""
    return not LOSS.isdisjoint(words)


def are_opposites(word: str, other: str, *, losing: bool = False) -> bool:
    """Return whether two folded words exclude each other.

    `losing` = a word beside them says that a function is lost: "impaired function" is
    "dysfunction".
    """
    if other not in list_opposites(word):
        return False
    return not (losing and other in list_lost_functions(word))
