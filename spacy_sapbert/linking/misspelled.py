"""Words that are written wrong → the words of names that they nearly are."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rapidfuzz.distance import OSA

from .features import WORD

SHORTEST = 5  # letters of a correct word; a shorter one may be an abbreviation


class Corrected(NamedTuple):
    """A text whose misspelled words are corrected.

    Attributes:
        kept: Share of the letters that stay, 0 to 1.
    """

    text: str
    kept: float


def list_words(text: str) -> list[str]:
    """Return the words of a text that may be corrected, in lower case."""
    return [word for word in WORD.findall(text.lower()) if len(word) >= SHORTEST - 1]


def correct_words(
    text: str, words: Mapping[str, int], names: Iterable[str]
) -> Corrected | None:
    """Replace words of a text by the words of names that they nearly are.

    Letters dropped, added, changed or swapped count.

    Args:
        words: In lower case, with how many letters may be wrong at most. One that is a
            word of a name stays.
        names: Of equally near words, that of an earlier name counts.

    Returns:
        None if there is no such word.
    """
    near: dict[str, str] = {}
    for name in names:
        for written in WORD.findall(name):
            near.setdefault(written.lower(), written)
    corrected = {
        word: nearest
        for word, slips in words.items()
        if word not in near and (nearest := find_nearest(word, near, slips))
    }
    found = WORD.sub(lambda m: corrected.get(m.group().lower(), m.group()), text)
    if found == text:
        return None
    return Corrected(found, OSA.normalized_similarity(text.lower(), found.lower()))


def find_nearest(word: str, near: Mapping[str, str], slips: int) -> str | None:
    """Return the word that differs least, as it is written; None if all differ more.

    Args:
        near: Words by their lower case. Those with digits do not count.
        slips: How many letters may differ.
    """
    nearest = None
    for other, written in near.items():
        if slips < 0:
            break
        distance = OSA.distance(word, other, score_cutoff=slips)
        if distance <= slips and len(other) >= SHORTEST and other.isalpha():
            nearest, slips = written, distance - 1
    return nearest
