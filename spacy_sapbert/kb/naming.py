"""Mentions and parts of texts → the names that they are, in any way to write them."""

from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import NamedTuple

from ..linking.difference import EQUAL, compare, is_written, split_words
from ..linking.name_index import Window
from ..linking.text import (
    Rules,
    clean_text,
    has_length,
    is_abbreviation,
    name_form,
    name_keys,
    read_mention,
)
from .filters import find_foreign_origins
from .store import NameOfKey, Store


class Named(NamedTuple):
    """A name that a mention is."""

    name: NameOfKey
    closeness: int  # see `Difference.closeness`

    @property
    def is_equal(self) -> bool:
        return self.closeness == EQUAL


class NameFinder:
    """Finds the names that mentions and parts of texts are."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.foreign_origins = cache(partial(find_foreign_origins, store))
        self.rules = cache(self.list_rules)

    def list_rules(self, lang: str) -> tuple[Rules, ...]:
        """Return the rules for names that fit the language of a document, sorted."""
        foreign = self.foreign_origins(lang)
        rules = {r for o, r in self.store.rules.items() if o not in foreign}
        return tuple(sorted({*rules, "english"}))

    def find_named(self, mentions: Sequence[str], lang: str) -> dict[str, list[Named]]:
        """Find the names that mentions are, for a document whose language is `lang`."""
        keys = {
            mention: {
                k for rules in self.rules(lang) for k in name_keys(mention, rules)
            }
            for mention in mentions
        }
        names = self.store.names_of_keys(k for some in keys.values() for k in some)
        foreign = self.foreign_origins(lang)
        found: dict[str, list[Named]] = {}
        for mention, some in keys.items():
            named = dict.fromkeys(
                Named(name, closeness)
                for key in sorted(some)
                for name in names.get(key, ())
                if name.origin not in foreign
                and (closeness := self.compare(mention, name.alias, name.origin)) >= 0
            )
            found[mention] = [*named]
        return found

    def compare(self, mention: str, alias: str, origin: int) -> int:
        """Return how far a mention, from `read_mention`, is written as a name.

        See `Difference.closeness`; −1 = it is another name. A name with a tag, "Asthma
        (disorder)", is one without it too.
        """
        rules = self.store.rules_of(origin)
        mine = split_words(mention, rules)
        for name in dict.fromkeys((alias, read_mention(alias))):
            difference = compare(mine, split_words(name, rules))
            if difference.same:
                return difference.closeness
        return -1

    def is_name(self, text: str, cui: str, alias: str | None = None) -> bool:
        """Return whether a text is written as a name, or as `alias`, of a concept."""
        mention = read_mention(text)
        return any(
            self.compare(mention, name, origin) >= 0
            for number in self.store.numbers_of_cuis([cui]).values()
            for name, origin, _ in self.store.names_of_concept(number)
            if alias in (None, name)
        )

    def is_name_with(self, mention: str, long: str, lang: str) -> bool:
        """Return whether a mention is a name that agrees with a long form in it.

        It does not if the long form is a name too, and none of the names of a concept
        with the mention as a name has a word of it.
        """
        mention, long = read_mention(mention), read_mention(long)
        named = self.find_named([mention, long], lang)
        words = {*name_form(long).split(" ")}
        names = (
            name_form(alias).split(" ")
            for number in {one.name.concept for one in named[mention]}
            for alias, _, _ in self.store.names_of_concept(number)
        )
        agrees = not named[long] or not all(map(words.isdisjoint, names))
        return bool(named[mention]) and agrees

    def find_written(
        self, text: str, windows: Sequence[Window], lang: str, *, min_length: int
    ) -> list[Window]:
        """Return the parts that are names; see `KnowledgeBase.find_written`."""
        foreign = self.foreign_origins(lang)
        names = self.store.names_of_keys({window.key for window in windows})
        return [
            window
            for window in windows
            if any(
                self.is_written_as(text[window.start : window.end], name, min_length)
                for name in names.get(window.key, ())
                if name.origin not in foreign
            )
        ]

    def is_written_as(self, text: str, name: NameOfKey, min_length: int) -> bool:
        """Return whether a part of a text is a name; an abbreviation exactly so."""
        if is_abbreviation(name.alias):
            return clean_text(text) == clean_text(name.alias)
        rules = self.store.rules_of(name.origin)
        is_long = has_length(" ".join(text.split()), min_length)
        return is_long and is_written(text, name.alias, rules)


def choose_row(names: Iterable[Named]) -> int | None:
    """Return the row of the name that a mention is; None if it is not clear.

    It is clear if all names that are written most alike share a row or a concept.
    """
    alike = [n for n in names if n.name.row is not None]
    most = max((n.closeness for n in alike), default=0)
    best = [n.name for n in alike if n.closeness == most]
    concepts: dict[int | None, set[int]] = {}
    for name in best:
        concepts.setdefault(name.row, set()).add(name.concept)
    if not best or (len(concepts) > 1 and not set.intersection(*concepts.values())):
        return None
    return best[0].row
