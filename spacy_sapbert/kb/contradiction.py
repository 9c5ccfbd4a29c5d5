"""A mention and a concept → the word by which they are different things.

"Bacterial pneumonia" is no "viral pneumonia", whatever the cosine, "creatinine" not
"increased creatinine". The words of the vocabulary say what stands for what.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import repeat
from operator import sub
from os.path import commonprefix

import numpy as np
from rapidfuzz.distance import OSA

from ..linking.difference import (
    Change,
    Kind,
    Words,
    compare,
    find_disease,
    split_words,
)
from ..linking.filters import Filter
from ..linking.groups import cut
from ..linking.opposites import NORMAL, list_opposites
from ..linking.text import Rules, hash_word
from ..linking.word_likeness import SHORTEST, is_disease_of, is_slip, stand_for
from .agreement import Without, WordTable, read_mention_words

IN_PLACE = frozenset((Kind.ADDED, Kind.MISSING, Kind.REPLACED, Kind.PREFIX))
LITTLE_ADDED = 0.5  # how far a word changes what a name means
SUPPORTED = 0.65  # how far it must do so not to be another thing: in two concepts
# The highest probability of a concept if another word, or that it is a disease and no
# thing, contradicts it, and if only a mention has a number or letter, "hepatitis A":
# "What a word excludes" in experiments/linker
ANOTHER_WORD, ANOTHER_THING, ANOTHER_NUMBER = 0.4, 0.1, 0.6
OF_X_LINKED = "x"
WITHOUT = "without"


def find_contradiction(
    table: WordTable,
    text: str,
    concept: int,
    filter: Filter,
    *,
    without: Sequence[Without] = (),
) -> Change | None:
    """Return a word by which a mention differs from a name, if it is another thing.

    All other words are equal; no name of the concept has this word or one that it
    is derived from; it is no misspelled word; and names do not say that it may
    stand for the other word. "Bacterial pneumonia" is no "viral pneumonia", and
    "apyrexia" no "pyrexia". Or a word by which one of the two is a disease, and the
    other a thing: see `find_other_kind`.
    """
    left_out = {each.concept: each.rows for each in without}.get(concept)
    rows = left_out or frozenset()
    known = read_known(table, concept, filter, rows)
    words = {word.word: word for word in read_mention_words(text, filter)}
    new = {w: word for w, word in words.items() if hash_word(w) not in known}
    mention = split_words(text)
    for added in new:
        is_no = is_without(added) and hash_word(WITHOUT) not in known
        if is_no or added in NORMAL:
            return Change(Kind.NEGATION, added, "")
    if not new or mention.head in new:
        change = find_other_kind(table, mention, concept, rows)
        if change is not None or not new:
            return change
    content, english = mention.content, filter.is_english
    if english and len(content & new.keys()) != 1:
        return None
    found: list[Change] = []
    mentions: dict[Rules, Words] = {}
    for alias, origin, row in find_names_like(table, content, concept, english):
        if row in rows:
            continue
        rules = table.store.rules_of(origin)
        if rules not in mentions:
            mentions[rules] = split_words(text, rules)
        mine, name = mentions[rules], split_words(alias, rules)
        if len(mine.content ^ name.content) == 2:
            difference = compare(mine, name)
            changes = [c for c in difference.changes if c.kind in IN_PLACE]
            is_alone = mine.content.isdisjoint(name.content)
            if is_alone and not any(
                is_derived(change) or is_near_opposite(table, change, english=english)
                for change in changes
            ):
                continue
            if len(changes) == 1 and changes[0].mention:
                found += changes
                if is_kind(table, changes[0].name, name):
                    new.pop(changes[0].mention, None)
    for change in found:
        word = new.get(change.mention)
        if word is not None:
            is_real = word.real or len(word.word) < SHORTEST
            if change.kind is Kind.PREFIX:  # "apyrexia", "pyrexia"
                is_real |= len(change.mention) > len(change.name)
            is_real |= is_disease_of(change.name, change.mention)
            if not (is_real or table.is_real(word, english=english)):
                if is_near_opposite(table, change, english=english):
                    return change
                continue  # it may be a misspelled word
            others = [c.name for c in found if c.mention == change.mention]
            if not any(may_stand_for(table, change.mention, o) for o in others):
                return change
    return None


def read_known(
    table: WordTable, concept: int, filter: Filter, without: Collection[int] = ()
) -> set[int]:
    """Return the hashes of the words of a concept, but for names on some rows."""
    left_out = {concept: frozenset(without)} if without else {}
    hashes, of_english, _ = table.words_of([concept], left_out)
    return {*(hashes[of_english] if filter.is_english else hashes).tolist()}


def highest_probability(change: Change) -> float:
    """Return the highest probability of a concept that a mention contradicts so."""
    is_word = change.mention and change.name
    if is_word and not is_disease_of(change.name, change.mention):
        return ANOTHER_WORD
    return ANOTHER_THING


def is_without(word: str) -> bool:
    """Return whether a word is a misspelled "without"."""
    return OSA.distance(word, WITHOUT, score_cutoff=1) == 1


def is_near_opposite(table: WordTable, change: Change, *, english: bool) -> bool:
    """Return whether a misspelled word is as near to an opposite: "hyprtonia"."""
    if not is_slip(change.mention, change.name):
        return False
    text = change.mention
    edits = OSA.distance(text, change.name)
    begun = len(commonprefix([text, change.name]))  # "hypotnia" is no "hypertonia"
    near = [
        hash_word(word)
        for word in list_opposites(change.name) - {text}
        if OSA.distance(text, word, score_cutoff=edits) <= edits
        and len(commonprefix([text, word])) >= begun
    ]
    keys = np.array(near, dtype=np.uint64)
    return bool(table.count_names(keys, english=english).any())


def adds_number(table: WordTable, text: str, concept: int, filter: Filter) -> bool:
    """Return whether a text has a number or letter that no name of a concept has."""
    exact = split_words(text).exact.keys() - {OF_X_LINKED}
    if not exact:
        return False
    return not read_known(table, concept, filter).issuperset(map(hash_word, exact))


def may_stand_for(table: WordTable, word: str, other: str) -> bool:
    """Return whether a word of a mention may mean another one of a name."""
    if table.replaces(word, other) >= SUPPORTED:
        return True
    is_disease = is_disease_of(other, word) or is_disease_of(word, other)
    return not is_disease and stand_for(word, other, True) > 0


def find_other_kind(
    table: WordTable, mention: Words, concept: int, without: frozenset[int]
) -> Change | None:
    """Return the word by which a mention is a thing and a concept a disease.

    Of its names in English those count that have all words of the mention, or none
    but those, without those on some rows; see `difference.find_disease`.
    """
    wanted, found = {*map(hash_word, mention.content)}, list[Change]()

    def is_part(own: Collection[int]) -> bool:
        return wanted.issubset(own) or wanted.issuperset(own)

    for alias, _, row in choose_names(table, concept, is_part, only_english=True):
        name = split_words(alias)
        is_longer = mention.content <= name.content
        # Of an overlay, all names are there.
        if row not in without and (is_longer or name.content <= mention.content):
            change = find_disease(mention, name)
            if change is None:
                return None
            found.append(change)
    return found[0] if found else None


def find_names_like(
    table: WordTable, words: Collection[str], concept: int, only_english: bool
) -> list[tuple[str, int, int | None]]:
    """Return the names of a concept that may differ from some words in two.

    Names in English have one word for another; if names in other languages count,
    they are all returned, and those in English that differ in any two words. All
    names of an overlay. See `Store.names_of_concept`.
    """
    wanted = {*map(hash_word, words)}

    def is_like(own: Collection[int]) -> bool:
        is_as_long = len(own) == len(wanted) or not only_english
        return is_as_long and len(wanted.symmetric_difference(own)) == 2

    return choose_names(table, concept, is_like, only_english=only_english)


def choose_names(
    table: WordTable,
    concept: int,
    chosen: Callable[[Collection[int]], bool],
    *,
    only_english: bool,
) -> list[tuple[str, int, int | None]]:
    """Return the names of a concept in English whose words are chosen.

    All names of an overlay; unless `only_english`, all in other languages too.
    """
    likes: Iterator[bool] = repeat(True)  # of the names in English
    if concept < len(table.first_names) - 1:
        first, last = table.first_names[concept : concept + 2]
        starts = table.name_starts[first : last + 1].tolist()
        hashes = table.hashes[table.name_words[starts[0] : starts[-1]]].tolist()
        like = [*map(chosen, cut(hashes, map(sub, starts[1:], starts)))]
        if only_english and not any(like):
            return []
        likes = iter(like)
    return [
        name
        for name in table.store.names_of_concept(concept)
        if (
            next(likes)
            if table.store.rules_of(name[1]) == "english"
            else not only_english
        )
    ]


def is_kind(table: WordTable, word: str, name: Words) -> bool:
    """Return whether a word of a name says little of what it is: "disease"."""
    if word != name.head:
        return False
    return table.weigh_added([word])[word] < LITTLE_ADDED


def is_derived(change: Change) -> bool:
    """Return whether a word is an opposite, or a thing that a disease is called after.

    "Apyrexia" and "pyrexia", "asbestos" and "asbestosis".
    """
    return change.kind is Kind.PREFIX or is_disease_of(change.name, change.mention)
