"""Drugs and laboratory tests as hospitals write them → products, ingredients, tests.

`hospital.jsonl` has 22 ingredients, 60 products and 60 tests, of our own making in the
way of RxNorm and LOINC, and strings with their unit, specimen and right id: a product,
the ingredient if there is no product with this strength and form, or a test.
"""

import csv
from collections import Counter
from pathlib import Path

import pytest
import srsly

from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.dose_forms import conflict
from spacy_sapbert.linking.options import LinkOptions
from spacy_sapbert.linking.quantities import read_quantities
from spacy_sapbert.mapping.laboratory import Test as LabTest
from spacy_sapbert.mapping.laboratory import Tests as LabTests
from spacy_sapbert.mapping.laboratory import list_fitting, list_properties, read_test
from spacy_sapbert.mapping.lookup import Query, map_queries
from spacy_sapbert.mapping.run import TermColumns, map_table
from spacy_sapbert.vocabularies.concepts import Concept

ROWS = [*srsly.read_jsonl(Path(__file__).with_name("hospital.jsonl"))]
NAMES = {row[1]: row[2] for row in ROWS if row[0] != "string"}
STRINGS = [row[1:] for row in ROWS if row[0] == "string"]
PRODUCTS = {id: names[0] for id, names in NAMES.items() if id.startswith("P")}
TESTS = {id: names[0] for id, names in NAMES.items() if id.startswith("T")}
INGREDIENT = {
    product: next(
        id
        for id, names in NAMES.items()
        if id.startswith("I") and all(word in name for word in names[0].split(" / "))
    )
    for product, name in PRODUCTS.items()
}


@pytest.fixture(scope="module")
def kb(make_kb, tmp_path_factory) -> KnowledgeBase:
    concepts = [Concept(id, names) for id, names in NAMES.items()]
    return load_kb(make_kb(tmp_path_factory.mktemp("hospital"), concepts))


def test_conflict_leaves_the_right_product_of_an_ingredient_alone():
    assert (len(PRODUCTS), len(TESTS), len(STRINGS)) == (60, 60, 241)
    for text, _, _, right in STRINGS:
        ingredient = INGREDIENT.get(right, right)
        for product, name in PRODUCTS.items():
            if INGREDIENT[product] == ingredient and read_quantities(text):
                assert bool(conflict(text, name)) == (product != right), (text, name)


def test_unit_and_specimen_exclude_other_tests_and_never_the_right_one(kb):
    tests = LabTests(kb)
    left: Counter[int] = Counter()
    for text, unit, specimen, right in STRINGS:
        excluded = {*tests.list_excluded(unit, specimen)}
        assert right not in excluded
        if right in TESTS:
            word = max(text.split(), key=len).lower()
            alike = {id for id, name in TESTS.items() if word in name.lower()}
            left[len(alike - excluded)] += 1
    assert not tests.list_excluded("", "")
    # so many strings have so many tests left with their longest word
    assert left == {1: 52, 2: 11, 3: 2}


@pytest.mark.parametrize("threshold", [None, 0])
def test_a_product_of_another_strength_or_form_is_never_linked(kb, threshold):
    """Even if everything is linked."""
    queries = [Query(text, (), (), *limits) for text, *limits, _ in STRINGS]
    options = LinkOptions(k=3, threshold=threshold)
    counts: Counter[str] = Counter()
    for query, found in zip(queries, map_queries(kb, queries, options), strict=True):
        if found.cui in PRODUCTS:
            counts["products"] += 1
            assert conflict(query.term, PRODUCTS[found.cui]) == "", query.term
    assert threshold is None or counts["products"] > 50


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Glucose [Moles/volume] in Blood", ("amount/volume", {"blood"})),
        ("Glucose:MCnc:Pt:Ser/Plas:Qn", ("mass/volume", {"serum", "plasma"})),
        (
            "ALT [Enzymatic activity/volume] in Serum or Plasma by With P-5'-P",
            ("activity/volume", {"serum", "plasma"}),
        ),
        ("Neutrophils/100 leukocytes in Blood", ("fraction", {"blood"})),
        ("Prothrombin time", ("", set())),
        ("Breast cancer [disease] in women", ("", set())),
    ],
)
def test_read_test_by_hand(name, expected):
    assert read_test(name) == LabTest(expected[0], frozenset(expected[1]))


@pytest.mark.parametrize(
    ("unit", "properties"),
    [
        ("mg/dL", "mass/volume"),
        ("µmol/l", "amount/volume"),
        ("mEq/L", "amount/volume"),
        ("m[IU]/L", "activity/volume"),
        ("%", "fraction"),
        ("10*3/uL", "number/volume"),
        ("{cells}/uL", "number/volume"),
        ("Thousand/uL", "number/volume"),
        ("T/L", "number/volume"),
        ("mL/min/{1.73_m2}", "volume/time/area"),
        ("fL", "volume"),
        ("s", "time"),
        ("", ""),
        ("see note", ""),
    ],
)
def test_list_properties_by_hand(unit, properties):
    assert list_properties(unit) == {*properties.split()}


def test_list_fitting_by_hand():
    assert list_fitting("Serum") == list_fitting("ser/plas") == {"serum", "plasma"}
    assert {"blood", "serum"} < list_fitting("BLOOD")
    assert list_fitting("whole blood") == {"blood"}
    assert list_fitting("24 hour urine") == {"urine"}
    assert list_fitting("other") == frozenset()


def test_map_table_reads_unit_and_specimen(kb, tmp_path):
    rows = [["glucose", unit, specimen] for unit, specimen in
            (("mmol/L", "Urine"), ("mmol/L", "Blood"), ("", "CSF"))]  # fmt: skip
    with (tmp_path / "tests.csv").open("w", encoding="utf8", newline="") as file:
        csv.writer(file).writerows([["test", "u", "s"], *rows])
    columns = TermColumns("test", unit="u", specimen="s")
    output = tmp_path / "mapped.csv"
    map_table(kb, tmp_path / "tests.csv", output, columns, LinkOptions(k=60))
    with output.open(encoding="utf8") as file:
        mapped = [*csv.DictReader(file)]
    for row, (unit, specimen) in zip(mapped, [r[1:] for r in rows], strict=True):
        ids = {row[f"match_{rank}_id"] for rank in range(1, 61)} & {*TESTS}
        excluded = {*LabTests(kb).list_excluded(unit, specimen)}
        assert ids
        assert ids.isdisjoint(excluded)
