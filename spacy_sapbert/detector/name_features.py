"""What the names of a knowledge base say of the words of a text.

A detector of mentions learns from them: a word of a name of a disease is likely to be a
part of a mention of a disease, even if no annotated document has it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

import numpy as np
from spacy.strings import hash_string  # type: ignore[attr-defined]

from ..kb.knowledge_base import KnowledgeBase
from ..linking.difference import split_words
from ..linking.filters import GROUPS
from ..linking.name_index import find_places
from ..linking.schwartz_hearst import find_long_forms
from ..linking.text import Piece, is_abbreviation, split_pieces

MAX_WORDS = 6  # of a name that is looked up
MIN_LETTERS = 3
SHARE = 0.8  # of the names with a word, from which on they say what it means
MAX_LABELS = 250  # so that a number of a label is a byte
GROUP_OF_TYPE = {type: code for code, types in GROUPS.items() for type in types.split()}
NOTHING, MIXED = "", "mixed"


def list_name_keys(name: str) -> Iterator[str]:
    """Yield the keys under which a name is found in a text."""
    if is_abbreviation(name):
        yield f"={name}"
        return
    for order in split_words(name, "english").orders:
        yield " ".join(order)


def label_of(types: str | None, sources: str | None) -> str:
    """Return the groups of the semantic types of a name; without types its sources."""
    if types:
        return "|".join(sorted({GROUP_OF_TYPE.get(t, t) for t in types.split("|")}))
    return sources or "untyped"


def hash_texts(texts: Iterable[str]) -> np.ndarray:
    """Return the hashes of texts, uint64. Shape: (n,)."""
    return np.fromiter(map(hash_string, texts), dtype=np.uint64)


class LabelTable(NamedTuple):
    """Labels of texts, without the texts: 9 bytes for each.

    Attributes:
        hashes: uint64, ascending. Shape: (n,).
        numbers: Of the labels, uint8. Shape: (n,).
    """

    hashes: np.ndarray
    numbers: np.ndarray

    @classmethod
    def from_numbers(cls, numbers: dict[str, int]) -> Self:
        hashes = hash_texts(numbers)
        order = np.argsort(hashes)
        values = np.fromiter(numbers.values(), dtype=np.uint8, count=len(numbers))
        return cls(hashes[order], values[order])

    def find(self, texts: list[str]) -> np.ndarray:
        """Return the numbers of the labels of texts, 0 for those without."""
        found = np.zeros(len(texts), dtype=np.uint8)
        if texts and len(self.hashes):
            places, same = find_places(self.hashes, hash_texts(texts))
            found[same] = self.numbers[places[same]]
        return found


class NameFeatures(NamedTuple):
    """Labels of the names of a knowledge base, and of the words in them.

    Attributes:
        labels: By number; the first means none.
    """

    labels: list[str]
    names: LabelTable
    words: LabelTable

    @classmethod
    def from_kb(cls, kb: KnowledgeBase) -> Self:
        of_names: dict[str, set[str]] = defaultdict(set)
        of_words: dict[str, Counter[str]] = defaultdict(Counter)
        for name, types, sources in kb.store.names_with_types():
            label = label_of(types, sources)
            for key in list_name_keys(name):
                of_names[key].add(label)
            if not is_abbreviation(name):
                for form in {word.word for word in split_pieces(name, "english")}:
                    of_words[form][label] += 1
        single = {key: "+".join(sorted(labels)) for key, labels in of_names.items()}
        frequent = Counter(single.values()).most_common(MAX_LABELS)
        labels = [NOTHING, MIXED, *(label for label, _ in frequent)]
        numbers = {label: number for number, label in enumerate(labels)}
        words: dict[str, int] = {}
        for form, counts in of_words.items():
            ((label, count),) = counts.most_common(1)
            clear = count >= SHARE * counts.total()
            words[form] = numbers.get(label, 1) if clear else 1
        names = {key: numbers.get(label, 1) for key, label in single.items()}
        return cls(
            labels, LabelTable.from_numbers(names), LabelTable.from_numbers(words)
        )

    def find_names(self, text: str, words: list[Piece]) -> list[tuple[int, int, int]]:
        """Return first word, the one after the last, and label of the longest names."""
        keys: list[str] = []
        spans: list[tuple[int, int]] = []
        for first in range(len(words)):
            form = ""
            for last in range(first, min(first + MAX_WORDS, len(words))):
                form = f"{form} {words[last].word}" if form else words[last].word
                written = text[words[first].start : words[last].end]
                forms = [f"={' '.join(written.split())}"]
                if len(written) >= MIN_LETTERS:
                    forms.append(form)
                keys += forms
                spans += [(first, last + 1)] * len(forms)
        numbers = self.names.find(keys)
        known = [
            (*spans[place], int(numbers[place])) for place in np.flatnonzero(numbers)
        ]
        known.sort(key=lambda span: (span[0] - span[1], span[0]))
        chosen: list[tuple[int, int, int]] = []
        taken: set[int] = set()
        for first, end, number in known:
            if taken.isdisjoint(range(first, end)):
                taken.update(range(first, end))
                chosen.append((first, end, number))
        return chosen

    def find(self, text: str) -> Iterator[tuple[int, int, str, str]]:
        """Yield start and end in characters of each word, and two features of it.

        The first feature has the label of the longest name around the word, and where
        in the name it is (B, I, L, or U for a name of one word). The second one has the
        label that most names with this word have. A short form has those of the long
        form that the text defines.
        """
        words = split_pieces(text, "english")
        features = [NOTHING] * len(words)
        for first, end, number in self.find_names(text, words):
            label = self.labels[number]
            for place in range(first, end):
                features[place] = f"{self.part(first, place, end)}-{label}"
        numbers = self.words.find([word.word for word in words])
        of_words = [self.labels[number] for number in numbers]
        long_forms = {
            short: self.describe_long(long)
            for short, long in find_long_forms(text).items()
        }
        for word, name_feature, word_feature in zip(
            words, features, of_words, strict=True
        ):
            short = text[word.start : word.end]
            long = long_forms.get(short) or long_forms.get(short.removesuffix("s"))
            if long is not None:
                name_feature, word_feature = long
            yield word.start, word.end, name_feature, word_feature

    @staticmethod
    def part(first: int, place: int, end: int) -> str:
        """Return where in a name a word is, as NER models call it."""
        if end - first == 1:
            return "U"
        return "B" if place == first else "L" if place == end - 1 else "I"

    def describe_long(self, long: str) -> tuple[str, str]:
        """Return the features of a short form, from its long form."""
        words = split_pieces(long, "english")
        names = self.find_names(long, words)
        # The last word says what it is: "ataxia" in "hereditary ataxia".
        ending = [number for _, end, number in names if end == len(words)]
        numbers = self.words.find([word.word for word in words[-1:]])
        last = self.labels[numbers[0]] if len(numbers) else NOTHING
        return f"A-{self.labels[ending[0]] if ending else NOTHING}", f"A-{last}"
