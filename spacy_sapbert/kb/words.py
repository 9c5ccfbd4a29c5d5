"""The words of the names of each concept → kb/words/; `agreement` reads them.

Words are folded (`linking.text`) and known by their hashes.
"""

from array import array
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..linking.difference import Words, is_exact
from ..linking.opposites import NEGATING_WORDS
from ..linking.text import fold_piece, hash_word
from ..linking.word_likeness import SHORTEST_NEW_STEM, list_stems, read_words
from .store import Store

MOST_WORDS = 6  # of a name of which `replacements` learns

# The files, and the type of the array in each.
FILES: dict[str, str] = {
    "hashes": "<u8",  # of the words, ascending (words,)
    "english": "<i4",  # names that may be in English, with each word (words,)
    "every": "<i4",  # names in any language, with each word (words,)
    "starts": "<i8",  # of the words of each concept in `places` (concepts + 1,)
    # Twice the place of the word in `hashes`, one more if an English name has it.
    "places": "<i4",
    # hashes of English words, and of stems of words, ascending
    "real": "<u8",
    "totals": "<i8",  # names that may be in English, and all names (2,)
    # Of names that may be in English, concept by concept: places in `hashes` of the
    # words with a meaning, the first of each name, and the first name of each concept
    "name_words": "<i4",
    "name_starts": "<i8",  # (names + 1,)
    "first_names": "<i8",  # (concepts + 1,)
}


def is_replaceable(word: str) -> bool:
    """Return whether another word may stand for a folded word."""
    return not is_exact(word) and word not in NEGATING_WORDS


class WordsOfNames(NamedTuple):
    """Words of English names, one name after the other, as places in `hashes`.

    Attributes:
        usable: Which words in `hashes` may be replaced, bool. Shape: (distinct words,)
        words: Shape: (words of all names,)
        lengths: The number of words of each name, from 1 to `MOST_WORDS`. (names,)
        concepts: The number of the concept of each name. (names,)
    """

    usable: np.ndarray
    words: np.ndarray
    lengths: np.ndarray
    concepts: np.ndarray


def build_words(store: Store, folder: Path) -> WordsOfNames:
    """Write the files of the words of all names; equal names give equal bytes.

    Returns:
        The words of the names of which `replacements` learns.
    """
    numbers: dict[str, int] = {}
    starts, packed = [0], list[np.ndarray]()
    counts: list[list[int]] = [[], []]
    totals = [0, 0]
    # Arrays of 4 bytes, since there may be ten million names.
    flat, lengths, concepts = array("i"), array("i"), array("i")
    terms, name_starts, first_names = array("i"), array("q", [0]), array("q", [0])
    for concept, names in groupby(store.names_by_concept(), lambda name: name[0]):
        starts += [starts[-1]] * (concept + 1 - len(starts))
        first_names.extend([totals[0]] * (concept + 1 - len(first_names)))
        words: dict[int, bool] = {}
        for _, alias, origin in names:
            rules = store.rules_of(origin)
            is_english = rules == "english"
            totals[0] += is_english
            totals[1] += 1
            split = Words(alias, rules)
            folded = split.words
            for word in dict.fromkeys(folded):
                number = numbers.setdefault(word, len(numbers))
                if number == len(counts[0]):
                    counts[0].append(0)
                    counts[1].append(0)
                counts[0][number] += is_english
                counts[1][number] += 1
                words[number] = words.get(number, False) or is_english
            if is_english:
                terms.extend(map(numbers.__getitem__, split.terms))
                name_starts.append(len(terms))
            if is_english and 0 < len(folded) <= MOST_WORDS:
                flat.extend(map(numbers.__getitem__, folded))
                lengths.append(len(folded))
                concepts.append(concept)
        packed.append(np.array([2 * n + e for n, e in sorted(words.items())], "<i4"))
        starts.append(starts[-1] + len(words))
        first_names.append(totals[0])
    hashes = np.array([*map(hash_word, numbers)], dtype="<u8")
    order = np.argsort(hashes)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    every = np.concatenate([np.zeros(0, "<i4"), *packed])
    common = {w for w, n in numbers.items() if counts[1][n] > 1 and w.isalpha()}
    listed = {fold_piece(word, "english")[0] for word in read_words()}
    stems = {s for w in common | listed for s in list_stems(w, SHORTEST_NEW_STEM) - {w}}
    real = [hash_word(word) for word in listed | stems]
    arrays = {
        "hashes": hashes[order],
        "english": np.array(counts[0], dtype="<i4")[order],
        "every": np.array(counts[1], dtype="<i4")[order],
        "starts": np.array(starts, dtype="<i8"),
        "places": 2 * ranks[every >> 1] + (every & 1) if len(every) else every,
        "real": np.unique(np.array(real, dtype="<u8")),
        "totals": np.array(totals, dtype="<i8"),
        "name_words": ranks[terms],
        "name_starts": np.array(name_starts),
        "first_names": np.array(first_names),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values.astype(FILES[name]), allow_pickle=False)
    usable = np.array([*map(is_replaceable, numbers)], dtype=bool)
    return WordsOfNames(
        usable[order],
        ranks.astype("<i4")[flat],
        np.array(lengths),
        np.array(concepts),
    )
