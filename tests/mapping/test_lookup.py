"""Which reading of a term counts, and what a person has to do."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.linking.link import Linked
from spacy_sapbert.linking.options import LinkOptions
from spacy_sapbert.linking.text import Rules
from spacy_sapbert.mapping.decisions import apply_choice, list_mapping
from spacy_sapbert.mapping.lookup import (
    Found,
    Query,
    Reading,
    describe,
    map_queries,
    quality,
)
from spacy_sapbert.mapping.terms import (
    CODE,
    FAMILY,
    NEGATED,
    NUMBER,
    PAST,
    SIDE,
    SUSPECTED,
    UNSPECIFIED,
    Dropped,
    list_dropped,
    list_readings,
)
from spacy_sapbert.vocabularies.concepts import Concept

CONCEPTS = [
    Concept("C1", ["Heart attack", "MI"]),
    Concept("C5", ["Dolor", "Tumor"], languages={"SPA": [0], "ENG": [1]}),
    Concept("C6", ["None", "Sodium", "Na"]),
    Concept("C7", ["Asthma (disorder)", "Bronchial (finding)"]),
    Concept("C8", ["Bronchial"]),
    Concept("C9", ["Breast cancer"]),
    Concept("C10", ["Family history of breast cancer"]),
    Concept("C11", ["Knee pain"]),
    Concept("C12", ["Pneumonia"]),
    Concept("C13", ["Deficiency", "Vitamin"]),
]


@pytest.fixture(scope="module")
def kb(make_kb, tmp_path_factory) -> KnowledgeBase:
    return load_kb(make_kb(tmp_path_factory.mktemp("names"), CONCEPTS, backend="exact"))


def look_up(kb: KnowledgeBase, term: str) -> Found:
    (found,) = map_queries(kb, [Query(term)], LinkOptions(k=2, threshold=0))
    return found


@pytest.mark.parametrize(
    ("term", "cui"),
    [
        ('"Heart attack (disorder)"', "C1"),
        ("- known heart attacks, NOS", "C1"),
        ("dolores", "C5"),
        ("Na", "C6"),
        ("Asthma (disorder)", "C7"),
        ("bronchial", "C8"),
    ],
)
def test_map_queries_finds_names_in_any_way_to_write_them(kb, term, cui):
    found = look_up(kb, term)
    assert (found.status, found.cui) == ("exact", cui)


def test_map_queries_in_languages_of_a_term_or_of_all(kb):
    filter = Filter(languages=["SPA"])
    for language, status in ((("ENG",), "review"), ((), "exact")):
        query = Query("Dolor", languages=language)
        (found,) = map_queries(
            kb, [query], LinkOptions(filter=filter, least_cosine=1.0)
        )
        assert found.status == status


@pytest.mark.parametrize(
    "term", ["N/A", "None", "-", "not known", "unknown (R69)", "k. A."]
)
def test_map_queries_what_is_no_term_has_no_link(kb, term):
    assert look_up(kb, term) == Found("", "none", None, "empty", [])


@pytest.mark.parametrize(
    ("term", "found", "dropped"),
    [
        ("F/H breast cancer", ("review", None), "family: F/H"),
        ("r/o pneumonia", ("review", None), "suspected: r/o"),
        ("pneumonia?", ("review", None), "suspected: ?"),
        ("s/p heart attack", ("review", None), "past: s/p"),
        ("Breast cancer (C50.9)", ("review", "C9"), "code: (C50.9)"),
        ("left knee pain", ("linked", "C11"), "side: left"),
        ("Family history of breast cancer", ("exact", "C10"), ""),
        ("Pneumonia, NOS", ("exact", "C12"), "unspecified: NOS"),
        ("knee pain, left", ("linked", "C11"), "side: left"),
        ("C50.9 - Breast cancer", ("review", "C9"), "code: C50.9"),
    ],
)
def test_map_queries_never_exact_if_the_term_says_more(kb, term, found, dropped):
    mapped = look_up(kb, term)
    assert (mapped.status, mapped.cui) == found
    assert (mapped.note == "dropped") == (mapped.cui is None)
    assert "; ".join(mapped.dropped) == dropped
    assert mapped.candidates[0]["alias"]  # a person sees what was found


@pytest.mark.parametrize("term", ["B12 deficiency", "Zn deficiency", "Vitamin (B12)"])
def test_map_queries_reads_no_word_as_a_code(kb, term):
    mapped = look_up(kb, term)
    assert (mapped.read_as, mapped.status != "exact") == (term, True)


CODES = {"ICD10CM": ["I21.9"], "MSH": ["D009203"], "SNOMEDCT_US": ["22298006"]}
CODED = [
    Concept("C0027051", ["Infarct"], ["T047"], codes=CODES, retired=["C0000999"]),
    Concept("C0000002", ["Diabetes"], codes={"ICD10CM": ["E11.9"]}),
    Concept("C0000003", ["Type 2 diabetes"], codes={"ICD10CM": ["E11.9"]}),
    Concept("C0000004", ["Fracture"], codes={"ICD10": ["T12", "P53", "12"]}),
    Concept("C0000005", ["Twelfth vertebra", "T12"]),
    Concept("C0000006", ["Marfan"], codes={"ORPHA": ["558"], "HPO": ["HP:0000006"]}),
    Concept("C0000007", ["Bone"], related_codes={"broader": {"ICD10": ["Q77.3"]}}),
]
# What a cell of a column has, its status, and the concepts that are candidates
CODED_TERMS = [
    *((t, "exact", ["C0027051"]) for t in ("C0027051", "c0027051", "UMLS:C0027051")),
    *((t, "exact", ["C0027051"]) for t in (" I21.9", "i21.9", "ICD10CM:I21.9")),
    *((t, "exact", ["C0027051"]) for t in ("MESH:D009203", "D009203", "MSH:D009203")),
    *((t, "exact", ["C0027051"]) for t in ("22298006", "SNOMEDCT_US:22298006")),
    ("22298006.0", "exact", ["C0027051"]),
    *((t, "exact", ["C0000006"]) for t in ("ORPHA:558", "Orphanet:558", "HP:0000006")),
    ("C0000999", "linked", ["C0027051"]),  # was retired
    ("E11.9", "review", ["C0000002", "C0000003"]),
    ("T12", "review", ["C0000004", "C0000005"]),  # a code, and a name of another
    ("P53", "exact", ["C0000004"]),
    ("Q77.3", "review", ["C0000007"]),  # is broader
]


@pytest.fixture(scope="module")
def coded_kb(make_kb, tmp_path_factory) -> KnowledgeBase:
    return load_kb(make_kb(tmp_path_factory.mktemp("codes"), CODED, backend="exact"))


@pytest.mark.parametrize(("term", "status", "cuis"), CODED_TERMS)
def test_map_queries_ids_and_codes_stand_alone(coded_kb, term, status, cuis):
    options = LinkOptions(k=5, threshold=0)
    (found,) = map_queries(coded_kb, [Query(term)], options)
    assert [one["cui"] for one in found.candidates] == cuis
    certain = status != "review"
    assert (found.status, found.cui) == (status, cuis[0] if certain else None)
    assert found.candidates[0]["probability"] == (1.0 if certain else None)
    notes = {"C0000999": "retired", "Q77.3": "broader"}
    said = notes.get(term, "ambiguous" if len(cuis) > 1 else None)
    assert found.note == said


@pytest.mark.parametrize(
    "term", ["p53", "t12", "B12", "12", "558", "C7777777", "MESH:D1", "I21.9 Infarct"]
)
def test_map_queries_what_only_looks_like_an_id_is_a_term(coded_kb, term):
    options = LinkOptions(k=5, threshold=0)
    (found,) = map_queries(coded_kb, [Query(term)], options)
    assert len(found.candidates) > 2 or found.note == "empty"
    assert not any(one["alias"] == term for one in found.candidates)


def test_map_queries_an_id_that_a_filter_excludes_is_no_candidate(coded_kb):
    for term in ("C0027051", "I21.9"):
        query, options = Query(term), LinkOptions(filter=Filter(deny=["C0027051"]))
        (found,) = map_queries(coded_kb, [query], options)
        assert "C0027051" not in [one["cui"] for one in found.candidates]
        (found,) = map_queries(coded_kb, [Query(term, ("T047",))], LinkOptions())
        assert found.cui == "C0027051"


def make_link(alias: str, score: float, cui: str | None = "X:1", p: float = 0.9) -> Any:
    first: Any = {"cui": "X:1", "alias": alias, "score": score, "probability": p}
    other: Any = {"cui": "X:2", "alias": "Cough", "score": 0.5}
    return Linked([first, other], None, cui)


def test_quality_of_readings():
    """A side is part of the meaning: a name that has it is better, and else none."""
    side = (Dropped(SIDE, "left", "left"),)
    sided = make_link("Left-sided heart failure", 0.95)
    heart = quality(Reading("left heart failure", sided, whole=True))
    plain = make_link("Heart failure", 1.0)
    assert heart > quality(Reading("heart failure", plain, named=True, dropped=side))
    knee = quality(Reading("left knee pain", make_link("Left knee", 0.9)))
    plain = make_link("Knee pain", 1.0)
    assert knee < quality(Reading("knee pain", plain, named=True, dropped=side))
    assert quality(Reading("x", Linked([], "empty", None))) == (0, 0, 0.0, -2.0)
    capitals, small = (make_link("Asthma", 1.0, p=p) for p in (0.55, 0.95))
    likely = quality(Reading("asthma", small, named=True, whole=True))
    assert likely > quality(Reading("ASTHMA", capitals, named=True, whole=True))


@pytest.mark.parametrize(
    ("link", "status", "cui", "note"),
    [
        (make_link("Fever", 1.0), "exact", "X:1", None),
        (make_link("Pyrexia", 0.9), "linked", "X:1", None),
        (make_link("Pyrexia", 0.9, None), "review", None, None),
        (make_link("Pyrexia", 0.9, None, 0.05), "review", None, None),
        (make_link("Pyrexia", 0.9, None, 0.049), "none", None, None),
        (Linked([], "excluded", None), "none", None, "excluded"),
        (Linked([], "empty", None), "none", None, "empty"),
    ],
)
def test_describe_by_hand(link, status, cui, note):
    certainty = "sure" if cui else "none"
    expected = Found("fever", status, cui, note, link.candidates, certainty)
    reading = Reading("fever", link, named=status == "exact")
    assert describe(reading) == expected


@pytest.mark.parametrize(
    ("kind", "status", "cui"),
    [
        (FAMILY, "review", None),
        (SUSPECTED, "review", None),
        (PAST, "review", None),
        (NEGATED, "review", None),
        (NUMBER, "review", None),
        (CODE, "review", "X:1"),
        (SIDE, "linked", "X:1"),
        (UNSPECIFIED, "exact", "X:1"),
    ],
)
def test_describe_what_the_term_says_and_the_concept_does_not(kind, status, cui):
    link = make_link("Fever", 1.0, p=0.99)
    reading = Reading("fever", link, named=True, dropped=(Dropped(kind, "x"),))
    found = describe(reading)
    assert (found.status, found.cui) == (status, cui)
    assert found.dropped == (f"{kind}: x",)


# A term, the shortest reading, and the kinds of what it lacks; all languages
ALL: tuple[Rules, ...] = ("english", "german", "romance")
READINGS = [
    ("Asthma (J45.9)", "Asthma", CODE),
    ("Asthma [ICD-10: J45]", "Asthma", CODE),
    ("Asthma (SNOMED CT 195967001)", "Asthma", CODE),
    ("Asthma (MeSH D001249)", "Asthma", CODE),
    ("Asthma (HP:0002099)", "Asthma", CODE),
    ("J45.9 - Asthma", "Asthma", CODE),
    ("J45.9 Asthma", "Asthma", CODE),
    ("J45: Asthma", "Asthma", CODE),
    ("J45 | Asthma", "Asthma", CODE),
    ("Asthma - J45", "Asthma", CODE),
    ("Asthma, J45.9", "Asthma", CODE),
    ("4548-4 - HbA1c", "HbA1c", CODE),
    ("E11.9, diabetes", "diabetes", CODE),
    ("HP:0001250 Seizure", "Seizure", CODE),
    ("diabetes MONDO:0005015", "diabetes", CODE),
    ("SNOMED 73211009 diabetes", "diabetes", CODE),
    ("C0011849 diabetes", "diabetes", CODE),
    ("D003920: Diabetes", "Diabetes", CODE),
    ("Diabetes 250.00", "Diabetes", CODE),
    ("195967001 | Asthma", "Asthma", CODE),
    ("195967001 Asthma", "Asthma", CODE),
    ("1. Asthma", "Asthma", ""),
    ("• Asthma *", "Asthma", ""),
    ("Trisomy (21)", "Trisomy", NUMBER),
    ("Asthma, NOS", "Asthma", UNSPECIFIED),
    ("Asthma n.o.s.", "Asthma", UNSPECIFIED),
    ("Asthma o.n.A.", "Asthma", UNSPECIFIED),
    ("asma sin especificar", "asma", UNSPECIFIED),
    ("H/O asthma", "asthma", PAST),
    ("s/p stroke", "stroke", PAST),
    ("Hx of asthma", "asthma", PAST),
    ("past medical history of stroke", "stroke", PAST),
    ("prior MI", "MI", PAST),
    ("stroke (history of)", "stroke", PAST),
    ("old MI", "MI", PAST),
    ("Hx. of asthma", "asthma", PAST),
    ("pneumonia (resolved)", "pneumonia", PAST),
    ("mother with breast cancer", "breast cancer", FAMILY),
    ("father - MI", "MI", FAMILY),
    ("maternal grandmother stroke", "stroke", FAMILY),
    ("likely PE", "PE", SUSPECTED),
    ("rule-out sepsis", "sepsis", SUSPECTED),
    ("Z.n. Schlaganfall", "Schlaganfall", PAST),
    ("St. n. Fraktur", "Fraktur", PAST),
    ("antecedente de asma", "asma", PAST),
    ("F/H breast cancer", "breast cancer", FAMILY),
    ("FHx: breast cancer", "breast cancer", FAMILY),
    ("FH of breast cancer", "breast cancer", FAMILY),
    ("family history of stroke", "stroke", FAMILY),
    ("stroke, family history", "stroke", FAMILY),
    ("Familienanamnese: Asthma", "Asthma", FAMILY),
    ("r/o pneumonia", "pneumonia", SUSPECTED),
    ("?PE", "PE", SUSPECTED),
    ("PE ?", "PE", SUSPECTED),
    ("query pneumonia", "pneumonia", SUSPECTED),
    ("possible stroke", "stroke", SUSPECTED),
    ("stroke - suspected", "stroke", SUSPECTED),
    ("V.a. Pneumonie", "Pneumonie", SUSPECTED),
    ("sospecha de asma", "asma", SUSPECTED),
    ("h/o ?asthma", "asthma", f"{PAST} {SUSPECTED}"),
    ("known asthma", "asthma", ""),
    ("dx: asthma", "asthma", ""),
    ("c/o cough", "cough", ""),
    ("H/O Asthma, NOS (J45.9)", "Asthma", f"{CODE} {UNSPECIFIED} {PAST}"),
    ("fracture of femur, right", "fracture of femur", SIDE),
    ("left knee pain", "knee pain", SIDE),
    ("Lt. knee pain", "knee pain", SIDE),
    ("L knee pain", "knee pain", SIDE),
    ("R leg numbness", "leg numbness", SIDE),
    ("knee pain (R)", "knee pain", SIDE),
    ("left-sided weakness", "weakness", SIDE),
    ("bilateral cataract", "cataract", SIDE),
    ("Gonarthrose li.", "Gonarthrose", SIDE),
    ("dolor de rodilla izquierda", "dolor de rodilla", SIDE),
    ("MYOCARDIAL INFARCTION", "myocardial infarction", ""),
]


@pytest.mark.parametrize(("term", "reading", "kinds"), READINGS)
def test_list_readings_has_the_term_without_its_trappings(term, reading, kinds):
    readings = list_readings(term, ALL)
    assert (readings[0], readings[-1]) == (term, reading)
    dropped = list_dropped(term, reading, ALL)
    assert [each.kind for each in dropped] == kinds.split()
    assert list_dropped(term, term, ALL) == []


@pytest.mark.parametrize(
    "term",
    [
        *("type 2 diabetes", "vitamin B12", "HbA1c", "unknown primary", "Na"),
        *("B12 deficiency", "Zn deficiency", "Vitamin (B12)", "Cytochrome (P450)"),
        *("P53 mutation", "A20 protein", "CD20 positive", "Q10", "valine", "relapse"),
        *("vaginal bleeding", "l thyroxine", "L carnitine", "R wave", "L-dopa"),
        *("query fever", "probiotics", "knowledge deficit", "fhit gene", "FH", "hx"),
        *("no fever", "denies pain", "Old World leishmaniasis", "past pointing test"),
        *("nodule", "mother yaw", "likelihood ratio", "probe", "son of", "cousins"),
        *("alright", "leftover", "history", "cor pulmonale", "no evidence of PE"),
        *("2,4-dinitrophenol", "5-HT", "St. Louis encephalitis", "VA shunt", "li"),
    ],
)
def test_list_readings_leaves_what_belongs_to_a_term(term):
    assert list_readings(term) == [term]


@pytest.mark.parametrize(
    "term",
    ["Z.n. Schlaganfall", "Gonarthrose li.", "V.a. Pneumonie", "antecedente de asma"],
)
def test_list_readings_has_no_rules_of_other_languages(term):
    assert list_readings(term) == [term]


def test_list_dropped_leaves_out_what_the_name_says_too():
    family = "Family history of breast cancer"
    assert list_dropped("F/H breast cancer", family) == []
    assert list_dropped("left heart failure", "Left-sided heart failure") == []
    assert [each.side for each in list_dropped("left eye", "Right eye")] == ["left"]
    assert list_dropped("Trisomy (21)", "Trisomy 21") == []
    for says in ("no evidence of", "no", "denies", "without", "negative for"):
        assert list_dropped(f"{says} PE", "PE") == [Dropped(NEGATED, says)]
    assert list_dropped("no known allergies", "No known allergy") == []


@given(st.text(max_size=80), st.text(max_size=20))
def test_list_readings_are_few_and_distinct(term, name):
    readings = list_readings(term, ALL)
    assert all(each.kind for each in list_dropped(term, name, ALL))
    assert len(readings) == len({*readings}) <= 11
    assert all(any(map(str.isalnum, reading)) for reading in readings)


@pytest.mark.parametrize(
    ("term", "chosen", "predicate"),
    [
        ("F/H breast cancer", "C9", "skos:relatedMatch"),
        ("F/H breast cancer", "C10", "skos:exactMatch"),  # found by the person
        ("F/H breast cancer", "C1", "skos:relatedMatch"),
        ("F/H breast cancer", "NIL", "skos:exactMatch"),
        ("Breast cancer (C50.9)", "C9", "skos:closeMatch"),
        ("left knee pain", "C11", "skos:broadMatch"),
        ("left knee pain", "", "skos:broadMatch"),
        ("knee pain", "", "skos:exactMatch"),
    ],
)
def test_list_mapping_is_exact_only_if_the_concept_has_all_of_the_term(
    kb, term, chosen, predicate
):
    found = apply_choice(kb, term, look_up(kb, term), chosen)
    for said in ("", "exact"):
        cells = list_mapping(term, found, date(2026, 1, 2), predicate=said)
        assert cells is not None
        assert cells[3] == predicate
    cells = list_mapping(term, found, date(2026, 1, 2), predicate="narrow")
    assert cells is not None
    assert cells[3] == "skos:narrowMatch"
