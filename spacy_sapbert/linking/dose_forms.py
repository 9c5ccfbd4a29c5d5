"""Dose forms of drugs, and in what two texts that name strength or form differ.

"metoprolol succ 50 mg ER" has the strength 50 mg and extended release. It may be
"metoprolol succinate 50 MG Extended Release Oral Tablet", and no other product.
"""

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, permutations, product
from typing import NamedTuple

from .quantities import STRENGTHS, TEXTS_KEPT, Quantity, clean, list_quantities
from .text import NON, fold_piece

# Words of a form → the forms that they may mean. What has no form of its own, such as
# "injection", has a route.
FORMS: dict[str, str] = {
    "tablet tablets caplet caplets": "tablet",
    "capsule capsules softgel softgels gelcap gelcaps": "capsule",
    "solution solutions": "solution",
    "suspension suspensions": "suspension",
    "syrup elixir liquid drops": "solution suspension",
    "emulsion": "emulsion",
    "cream creams": "cream",
    "ointment ointments": "ointment",
    "gel gels": "gel",
    "lotion lotions": "lotion",
    "foam": "foam",
    "paste": "paste",
    "shampoo": "shampoo",
    "patch patches transdermal_system": "patch",
    "spray sprays": "spray",
    "inhaler inhalers": "inhaler",
    "suppository suppositories": "suppository",
    "powder powders": "powder",
    "granules": "granules",
    "lozenge lozenges troche": "lozenge",
    "gum": "gum",
    "film": "film",
    "enema": "enema",
    "implant": "implant",
}
SHORT_FORMS: dict[str, str] = {  # only with a strength
    "tab tabs tbl": "tablet",
    "cap caps": "capsule",
    "sol soln": "solution",
    "susp": "suspension",
    "liq syr elix gtt gtts": "solution suspension",
    "crm": "cream",
    "oint ung": "ointment",
    "lot": "lotion",
    "inhl mdi hfa dpi diskus": "inhaler",
    "supp": "suppository",
    "pwd pwdr": "powder",
}
ROUTES: dict[str, str] = {  # with a form or a strength
    "oral orally": "oral",
    "sublingual": "sublingual",
    "buccal": "buccal",
    "topical": "topical",
    "ophthalmic eye": "ophthalmic",
    "otic ear": "otic",
    "nasal intranasal": "nasal",
    "rectal": "rectal",
    "vaginal": "vaginal",
    "transdermal transdermal_system": "transdermal",
    "inhalation inhaled nebulizer nebulizers nebulized nebuliser nebulised": "inhaled",
    "injection injections injectable infusion intravenous intramuscular subcutaneous "
    "syringe syringes pen autoinjector injector": "injection",
}
SHORT_ROUTES: dict[str, str] = {  # only with a strength
    "po": "oral",
    "sl": "sublingual",
    "ophth oph": "ophthalmic",
    "pr": "rectal",
    "td": "transdermal",
    "neb nebs nebu": "inhaled",
    "inj iv ivp ivpb im sc sq subq subcut": "injection",
}
OF_FORM = {"tablet": "oral", "capsule": "oral", "inhaler": "inhaled"}  # if none is said
IMMEDIATE = "immediate release"
MOST_NUMBERS = 20  # of a text that are compared with each other
MONOVALENT = {"amount", "equivalents"}  # 20 mEq of potassium are 20 mmol
SOLUTIONS = {f"{strength}/volume" for strength in STRENGTHS}
ROUNDED = Fraction(1, 200)  # of a value
Values = set[tuple[str, Fraction]]  # comparators and values
RELEASES = re.compile(
    r"\b(?:(?P<extended>(?:extended|ext\.?|prolonged|modified|controlled|sustained|slow|"
    r"timed?|long)[ -](?:release|rel|acting|action)\b|retard\b)"
    r"|(?P<delayed>(?:delayed|del)[ -]rel(?:ease)?\b|(?:enteric|gastro)[ -](?:coated|"
    r"resistant)\b)"
    r"|(?P<disintegrating>(?:orally )?(?:disintegrating|dissolving)\b)"
    r"|(?P<chewable>chewable\b)|(?P<effervescent>effervescent\b))",
    re.IGNORECASE,
)
# "ER" is the emergency room and an estrogen receptor too, "CR" is creatinine
NO_RELEASE = r"(?! ?(?:[-+]|positive|negative|status|visit|receptor|\d*[+]))"
SHORT_RELEASES = re.compile(
    rf"\b(?:(?P<extended>ER|XR|XL|SR|CR|LA|SA|CD|MR|er|xr|xl|sr|cr)\b{NO_RELEASE}"
    r"|(?P<delayed>EC|DR|ec)\b|(?P<disintegrating>ODT|odt)\b|(?P<chewable>(?i:chew)\b))"
)
SYSTEM = re.compile(r"\btransdermal system\b", re.IGNORECASE)
PREPARED = re.compile(r"\b(?:powder|granules) for\b", re.IGNORECASE)
OF_LABORATORY = re.compile(r"/ ?d?l\b", re.IGNORECASE)
WORD = re.compile(r"[^\W\d_]+(?:_system)?")


def invert(table: dict[str, str]) -> dict[str, frozenset[str]]:
    return {
        word: frozenset(values.split())
        for words, values in table.items()
        for word in words.split()
    }


FORM_WORDS, ROUTE_WORDS = invert(FORMS), invert(ROUTES)
SHORT_FORM_WORDS, SHORT_ROUTE_WORDS = invert(SHORT_FORMS), invert(SHORT_ROUTES)
OF_FORMS = FORM_WORDS.keys() | {"transdermal"}
FOLDED_FORMS = frozenset(
    fold_piece(before + word, "english")[0] for word in OF_FORMS for before in ("", NON)
)
DIRECTIONS = ("daily", "bid", "tid", "qid", "qd", "qhs", "qam", "prn", "nightly")
ALL_WORDS = frozenset(
    (*FORM_WORDS, *ROUTE_WORDS, *SHORT_FORM_WORDS, *SHORT_ROUTE_WORDS, *DIRECTIONS)
)


class Form(NamedTuple):
    """The dose form of a text; what it does not say is empty.

    Attributes:
        forms: Those that it may mean: "drops" are a solution or a suspension.
        release: "extended release", "delayed release", "disintegrating", "chewable",
            "effervescent"; immediate release is that of a text that says none.
        routes: "oral", "injection", "ophthalmic", …
        places: Beside a strength, start and end of the words that say this, and how
            often it is taken: they are no part of the name of an ingredient.
    """

    forms: frozenset[str] = frozenset()
    release: str = ""
    routes: frozenset[str] = frozenset()
    places: tuple[tuple[int, int], ...] = ()


NO_FORM = Form()


def may_have_form(words: Iterable[str]) -> bool:
    """Return whether a text without numbers may have a form, by its English words."""
    return not FOLDED_FORMS.isdisjoint(words)


def is_strength(text: str, quantity: Quantity) -> bool:
    """Return whether a quantity may be the strength of a drug, unlike "1.2 mg/dL"."""
    written = text[quantity.start : quantity.end]
    numerator = quantity.dimension.partition("/")[0]
    return numerator in ("mass", "activity", "equivalents", "percent") and not (
        OF_LABORATORY.search(written)
    )


@lru_cache(maxsize=TEXTS_KEPT)
def read_form(text: str) -> Form:
    """Return the dose form, release and route of a text.

    Abbreviations ("tab", "inj", "ER") count only if the text has a strength; those of a
    release also with the word of a form. Else "ER" may be a receptor.

    Examples:
        >>> form = read_form("metoprolol succ 50 mg ER tab")
        >>> [*form.forms], form.release
        (['tablet'], 'extended release')
    """
    strengths = [q for q in list_quantities(text) if is_strength(text, q)]
    text = clean(text)
    if not strengths and OF_FORMS.isdisjoint(map(str.lower, WORD.findall(text))):
        return NO_FORM
    text = PREPARED.sub(lambda match: " " * len(match.group()), text)
    text = SYSTEM.sub("transdermal_system", text)
    words = [word.lower() for word in WORD.findall(text)]
    forms = union(FORM_WORDS, words)
    if not (forms or strengths):
        return NO_FORM
    if strengths:
        forms |= union(SHORT_FORM_WORDS, words)
    routes = union(ROUTE_WORDS, words)
    if strengths:
        routes |= union(SHORT_ROUTE_WORDS, words)
    if not routes:
        routes = frozenset(OF_FORM[form] for form in forms if form in OF_FORM)
    said = RELEASES.search(text)
    if said is None and (forms or any(q.unit != "%" for q in strengths)):
        said = SHORT_RELEASES.search(text)
    release = said.lastgroup or "" if said else ""
    if release in ("extended", "delayed"):
        release += " release"
    places: list[tuple[int, int]] = []
    if strengths:
        written = WORD.finditer(text)
        places = [m.span() for m in written if m.group().lower() in ALL_WORDS]
        places += [said.span()] if said else []
    return Form(forms, release, routes, tuple(places))


def union(known: dict[str, frozenset[str]], words: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(known[word] for word in words if word in known))


def conflict(a: str, b: str) -> str:
    """Return in what two texts differ that both name; "" = in nothing.

    Both have quantities of a dimension, and not the same ones; one has the strength of
    a tablet and one that of a solution; numbers without a unit are not the strengths;
    an equal number has another unit, comparator or sign; forms, routes or releases
    differ. A text with a strength that names no release means immediate release.

    Examples:
        >>> conflict("digoxin 0.05 mg", "Digoxin 500 MCG Oral Tablet")
        '0.05 mg ≠ 500 MCG'
        >>> conflict("metoprolol 50 mg ER", "metoprolol 0.05 G Oral Tablet")
        'extended release ≠ immediate release'
        >>> conflict("digoxin 0.05 mg", "digoxin")
        ''
    """
    mine, form = list_quantities(a), read_form(a)
    if not mine and form == NO_FORM:
        return ""
    its, other_form = list_quantities(b), read_form(b)
    if mine and its:
        values, others = by_dimension(mine), by_dimension(its)
        for dimension in values:
            if dimension in others and differ(
                values[dimension],
                others[dimension],
                rounded=any(q.per for q in (*mine, *its) if q.dimension == dimension),
            ):
                return f"{write(a, mine, dimension)} ≠ {write(b, its, dimension)}"
        for dimension, other in differ_in_kind(values, others):
            return f"{write(a, mine, dimension)} ≠ {write(b, its, other)}"
        for (text, some), (other_text, rest) in permutations(((a, mine), (b, its))):
            if lacks_strength(text, some, other_text, rest):
                numbers = [text[q.start : q.end] for q in some]
                strengths = [other_text[q.start : q.end] for q in rest]
                return f"{' + '.join(numbers)} ≠ {' + '.join(strengths)}"
        shared = not values.keys().isdisjoint(others)
        for one, another in product(mine[:MOST_NUMBERS], its[:MOST_NUMBERS]):
            if differs_but_for_number(one, another, shared=shared):
                return f"{a[one.start : one.end]} ≠ {b[another.start : another.end]}"
    if form.forms and other_form.forms and form.forms.isdisjoint(other_form.forms):
        return f"{join(form.forms)} ≠ {join(other_form.forms)}"
    if form.routes and other_form.routes and form.routes.isdisjoint(other_form.routes):
        return f"{join(form.routes)} ≠ {join(other_form.routes)}"
    both = any(is_strength(a, q) for q in mine) and any(is_strength(b, q) for q in its)
    said = form.release and other_form.release
    if form.release != other_form.release and (both or said):
        return f"{form.release or IMMEDIATE} ≠ {other_form.release or IMMEDIATE}"
    return ""


def by_dimension(quantities: Sequence[Quantity]) -> dict[str, Values]:
    """Return the values of a text by dimension, with those that follow from others.

    "0.4 ML enoxaparin 100 MG/ML" has 40 mg, "40 mg/0.4 ml" 0.4 ml, "24 HR nicotine
    0.875 MG/HR" 21 mg, and "1 %" or "1:100" of a drug is 10 mg/ml, or 0.01 mg/mg.
    """
    values: dict[str, Values] = {}
    for quantity in quantities:
        if quantity.dimension:
            pair = (quantity.comparator, quantity.value)
            values.setdefault(quantity.dimension, set()).add(pair)

    def add(dimension: str, given: str, factor: Fraction | int) -> None:
        if given in values and dimension not in values:
            values[dimension] = {(c, value * factor) for c, value in values[given]}

    for parts, one in (("percent", Fraction(1, 100)), ("ratio", Fraction(1))):
        add("mass/volume", parts, 1000 * one)
        add("mass/mass", parts, one)
    for below in ("volume", "time"):
        if len(values.get(below, ())) == 1:
            ((_, size),) = values[below]
            for strength in STRENGTHS:
                add(strength, f"{strength}/{below}", size)
    if "volume" not in values:
        pers = {("", q.per) for q in quantities if q.per and q.dimension in SOLUTIONS}
        values |= {"volume": pers} if pers else {}
    return values


def differ(values: Values, others: Values, *, rounded: bool) -> bool:
    """Return whether two texts have other values of a dimension.

    Args:
        rounded: One is a quotient, of which a name has some digits: "2.5 mg/3 ml" is
            "0.83 MG/ML".
    """
    if not rounded or len(values) != len(others):
        return values != others
    return any(
        one[0] != other[0] or abs(one[1] - other[1]) > ROUNDED * other[1]
        for one, other in zip(sorted(values), sorted(others), strict=True)
    )


def differ_in_kind(
    values: Iterable[str], others: Iterable[str]
) -> list[tuple[str, str]]:
    """Return two dimensions of strengths, such as mass and mass/volume; [] = none."""
    mine = [d for d in values if d.partition("/")[0] in STRENGTHS]
    its = [d for d in others if d.partition("/")[0] in STRENGTHS]
    if not {*mine}.isdisjoint(its):
        return []
    return [
        (d, o) for d in mine for o in its if d.partition("/")[0] == o.partition("/")[0]
    ]


def lacks_strength(
    text: str, mine: Sequence[Quantity], other: str, its: Sequence[Quantity]
) -> bool:
    """Return whether numbers without a unit are not the strengths of another text.

    "lisinopril 10 x 30" may be 10 MG, "oxycodone-apap 5/325" is 325 MG and 5 MG.
    """
    numbers = [q for q in mine if not q.dimension]
    bare = {q.number for q in numbers}
    strengths = {q.number for q in its if is_strength(other, q)}
    if not bare or not strengths or any(is_strength(text, q) for q in mine):
        return False
    gaps = [text[one.end : two.start].strip() for one, two in pairwise(numbers)]
    return bare != strengths if {"/", "-"}.intersection(gaps) else not strengths <= bare


def differs_but_for_number(one: Quantity, other: Quantity, *, shared: bool) -> bool:
    """Return whether equal numbers have another comparator or sign, or another unit.

    Args:
        shared: The texts have a dimension in common, so that the units of others may
            follow from what only one text says.
    """
    if abs(one.number) != abs(other.number):
        return False
    if not one.dimension and not other.dimension:
        signs = [(q.comparator, q.number < 0) for q in (one, other)]
        return signs[0] != signs[1]
    units = {one.dimension, other.dimension}
    return len(units) > 1 and "" not in units and not shared and units != MONOVALENT


def write(text: str, quantities: Iterable[Quantity], dimension: str) -> str:
    """Return the quantities of a dimension, as the text has them."""
    places = [q for q in quantities if q.dimension == dimension]
    given = places or [q for q in quantities if q.dimension]  # from which it follows
    return " + ".join(text[q.start : q.end] for q in given)


def join(values: Iterable[str]) -> str:
    return "/".join(sorted(values))
