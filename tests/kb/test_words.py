"""The words of concepts, held against numbers computed by hand."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from spacy_sapbert.kb.agreement import Without
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.words import list_real_words
from spacy_sapbert.linking.candidates import Entry, RankedEntry
from spacy_sapbert.linking.features import EXCLUDED, FoundName, Shared, pool_concepts
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.vocabularies.concepts import Concept

CONCEPTS = [
    Concept("C0", ["Velmor type 1", "Velmor I"], languages={"ENG": [0, 1]}),
    Concept("C1", ["Velmor type 2", "tipo 2"], languages={"ENG": [0], "SPA": [1]}),
    Concept("C2", ["acute rash", "hyperzincemia"]),
    Concept("C3", ["fiebre aguda", "acute"], languages={"SPA": [0, 1]}),
    Concept("C4", ["Tolan A", "Tolan α"]),
    Concept("C5", ["no rash", "without rash"]),
    Concept("C6", ["typical rash"]),
    Concept("C7", ["renal dysfunction", "zorbal rash", "atypical ache"]),
    Concept("C8", ["impaired hepatic function"]),
    Concept("C9", ["Zorb type 1", "Marsh type 2"]),
]


@pytest.fixture(scope="module")
def kb(make_kb, tmp_path_factory) -> KnowledgeBase:
    return load_kb(make_kb(tmp_path_factory.mktemp("words"), CONCEPTS))


def compare(
    kb: KnowledgeBase,
    text: str,
    cuis: Iterable[str] = (),
    *,
    english: bool = True,
    without: Sequence[Without] = (),
) -> Shared:
    """Compare a mention with concepts, in an English text or in a Spanish one."""
    known = kb.store.numbers_of_cuis(cuis)
    concepts = [known[cui] for cui in cuis]
    filter = Filter(document_language="en" if english else "es")
    return kb.parts.words.compare(text, concepts, filter, without=without)


def find_excluded(kb: KnowledgeBase, text: str, *, english: bool = True) -> set[str]:
    """The concepts that a mention excludes."""
    cuis = [*kb]
    compared = compare(kb, text, cuis, english=english)
    return {cui for cui, out in zip(cuis, compared.excluded, strict=True) if out}


def test_weights_are_the_rarity_of_words_by_hand(kb):
    table = kb.parts.words
    # 16 names may be English: all but "tipo 2", "fiebre aguda" and "acute".
    assert table.totals == [16, 19]
    words = compare(kb, "acute velmor xyzzy")
    # "acute" is in one English name, "velmor" in three.
    expected = [math.log(18 / 2), math.log(18 / 4), math.log(18 / 1)]
    assert words.weights == pytest.approx(expected)
    # The Spanish "acute" is folded in another way: of both counts the larger one.
    expected = [math.log(21 / 2), math.log(21 / 4), math.log(21 / 1)]
    every = compare(kb, "acute velmor xyzzy", english=False)
    assert every.weights == pytest.approx(expected)
    assert table.most(english=True) == pytest.approx(math.log(18))
    weights = table.weigh(["velmor", "fiebre"], english=True)
    assert weights == pytest.approx(
        {"velmor": math.log(18 / 4), "fiebre": math.log(18)}
    )
    weights = table.weigh(["2", "fiebre"], english=False)
    assert weights == pytest.approx({"2": math.log(21 / 4), "fiebre": math.log(21)})


def test_real_words_are_those_of_names_and_of_the_encoder(kb):
    words = compare(kb, "velmor diabetes xyzzy 77 fiebre")
    assert [*words.words][:3] == ["velmor", "diabete", "xyzzy"]
    # "diabetes" is a token of the encoder; a numeral always counts.
    assert words.real.tolist() == [True, True, False, True, False]
    assert compare(kb, "fiebre", english=False).real.tolist() == [True]


def test_words_of_names_in_other_languages_do_not_count_in_english(kb):
    for english, covered in ((True, [False, False]), (False, [True, True])):
        compared = compare(kb, "fiebre acute", ["C3"], english=english)
        assert compared.covered.tolist() == [covered]
    # Counts of English names stay if a Spanish one with the word is left out.
    (concept,) = kb.store.numbers_of_cuis(["C3"]).values()
    shared = compare(kb, "acute", without=[Without(concept, None)])
    assert shared.weights == pytest.approx([math.log(18 / 2)])
    (concept,) = kb.store.numbers_of_cuis(["C1"]).values()
    rows = {alias: row for alias, _, row in kb.store.names_of_concept(concept)}
    without = [Without(concept, frozenset([rows["tipo 2"]]))]
    for english, expected in ((True, 18 / 3), (False, 21 / 3)):
        shared = compare(kb, "2", ["C1"], english=english, without=without)
        assert shared.weights == pytest.approx([math.log(expected)])
        assert shared.covered.tolist() == [[True]]
    assert compare(kb, "rash").covered.shape == (0, 1)
    nothing = compare(kb, "?", ["C0", "C1"])
    assert nothing.covered.shape == (2, 0)
    assert nothing.excluded.tolist() == [False, False]
    compared = compare(kb, "velmor type one rash", ["C0", "C1", "C2"])
    covered = [[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]]
    assert compared.covered.astype(int).tolist() == covered
    # The English fold of "acute" is a word of C2, and not the Spanish one.
    compared = compare(kb, "velmor acute", ["C0", "C2"], english=False)
    assert compared.covered.astype(int).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("mention", "expected"),
    [
        ("velmor type 3", {"C0", "C1", "C9"}),
        ("velmor type II", {"C0"}),
        ("3", {"C0", "C1", "C9"}),
        ("velmor type", set()),
        ("tolan a", set()),
        ("tolan beta", {"C4"}),
        ("b", set()),  # which may be an abbreviation
        ("chronic rash", {"C2"}),
        ("hypozincemia", {"C2"}),
        # A concept without a negation is not that with one.
        ("no fever", {f"C{n}" for n in range(10)} - {"C5"}),
        ("nontypical rash", {"C6"}),
        ("atypical rash", {"C6"}),
        ("typical rash", {"C7"}),
        # Only a letter differs: "azorbal" may be a misspelled "zorbal".
        ("azorbal rash", set()),
        # What is impaired is a dysfunction.
        ("renal function", {"C7"}),
        ("impaired renal function", set()),
        ("hepatic dysfunction", set()),
    ],
)
def test_excluded_concepts_by_hand(kb, mention, expected):
    assert find_excluded(kb, mention) == expected


def list_entries(kb: KnowledgeBase) -> dict[str, Entry]:
    """The entry of each name."""
    entries = kb.entries(range(kb.rows)).values()
    return {entry.alias: entry for some in entries for entry in some}


def test_excluded_concepts_are_put_last_of_the_ten_that_are_compared(kb):
    known = list_entries(kb)
    names = ["Velmor type 1", "acute rash", "Velmor type 2", "Zorb type 1"]
    names += ["typical rash"] * 6 + ["Velmor I"]
    near = [RankedEntry(1 - n / 8, known[a], 1 - n / 8) for n, a in enumerate(names)]
    table, english = kb.parts.words, Filter(document_language="en")
    ordered, excluded = table.put_excluded_last("velmor type 3", near, english)
    keys = [(concept.entry.alias, concept.key) for concept in ordered]
    left = [("acute rash", 0.875), *((names[4], 1 - n / 8) for n in range(4, 10))]
    last = [(names[n], -1 - n / 8) for n in (0, 2, 3)]
    assert keys == [*left, *last, ("Velmor I", -3 - 10 / 8)]
    assert not excluded
    assert table.put_excluded_last("velmor", near, english) == (near, False)
    assert table.put_excluded_last("velmor type 3", near[:1], english)[1]
    # "Marsh type 2" is a name of it too, but not the one that was found.
    assert table.put_excluded_last("velmor type 2", [near[3]], english)[1]


def test_a_concept_is_excluded_if_all_its_names_near_a_mention_are(kb):
    known = list_entries(kb)
    for names, expected in (
        (["Zorb type 1", "acute rash"], [1, 0]),
        (["Zorb type 1", "Marsh type 2", "Velmor I"], [0, 1]),
    ):
        found = [FoundName(1 - n / 9, n / 9, known[a]) for n, a in enumerate(names)]
        pool = pool_concepts(found, kb.searcher.find_provenance)
        filter = Filter(document_language="en")
        features = kb.parts.words.features("zorb type 2", pool, filter)
        assert features[EXCLUDED].tolist() == expected


def test_mention_says_more_than_a_name_that_counts(make_kb, tmp_path):
    spanish = Concept("C1", ["dolor"], languages={"SPA": [0]})
    concepts = [Concept("C0", ["Neoplasm", "benign neoplasm"]), spanish]
    kb = load_kb(make_kb(tmp_path, concepts))
    numbers = kb.store.numbers_of_cuis(["C0", "C1"])
    rows = {a: row for a, _, row in kb.store.names_of_concept(numbers["C0"])}
    for text, cui, language, without, expected in (
        ("malignant neoplasms", "C0", "en", [], True),
        ("malignant neoplasms", "C0", "en", [rows["Neoplasm"]], False),
        ("malignant neoplasms", "C0", "en", None, False),
        ("agudo dolor", "C1", "es", [], True),
        ("agudo dolor", "C1", "en", [], False),
    ):
        left_out = Without(
            numbers[cui], None if without is None else frozenset(without)
        )
        found = kb.parts.words.find_narrowed(
            text,
            [numbers[cui]],
            np.array([True]),
            Filter(document_language=language),
            [left_out],
        )
        assert found.tolist() == [expected], (text, language, without)


def test_names_that_are_left_out_do_not_count(kb):
    store = kb.store
    (concept,) = store.numbers_of_cuis(["C2"]).values()
    rows = {alias: row for alias, _, row in store.names_of_concept(concept)}
    for left, acute, zinc in (
        (None, False, False),
        (frozenset([rows["acute rash"]]), False, True),
    ):
        without = [Without(concept, left)]
        shared = compare(kb, "acute hyperzincemia", ["C2"], without=without)
        assert shared.real.tolist() == [True, zinc]  # "acute" is a token
        expected = [math.log(18), math.log(18 / (1 + zinc))]
        assert shared.weights == pytest.approx(expected)
        if left is not None:  # of a concept without names, nothing is compared
            assert shared.covered.tolist() == [[acute, zinc]]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["heart", "##ache", "[CLS]", "tumours", "x1"], {"heart", "tumor"}),
        (["\u2581heart", "ache", "\u2581Attack", "</s>"], {"heart", "attack"}),
        (["\u0120heart", "ache", "!"], {"heart"}),
    ],
)
def test_real_words_of_tokenizers(tokens, expected):
    assert {*list_real_words(tokens)} == expected
