"""Numbers, units and dose forms of texts, and in what two texts differ."""

from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from spacy_sapbert.linking.dose_forms import NO_FORM, conflict, read_form
from spacy_sapbert.linking.quantities import (
    ALL_UNITS,
    STRENGTHS,
    TABLE,
    UNITS,
    Unit,
    read_quantities,
    read_unit,
)


def describe(text: str) -> list[str]:
    """Return each quantity as its place, comparator, value and unit."""
    return [
        f"{text[q.start : q.end]}: {q.comparator}{float(q.value):.10g} {q.unit}".strip()
        for q in read_quantities(text)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("digoxin 0.05 mg", ["0.05 mg: 0.05 mg"]),
        ("0.05 g daily", ["0.05 g: 50 mg"]),
        ("50,000 mcg", ["50,000 mcg: 50 mg"]),
        ("50mg tab", ["50mg: 50 mg"]),
        (".5 µg or 1½ μg", [".5 µg: 0.0005 mg", "1½ μg: 0.0015 mg"]),
        ("1 1/2 mg", ["1 1/2 mg: 1.5 mg"]),
        ("½ tab", ["½: 0.5"]),
        ("12,5 mg", ["12,5 mg: 12.5 mg"]),
        ("0,125 mg", ["0,125 mg: 0.125 mg"]),
        ("1,000,000 units", ["1,000,000 units: 1000000 unit"]),
        ("5 million IU", ["5 million IU: 5000000 unit"]),
        ("5 MU, 5 mU", ["5 MU: 5000000 unit", "5 mU: 0.005 unit"]),
        ("heparin 100 UNT/ML", ["100 UNT/ML: 100 unit/ml"]),
        ("250 mg/5 mL", ["250 mg/5 mL: 50 mg/ml"]),
        ("1 g in 200 ml", ["1 g in 200 ml: 5 mg/ml"]),
        ("25 mcg per hour", ["25 mcg per hour: 0.025 mg/h"]),
        ("21 mg/24 hr", ["21 mg/24 hr: 0.875 mg/h"]),
        ("90 mcg/actuation", ["90 mcg/actuation: 0.09 mg"]),
        ("glucose 90 mg/dL", ["90 mg/dL: 0.9 mg/ml"]),
        ("5 mmol/L", ["5 mmol/L: 0.005 mmol/ml"]),
        ("5 mM and 5 mm", ["5 mM: 0.005 mmol/ml", "5 mm: 5 mm"]),
        ("5 mg% of 12 %", ["5 mg%: 0.05 mg/ml", "12 %: 12 %"]),
        ("2.5 % cream", ["2.5 %: 2.5 %"]),
        ("5/325 mg", ["5: 5 mg", "325 mg: 325 mg"]),
        ("500 mg/125 mg", ["500 mg: 500 mg", "125 mg: 125 mg"]),
        ("5-10-20mg", ["5: 5 mg", "10: 10 mg", "20mg: 20 mg"]),
        ("2 to 4 weeks", ["2: 336 h", "4 weeks: 672 h"]),
        ("120/80 mmHg", ["120: 120 mmhg", "80 mmHg: 80 mmhg"]),
        ("1:1,000", ["1:1,000: 0.001 ratio"]),
        ("WBC 5.2 x10^9/L", ["5.2 x10^9/L: 5200000 cells/ml"]),
        ("5.2 K/uL", ["5.2 K/uL: 5200000 cells/ml"]),
        ("60 ml/min/1.73 m²", ["60 ml/min/1.73 m²: 2080.924855 ml/h/m2"]),
        ("70/min", ["70/min: 4200 cells/h"]),
        ("98.6 °F, 37 degrees C", ["98.6 °F: 37 °c", "37 degrees C: 37 °c"]),
        ("-5 °C", ["-5 °C: -5 °c"]),
        ("-5 mg", ["5 mg: 5 mg"]),  # of a list
        ("BE \N{MINUS SIGN}5 mmol/L", ["\N{MINUS SIGN}5 mmol/L: -0.005 mmol/ml"]),
        ("<2500 g", ["<2500 g: <2500000 mg"]),
        ("weight ≥ 2,500 grams", ["≥ 2,500 grams: >=2500000 mg"]),
        ("2500 grams or more", ["2500 grams or more: >=2500000 mg"]),
        ("at least 5 years", ["at least 5 years: >=43830 h"]),
        ("12 months", ["12 months: 8766 h"]),
        ("1 year", ["1 year: 8766 h"]),
        ("less than or equal to 5 cm", ["less than or equal to 5 cm: <=50 mm"]),
        ("= 5 cm", ["= 5 cm: 50 mm"]),
        ("20-mg, 20-gauge", ["20-mg: 20 mg", "20-gauge: 20 gauge"]),
        ("6-mercaptopurine 50 mg", ["50 mg: 50 mg"]),
        ("type 2 diabetes", ["2: 2"]),
        ("type 2 MM", ["2: 2"]),
        ("CEFAZOLIN 1G IV", ["1G: 1000 mg"]),
        ("URINE 24H", ["24H: 24 h"]),
        ("O2 2L/min, 5g", ["2L/min: 120000 ml/h", "5g: 5000 mg"]),
        ("5,000 steps", ["5,000: 5000"]),
    ],
)
def test_read_quantities_by_hand(text, expected):
    assert describe(text) == expected


@pytest.mark.parametrize(
    "text",
    ["vitamin B12", "IL-6", "5-HT", "HbA1c", "2-D echo", "in her 60s", "12.5.2020",
     "HL-60 cells", "type 1G", "type 2L", "1H-indole", "ICD-9-CM", "complement 3d",
     "(2H)-one", "CD4+", "17-OHP", "mg", "", "3'-AMP", "grade 2,3", "p53", "5α"],
)  # fmt: skip
def test_a_number_within_a_word_is_no_quantity(text):
    assert read_quantities(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mg/dL", ("mass/volume", Fraction(1, 100))),
        ("(mmol/L)", ("amount/volume", Fraction(1, 1000))),
        ("10*9/L", ("number/volume", 10**6)),
        ("x10E3/uL", ("number/volume", 10**6)),
        ("K/µL", ("number/volume", 10**6)),
        ("#/uL", ("number/volume", 1000)),
        ("%", ("percent", 1)),
        ("mIU/L", ("activity/volume", Fraction(1, 10**6))),
        ("mm/h", ("length/time", 1)),
        ("mg/24 h", ("mass/time", Fraction(1, 24))),
    ],
)
def test_read_unit_by_hand(text, expected):
    assert read_unit(text) == Unit(*expected)


@pytest.mark.parametrize("text", ["", "5 mg", "mg of it", "D", "glucose", "ratio"])
def test_read_unit_of_what_is_none(text):
    assert read_unit(text) is None


@given(st.text(max_size=60))
@example("1" * 5000)
@example("10" + "⁹" * 3)
@example("1:0 1/0 1 1/0 mg 5 mg/0 ml")
@example("٣ mg ¼½")
def test_any_text_is_read(text):
    for quantity in read_quantities(text):
        assert 0 <= quantity.start < quantity.end <= len(text)
        assert bool(quantity.unit) == bool(quantity.dimension)
    read_unit(text)
    assert conflict(text, text) == ""
    assert conflict(text, "heart attack") == ""


NUMBERS = st.decimals(
    min_value="0.001", max_value=9999, places=3, allow_nan=False, allow_infinity=False
)
SMALL_UNITS = sorted(unit for unit in UNITS if UNITS[unit][0] != "number")


@given(NUMBERS, st.sampled_from(SMALL_UNITS), st.sampled_from(["", " ", "\u00a0"]))
def test_a_number_and_a_unit_are_read_exactly(number, unit, blank):
    assume(blank or unit not in "dly")  # "3d"
    text = f"drug {number:,}{blank}{unit} daily"
    (quantity,) = read_quantities(text)
    dimension, size = ALL_UNITS[unit]
    assert text[quantity.start : quantity.end] == f"{number:,}{blank}{unit}"
    assert quantity.number == Fraction(number)
    if dimension != "fahrenheit":
        assert quantity.dimension == dimension
        assert quantity.value == Fraction(number) * size


PAIRS = [
    (words.split()[0], others.split()[0], Fraction(size) / other_size)
    for dimension, size, words in TABLE
    for other, other_size, others in TABLE
    if dimension == other and dimension in (*STRENGTHS, "volume", "length")
]


@given(st.integers(1, 9999), st.sampled_from(PAIRS))
def test_units_convert_and_a_thousandth_more_is_another_quantity(number, pair):
    unit, other, factor = pair
    value = number * factor
    digits = f"{float(value):.15f}"
    assume(Fraction(digits) == value < 10**15)  # it has such a decimal
    assert conflict(f"drug {number} {unit}", f"drug {digits} {other}") == ""
    more = f"drug {number}.001 {unit}"
    assert conflict(more, f"drug {digits} {other}")
    assert conflict(f"drug {digits} {other}", more)


@pytest.mark.parametrize(
    ("text", "forms", "release", "routes"),
    [
        ("metoprolol succ 50 mg ER", "", "extended release", ""),
        ("Cardizem CD 120 mg cap", "capsule", "extended release", "oral"),
        ("24 HR metoprolol 50 MG Extended Release Oral Tablet",
         "tablet", "extended release", "oral"),
        ("ASA EC 81 mg", "", "delayed release", ""),
        ("ondansetron ODT 4mg", "", "disintegrating", ""),
        ("amox 250 mg/5 ml susp", "suspension", "", ""),
        ("timolol 0.5% eye drops", "solution suspension", "", "ophthalmic"),
        ("ketorolac 30 mg inj", "", "", "injection"),
        ("ketorolac 30 MG/ML Injectable Solution", "solution", "", "injection"),
        ("fentanyl 25 mcg/hr Transdermal System", "patch", "", "transdermal"),
        ("hydrocortisone 1 % crm", "cream", "", ""),
        ("Powder for Oral Suspension", "suspension", "", "oral"),
        ("methylphenidate ER tablet", "tablet", "extended release", "oral"),
        ("estrogen receptor ER", "", "", ""),
        ("ER visit", "", "", ""),
        ("ER positive, 5 mg letrozole", "", "", ""),
        ("CR 1.2 mg/dL", "", "", ""),
        ("knee cap", "", "", ""),
        ("oral cancer", "", "", ""),
        ("IV drug use", "", "", ""),
        ("in the ear", "", "", ""),
    ],
)  # fmt: skip
def test_read_form_by_hand(text, forms, release, routes):
    form = read_form(text)
    assert form.forms == {*forms.split()}
    assert (form.release, form.routes) == (release, {*routes.split()})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("metoprolol succ 50 mg ER tab po daily", ["tab", "po", "daily", "ER"]),
        ("fentanyl 25 mcg/hr Transdermal System", ["Transdermal System"]),
        ("İ 1 mg powder for oral suspension", ["oral", "suspension"]),
        ("internal capsule", []),
    ],
)
def test_read_form_has_the_places_of_its_words(text, words):
    assert [text[start:end] for start, end in read_form(text).places] == words


DIFFER = [
    ("digoxin 0.05 mg", "digoxin 0.5 MG Oral Tablet"),
    ("<2500 g", ">2500 g"),
    ("1:1000", "1:10,000"),
    ("CD4 < 200", "CD4 > 200"),
    ("CD4 less than 200", "CD4 200"),
    ("base excess -5", "base excess +5"),
    ("glucose 5 mmol/L", "glucose 5 mg/dL"),
    ("vitamin D 1000 IU", "vitamin D 1000 mcg"),
    ("5 mg", "5 ml"),
    ("10 mg/kg", "10 mg"),
    ("5 mm", "5 mM"),
    ("heparin 100 units/ml", "heparin 1000 UNT/ML"),
    ("metoprolol 50 mg ER", "metoprolol 50 MG Oral Tablet"),
    ("metoprolol 50 mg", "metoprolol 50 MG Extended Release Oral Tablet"),
    ("timolol 0.5 % eye drops", "timolol 0.5 % Otic Solution"),
    ("amoxicillin 250 mg cap", "amoxicillin 250 MG Oral Tablet"),
    ("amoxicillin 250 mg cap", "amoxicillin 50 MG/ML Oral Suspension"),
    ("enoxaparin 60 mg", "0.4 ML enoxaparin 100 MG/ML Prefilled Syringe"),
    ("hydrocortisone 2.5 % cream", "hydrocortisone 10 MG/ML Topical Cream"),
    ("enoxaparin 40 mg/0.4 ml", "0.6 ML enoxaparin 100 MG/ML Prefilled Syringe"),
    ("albuterol 2.5 mg/3 ml", "albuterol 0.82 MG/ML Inhalation Solution"),
    ("lisinopril 10", "lisinopril 20 MG Oral Tablet"),
    ("percocet 5/325 tab", "acetaminophen 325 MG / oxycodone 10 MG Oral Tablet"),
    ("hydrocodone-apap 10-325", "aspirin 325 MG Oral Tablet"),
    ("birth weight 600", "Birth weight 500-749 grams"),
    ("norco 5/325 mg", "acetaminophen 325 MG / hydrocodone 10 MG Oral Tablet"),
    ("2 years old", "3 weeks old"),
]
AGREE = [
    ("digoxin 0.05 mg", "digoxin 50 MCG Oral Tablet"),
    ("digoxin 0.05 mg", "digoxin"),
    ("metoprolol ER", "metoprolol"),
    ("enoxaparin 40 mg inj", "0.4 ML enoxaparin 100 MG/ML Prefilled Syringe"),
    ("enoxaparin 40 mg/0.4 ml", "0.4 ML enoxaparin 100 MG/ML Prefilled Syringe"),
    ("albuterol 2.5 mg/3 ml", "albuterol 0.83 MG/ML Inhalation Solution"),
    ("nicotine 21 mg patch", "24 HR nicotine 0.875 MG/HR Transdermal System"),
    ("hydrocortisone 1 % cream", "hydrocortisone 10 MG/ML Topical Cream"),
    ("hydrocortisone 1 % oint", "hydrocortisone 0.01 MG/MG Topical Ointment"),
    ("epinephrine 1:1000 inj", "epinephrine 1 MG/ML Injection"),
    ("albuterol 90 mcg MDI", "albuterol 0.09 MG/ACTUAT Metered Dose Inhaler"),
    ("norco 5-325 mg tab", "acetaminophen 325 MG / hydrocodone 5 MG Oral Tablet"),
    ("timolol 0.5 % eye drops", "timolol 5 MG/ML Ophthalmic Solution"),
    ("lisinopril 10", "lisinopril 10 MG Oral Tablet"),
    ("lisinopril 10 x 30", "lisinopril 10 MG Oral Tablet"),
    ("percocet 5/325 tab", "acetaminophen 325 MG / oxycodone 5 MG Oral Tablet"),
    ("FEF 25-75", "Forced Expiratory Flow 25-75 Percent"),
    ("epinephrine 0.3mg/0.3mL auto-injector", "0.3 ML epinephrine 1 MG/ML Injector"),
    ("tacrolimus 0.5 mg capsule,immediate-release", "tacrolimus 0.5 MG Oral Capsule"),
    (
        "metformin 500 mg tablet,extended release 24 hr",
        "24 HR metformin 500 MG Extended Release Oral Tablet",
    ),
    ("morphine IR 15 mg tab", "morphine 15 MG Oral Tablet"),
    ("vitamin D 1000 IU", "cholecalciferol 0.025 MG"),  # nobody can say
    ("potassium 20 mEq", "potassium 20 mmol"),
    ("type 2 diabetes", "type 1 diabetes"),  # numbers of names
    ("14 days", "2 weeks"),
    ("CD4 < 200", "CD4 under 200"),
]


@pytest.mark.parametrize(("text", "name"), DIFFER)
def test_conflict_of_strength_form_or_release(text, name):
    assert " ≠ " in conflict(text, name)
    assert " ≠ " in conflict(name, text)


@pytest.mark.parametrize(("text", "name"), AGREE)
def test_no_conflict_of_what_is_the_same_or_not_named(text, name):
    assert (conflict(text, name), conflict(name, text)) == ("", "")


def test_conflict_says_what_differs():
    assert conflict("digoxin 0.05 mg", "0.5 MG") == "0.05 mg ≠ 0.5 MG"
    assert conflict("a 1 mg tab", "a 1 mg cap") == "tablet ≠ capsule"
    assert read_form("heart attack") == NO_FORM
