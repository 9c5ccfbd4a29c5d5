"""The words of the names of each concept → kb/words/; `agreement` reads them.

Words are folded (`linking.text`) and known by their hashes.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import numpy as np

from ..linking.opposites import NEGATING_WORDS
from ..linking.text import GREEK_NAMES, clean_text, fold_piece, hash_word, list_words
from ..linking.word_likeness import SHORTEST_NEW_STEM, list_stems
from .store import Store

NUMERAL, LETTER, NEGATION, OTHER = 1, 2, 3, 0  # kinds of words

# The files, and the type of the array in each.
FILES: dict[str, str] = {
    "hashes": "<u8",  # of the words, ascending (words,)
    "kinds": "|u1",  # see `kind_of` (words,)
    "english": "<i4",  # names that may be in English, with each word (words,)
    "every": "<i4",  # names in any language, with each word (words,)
    "starts": "<i8",  # of the words of each concept in `places` (concepts + 1,)
    # Twice the place of the word in `hashes`, one more if an English name has it.
    "places": "<i4",
    # hashes of the words of the encoder, and of stems of words, ascending
    "real": "<u8",
    "totals": "<i8",  # names that may be in English, and all names (2,)
}


def kind_of(word: str) -> int:
    """Return what a folded word is, if it tells concepts apart."""
    if word.isdigit():
        return NUMERAL
    if len(word) == 1 or word in GREEK_NAMES:
        return LETTER
    return NEGATION if word in NEGATING_WORDS else OTHER


def list_real_words(tokens: Iterable[str], *, folded: bool = True) -> Iterator[str]:
    """Yield the whole words among the tokens of an encoder, folded as English words."""
    tokens = [*tokens]
    marks = [
        mark for mark in ("\u2581", "\u0120") if any(t[:1] == mark for t in tokens)
    ]
    for token in tokens:
        word = token[1:] if marks and token[:1] in marks else token
        if word.isalpha() and (not marks or word != token):
            yield fold_piece(clean_text(word), "english")[0] if folded else word


def build_words(store: Store, tokens: Iterable[str], folder: Path) -> None:
    """Write the files of the words of all names; equal names give equal bytes."""
    numbers: dict[str, int] = {}
    starts, packed = [0], list[np.ndarray]()
    counts: list[list[int]] = [[], []]
    totals = [0, 0]
    for concept, names in groupby(store.names_by_concept(), lambda name: name[0]):
        starts += [starts[-1]] * (concept + 1 - len(starts))
        words: dict[int, bool] = {}
        for _, alias, origin in names:
            rules = store.rules_of(origin)
            is_english = rules == "english"
            totals[0] += is_english
            totals[1] += 1
            for word in dict.fromkeys(list_words(alias, rules)):
                number = numbers.setdefault(word, len(numbers))
                if number == len(counts[0]):
                    counts[0].append(0)
                    counts[1].append(0)
                counts[0][number] += is_english
                counts[1][number] += 1
                words[number] = words.get(number, False) or is_english
        packed.append(np.array([2 * n + e for n, e in sorted(words.items())], "<i4"))
        starts.append(starts[-1] + len(words))
    hashes = np.array([*map(hash_word, numbers)], dtype="<u8")
    order = np.argsort(hashes)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    every = np.concatenate([np.zeros(0, "<i4"), *packed])
    common = {w for w, n in numbers.items() if counts[1][n] > 1 and w.isalpha()}
    listed = {*list_real_words(tokens)}
    stems = {s for w in common | listed for s in list_stems(w, SHORTEST_NEW_STEM) - {w}}
    real = [hash_word(word) for word in listed | stems]
    arrays = {
        "hashes": hashes[order],
        "kinds": np.array([*map(kind_of, numbers)], dtype="|u1")[order],
        "english": np.array(counts[0], dtype="<i4")[order],
        "every": np.array(counts[1], dtype="<i4")[order],
        "starts": np.array(starts, dtype="<i8"),
        "places": 2 * ranks[every >> 1] + (every & 1) if len(every) else every,
        "real": np.unique(np.array(real, dtype="<u8")),
        "totals": np.array(totals, dtype="<i8"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array.astype(FILES[name]), allow_pickle=False)
