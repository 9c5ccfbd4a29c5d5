"""A mention and some concepts → what they share, and what excludes them."""

from collections.abc import Mapping, Sequence

from ..linking.features import (
    Features,
    Pool,
    Shared,
    compute_features,
    excludes,
    list_near,
    split_words,
)
from ..linking.filters import Filter
from ..linking.text import RULES, Rules, list_words
from .nearest import Ranked
from .parts import Parts
from .store import Store
from .words import MentionWords, Without

FEWEST_CONCEPTS = 10  # that are found and compared, for any k


class Agreement:
    """Compares the words of mentions with those of concepts of a version."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self.store = store
        self.parts = parts

    def put_excluded_last(
        self, text: str, concepts: Ranked, filter: Filter
    ) -> tuple[Ranked, bool]:
        """Order the concepts of a mention that it excludes behind the others.

        The first `FEWEST_CONCEPTS` are compared, and stay before the rest for any k.

        Returns:
            The concepts, and whether the first one is excluded.
        """
        near = concepts[:FEWEST_CONCEPTS]
        numbers = [concept.entry.concept for concept in near]
        words = self.read_words(text, filter)
        english = filter.is_english
        excluded = self.parts.words.compare(words, numbers, english=english).excluded
        for number, concept in enumerate(near):
            rules = self.store.rules_of(concept.entry.origin)
            name = split_words(concept.entry.alias, rules)
            excluded[number] |= excludes(split_words(text, rules), name)
        if not excluded.any():
            return concepts, False
        left = [c for c, e in zip(near, excluded, strict=True) if not e]
        last = [c for c, e in zip(near, excluded, strict=True) if e]
        # Sort keys are in −1 … 1.
        last = [c._replace(key=c.key - 2) for c in last]
        rest = [c._replace(key=c.key - 4) for c in concepts[len(near) :]]
        return [*left, *last, *rest], not left

    def features(
        self,
        text: str,
        pool: Pool,
        filter: Filter,
        *,
        without: Sequence[Without] = (),
        counts: Mapping[str, int] | None = None,
        concept_counts: Mapping[str, int] | None = None,
    ) -> Features:
        """Compute the features of the concepts of a pool; see `compute_features`.

        Args:
            without: Names that do not count.
        """
        english = filter.is_english
        words = self.read_words(text, filter, without)
        pairs = list_near(text, pool, lambda entry: self.store.rules_of(entry.origin))
        numbers = [names.nearest.concept for names in pool.near.values()]
        compared = self.parts.words.compare(
            words, numbers, english=english, without=without
        )
        of_names = {
            word
            for of_concept in pairs
            for name, _ in of_concept
            for word in name.content
        }
        shared = Shared(
            words=[word.word for word in words.words],
            weights=words.weights,
            real=words.real,
            covered=compared.covered,
            excluded=compared.excluded,
            name_weights=self.parts.words.weigh([*of_names], english=english),
            most=self.parts.words.most(english=english),
        )
        return compute_features(
            pool, pairs, shared, counts=counts, concept_counts=concept_counts
        )

    def read_words(
        self, text: str, filter: Filter, without: Sequence[Without] = ()
    ) -> MentionWords:
        """Return what is known of the words of a mention."""
        rules: list[Rules] = ["english"]
        if not filter.is_english:
            own = RULES.get(filter.document_language.lower(), "other")
            rules = [*dict.fromkeys([own, "english"])]
        return self.parts.words.read_mention(
            [list_words(text, each) for each in rules],
            english=filter.is_english,
            without=without,
        )
