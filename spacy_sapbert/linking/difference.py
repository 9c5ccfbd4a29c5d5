"""How a mention and a name differ: the one place where two texts are compared.

`compare` aligns the words of two texts and says what differs and how. `EFFECTS` says
what follows: a text is the same name if all that differs is harmless, and a name that
differs in a way that excludes it is never linked. All else is evidence, which the order
of candidates and the probability weigh.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import regex

from .dose_forms import NO_FORM, conflict, may_have_form, read_form
from .opposites import (
    ABOUT,
    BODY,
    NEGATING_WORDS,
    STATES,
    TABLE,
    are_opposites,
    has_loss,
    list_beginnings,
    list_opposites,
)
from .quantities import read_quantities
from .text import (
    GREEK_NAMES,
    LINKING_WORDS,
    WORDS_KEPT,
    Rules,
    clean_text,
    drop_articles,
    fold_clean,
    is_abbreviation,
    is_acronym,
    is_joinable,
    is_number,
    may_have_prefix,
    read_mention,
    rules_of,
    singular_abbreviation,
    split_text,
)
from .word_likeness import has_other_beginning, has_other_part, is_disease


class Effect(Enum):
    """What follows from a change."""

    HARMLESS, EVIDENCE, EXCLUDES = range(3)


class Kind(Enum):
    """How two texts differ in one place."""

    __hash__ = object.__hash__  # that of an enum is a function of Python

    CASE = "case"
    SPELLING = "spelling"  # accents, plural, British, hyphens, numerals, signs
    COMMAS = "order with commas"
    ABBREVIATION = "another form of an abbreviation"
    ADDED = "a word that only the mention has"
    MISSING = "a word that only the name has"
    REPLACED = "another word"
    ORDER = "order"
    LITTLE = "little words, words said twice, or a quantity"
    SWAPPED = "order that says something else"
    COMMON = "a common word instead of an abbreviation"
    SYMBOL = "case of a symbol"
    NUMBER = "number"
    LETTER = "letter"
    SIGN = "sign"
    QUANTITY = "strength, unit or form"
    NEGATION = "negation"
    OPPOSITE = "opposite"
    STEM = "another part of a medical word"  # "gastritis", "arthritis"
    PREFIX = "a letter that may make an opposite"  # "typical", "atypical"


EFFECTS = {
    **dict.fromkeys((Kind.CASE, Kind.SPELLING, Kind.COMMAS), Effect.HARMLESS),
    **dict.fromkeys(
        (Kind.ABBREVIATION, Kind.ADDED, Kind.MISSING, Kind.REPLACED, Kind.ORDER)
        + (Kind.LITTLE, Kind.PREFIX),
        Effect.EVIDENCE,
    ),
    **dict.fromkeys(
        (Kind.SWAPPED, Kind.COMMON, Kind.SYMBOL, Kind.NUMBER, Kind.LETTER)
        + (Kind.SIGN, Kind.QUANTITY, Kind.NEGATION, Kind.OPPOSITE, Kind.STEM),
        Effect.EXCLUDES,
    ),
}
EXCLUDING = frozenset(k for k, effect in EFFECTS.items() if effect is Effect.EXCLUDES)
EQUAL = 2  # the closeness of a name that is written exactly as the mention
COMPARED_KEPT = 10_000  # texts, about 1.5 KB each
LITTLE = frozenset({"and", "in", "of", "the", "to", "type", "with"})
AFTER_HEAD = LINKING_WORDS | {"type"}
SIGNS = frozenset(("<", ">", "=", "\u2264", "\u2265", "%", "positive", "negative"))
NAMED_EXACTLY = SIGNS | GREEK_NAMES
JOINS = frozenset(("and", "or"))  # between words whose order says nothing
# Of most texts, never changed: a set of its own for each takes 216 bytes.
NO_WORDS, NO_MARKS, NO_NUMBERS = Counter[str](), frozenset[str](), frozenset[str]()
NO_PAIRS = frozenset[tuple[str, str]]()
SPECIAL = re.compile("[^ -/:-^`-~]")  # a digit, no ASCII, or "_", which joins words
MARK = regex.compile(r"[,;:!?.()\[\]{}<>|•]")  # between words
START = 4  # letters of two words that are likely the same one, or derived
SHORTEST_SENTENCE_END = 4  # letters of the word before a full stop
PAIR = regex.compile(r"\s*[-/\u2010-\u2015]\s*")  # between words in their order
ANTIGEN = regex.compile(r"\b(?:antigen|allele|haplotype)", regex.IGNORECASE)
SINGLE = regex.compile(r"\b\p{L}\b")
MIXED = re.compile("[a-z]{1,3}[A-Z]{2,}")  # hsCRP, npcRNA
SYMBOL = regex.compile(r"[A-Z][A-Z\d]*\d[A-Z\d]*")  # BRCA1, but not HbA1c
# English words that are abbreviations or symbols of genes in capitals
COMMON = frozenset(TABLE["capitals"].split())


class Change(NamedTuple):
    """One thing that differs, as each text has it; "" = it has nothing there."""

    kind: Kind
    mention: str
    name: str

    def __str__(self) -> str:
        return f"{self.mention or '–'} ≠ {self.name or '–'} ({self.kind.value})"


class Difference(NamedTuple):
    """How a mention differs from a name.

    Attributes:
        changes: What differs; empty = the texts are equal.
    """

    changes: tuple[Change, ...]

    @property
    def same(self) -> bool:
        """Whether the mention is a way to write the name."""
        return all(EFFECTS[change.kind] is Effect.HARMLESS for change in self.changes)

    @property
    def excluding(self) -> list[Change]:
        """The changes by which the name is never what the mention means."""
        return [change for change in self.changes if change.kind in EXCLUDING]

    @property
    def closeness(self) -> int:
        """How far the name is written as the mention, for texts that are the same.

        `EQUAL`; 1 = but for case; 0 = in another spelling or order.
        """
        if not self.changes:
            return EQUAL
        return int(all(change.kind is Kind.CASE for change in self.changes))


class Words:
    """What is compared of a text; what few comparisons need is read on first use.

    Attributes:
        pieces: Its folded words, see `text`.
        words: Without the English article "a".
        distinct: The same, each once.
        content: Those with a meaning of their own, without quantities.
        terms: The same, in the order of the text.
        exact: Numbers, letters and signs beside quantities, with how often they occur.
        numbers: Those of `exact` that are numbers.
        negated: Whether a word negates the others.
        clean: As `clean_text` returns it.
        text: In lower case, without accents.
        orders: The words as in the text and, if it has commas, as it is said: "cancer,
            lung" is "lung cancer".
        head: What kind of thing it is: "cancer" in "cancer of lung, type 2".
        measured: Whether it has a strength, another quantity, or a dose form.
    """

    def __init__(self, text: str, rules: Rules) -> None:
        self.given, self.rules = text, rules
        pieces, starts, ends = split_text(text, rules)
        self.pieces = words = tuple(pieces)
        if rules == "english" and "a" in words:
            words = tuple(drop_articles(text, pieces, starts))
        self.words = words
        is_plain = rules == "english" and not SPECIAL.search(text)
        spans, form = list[tuple[int, int]](), NO_FORM
        if not is_plain or may_have_form(pieces):
            spans = [(q.start, q.end) for q in read_quantities(text) if q.dimension]
            form = read_form(text)
            spans += form.places
        measured: list[str] = []
        if spans:
            placed = zip(pieces, starts, strict=True)
            measured = [w for w, n in placed if any(a <= n < b for a, b in spans)]
        self.distinct = frozenset(words)
        content = self.distinct.difference(LITTLE, measured)
        # One set, where they are equal: many texts are kept.
        changed = content and len(content) < len(self.distinct)
        self.content = content if changed else self.distinct
        exact = [word for word in words if may_be_exact(word) and is_exact(word)]
        self.exact = Counter(exact) - Counter(measured) if exact else NO_WORDS
        self.negated = not NEGATING_WORDS.isdisjoint(words)
        clean = clean_text(text)
        self.clean = text if clean == text else clean  # one string, as `text` below
        folded = fold_clean(clean)
        self.text = self.clean if folded == clean else folded
        self.measured = bool(measured) or any(form)
        self.terms = self.words
        if len(self.content) < len(words):
            self.terms = tuple([w for w in dict.fromkeys(words) if w in self.content])
        self.numbers = NO_NUMBERS
        if self.exact:
            self.numbers = frozenset(filter(is_number, self.exact))
        if is_plain and "-" not in text and not may_have_prefix(pieces):
            self.joinable = False
        self.orders: tuple[tuple[str, ...], ...] = (self.pieces,)
        if "," in text:
            orders = list_orders(text, self.pieces, starts, ends)
            self.orders = tuple(dict.fromkeys(orders))
        self.head = find_head(self.orders[-1] if "," in text else self.words)

    @cached_property
    def joinable(self) -> bool:
        """Whether parts of it may be one word."""
        return is_joinable(self.given)

    @cached_property
    def written(self) -> frozenset[tuple[str, ...]]:
        """The `orders`, also with the parts of a word that has a hyphen as one."""
        orders = self.orders
        if self.joinable:
            joined = split_text(self.given, self.rules, joined=True)
            orders += (*list_orders(self.given, *joined),)
        return frozenset(orders)

    @cached_property
    def marks(self) -> frozenset[str]:
        """Signs that separate words: a text with one is no name that has none."""
        return find_marks(self.given, self.rules)

    @cached_property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """Neighbours with a hyphen or slash between."""
        return find_pairs(self.given, self.rules)


def may_be_exact(word: str) -> bool:
    """Return whether a folded word may be one that `is_exact`; most are not."""
    return len(word) == 1 or word in NAMED_EXACTLY or not word.isalpha()


@lru_cache(maxsize=WORDS_KEPT)
def is_exact(word: str) -> bool:
    """Return whether a folded word is a number, a single letter or a sign."""
    if is_number(word) or word in SIGNS:
        return True
    return (len(word.rstrip("'")) == 1 and word[0].isalpha()) or word in GREEK_NAMES


@lru_cache(maxsize=COMPARED_KEPT)
def split_words(text: str, rules: Rules = "english") -> Words:
    """Split a text into what is compared."""
    return Words(text, rules)


def list_orders(
    text: str, pieces: Sequence[str], starts: Sequence[int], ends: Sequence[int]
) -> list[tuple[str, ...]]:
    """Return the words as in the text, and the parts between commas turned round."""
    words = tuple(pieces)
    parts = [[*words[:1]]]
    if "," in text:
        for word, end, start in zip(words[1:], ends, starts[1:], strict=False):
            gap = text[end:start]
            if "," in gap and gap.strip() != gap:
                parts.append([])
            parts[-1].append(word)
    if len(parts) == 1:
        return [words]
    # "Carcinoma, squamous cell, lung", "Diabetes, juvenile, 1"
    turned = (parts[1:] + parts[:1], [*parts[-2::-1], parts[-1]], parts[::-1])
    return [words, *(tuple(word for part in some for word in part) for some in turned)]


def find_marks(text: str, rules: Rules) -> frozenset[str]:
    """Return the signs that separate words of a text."""
    if not MARK.search(text):
        return NO_MARKS
    _, starts, ends = split_text(text, rules)
    marks: set[str] = set()
    for first, end, start in zip(starts, ends, starts[1:], strict=False):
        gap = text[end:start]
        is_short = end - first < SHORTEST_SENTENCE_END
        if not (gap.strip() == "." and is_short):  # "St. Vitus"
            marks |= {*MARK.findall(gap)}
    return frozenset(marks)


def find_pairs(text: str, rules: Rules) -> frozenset[tuple[str, str]]:
    """Return the neighbours with a hyphen or slash between."""
    if not PAIR.search(text):
        return NO_PAIRS
    pieces, starts, ends = split_text(text, rules)
    return frozenset(
        pair
        for pair, end, start in zip(pairwise(pieces), ends, starts[1:], strict=False)
        if PAIR.fullmatch(text, end, start)
    )


def find_head(words: Sequence[str]) -> str:
    """Return the last word before a preposition or "type 2"; "" without words."""
    head = ""
    for word in words:
        if head and word in AFTER_HEAD:
            break
        if len(word) > 1 and not is_number(word):
            head = word
    return head


def compare(mention: Words, name: Words) -> Difference:
    """Return how a mention differs from a name, both split by the same rules."""
    if mention.clean == name.clean:
        return Difference(())
    if mention.text == name.text and mention.clean.lower() == name.clean.lower():
        return Difference((compare_case(mention.clean, name.clean),))
    changes: list[Change] = []
    if (mention.measured or name.measured) and conflict(mention.clean, name.clean):
        changes.append(Change(Kind.QUANTITY, mention.clean, name.clean))
    if mention.words and are_written_alike(mention, name):
        kind = Kind.SPELLING
        if mention.words != name.words and "," in mention.clean + name.clean:
            kind = Kind.COMMAS
        if is_other_abbreviation(mention.clean, name.clean):
            kind = Kind.ABBREVIATION
            if have_other_letters(mention, name):
                kind = Kind.LETTER
        return Difference((*changes, Change(kind, mention.clean, name.clean)))
    exact: list[Change] = []
    if mention.exact and name.exact:
        exact = compare_exact(mention.exact, name.exact, mention.words)
    changes += exact
    if mention.negated != name.negated:
        words = [" ".join(sorted(NEGATING_WORDS & {*t.words})) for t in (mention, name)]
        changes.append(Change(Kind.NEGATION, *words))
    if says_absence(mention, name) or says_absence(name, mention):
        changes.append(Change(Kind.NEGATION, mention.clean, name.clean))
    if have_other_letters(mention, name):
        changes.append(Change(Kind.LETTER, mention.clean, name.clean))
    mine, its = mention.content - name.content, name.content - mention.content
    if len(mine) < len(mention.content):
        changes += find_both(mine, its, mention.content & name.content)
    changes += compare_words(mention, name, mine, its, exact=not exact)
    changes += compare_order(mention, name)
    if not changes:
        in_units = mention.measured and name.measured  # "500 mcg", "0.5 mg"
        kind = Kind.SPELLING if in_units else Kind.LITTLE
        changes.append(Change(kind, mention.clean, name.clean))
    return Difference(tuple(changes))


def says_absence(text: Words, other: Words) -> bool:
    """Return whether "absence of seizures" is compared with "absence seizures"."""
    if "absence" not in text.distinct or "absence" not in other.distinct:
        return False
    is_kind = other.orders[-1][-1] != "absence"  # no "absence, uterine"
    return is_kind and "absence of" in text.text and "absence of" not in other.text


def are_written_alike(mention: Words, name: Words) -> bool:
    """Return whether two texts have an order of their words in common."""
    if not (mention.joinable or name.joinable) and (
        len(mention.pieces) != len(name.pieces)
        or sorted(mention.pieces) != sorted(name.pieces)
    ):
        return False
    return not mention.written.isdisjoint(name.written)


def compare_case(mention: str, name: str) -> Change:
    """Return how texts differ that are equal but for case."""
    is_common = name.lower() in COMMON and name[1:].isupper() and not mention.isupper()
    kind = Kind.COMMON if is_common else Kind.CASE
    if ANTIGEN.search(mention):  # "Kell antigen K" and "k"
        letters = [SINGLE.findall(text) for text in (mention, name)]
        kind = kind if letters[0] == letters[1] else Kind.LETTER
    for one, other in ((mention, name), (name, mention)):
        if SYMBOL.fullmatch(one) and other == one.capitalize():
            kind = Kind.SYMBOL
    return Change(kind, mention, name)


def is_other_abbreviation(mention: str, name: str) -> bool:
    """Return whether a name is an abbreviation that is not written so.

    It has no plural and no other spelling, but other signs, "A-T", and Greek letters by
    name.
    """
    if not name.isascii() or not (is_abbreviation(name) or is_acronym(name)):
        return False
    letters, own = (filter(str.isalnum, text) for text in (mention, name))
    return [*letters] != [*own] and not mention.isdigit()


def have_other_letters(mention: Words, name: Words) -> bool:
    """Return whether two texts are abbreviations of other letters: "FSH", "FSHD"."""
    if len(mention.words) != 1 or len(name.words) != 1:
        return False
    texts = [singular_abbreviation(text.clean) for text in (mention, name)]
    if texts[0].lower() == texts[1].lower():
        return False
    return all(
        text.isalpha()
        and (is_abbreviation(text) or is_acronym(text) or MIXED.fullmatch(text))
        for text in texts
    )


def compare_exact(
    mention: Counter[str], name: Counter[str], words: Sequence[str]
) -> list[Change]:
    """Return what differs in numbers, letters and signs that each text has alone.

    "type 2 diabetes" is a kind of "diabetes", but "type 2" is not "type 1".
    """
    if mention == name:
        return []
    mine, its = mention - name, name - mention
    if not mine or not its:
        return []
    kind = Kind.NUMBER
    if not any(map(is_number, (*mine, *its))):
        kind = Kind.SIGN if not SIGNS.isdisjoint((*mine, *its)) else Kind.LETTER
    # "A-T" is an abbreviation
    if kind is Kind.LETTER and all(map(is_exact, words)):
        return []
    return [Change(kind, " ".join(sorted(mine)), " ".join(sorted(its)))]


def compare_words(
    mention: Words,
    name: Words,
    of_mention: AbstractSet[str],
    of_name: AbstractSet[str],
    *,
    exact: bool,
) -> list[Change]:
    """Return the words that one text has alone, and those in each other's place.

    `exact` = numbers, letters and signs too.
    """
    mine = [word for word in mention.words if word in of_mention]
    its = [word for word in name.words if word in of_name]
    if not exact:
        mine, its = ([w for w in words if not is_exact(w)] for words in (mine, its))
    changes: list[Change] = []
    for word in [word for word in mine if not is_exact(word)]:
        kind, other = Kind.ADDED, ""
        if its:
            others = [other for other in its if not is_exact(other)] or its
            kind, other = find_in_place(word, others, mention, name)
        changes.append(Change(kind, word, other))
        mine.remove(word)
        if other:
            its.remove(other)
    if len(mine) == len(its) == 1:  # "group O", "group AB"
        return [*changes, Change(Kind.REPLACED, mine[0], its[0])]
    changes += [Change(Kind.ADDED, word, "") for word in mine]
    changes += [Change(Kind.MISSING, "", word) for word in its]
    return changes


def find_disease(mention: Words, name: Words) -> Change | None:
    """Return the word by which one text is a disease, and the other a thing.

    "Increased" in "increased creatinine" for "creatinine", "disease" in "placenta
    disease" for "placenta", "virus" for "hepatitis" in "hepatitis virus".
    """
    if mention.content > name.content:
        is_about = mention.head in ABOUT and mention.head not in name.content
        if is_about and is_disease(name.head):
            return Change(Kind.ADDED, mention.head, "")
    if not mention.content < name.content:
        return None
    of_body = mention.head in BODY and name.head not in BODY
    for word in name.words:
        is_wrong = word in STATES or (of_body and word == name.head)
        if is_wrong and word not in mention.content:
            return Change(Kind.MISSING, "", word)
    return None


def find_in_place(
    word: str, others: Sequence[str], mention: Words, name: Words
) -> tuple[Kind, str]:
    """Return the word of a name in the place of one of a mention, "" = none."""
    other = find_opposite(word, others, mention, name)
    if other is not None:
        return Kind.OPPOSITE, other
    for part in ("a", "an"):
        if (longer := part + word) in others:
            return Kind.PREFIX, longer
        if (rest := word.removeprefix(part)) != word and rest in others:
            return Kind.PREFIX, rest
    other = find_replaced(word, others, mention.words, name.words)
    if other is None:
        return Kind.ADDED, ""
    return Kind.STEM if has_other_part(word, other) else Kind.REPLACED, other


def find_opposite(
    word: str, others: Sequence[str], mention: Words, name: Words
) -> str | None:
    """Return the word of a name that is the opposite of one of a mention."""
    if list_opposites(word).isdisjoint(others) and not list_beginnings(word):
        return None
    losing = has_loss(mention.words) or has_loss(name.words)
    for other in others:
        if are_opposites(word, other, losing=losing):
            return other
        if not losing and has_other_beginning(word, other):
            return other
    return None


def find_both(
    mine: AbstractSet[str], its: AbstractSet[str], shared: AbstractSet[str]
) -> list[Change]:
    """Return a word of one text alone whose opposite both have: "left and right"."""
    found, other = (
        sorted(word for word in words if not shared.isdisjoint(list_opposites(word)))
        for words in (mine, its)
    )
    return [
        *(Change(Kind.OPPOSITE, word, "") for word in found),
        *(Change(Kind.OPPOSITE, "", word) for word in other),
    ]


def find_replaced(
    word: str, others: Sequence[str], mine: Sequence[str], its: Sequence[str]
) -> str | None:
    """Return the word of a name that stands in the place of one of a mention.

    It begins with the same letters, or has the same neighbour, or is all that is left.
    """
    start = word[:START]
    for other in others:
        if other[:START] == start:
            return other
    place = mine.index(word)
    before, after = mine[place - 1] if place else None, mine[place + 1 : place + 2]
    for other in others:
        its_place = its.index(other)
        if place and its_place and its[its_place - 1] == before:
            return other
        if after and its[its_place + 1 : its_place + 2] == after:
            return other
    return others[0] if len(others) == 1 else None


def compare_order(mention: Words, name: Words) -> list[Change]:
    """Return whether words that both texts have stand in another order.

    The order says something else if two words change places that are joined by a hyphen
    or slash or stand apart ("RNA-directed DNA polymerase"), or if a number, a letter or
    one of two opposites stands beside another word.
    """
    if mention.measured or name.measured:  # the ingredients of a drug
        return []
    shared = mention.distinct & name.distinct
    if not shared:
        return []
    mine = tuple([word for word in mention.words if word in shared])
    if len(mine) < 2:
        return []
    orders = [tuple([w for w in words if w in shared]) for words in name.orders]
    if any(mine == its for its in orders):
        return []
    swapped = all(is_swapped(mine, its, mention, name) for its in orders)
    changes: list[Change] = []
    if swapped:
        changes = [Change(Kind.SWAPPED, " ".join(mine), " ".join(orders[0]))]
    elif len(mine) == len(mention.words) == len(name.words):
        changes = [Change(Kind.ORDER, " ".join(mine), " ".join(orders[0]))]
    return changes


def is_swapped(
    mine: tuple[str, ...], its: tuple[str, ...], mention: Words, name: Words
) -> bool:
    """Return whether shared words in another order say something else."""
    if Counter(mine) == Counter(its):
        places = [n for n, (a, b) in enumerate(zip(mine, its, strict=True)) if a != b]
        first, last = places[0], places[-1]
        if len(places) == 2:
            if last - first > 1:
                return not JOINS.issuperset(mine[first + 1 : last])
            pair = mine[first], mine[last]
            if pair in mention.pairs and pair[::-1] in name.pairs:
                return True
    words = {*mine}
    exact = [word for word in words if is_exact(word)]
    paired = [w for w in words if not words.isdisjoint(list_opposites(w))]
    for word in (*exact, *paired) if len(exact) + len(paired) > 1 else ():
        sides = [list_beside(word, some, after=word in paired) for some in (mine, its)]
        if sides[0] and sides[1] and sides[0].isdisjoint(sides[1]):
            return True
    return False


def list_beside(word: str, words: Sequence[str], *, after: bool) -> set[str]:
    """Return the words before and after a word, or those after it."""
    found: set[str] = set()
    for one, other in pairwise([w for w in words if w not in LINKING_WORDS]):
        if one == word:
            found.add(f"{word} {other}")
        elif other == word and not after:
            found.add(f"{one} {word}")
    return found


def compare_texts(
    mention: str, name: str, languages: Collection[str] = ()
) -> Difference:
    """Return how a text differs from a name, signs and tags around both left out."""
    rules = rules_of(languages)
    return compare(
        split_words(read_mention(mention), rules),
        split_words(read_mention(name), rules),
    )


def is_written(text: str, name: str, rules: Rules) -> bool:
    """Return whether a part of a running text is a name that is written there.

    "pain, chest" in a text is a list, unless the name is written so.
    """
    mine, its = split_words(text, rules), split_words(name, rules)
    difference = compare(mine, its)
    return difference.same and (difference.closeness > 0 or mine.marks <= its.marks)
