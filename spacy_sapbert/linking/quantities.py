"""Numbers of a text with their units: strengths, doses, sizes, ages, results.

"0.05 g", "50 mg" and "50,000 mcg" are one quantity, "0.5 mg" is another one.
"""

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple
from unicodedata import normalize, numeric

TEXTS_KEPT = 4_000  # what was read of a text, about 500 bytes each

# One row a unit: dimension, size in the base unit (the first one), ways to write it
TABLE: tuple[tuple[str, Fraction | int, str], ...] = (
    ("mass", 1, "mg mgs milligram milligrams milligramme milligrammes"),
    ("mass", Fraction(1, 10**3), "mcg mcgs ug ugm μg microgram micrograms microgramme "
     "microgrammes"),
    ("mass", Fraction(1, 10**6), "ng nanogram nanograms"),
    ("mass", Fraction(1, 10**9), "pg picogram picograms"),
    ("mass", 10**3, "g gm gms gram grams gramme grammes"),
    ("mass", 10**6, "kg kgs kilogram kilograms kilogramme kilogrammes"),
    ("mass", Fraction(45_359_237, 100), "lb lbs pound pounds"),
    ("volume", 1, "ml mls cc ccm cm3 milliliter milliliters millilitre millilitres"),
    ("volume", Fraction(1, 10**3), "ul μl mm3 cumm microliter microliters microlitre "
     "microlitres"),
    ("volume", Fraction(1, 10**12), "fl femtoliter femtoliters"),
    ("volume", 100, "dl deciliter deciliters decilitre decilitres"),
    ("volume", 10**3, "l liter liters litre litres"),
    ("amount", 1, "mmol mmols millimole millimoles"),
    ("amount", Fraction(1, 10**3), "umol μmol mcmol micromol micromole micromoles"),
    ("amount", Fraction(1, 10**6), "nmol nanomol nanomole nanomoles"),
    ("amount", Fraction(1, 10**9), "pmol picomol picomole picomoles"),
    ("amount", 10**3, "mol mole moles"),
    ("activity", 1, "unit units unt unts u iu ius"),
    ("activity", Fraction(1, 10**3), "miu mu munit munits milliunit milliunits"),
    ("activity", Fraction(1, 10**6), "uiu μiu uu microunit microunits"),
    ("activity", 10**3, "kiu ku"),
    ("equivalents", 1, "meq meqs milliequivalent milliequivalents"),
    ("equivalents", 10**3, "eq"),
    ("osmoles", 1, "mosm mosmol mosmole milliosmole milliosmoles"),
    ("percent", 1, "% percent pct"),
    ("length", 1, "mm millimeter millimeters millimetre millimetres"),
    ("length", Fraction(1, 10**3), "um μm micron microns micrometer micrometers"),
    ("length", Fraction(1, 10**6), "nm nanometer nanometers nanometre nanometres"),
    ("length", 10, "cm cms centimeter centimeters centimetre centimetres"),
    ("length", 10**3, "meter meters metre metres"),
    ("length", Fraction(254, 10), "inch inches"),
    ("area", 1, "m2 m² sqm"),
    ("area", Fraction(1, 10**4), "cm2 cm² sqcm"),
    ("time", 1, "h hr hrs hour hours"),
    ("time", Fraction(1, 60), "min mins minute minutes"),
    ("time", Fraction(1, 3600), "sec secs second seconds"),
    ("time", 24, "d day days"),
    ("time", 24 * 7, "wk wks week weeks"),
    ("time", Fraction(24 * 36525, 1200), "mo mos mth mths month months"),
    ("time", Fraction(24 * 36525, 100), "y yr yrs year years"),
    ("pressure", 1, "mmhg"),
    ("temperature", 1, "°c degc celsius"),
    ("fahrenheit", 1, "°f degf fahrenheit"),
    ("angle", 1, "° deg degs degree degrees"),
    ("radiation", 1, "gy gray grays"),
    ("radiation", Fraction(1, 100), "cgy"),
    ("radioactivity", 1, "mbq"),
    ("radioactivity", 37, "mci millicurie millicuries"),
    ("radioactivity", Fraction(37, 1000), "uci μci microcurie microcuries"),
    ("energy", 1, "kcal"),
    ("energy", Fraction(1000, 4184), "kj"),
    ("molecular mass", 1, "kda kd"),
    ("gauge", 1, "gauge ga"),
    ("french", 1, "fr french"),
    ("power", 1, "diopter diopters dioptre dioptres dpt"),
    ("number", 1, "cells cell copies cfu pfu"),
)  # fmt: skip
UNITS = {
    word: (dimension, Fraction(size))
    for dimension, size, words in TABLE
    for word in words.split()
}
BASES = {dimension: words.split()[0] for dimension, size, words in TABLE if size == 1}
MOLAR = ("amount/volume", Fraction(1, 1000))
# Where case matters, and units of two words
CASED = {
    "MU": ("activity", Fraction(10**6)),
    "MIU": ("activity", Fraction(10**6)),
    "mM": MOLAR,
    "uM": (MOLAR[0], MOLAR[1] / 1000),
    "μM": (MOLAR[0], MOLAR[1] / 1000),
    "nM": (MOLAR[0], MOLAR[1] / 10**6),
    "pM": (MOLAR[0], MOLAR[1] / 10**9),
}
PHRASES = {
    "mm hg": ("pressure", Fraction(1)),
    "sq m": ("area", Fraction(1)),
    "cu mm": ("volume", Fraction(1, 1000)),
    "per cent": ("percent", Fraction(1)),
    "mg%": ("mass/volume", Fraction(1, 100)),
    "mg %": ("mass/volume", Fraction(1, 100)),
    "g%": ("mass/volume", Fraction(10)),
    "g %": ("mass/volume", Fraction(10)),
    "international units": ("activity", Fraction(1)),
    "usp units": ("activity", Fraction(1)),
    "deg c": ("temperature", Fraction(1)),
    "degrees c": ("temperature", Fraction(1)),
    "degrees celsius": ("temperature", Fraction(1)),
    "deg f": ("fahrenheit", Fraction(1)),
    "degrees f": ("fahrenheit", Fraction(1)),
    "degrees fahrenheit": ("fahrenheit", Fraction(1)),
}
ALL_UNITS = UNITS | PHRASES
ONLY_SMALL = {"d", "y", "m2"}  # "2 D" has two dimensions, "5 Y" is no age
HOURS = {"12", "24", "36", "48", "72"}  # "24H", but "1H-indole"
# "type 2 MM" has no length
OF_KIND = re.compile(r"\b(?:sub)?(?:type|grade|stage|class|group|phase) ?$", re.I)
STRENGTHS = ("mass", "activity", "amount", "equivalents")  # of a drug
SIGNED = ("temperature", "percent", "amount/volume", "power", "")
# What a strength is given for: "90 mcg/actuation" is 90 mcg
DOSE_WORDS = (
    "tablet tablets tab tabs capsule capsules cap caps dose doses actuation actuations "
    "actuat puff puffs inhalation inhalations inh spray sprays patch patches vial "
    "vials ampoule ampoules ampule amp syringe bag bottle each ea drop drops gtt "
    "implant suppository application applicatorful blister pen packet sachet lozenge "
    "hpf lpf"
)
DOSES = frozenset(DOSE_WORDS.split())
MULTIPLES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
NUMBER_OF = {"#": 1, "k": 10**3, "thou": 10**3, "thous": 10**3, "m": 10**6,
             "mill": 10**6, "mil": 10**6, **MULTIPLES}  # fmt: skip
EXPONENTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True))
FRACTIONS = {"1/2", "1/3", "2/3", "1/4", "3/4"}  # other ones are two strengths


def any_of(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


BLANK = re.compile(r"\s")
ENDS = r"(?![^\W_])"  # of a word
OF_KIND_LENGTH = 10
BEFORE_HYPHEN = re.compile(r"[^\W\d_]-$")
DIGITS = r"\d{1,15}(?!\d)"
VULGAR = "¼½¾⅓⅔⅛⅜⅝⅞"
NUMERIC = re.compile(rf"[\d{VULGAR}]")
POWER = (
    r"10 ?(?:\*{1,2}|\^|e) ?\d{1,2}(?!\d)|10["
    + "".join(EXPONENTS)
    + r"]{1,2}(?![^\W_])"
)
NUMBER = (
    rf"(?:{POWER}|[1-9]\d{{0,2}}(?:,\d{{3}}){{1,5}}(?!\d)(?:\.{DIGITS})?"
    rf"|{DIGITS}(?: ?[{VULGAR}]|[.,]{DIGITS}| \d/\d(?![\d/])|)|[{VULGAR}]|\.{DIGITS})"
)
UNIT_WORD = rf"(?:{any_of([*ALL_UNITS, *CASED])}){ENDS}"
DOSE_WORD = rf"(?:{any_of(DOSES)}){ENDS}"
UNIT = re.compile(
    rf"(?:(?:\ ?[x*]?\ ?(?P<power>{POWER}))"
    rf"|[ ](?P<multiple>{any_of(MULTIPLES)}){ENDS})?"
    rf"(?:(?P<joint>[ -]?)(?P<unit>{UNIT_WORD})|\ ?(?P<of>(?:{any_of(NUMBER_OF)})?)"
    rf"(?=\ ?/\ ?(?:[uμfmdc]?l|[cm]m3|cumm|hpf|min|hr?|hour|day|week){ENDS}))?",
    re.IGNORECASE | re.VERBOSE,
)
DENOMINATOR = re.compile(
    rf" ?(?:/|per\b)(?: ?(?P<number>{NUMBER}))?[ -]?(?P<unit>{UNIT_WORD}|{DOSE_WORD})",
    re.IGNORECASE,
)
IN_VOLUME = re.compile(
    rf" in (?P<number>{NUMBER}) ?(?P<unit>ml|mls|l|cc|liters?|litres?){ENDS}",
    re.IGNORECASE,
)
BEFORE = {
    ">=": r">=|=>|≥|at least|(?:greater|more) than or equal to|equal to or (?:greater|"
    r"more) than|not less than|no less than|minimum of",
    "<=": r"<=|=<|≤|at most|less than or equal to|equal to or less than|not more than|"
    r"no more than|up to|maximum of",
    ">": r">|greater than|more than|higher than|larger than|older than|longer than|"
    r"over|above|exceeding",
    "<": r"<|less than|lower than|fewer than|smaller than|younger than|shorter than|"
    r"under|below",
    "": r"=|~",
}
COMPARED = re.compile(
    "|".join(
        rf"(?P<c{number}>{pattern})" for number, pattern in enumerate(BEFORE.values())
    ),
    re.IGNORECASE,
)
MORE = r"more|greater|over|above|older|heavier|longer|higher|larger"
LESS = r"less|fewer|under|below|younger|lighter|shorter|lower|smaller"
AFTER = re.compile(
    rf",? (?:or (?:(?P<more>{MORE})|(?P<less>{LESS}))"
    r"|and (?:(?P<over>over|older|more)|(?P<under>under|younger|less)))\b",
    re.IGNORECASE,
)
START = re.compile(
    rf"(?<![^\W_])(?<!\d[.,])(?P<comparator>(?:{COMPARED.pattern}) ?)?"
    rf"(?P<sign>(?<![^\W_])(?<![)\].%])-)?(?P<number>{NUMBER})",
    re.IGNORECASE,
)
RATIO = re.compile(rf"1 ?: ?(?P<of>[1-9]\d{{0,2}}(?:,\d{{3}})+|{DIGITS})(?![\d:])")
# Between two numbers of which the second has the unit of both: "5/325 mg", "2 to 4 h"
JOINTS = re.compile(r" ?(?:[-/]|to|and|or|&) ?", re.IGNORECASE)


class Quantity(NamedTuple):
    """A number of a text.

    Attributes:
        start, end: Its place, with comparator, sign and unit.
        number: As it is written: 1/20 in "0.05 g".
        value: In the base unit of its dimension: 50 for "0.05 g".
        unit: The base unit, "mg", "mg/ml", "mg/mg/h"; "" = none.
        dimension: "mass", "mass/volume", "activity", "percent", "number/volume", …;
            "" = a number without a unit. It belongs to a name like the words around
            it: `conflict` leaves it out.
        comparator: "", "<", "<=", ">" or ">=".
        per: The denominator, if it has a number: 0.4 of "40 mg/0.4 ml"; else 0.
    """

    start: int
    end: int
    number: Fraction
    value: Fraction
    unit: str
    dimension: str
    comparator: str = ""
    per: Fraction = Fraction(0)


class Unit(NamedTuple):
    """A unit: its dimension, its size in the base unit, and `Quantity.per`."""

    dimension: str
    size: Fraction
    per: Fraction = Fraction(0)


def clean(text: str) -> str:
    """Return a text of the same length with signs as they are typed."""
    text = BLANK.sub(" ", text)
    if text.isascii():
        return text
    return "".join(map(clean_character, text))


@lru_cache(maxsize=2000)
def clean_character(character: str) -> str:
    if character in EXPONENTS or character in VULGAR:
        return character
    typed = {"−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "×": "x", "⁄": "/",
             "≦": "≤", "≧": "≥"}.get(character)  # fmt: skip
    typed = typed or normalize("NFKC", character)
    return typed if len(typed) == 1 else character


def read_number(text: str) -> Fraction:
    """Return the value of what `NUMBER` matches."""
    if power := re.fullmatch(r"10 ?(?:\*{1,2}|\^|[eE]) ?(\d{1,2})", text):
        return Fraction(10 ** int(power[1]))
    if text[-1] in EXPONENTS:
        return Fraction(10 ** int("".join(EXPONENTS.get(c, "") for c in text)))
    if text[-1] in VULGAR:
        whole = text[:-1].strip()
        part = Fraction(numeric(text[-1])).limit_denominator(8)
        return part + (read_number(whole) if whole else Fraction(0))
    if "/" in text:  # "1 1/2"
        whole, part_text = text.split(" ")
        top, bottom = map(int, part_text.split("/"))
        return int(whole) + (Fraction(top, bottom) if bottom else Fraction(0))
    if re.fullmatch(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?", text):
        text = text.replace(",", "")
    return Fraction(text.replace(",", "."))


def find_unit(word: str) -> Unit | None:
    """Return the unit that a word writes; case matters for a few."""
    if word in CASED:
        return Unit(*CASED[word])
    small = word.lower()
    if small not in ALL_UNITS or (small in ONLY_SMALL and word != small):
        return None
    return Unit(*ALL_UNITS[small])


def is_letter_of_name(text: str, start: int, unit: str, joint: str) -> bool:
    """Return whether a letter without a blank before is no unit.

    "5g", "10U", "24h", "24H" and "2L/min" have one, and "CEFAZOLIN 1G" in capitals;
    "type 1G", "1H-indole" and "complement 3d" have none.
    """
    if len(unit) > 1 or not unit.isalpha() or joint == " ":
        return False
    if joint:
        return unit != "h"
    if text[start + 1 : start + 2] == "/" or unit in "ghuU":
        return False
    if unit == "H":
        return text[start - 2 : start] not in HOURS
    return not (unit in "GL" and text.isupper())


def match_unit(text: str, start: int) -> tuple[Unit | None, int]:
    """Return the unit that stands at a place, and where it ends."""
    match = UNIT.match(text, start)
    assert match is not None  # all of its parts are optional
    unit, end = None, start
    if match["unit"]:
        written, joint = match["unit"], match["joint"] or ""
        if not is_letter_of_name(text, start, written, joint):
            unit = find_unit(written)
    elif match["of"] is not None:
        unit = Unit("number", Fraction(NUMBER_OF.get(match["of"].lower(), 1)))
    if unit is None:
        return None, end
    end, (dimension, size, per) = match.end(), unit
    if match["power"]:
        size *= read_number(match["power"])
    elif match["multiple"]:
        size *= MULTIPLES[match["multiple"].lower()]
    while below := DENOMINATOR.match(text, end) or (
        IN_VOLUME.match(text, end) if dimension in STRENGTHS else None
    ):
        number = read_number(below["number"]) if below["number"] else Fraction(1)
        other = find_unit(below["unit"])
        if other is None and below["unit"].lower() not in DOSES:
            break
        # "5 mg/325 mg" are two strengths
        if not number or (number != 1 and other and other.dimension == dimension):
            break
        end = below.end()
        if other is not None:
            dimension = f"{dimension}/{other.dimension}"
            size /= number * other.size
            per = number * other.size if below["number"] else per
    if dimension == "number":  # "HL-60 cells"
        return None, start
    return Unit(dimension, size, per), end


def read_unit(text: str) -> Unit | None:
    """Return the unit of a text that has nothing else: "mg/dL", "10*9/L", "%"."""
    text = clean(text).strip(" ()[]")
    if power := re.match(rf"[x*]? ?({POWER})", text, re.IGNORECASE):
        unit, end = match_unit(text, power.end())
        size = read_number(power[1])
    else:
        unit, end = match_unit(text, 0)
        size = Fraction(1)
    if unit is None or end < len(text):
        return None
    return Unit(unit.dimension, size * unit.size)


@lru_cache(maxsize=TEXTS_KEPT)
def list_quantities(text: str) -> tuple[Quantity, ...]:
    text = clean(text)
    if not NUMERIC.search(text):
        return ()
    found: list[Quantity] = []
    place = 0
    while match := START.search(text, place):
        quantities = read_one(text, match)
        place = max(match.end(), *(quantity.end for quantity in quantities), 0)
        found += quantities
    return tuple(share_units(text, found))


def read_quantities(text: str) -> list[Quantity]:
    """Return the numbers of a text, with their units, in the order of the text.

    A number within a word ("B12", "IL-6", "5-HT") belongs to the word. A unit follows
    its number directly.

    Examples:
        >>> [(str(q.value), q.unit) for q in read_quantities("digoxin 0.05 g, < 2.5 %")]
        [('50', 'mg'), ('5/2', '%')]
    """
    return [*list_quantities(text)]


def read_one(text: str, match: re.Match[str]) -> list[Quantity]:
    """Return the quantity that starts with a number; none if it belongs to a word."""
    start, end = match.start(), match.end("number")
    written = match["number"]
    comparator = ""
    if match["comparator"]:
        names = [f"c{n}" for n in range(len(BEFORE))]
        chosen = next(n for n, name in enumerate(names) if match[name])
        comparator = [*BEFORE][chosen]
    if ratio := RATIO.match(text, match.start("number")):
        number = Fraction(1, max(int(ratio["of"].replace(",", "")), 1))
        return [Quantity(start, ratio.end(), number, number, "ratio", "ratio")]
    slash = text[match.start("number") : end + 2]
    if slash in FRACTIONS and not re.match(r"[\d/]", text[end + 2 : end + 3] or " "):
        number, end = Fraction(slash), end + 2
    else:
        number = read_number(written)
    first = match.start("number")
    unit, after = match_unit(text, end)
    if OF_KIND.search(text[max(0, first - OF_KIND_LENGTH) : first]):
        unit = None
    if text[end : end + 1] == "-" and BEFORE_HYPHEN.search(
        text[max(0, first - 2) : first]
    ):
        unit = None  # "ICD-9-CM"
    if unit is None:
        if is_in_word(text, first, end):
            return []
        if re.fullmatch(r"\d+,\d{1,2}", written):
            return []  # "grade 2,3" has two numbers of a name
        unit, after = Unit("", Fraction(1)), end
    if match["sign"]:
        if unit.dimension in SIGNED:
            number = -number
        else:
            start = start if match["comparator"] else match.start("number")
    value, dimension = number * unit.size, unit.dimension
    if dimension == "fahrenheit":
        value, dimension = (number - 32) * Fraction(5, 9), "temperature"
    if not comparator and (later := AFTER.match(text, after)):
        comparator = ">=" if later["more"] or later["over"] else "<="
        after = later.end()
    base = "/".join(BASES.get(part, "") for part in dimension.split("/"))
    return [
        Quantity(start, after, number, value, base, dimension, comparator, unit.per)
    ]


def is_in_word(text: str, start: int, end: int) -> bool:
    """Return whether a number is part of a word: "IL-6", "5-HT", "6MP"."""
    before = re.search(r"[^\W\d_]['’]?-$", text[max(0, start - 3) : start])
    return bool(before) or bool(re.match(r"['′]?-?[^\W\d_]|[.,]?\d", text[end:]))


def share_units(text: str, found: list[Quantity]) -> Iterator[Quantity]:
    """Yield the quantities; in "5/325 mg", the first number has the unit too."""
    shared: list[Quantity] = []
    later: Quantity | None = None
    for quantity in reversed(found):
        if (
            later is not None
            and later.dimension
            and not quantity.dimension
            and JOINTS.fullmatch(text, quantity.end, later.start)
        ):
            size = later.value / later.number if later.number else Fraction(1)
            quantity = quantity._replace(
                value=quantity.number * size,
                unit=later.unit,
                dimension=later.dimension,
            )
        shared.append(quantity)
        later = quantity
    yield from reversed(shared)
