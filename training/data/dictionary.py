"""The names of a vocabulary in memory, to score an encoder without a knowledge base."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from spacy_sapbert.evaluation.gold_mentions import fold_text
from spacy_sapbert.vocabularies.concepts import Concept


class Dictionary(NamedTuple):
    """The names of a vocabulary, for rankers without a knowledge base.

    Attributes:
        names: The row of each distinct folded name.
        cuis: The concepts of each row.
        ids: The concept of each id, also of retired ids.
    """

    names: dict[str, int]
    cuis: list[list[str]]
    ids: dict[str, str]
    lowercase: bool = True

    def fold(self, text: str) -> str:
        return fold_text(text) if self.lowercase else " ".join(text.split())

    def lookup(self, cui: str) -> str | None:
        """Return the concept that has an id now."""
        return self.ids.get(cui)


def read_dictionary(
    concepts: Iterable[Concept], *, lowercase: bool = True
) -> Dictionary:
    dictionary = Dictionary({}, [], {}, lowercase)
    rows: dict[str, list[str]] = defaultdict(list)
    live: dict[str, str] = {}
    retired: dict[str, str] = {}
    for concept in concepts:
        live[concept.cui] = concept.cui
        for cui in concept.retired:
            retired.setdefault(cui, concept.cui)
        for name in dict.fromkeys(map(dictionary.fold, concept.aliases)):
            rows[name].append(concept.cui)
    numbers = {name: row for row, name in enumerate(rows)}
    return Dictionary(numbers, list(rows.values()), {**retired, **live}, lowercase)
