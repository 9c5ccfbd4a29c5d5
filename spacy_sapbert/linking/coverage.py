"""How far mentions have the words of names, and names those of mentions.

A vocabulary is asked once for the words of several mentions.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from .difference import Difference, Words
from .text import hash_word
from .word_likeness import LEAST_EXTENDED, stand_for


class Near(NamedTuple):
    """A name that is near a mention, and how the mention differs from it."""

    mention: Words
    name: Words
    difference: Difference


class Shared(NamedTuple):
    """What some mentions and the concepts of their pools have in common.

    Attributes:
        words: The distinct words of each mention.
        weights: How rare they are.
        real: Which are words of names or of the encoder.
        covered: Which are in a name of each concept, for each mention.
        supports: Whether names say of two words that one may stand for the other, by
            the sum of their hashes.
        replaces: How far a word may stand for another one, 0 to 1, by the vocabulary.
        adds: How far each word changes the meaning of a name it is added to, 0 to 1.
        weigh: How rare words are.
        most: The highest weight that there can be.
    """

    words: Sequence[Sequence[str]]
    weights: Sequence[Sequence[float]]
    real: Sequence[Sequence[bool]]
    covered: Sequence[Sequence[Sequence[bool]]]
    supports: Callable[[np.ndarray], np.ndarray]
    replaces: Callable[[str, str], float]
    adds: Callable[[Collection[str]], Mapping[str, float]]
    weigh: Callable[[Collection[str]], Mapping[str, float]]
    most: float


class Likeness(NamedTuple):
    """How far words of a mention may stand for those of names near it, 0 to 1.

    By word of a name, then by word of the mention. What is 0 is left out.

    Attributes:
        others: The words of names that have a value, but for those of the mention.
        alike: By their letters.
        replacing: By the vocabulary, where they are not alike.
    """

    others: set[str]
    alike: dict[str, dict[str, float]]
    replacing: dict[str, dict[str, float]]


def liken_words(near: Sequence[Sequence[Near]], shared: Shared) -> list[Likeness]:
    """Hold the words of names near each mention against those of the mention."""
    likenesses: list[Likeness] = []
    mentions: list[dict[str, bool]] = []  # words, and whether they are real
    others_of: list[list[str]] = []
    for names, own, real in zip(near, shared.words, shared.real, strict=True):
        words = dict(zip(own, real, strict=True))
        before = same = None
        for mention, _, _ in names:
            if mention is not before:
                before = mention
                for word in mention.terms:  # other rules may fold it in another way
                    words.setdefault(word, True)
                same = mention.content if same is None else same & mention.content
        ends = [name.head for _, name, _ in names]
        others = [*dict.fromkeys(chain(*[name.terms for _, name, _ in names], ends))]
        alike: dict[str, dict[str, float]] = {}
        for word, is_real in words.items():
            # What a real word is derived from begins with the same letters.
            start = word[:LEAST_EXTENDED] if is_real else ""
            for other in others:
                if other.startswith(start) and (
                    value := stand_for(word, other, is_real)
                ):
                    alike.setdefault(other, {})[word] = value
        likenesses.append(Likeness({*alike} - (same or set()), alike, {}))
        mentions.append(words)
        others_of.append(others)
    add_replacing(likenesses, mentions, others_of, shared)
    return likenesses


def add_replacing(
    likenesses: Sequence[Likeness],
    mentions: Sequence[Mapping[str, bool]],
    others_of: Sequence[Sequence[str]],
    shared: Shared,
) -> None:
    """Add how far each real word of a mention may replace one that is not like it."""
    words_of = [[*words] for words in mentions]
    hashes = np.zeros((len(mentions), max(map(len, words_of), default=0)), np.uint64)
    for number, words in enumerate(words_of):
        hashes[number, : len(words)] = [*map(hash_word, words)]
    others = [*chain(*others_of)]
    keys = np.array([*map(hash_word, others)], dtype=np.uint64)[:, None]
    owners = np.arange(len(mentions)).repeat([*map(len, others_of)])
    supported = shared.supports(keys + hashes[owners])
    for row, column in np.argwhere(supported).tolist():
        number = int(owners[row])
        if column < len(words_of[number]):
            word, other = words_of[number][column], others[row]
            known, alike, replacing = likenesses[number]
            is_usable = mentions[number][word] and word not in alike.get(other, ())
            if is_usable and (value := shared.replaces(word, other)):
                replacing.setdefault(other, {})[word] = value
                known.add(other)


def cover_words(
    names: Sequence[Near],
    likeness: Likeness,
    words: Sequence[str],
    covered: Sequence[bool],
) -> Sequence[float]:
    """Return how far names of a concept have each word of a mention, 0 to 1.

    A word of the mention may be a misspelled word of one of its nearest names, or be
    derived from one. `covered` = which are in any of its names.
    """
    if not likeness.others:
        return covered
    alike: dict[str, float] = {}
    replacing: dict[str, float] = {}
    for mention, name, _ in names:
        if not likeness.others.isdisjoint(name.content):
            for other in name.content - mention.content:
                raise_values(alike, likeness.alike.get(other, {}))
                raise_values(replacing, likeness.replacing.get(other, {}))
    if not (alike or replacing):
        return covered
    shares: list[float] = [*covered]
    places = dict(zip(words, range(len(words)), strict=True))
    for word, value in (replacing | alike).items():
        if word in places and not covered[places[word]]:
            shares[places[word]] = value
    return shares


def raise_values(values: dict[str, float], others: Mapping[str, float]) -> None:
    """Raise values to those of others that are higher."""
    for word, value in others.items():
        values[word] = max(values.get(word, 0.0), value)


def cover_name(near: Near, likeness: Likeness, weights: Mapping[str, float]) -> float:
    """Return the share of a name, by rarity, that a mention has."""
    mention, name, _ = near
    content, others = mention.content, likeness.others
    total = covered = 0.0
    for word in name.terms:
        weight = weights[word]
        total += weight
        if word in content:
            covered += weight
        elif word in others:
            values = likeness.replacing.get(word, {}) | likeness.alike.get(word, {})
            rest = values.keys() & (content - name.content)
            covered += weight * max((values[own] for own in rest), default=0.0)
    return divide(covered, total)


def cover_head(near: Near, likeness: Likeness) -> float:
    """Return how far a mention has the head of a name, 0 to 1."""
    mention, name, _ = near
    if name.head in mention.content:
        return 1.0
    if name.head not in likeness.alike:
        return 0.0
    values = likeness.alike[name.head]
    rest = values.keys() & mention.content
    return max((values[own] for own in rest), default=0.0)


def divide(part: float, whole: float) -> float:
    """Return a share; 0 of nothing."""
    return part / whole if whole else 0.0
