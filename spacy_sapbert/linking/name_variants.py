"""Other ways to write an English name: singular, word order, spelling, hyphens."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from .surface_forms import singular_forms

MAX_WORDS = 12  # of a form, with punctuation; longer ones have too many word orders
MIN_LETTERS = 5  # of a form; "hem" is not "haem"

# British (or older) and American parts of words. A variant counts only if it is a name,
# so it does no harm to replace a part where it should stay.
SPELLINGS = (
    ("haem", "hem"),
    ("aemi", "emi"),
    ("aem", "em"),
    ("anaes", "anes"),
    ("caec", "cec"),
    ("faec", "fec"),
    ("gynaec", "gynec"),
    ("paed", "ped"),
    ("aetiol", "etiol"),
    ("oede", "ede"),
    ("oesoph", "esoph"),
    ("oestr", "estr"),
    ("foet", "fet"),
    ("rrhoe", "rrhe"),
    ("pnoe", "pne"),
    ("coeli", "celi"),
    ("behaviour", "behavior"),
    ("colour", "color"),
    ("labour", "labor"),
    ("tumour", "tumor"),
    ("leuc", "leuk"),
    ("sulph", "sulf"),
    ("fibre", "fiber"),
    ("centre", "center"),
    ("isation", "ization"),
    ("ised", "ized"),
    ("ising", "izing"),
    ("lysed", "lyzed"),
)

AMERICAN = dict(SPELLINGS)
BRITISH = re.compile("|".join(AMERICAN))
POSSESSIVE = re.compile(" ['\u2019](?: s)?(?= |$)")
MARKS = re.compile(f" [-/'\u2019] |{BRITISH.pattern}")
REORDERED = range(2, 4)  # words of a form in running text


Rule = Callable[[str], Iterable[str]]


class Names(NamedTuple):
    """The names with one form.

    Attributes:
        concepts: Numbers of their concepts.
    """

    rows: set[int]
    concepts: set[int]


def change_order(form: str) -> Iterator[str]:
    """Yield a form with its words in another order around commas.

    "cancer , lung" → "lung cancer", and "lung cancer" → "cancer , lung";
    "acute myeloid leukemia" → "leukemia , myeloid , acute" too.
    """
    words = form.split(" ")
    if "," in words:
        parts = form.split(" , ")
        yield " ".join(reversed(parts))
        return
    for middle in range(1, len(words)):
        yield " ".join([*words[middle:], ",", *words[:middle]])
    yield " , ".join(reversed(words))


def change_spelling(form: str) -> Iterator[str]:
    """Yield a form in American and in British spelling: tumour, haem-, -aemia, oe-."""
    for british, other in SPELLINGS:
        for old, new in ((british, other), (other, british)):
            if old in form:
                yield form.replace(old, new)
    yield from change_to_american(form)


def change_to_american(form: str) -> Iterator[str]:
    """Yield a form in American spelling."""
    yield BRITISH.sub(lambda part: AMERICAN[part.group()], form)


def drop_hyphens(form: str) -> Iterator[str]:
    """Yield a form with blanks, and with nothing, in the place of its hyphens."""
    if " - " in form:
        yield form.replace(" - ", " ")
        yield form.replace(" - ", "")


def drop_slashes(form: str) -> Iterator[str]:
    """Yield a form with blanks in the place of its slashes."""
    if " / " in form:
        yield form.replace(" / ", " ")


def insert_hyphens(form: str) -> Iterator[str]:
    """Yield a form with one hyphen between two of its words."""
    words = form.split(" ")
    for middle in range(1, len(words)):
        yield " ".join([*words[:middle], "-", *words[middle:]])


def drop_possessive(form: str) -> Iterator[str]:
    """Yield a form without "'s": "crohn ' s disease" → "crohn disease"."""
    plain = POSSESSIVE.sub("", form)
    if plain != form:
        yield plain


RULES = (
    drop_possessive,
    singular_forms,
    change_order,
    singular_forms,  # again: "cancers , lung" ends with another word now
    change_spelling,
    drop_hyphens,
    drop_slashes,
)

MARKED_RULES = (
    drop_possessive,
    drop_slashes,
    drop_hyphens,
    change_to_american,
    singular_forms,
)


def list_variants(form: str) -> list[str]:
    """Return other ways to write an English name; most of them are no names.

    Args:
        form: From `name_form`.

    Returns:
        Distinct forms, without the form itself.
    """
    if form.count(" ") >= MAX_WORDS or sum(map(str.isalpha, form)) < MIN_LETTERS:
        return []
    return apply_rules(form, RULES)


def list_text_variants(form: str, lang: str) -> list[str]:
    """Return the variants of a part of a running text, most of which is no name.

    They are fewer than those of `list_variants`, because a text has hundreds of parts.

    Args:
        form: From `name_form`.
        lang: Language of the text; only English has variants.
    """
    if lang != "en":
        return []
    if len(form) <= MIN_LETTERS or sum(map(str.isalpha, form)) < MIN_LETTERS:
        return []
    if MARKS.search(form):
        return apply_rules(form, MARKED_RULES)
    variants = list(singular_forms(form))
    # "attack, heart" is a name in a vocabulary, and a list in a text.
    if form.count(" ") + 1 in REORDERED and "," not in form:
        for each in (form, *variants):
            variants += [*change_order(each), *insert_hyphens(each)]
    return variants


def apply_rules(form: str, rules: Iterable[Rule]) -> list[str]:
    """Return what the rules make of a form, and of what the ones before made of it."""
    forms = {form: None}
    for rule in rules:
        forms |= {new: None for old in list(forms) for new in rule(old)}
    del forms[form]
    return list(forms)


def choose_variant(variants: Iterable[str], names: Mapping[str, Names]) -> int | None:
    """Choose the row of a variant that is a name.

    Args:
        variants: From `list_variants`.

    Returns:
        The row of the first of them; None if they have no concept in common, or there
        is none.
    """
    known = [names[variant] for variant in variants if variant in names]
    shared = set.intersection(*(name.concepts for name in known)) if known else set()
    return min(known[0].rows) if shared else None
