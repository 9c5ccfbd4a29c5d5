"""What names say about words: which stand for each other, and which add nothing.

A name without one of its words is the context of this word, whatever the order. Two
words that a concept has in one context stand for each other: "renal pain" and "kidney
pain". If two concepts have them there, they do not. A word that makes a name of another
one either adds nothing ("unspecified") or makes another concept ("acute").

Only English names of the vocabulary count, those of edits do not. Numerals, letters and
negations are parts of contexts, and stand for nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..io.arrays import find_sorted
from ..linking.text import hash_word, signed
from .store import Store
from .words import MOST_WORDS, WordsOfNames, is_replaceable

# Of words that a concept has in one context. More are kinds of it, "spastic, ataxic,
# dyskinetic …", and do not stand for each other. Nor do words that a concept has beside
# one of its names: "transient" and "permanent", if it is called so without them too.
MOST_IN_PLACE = 3
# Each of such words is compared with so many others, in the order of their hashes.
MOST_BESIDE = 31
AT_ONCE = 4_000_000  # words of names that are sorted together
SEVERAL = -1  # in place of a concept

# The files, and the type of the array in each.
FILES: dict[str, str] = {
    "pairs": "<u8",  # sums of the hashes of two words, ascending (pairs,)
    # Concepts in which the two stand for each other, and contexts in which some concept
    # has both (pairs, 2)
    "supports": "<i4",
    "context_starts": "<i8",  # of the contexts of each word in `hashes` (words + 1,)
    "contexts": "<u8",  # those that several words and concepts have, by word, ascending
    "owners": "<i4",  # the concept that has the word in this context, or `SEVERAL`
    # Concepts where the word adds nothing to a name, and where it makes another one of
    # it (words, 2)
    "added": "<i4",
}
WRAP = 0xFFFF_FFFF_FFFF_FFFF
ODD = np.uint64(0x9E37_79B9_7F4A_7C15)  # spreads the numbers of concepts


def build_replacements(names: WordsOfNames, folder: Path) -> None:
    """Write the files; equal names give equal bytes."""
    hashes = np.load(folder / "hashes.npy")
    for name, array in learn_replacements(hashes, names).items():
        np.save(folder / f"{name}.npy", array.astype(FILES[name]), allow_pickle=False)


def learn_replacements(
    hashes: np.ndarray, names: WordsOfNames
) -> dict[str, np.ndarray]:
    """Compute the arrays of `FILES`."""
    lengths = names.lengths.astype(np.int64)
    of_words = hashes[names.words]
    starts = np.cumsum(lengths) - lengths
    keys = np.add.reduceat(of_words, starts) if len(starts) else of_words
    contexts = np.repeat(keys, lengths) - of_words
    concepts = np.repeat(names.concepts, lengths)
    known, owned = np.unique(keys), np.unique(own_keys(keys, names.concepts))
    parts = 1 + len(contexts) // AT_ONCE
    pairs, shared, nothing, another = [], [], [], []
    for part in range(parts):
        chosen = names.usable[names.words] & (contexts % np.uint64(parts) == part)
        context, word, concept = sort_distinct(
            contexts[chosen], names.words[chosen], concepts[chosen]
        )
        is_name = find_sorted(context, known)[0]
        is_own = find_sorted(own_keys(context, concept), owned)[0]
        pairs.append(find_pairs(hashes, context, word, concept, is_own))
        shared.append(find_shared(context, word, concept))
        nothing.append([word[is_own], concept[is_own]])
        another.append([word[is_name & ~is_own], concept[is_name & ~is_own]])
    pair, concept, context, alike = join(pairs)
    together, places = np.unique(pair, return_inverse=True)
    beside = context != 0
    supports = [
        count_rows(places[alike], concept[alike], size=len(together)),
        count_rows(places[beside], context[beside], size=len(together)),
    ]
    word, context, owner = sort_distinct(*join(shared))
    added = [count_rows(*join(each), size=len(hashes)) for each in (nothing, another)]
    return {
        "pairs": together,
        "supports": np.stack(supports, axis=1),
        "context_starts": np.searchsorted(word, np.arange(len(hashes) + 1)),
        "contexts": context,
        "owners": owner,
        "added": np.stack(added, axis=1),
    }


def own_keys(keys: np.ndarray, concepts: np.ndarray) -> np.ndarray:
    """Return a number for each key and concept together."""
    return keys + concepts.astype(np.uint64) * ODD


def join(parts: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]


def sort_distinct(*columns: np.ndarray) -> list[np.ndarray]:
    """Return the columns of distinct rows, sorted by the first, then the next."""
    order = np.lexsort(columns[::-1])
    ordered = [column[order] for column in columns]
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any([column[1:] != column[:-1] for column in ordered], axis=0)
    return [column[new] for column in ordered]


def count_rows(places: np.ndarray, others: np.ndarray, *, size: int) -> np.ndarray:
    """Return how many different others each place has. Shape: (size,)."""
    return np.bincount(sort_distinct(places, others)[0], minlength=size)


def find_pairs(
    hashes: np.ndarray,
    contexts: np.ndarray,
    words: np.ndarray,
    concepts: np.ndarray,
    is_own: np.ndarray,
) -> list[np.ndarray]:
    """Return key, concept and context of each two words that a concept has there.

    Also returns whether the two stand for each other. `is_own` = whether the context is
    a name of the concept.
    """
    order = np.lexsort((words, concepts, contexts))
    contexts, words, concepts = contexts[order], words[order], concepts[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (contexts[1:] != contexts[:-1]) | (concepts[1:] != concepts[:-1])
    places = np.cumsum(new) - 1
    alike = (np.bincount(places)[places] <= MOST_IN_PLACE) & ~is_own[order]
    found = [[contexts[:0], concepts[:0], contexts[:0], alike[:0]]]
    for step in range(1, MOST_BESIDE + 1):
        same = places[step:] == places[:-step]
        if not same.any():
            break
        keys = hashes[words[:-step][same]] + hashes[words[step:][same]]
        found.append([keys, *(x[:-step][same] for x in (concepts, contexts, alike))])
    return join(found)


def find_shared(
    contexts: np.ndarray, words: np.ndarray, concepts: np.ndarray
) -> list[np.ndarray]:
    """Return word, context and owner where several words and concepts share a context.

    The rows are sorted. The empty context, of names of one word, says nothing.
    """
    if not len(contexts):
        return [words, contexts, concepts]
    new = np.ones(len(contexts), dtype=bool)
    new[1:] = contexts[1:] != contexts[:-1]
    first = new.copy()
    first[1:] |= words[1:] != words[:-1]
    bounds, starts = np.flatnonzero(new), np.flatnonzero(first)
    lowest = np.minimum.reduceat(concepts, bounds)
    several = lowest < np.maximum.reduceat(concepts, bounds)
    several &= np.add.reduceat(first.astype(np.int64), bounds) > 1
    several &= contexts[bounds] != 0
    counts = np.diff(np.append(starts, len(contexts)))
    owners = np.where(counts == 1, concepts[starts], SEVERAL)
    kept = several[np.cumsum(new)[starts] - 1]
    return [words[starts][kept], contexts[starts][kept], owners[kept]]


class LeftOut(NamedTuple):
    """What is not known without some names of a concept; see `leave_out`.

    Attributes:
        pairs: For the key of two words, how many concepts and contexts less.
        contexts: By word, those that only these names give the concept.
        added: For a word, how many concepts less in each column of `added`.
        names: Keys of these names that no other name has.
    """

    concept: int
    pairs: Mapping[int, tuple[int, int]]
    contexts: Mapping[int, np.ndarray]
    added: Mapping[int, tuple[int, int]]
    names: AbstractSet[int]


class Evidence:
    """What the names of one concept say; a name is its folded words."""

    def __init__(self, names: Iterable[Sequence[str]]) -> None:
        self.names = set[int]()  # keys
        self.contexts: dict[int, set[int]] = defaultdict(set)  # by word
        self.pairs: dict[int, set[int]] = defaultdict(set)  # contexts, by key
        self.supported = set[int]()  # keys of words that stand for each other
        words_of: dict[int, set[int]] = defaultdict(set)
        for words in names:
            if not 0 < len(words) <= MOST_WORDS:
                continue
            key = sum(map(hash_word, words)) & WRAP
            self.names.add(key)
            for word in words:
                if is_replaceable(word):
                    hashed = hash_word(word)
                    context = (key - hashed) & WRAP
                    self.contexts[hashed].add(context)
                    words_of[context].add(hashed)
        for context, some in words_of.items():
            ordered = sorted(some)
            for number, hashed in enumerate(ordered, 1):
                for other in ordered[number : number + MOST_BESIDE]:
                    key = (hashed + other) & WRAP
                    self.pairs[key].add(context)
                    if len(ordered) <= MOST_IN_PLACE and context not in self.names:
                        self.supported.add(key)

    def count_added(self, others: AbstractSet[int]) -> dict[int, tuple[int, int]]:
        """Return whether each word adds nothing, and whether it makes another concept.

        `others` = keys of names of other concepts.
        """
        return {
            word: (
                int(not contexts.isdisjoint(self.names)),
                int(not (contexts & others) <= self.names),
            )
            for word, contexts in self.contexts.items()
        }


def leave_out(
    store: Store,
    concept: int,
    left: Iterable[Sequence[str]],
    kept: Iterable[Sequence[str]],
) -> LeftOut:
    """Find out what is not known without some English names of a concept.

    Args:
        left: The folded words of each of these names.
        kept: The same for its other names.
    """
    kept = [*kept]
    every, some = Evidence([*left, *kept]), Evidence(kept)
    contexts = {c for of_word in every.contexts.values() for c in of_word}
    contexts |= every.names
    named = store.names_of_keys(map(signed, contexts))
    others = {
        key & WRAP
        for key, names in named.items()
        if any(
            name.concept != concept and store.rules_of(name.origin) == "english"
            for name in names
        )
    }
    before, after = every.count_added(others), some.count_added(others)
    added = {
        word: (counts[0] - less[0], counts[1] - less[1])
        for word, counts in before.items()
        if counts != (less := after.get(word, (0, 0)))
    }
    pairs = {
        key: (
            (key in every.supported) - (key in some.supported),
            len(of_pair - some.pairs.get(key, set()) - {0}),
        )
        for key, of_pair in every.pairs.items()
    }
    lost_contexts = {
        word: np.array(sorted(lost), dtype=np.uint64)
        for word, of_word in every.contexts.items()
        if (lost := of_word - some.contexts.get(word, set()))
    }
    names = every.names - some.names - others
    return LeftOut(concept, pairs, lost_contexts, added, names)


def count_shared(one: np.ndarray, other: np.ndarray) -> int:
    """Return how many values are in both of two ascending arrays."""
    few, many = (one, other) if len(one) < len(other) else (other, one)
    return int((many.take(many.searchsorted(few), mode="clip") == few).sum())


class Replacements:
    """Looks up what the names of a vocabulary say about words; see `FILES`.

    Words are known by their hashes.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.hashes = arrays["hashes"]
        self.pairs, self.supports = arrays["pairs"], arrays["supports"]
        self.starts = arrays["context_starts"]
        self.contexts, self.owners = arrays["contexts"], arrays["owners"]
        self.added = arrays["added"]

    def are_supported(self, keys: np.ndarray) -> np.ndarray:
        """Return whether a concept has two words in one context, bool.

        `keys` are sums of the hashes of two words, of any shape.
        """
        return find_sorted(keys, self.pairs)[0]

    def replaces(
        self, word: int, others: Sequence[int], left_out: LeftOut | None = None
    ) -> np.ndarray:
        """Return what is said for and against a word in the place of others.

        The first column counts the concepts in which the two stand for each other, the
        second the contexts in which they are of different concepts alone. Words of
        which nothing is known have zeros. Shape: (others, 2), int64.
        """
        counts = np.zeros((len(others), 2), dtype=np.int64)
        keys = np.array([word, *others], dtype=np.uint64)
        mine, *theirs = self.list_contexts(keys, left_out)
        if len(mine):
            for number, contexts in enumerate(theirs):
                if len(contexts) and others[number] != word:
                    counts[number, 1] = count_shared(mine, contexts)
        known, places = find_sorted(keys[1:] + keys[0], self.pairs)
        supports = np.zeros_like(counts)
        supports[known] = self.supports[places]
        if left_out is not None:
            for number, other in enumerate(others):
                supports[number] -= left_out.pairs.get((word + other) & WRAP, (0, 0))
        counts[:, 0] = supports[:, 0]
        counts[:, 1] -= supports[:, 1]
        return counts.clip(0)

    def list_contexts(
        self, words: np.ndarray, left_out: LeftOut | None
    ) -> list[np.ndarray]:
        """Return the contexts that each word shares with others, ascending."""
        found = [self.contexts[:0]] * len(words)
        known, places = find_sorted(words, self.hashes)
        spans = zip(self.starts[places], self.starts[places + 1], strict=True)
        for number, span in zip(np.flatnonzero(known).tolist(), spans, strict=True):
            contexts = self.contexts[slice(*span)]
            word = int(words[number])
            if left_out is not None and word in left_out.contexts:
                gone = find_sorted(contexts, left_out.contexts[word])[0]
                gone &= self.owners[slice(*span)] == left_out.concept
                contexts = contexts[~gone]
            found[number] = contexts
        return found

    def adds(
        self,
        words: Sequence[int],
        left_out: LeftOut | None = None,
        contexts: Sequence[int] = (),
    ) -> np.ndarray:
        """Return what words do that are added to a name.

        The first column counts the concepts for which the word adds nothing, the second
        those of which it makes another concept. Shape: (words, 2), int64.

        Args:
            contexts: For words of a name of another concept than that of `left_out`,
                the key of this name without the word: a name that is left out is not
                known to be without it.
        """
        counts = np.zeros((len(words), 2), dtype=np.int64)
        keys = np.array(words, dtype=np.uint64)
        known, places = find_sorted(keys, self.hashes)
        counts[known] = self.added[places]
        if left_out is not None:
            for number, word in enumerate(words):
                counts[number] -= left_out.added.get(word, (0, 0))
            for number, context in enumerate(contexts):
                counts[number, 1] -= context in left_out.names
        return counts.clip(0)
