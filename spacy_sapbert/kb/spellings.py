"""Mentions that are written otherwise or wrong → names, and words of names."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain

import numpy as np

from ..io.cache import LruCache
from ..linking.candidates import Entry
from ..linking.features import most_slips
from ..linking.misspelled import Corrected, correct_words, list_words
from ..linking.name_variants import choose_variant, list_text_variants, list_variants
from ..linking.surface_forms import name_form
from .filters import foreign_origins
from .ngrams.index import MAX_CHARACTERS, extract_ngrams
from .parts import Parts
from .store import Store

FORM_CACHE = 50_000  # parts of texts that may be names, about 300 bytes each
LONGEST_KEPT = 200  # characters of these parts
RARE = 1e-4  # share of the names that have a rare 3-gram
MOST_WORDS = 10  # of a mention that are not known
NEAR_NAMES = 32  # by 3-grams, whose words a misspelled word may be


class Spellings:
    """Finds the names and words that are meant; `written`: a cache."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self.store = store
        self.parts = parts
        self.written: LruCache[tuple[str, str], list[str]] = LruCache(FORM_CACHE)
        self.foreign_origins = cache(lambda lang: foreign_origins(store, lang))

    def find_variants(self, texts: Sequence[str]) -> dict[str, int]:
        """Return the row of the English name that is a variant of each text, if any."""
        variants = {text: list_variants(name_form(text)) for text in texts}
        forms = chain.from_iterable(variants.values())
        names = self.store.names(forms, without=self.foreign_origins("en"))
        rows = {text: choose_variant(v, names) for text, v in variants.items()}
        return {text: row for text, row in rows.items() if row is not None}

    def find_written(self, forms: Sequence[str], lang: str) -> dict[str, list[str]]:
        """Return the names that are written in parts of a text.

        Args:
            forms: Of the parts, from `name_form`.
            lang: Language of the text. Names in other languages do not count.

        Returns:
            The names by form: those of the form itself, else of the first variant that
            has any, see `list_text_variants`. Empty lists if there are none.
        """
        keys = [(lang, form) for form in dict.fromkeys(forms)]
        written = self.written.get_many(keys)
        new = {
            key: [key[1], *list_text_variants(key[1], lang)]
            for key in keys
            if key not in written
        }
        if new:
            spellings = self.store.spellings(
                chain.from_iterable(new.values()), without=self.foreign_origins(lang)
            )
            for key, variants in new.items():
                lists = filter(None, map(spellings.get, variants))
                written[key] = next(lists, [])
            kept = (key for key in new if len(key[1]) <= LONGEST_KEPT)
            self.written.put_many({key: written[key] for key in kept})
        return {form: names for (_, form), names in written.items()}

    def count_allowed_slips(self, word: str) -> int:
        """Return how many letters of a word that is no word of names may be wrong.

        Typing errors make letters follow each other as they hardly do in names. A word
        without such letters is rather a new word: "nephrotoxic" is not "neurotoxic".
        """
        ngrams = self.parts.ngrams
        grams, _ = extract_ngrams([word])
        rarest = ngrams.count_rows(grams).min(initial=self.store.total_rows)
        return most_slips(word) if rarest < RARE * self.store.total_rows else 1

    def respell(
        self,
        texts: Sequence[str],
        *,
        is_left_out: Callable[[int, Entry], bool] = lambda number, entry: False,
    ) -> dict[int, Corrected]:
        """Correct words of mentions that are nearly words of the nearest names.

        A word of two names or more is right as it is. Texts of many other words, and
        long ones, are no misspelled names, and would take long.

        Args:
            is_left_out: Of the number of a text and a name: whether it does not count.

        Returns:
            The corrected texts by number; texts without such a word are left out.
        """
        if not self.parts.manifest.ngrams:
            return {}
        ngrams = self.parts.ngrams
        unknown: dict[int, dict[str, int]] = {}
        for number, text in enumerate(texts):
            listed = list_words(text) if len(text) <= MAX_CHARACTERS else []
            new = [word for word in listed if not ngrams.knows(word)]
            if 0 < len(new) <= MOST_WORDS:
                unknown[number] = {word: self.count_allowed_slips(word) for word in new}
        if not unknown:
            return {}
        wanted = {texts[number]: None for number in unknown}
        wanted |= {word: None for words in unknown.values() for word in words}
        rows, scores = ngrams.search([*wanted], NEAR_NAMES)
        # Two indexes that are searched together are not in one order.
        rows = np.take_along_axis(rows, np.argsort(-scores, kind="stable"), axis=1)
        entries = self.store.entries(np.unique(rows[rows >= 0]))
        near = dict(zip(wanted, rows.tolist(), strict=True))
        respelled: dict[int, Corrected] = {}
        for number, words in unknown.items():
            names = [
                entry.alias
                for row in chain.from_iterable(near[t] for t in (texts[number], *words))
                for entry in entries.get(row, ())
                if not is_left_out(number, entry)
            ]
            corrected = correct_words(texts[number], words, names)
            if corrected is not None:
                respelled[number] = corrected
        return respelled
