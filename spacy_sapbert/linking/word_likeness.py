"""How like two words are: is one a misspelled other, or derived from it?

A typing error changes letters, not parts of a word: "afebrile" is no "febrile", and
"gastritis" no "arthritis". A word whose parts are known is a real one, even if no list
has it.
"""

from functools import lru_cache
from os.path import commonprefix
from pathlib import Path

from rapidfuzz.distance import OSA

from .opposites import DISEASES, OF_BEGINNINGS, TABLE, list_beginnings

WORDS_FILE = Path(__file__).with_name("words.txt")
SHORTEST = 4  # letters of a misspelled word
LETTERS_PER_SLIP, MOST_SLIPS = 3, 3  # one of three letters may be wrong …
DENSE = 0.7  # … and so many of those from the first to the last wrong one
SHORTEST_THING = 3
SHORTEST_STEM, SHORTEST_NEW_STEM = 4, 6  # letters, of a real word and of a new one
PAIRS_KEPT = 20_000  # compared words: most pairs come once; about 150 bytes each
LEAST_EXTENDED = 3  # letters of a word with an ending
DERIVED = 0.9  # how like a word is to one of which it is derived
OF_DERIVED = (
    "e y ia ial ian iac ic ical tic se ive ion ation ative ism ist ity ous al ary ar "
    "oid d ed ing ful ant ent ance ence ology ologic ological"
)
ENDINGS = frozenset(("", *OF_DERIVED.split()))
# Parts of medical words: "hyper" and "an", "gastr" and "calc", "itis" and "emia"
LEADING, FORMS, TERM_ENDINGS = (
    frozenset(TABLE[name].split()) for name in ("leading", "forms", "endings_of_terms")
)
LONGEST_ENDING, LONGEST_LEADING, LONGEST_OF_TERM = (
    max(map(len, parts)) for parts in (ENDINGS, LEADING, TERM_ENDINGS)
)
# Folded endings of diseases that are called after things, and what things end with in
# their place; adjectives are no things.
OF_DISEASES = ("iase", "ose", "itis", "emia", "uria", "oma", "opathy")
AFTER_STEM = "a e i o u us um is os as on one in ia ium"
OF_THINGS = frozenset(("", *AFTER_STEM.split()))
OF_SOME = {"ol": "ism", "one": "ism", "phil": "ia"}  # by the ending of the thing
NO_THINGS = ("oid", "ic", "al", "an", "ar", "ed", "ous", *OF_DISEASES)
ALSO_DISEASES = ("embol", "thromb", "lith", "diverticul")  # "thrombus", "thrombosis"
LEAST_REST, LEAST_BASE = 4, 5  # letters behind a part that a word begins with
LEAST_FORM = 4  # letters of a stem that makes a word a real one
NEGATING = (
    "a",
    "an",
    "non",
    "anti",
    "hyper",
    "hypo",
    "normo",
    "un",
    "dys",
    "eu",
    "pre",
) + ("post",)
VOWELS = frozenset("aeiouy")


def read_words() -> frozenset[str]:
    """Read the English words that are shipped; the file says of whom they are."""
    lines = WORDS_FILE.read_text("utf8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def most_slips(text: str) -> int:
    """Return how many letters of a text may be wrong by mistake."""
    if len(text) < SHORTEST:
        return 0
    return min(len(text) // LETTERS_PER_SLIP, MOST_SLIPS)


@lru_cache(maxsize=PAIRS_KEPT)
def list_stems(word: str, shortest: int) -> frozenset[str]:
    """Return a word without endings of English words that are derived from another."""
    places = range(max(shortest, len(word) - LONGEST_ENDING), len(word) + 1)
    return frozenset(word[:place] for place in places if word[place:] in ENDINGS)


@lru_cache(maxsize=PAIRS_KEPT)
def split_term(word: str) -> tuple[str, str, str]:
    """Return what a medical word begins with, its stem, and its ending; each may be "".

    "hypercalcemia" → "hyper", "calc", "emia".
    """
    places = range(max(1, len(word) - LONGEST_OF_TERM), len(word))
    place = next((p for p in places if word[p:] in TERM_ENDINGS), len(word))
    rest, ending = word[:place], word[place:]
    if not is_form(rest):
        for place in range(min(LONGEST_LEADING, len(rest)), 0, -1):
            part, stem = rest[:place], rest[place:]
            if part in LEADING and (is_form(stem) or len(stem) >= LEAST_REST):
                return part, stem, ending
    return "", rest, ending


def is_form(stem: str) -> bool:
    """Return whether a stem is known, with or without the vowel before an ending."""
    return stem in FORMS or (stem[-1:] in ("o", "i") and stem[:-1] in FORMS)


@lru_cache(maxsize=PAIRS_KEPT)
def is_formed(word: str) -> bool:
    """Return whether the parts of a word are known: "gastrodynia", "cardiomegaly"."""
    leading, stem, ending = split_term(word)
    is_known = len(stem) >= LEAST_FORM or leading in NEGATING
    return bool(ending) and is_known and are_forms(stem)


def are_forms(stem: str) -> bool:
    """Return whether a stem is one known stem or two."""
    if is_form(stem):
        return True
    return any(
        is_form(stem[:place]) and is_form(stem[place:])
        for place in range(3, len(stem) - 2)
    )


def list_bases(word: str) -> list[str]:
    """Return the words of which another is made by a part before them."""
    bases = [word.removeprefix(part) for part in NEGATING if word.startswith(part)]
    # "aarthritis" has a letter twice.
    return [base for base in bases if len(base) >= LEAST_BASE and base[0] != word[0]]


def is_abbreviated(word: str) -> bool:
    """Return whether a word in lower case is no word that can be said: "nsclc"."""
    return word.isalpha() and word.isascii() and VOWELS.isdisjoint(word)


@lru_cache(maxsize=PAIRS_KEPT)
def has_other_part(word: str, other: str) -> bool:
    """Return whether two words begin with other parts, or have other known stems."""
    for one, base in ((word, other), (other, word)):
        if one.endswith(base) and one.removesuffix(base) in LEADING:
            return one[0] != base[0]
    leading, stem, ending = split_term(word)
    its_leading, its_stem, its_ending = split_term(other)
    if leading != its_leading and stem == its_stem and leading and its_leading:
        return True
    return (
        bool(ending) and ending == its_ending and stem != its_stem and are_forms(stem)
    )


def is_disease(word: str) -> bool:
    """Return whether a word is one for diseases, or ends as such words do."""
    return word in DISEASES or word.endswith(OF_DISEASES)


def is_disease_of(word: str, thing: str) -> bool:
    """Return whether a word is a disease that is called after a thing: "asbestosis"."""
    if word[:SHORTEST_THING] != thing[:SHORTEST_THING] or thing.endswith(NO_THINGS):
        return False
    own = [ending for part, ending in OF_SOME.items() if thing.endswith(part)]
    for ending in (*OF_DISEASES, *own):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= SHORTEST_THING and thing.startswith(stem):
            is_other = thing.removeprefix(stem) in OF_THINGS
            return is_other and not stem.endswith(ALSO_DISEASES)
    return False


@lru_cache(maxsize=PAIRS_KEPT)
def has_other_beginning(word: str, other: str) -> bool:
    """Return whether words of one stem begin with opposites.

    "hypervolemia" and "hypovolemic" do.
    """
    mine, its = list_beginnings(word), list_beginnings(other)
    for part in mine:
        for opposite in OF_BEGINNINGS[part] & its.keys():
            stems = list_stems(mine[part], SHORTEST_STEM)
            if not stems.isdisjoint(list_stems(its[opposite], SHORTEST_STEM)):
                return True
    return False


@lru_cache(maxsize=PAIRS_KEPT)
def stand_for(word: str, other: str, real: bool) -> float:
    """Return how like a word is to another one for which it may stand, 0 to 1.

    A `real` word is not a misspelled one, but may be derived from the other:
    "hypertensive" from "hypertension".
    """
    shortest = SHORTEST_STEM if real else SHORTEST_NEW_STEM
    if real and is_extended(word, other):
        return DERIVED
    if word[:shortest] == other[:shortest] and not list_stems(
        word, shortest
    ).isdisjoint(list_stems(other, shortest)):
        return DERIVED
    slips = 0 if real else most_slips(word)
    edits = OSA.distance(word, other, score_cutoff=slips)
    if edits > slips or not is_scattered(edits, word, other):
        return 0.0
    if has_other_part(word, other):
        return 0.0
    return 1 - edits / len(word)


def is_extended(word: str, other: str) -> bool:
    """Return whether one of two words is the other and an ending: "mix", "mixed"."""
    short, long = sorted((word, other), key=len)
    return (
        len(short) >= LEAST_EXTENDED
        and long.startswith(short)
        and (long.removeprefix(short) in ENDINGS)
    )


def is_slip(text: str, name: str) -> bool:
    """Return whether a text may be a misspelled name."""
    slips = most_slips(text)
    edits = OSA.distance(text, name, score_cutoff=slips)
    if not slips or edits > slips or not is_scattered(edits, text, name):
        return False
    mine, its = text.split(), name.split()
    if len(mine) != len(its):
        return True
    return not any(
        one != other and has_other_part(one, other)
        for one, other in zip(mine, its, strict=True)
    )


def is_scattered(edits: int, word: str, other: str) -> bool:
    """Return whether letters differ here and there, as typing errors do.

    Where nearly all letters between the first and the last that differ are others, a
    part of the word is another one: "neurotoxic" and "nephrotoxic".
    """
    if edits < 2:
        return True
    start = len(commonprefix([word, other]))
    end = len(commonprefix([word[start:][::-1], other[start:][::-1]]))
    return edits <= DENSE * (max(len(word), len(other)) - start - end)
