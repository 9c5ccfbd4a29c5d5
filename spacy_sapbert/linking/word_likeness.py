"""How like two words are: is one a misspelled other, or derived from it?"""

from collections.abc import Iterable
from functools import lru_cache
from os.path import commonprefix

from rapidfuzz.distance import OSA

SHORTEST = 4  # letters of a misspelled word
LETTERS_PER_SLIP, MOST_SLIPS = 3, 3  # one of three letters may be wrong …
DENSE = 0.7  # … and so many of those from the first to the last wrong one
SHORTEST_STEM, SHORTEST_NEW_STEM = 4, 6  # letters, of a real word and of a new one
PAIRS_KEPT = 200_000  # of compared words, about 150 bytes each
DERIVED = 0.9  # how like a word is to one of which it is derived
ENDINGS = (
    *("", "e", "y", "ia", "ial", "ian", "iac", "ic", "ical", "tic", "se", "ive"),
    *("ion", "ation", "ative", "ism", "ist", "ity", "ous", "al", "ary", "ar", "oid"),
    *("ed", "ing", "ful", "ant", "ent", "ance", "ence"),
    *("ology", "ologic", "ological"),
)


def most_slips(text: str) -> int:
    """Return how many letters of a text may be wrong by mistake."""
    if len(text) < SHORTEST:
        return 0
    return min(len(text) // LETTERS_PER_SLIP, MOST_SLIPS)


@lru_cache(maxsize=PAIRS_KEPT)
def list_stems(word: str, shortest: int) -> frozenset[str]:
    """Return a word without endings of English words that are derived from another."""
    stems = {word.removesuffix(ending) for ending in ENDINGS}
    return frozenset(stem for stem in stems if len(stem) >= shortest)


@lru_cache(maxsize=PAIRS_KEPT)
def stand_for(word: str, other: str, real: bool) -> float:
    """Return how like a word is to another one for which it may stand, 0 to 1.

    A `real` word is not a misspelled one, but may be derived from the other:
    "hypertensive" from "hypertension".
    """
    shortest = SHORTEST_STEM if real else SHORTEST_NEW_STEM
    if word[:shortest] == other[:shortest] and not list_stems(
        word, shortest
    ).isdisjoint(list_stems(other, shortest)):
        return DERIVED
    slips = 0 if real else most_slips(word)
    edits = OSA.distance(word, other, score_cutoff=slips)
    if edits > slips or not is_scattered(edits, word, other):
        return 0.0
    return 1 - edits / len(word)


def spell_like(word: str, others: Iterable[str], *, real: bool = False) -> float:
    """Return how like a word is to that of others for which it may stand, 0 to 1."""
    return max((stand_for(word, other, real) for other in others), default=0.0)


def is_slip(text: str, name: str) -> bool:
    """Return whether a text may be a misspelled name."""
    slips = most_slips(text)
    edits = OSA.distance(text, name, score_cutoff=slips)
    return bool(slips) and edits <= slips and is_scattered(edits, text, name)


def is_scattered(edits: int, word: str, other: str) -> bool:
    """Return whether letters differ here and there, as typing errors do.

    Where nearly all letters between the first and the last that differ are others, a
    part of the word is another one: "neurotoxic" and "nephrotoxic".
    """
    if edits < 2:
        return True
    start = len(commonprefix([word, other]))
    end = len(commonprefix([word[start:][::-1], other[start:][::-1]]))
    return edits <= DENSE * (max(len(word), len(other)) - start - end)
