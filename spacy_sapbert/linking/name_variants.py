"""Other ways to write an English name: singular, word order, spelling, hyphens."""

from collections.abc import Iterable, Iterator, Mapping
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


class Names(NamedTuple):
    """The names with one form.

    rows (set[int]): Their rows.
    concepts (set[int]): Numbers of their concepts.
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
    for place in range(1, len(words)):
        yield " ".join([*words[place:], ",", *words[:place]])
    yield " , ".join(reversed(words))


def change_spelling(form: str) -> Iterator[str]:
    """Yield a form in American and in British spelling: tumour, haem-, -aemia, oe-."""
    american = form
    for british, other in SPELLINGS:
        american = american.replace(british, other)
        for old, new in ((british, other), (other, british)):
            if old in form:
                yield form.replace(old, new)
    yield american


def drop_hyphens(form: str) -> Iterator[str]:
    """Yield a form with blanks, and with nothing, in the place of its hyphens."""
    if " - " in form:
        yield form.replace(" - ", " ")
        yield form.replace(" - ", "")


RULES = (
    singular_forms,
    change_order,
    singular_forms,  # again: "cancers , lung" ends with another word now
    change_spelling,
    drop_hyphens,
)


def list_variants(form: str) -> list[str]:
    """Return other ways to write an English name; most of them are no names.

    form (str): From `name_form`.
    RETURNS (list[str]): Distinct forms, without the form itself.
    """
    if form.count(" ") >= MAX_WORDS or sum(map(str.isalpha, form)) < MIN_LETTERS:
        return []
    forms = {form: None}
    for rule in RULES:
        forms |= {new: None for old in list(forms) for new in rule(old)}
    del forms[form]
    return list(forms)


def choose_variant(variants: Iterable[str], names: Mapping[str, Names]) -> int | None:
    """Choose the row of a variant that is a name.

    variants (Iterable[str]): From `list_variants`.
    names (Mapping[str, Names]): The variants that are names.
    RETURNS (int | None): The row of the first of them; None if they have no concept in
        common, or there is none.
    """
    found = [names[variant] for variant in variants if variant in names]
    shared = set.intersection(*(each.concepts for each in found)) if found else set()
    return min(found[0].rows) if shared else None
