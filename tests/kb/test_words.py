"""The words of concepts, held against numbers computed by hand."""

import math
from collections.abc import Iterable, Sequence

import pytest

from spacy_sapbert.kb.agreement import Without
from spacy_sapbert.kb.contradiction import (
    adds_number,
    find_contradiction,
    find_names_like,
)
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.candidates import Entry
from spacy_sapbert.linking.coverage import Shared
from spacy_sapbert.linking.difference import split_words
from spacy_sapbert.linking.features import EXCLUDED, FoundName, pool_concepts
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.linking.groups import Groups
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
    """Compare a mention with concepts, in an English text or in a Spanish one.

    Of what is known of mentions, that of this one is returned.
    """
    known = kb.store.numbers_of_cuis(cuis)
    concepts = [known[cui] for cui in cuis]
    filter = Filter(document_language="en" if english else "es")
    shared = kb.parts.words.compare([text], [concepts], filter, without=without)
    (words,), (weights,), (real,) = shared.words, shared.weights, shared.real
    (covered,) = shared.covered
    return shared._replace(words=words, weights=weights, real=real, covered=covered)


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


def test_real_words_are_those_of_names_and_english_ones(kb):
    words = compare(kb, "velmor diabetes xyzzy 77 fiebre")
    assert [*words.words][:3] == ["velmor", "diabete", "xyzzy"]
    # "diabetes" is an English word; a numeral always counts.
    assert words.real == [True, True, False, True, False]
    # An abbreviation, a medical word of known parts, and a part before a real word
    words = compare(kb, "XYZZY gastrodynia azyggy adiabetes nsclc")
    assert words.real == [True, True, False, True, True]
    assert compare(kb, "fiebre", english=False).real == [True]


def test_words_of_names_in_other_languages_do_not_count_in_english(kb):
    for english, covered in ((True, [False, False]), (False, [True, True])):
        compared = compare(kb, "fiebre acute", ["C3"], english=english)
        assert compared.covered == [covered]
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
        assert shared.covered == [[True]]
    assert compare(kb, "rash").covered == []
    assert compare(kb, "?", ["C0", "C1"]).covered == [[], []]
    compared = compare(kb, "velmor type one rash", ["C0", "C1", "C2"])
    covered = [[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]]
    assert compared.covered == covered
    # The English fold of "acute" is a word of C2, and not the Spanish one.
    compared = compare(kb, "velmor acute", ["C0", "C2"], english=False)
    assert compared.covered == [[1, 0], [0, 1]]


@pytest.mark.parametrize("mention", ["fifth 5 rash", "fifth (5) no rash of velmor 1-3"])
def test_a_word_that_is_written_in_two_ways_is_one(kb, mention):
    """ "fifth" is "5" in English, and in a text of another language it may be one."""
    words = compare(kb, mention, english=False).words
    assert words.count("5") == 1
    assert len(words) == len({*words})
    assert kb.link([mention])[0].candidates


def list_entries(kb: KnowledgeBase) -> dict[str, Entry]:
    """The entry of each name."""
    entries = kb.entries(range(kb.rows)).values()
    return {entry.alias: entry for some in entries for entry in some}


def test_a_concept_is_excluded_if_all_its_names_near_a_mention_are(kb):
    known = list_entries(kb)
    for names, expected in (
        (["Zorb type 1", "acute rash"], [1, 0]),
        (["Zorb type 1", "Marsh type 2", "Velmor I"], [0, 1]),
    ):
        found = [FoundName(1 - n / 9, n / 9, known[a]) for n, a in enumerate(names)]
        pool = pool_concepts(found, kb.searcher.find_provenance)
        filter = Filter(document_language="en")
        features = kb.parts.words.features(["zorb type 2"], [pool], filter)
        assert features[EXCLUDED].tolist() == expected


@pytest.mark.parametrize("language", ["en", "es"])
def test_features_do_not_depend_on_the_mentions_beside_one(kb, language):
    texts = ["zorb type 2", "xyzzy", "velmr " * 12, "acute rash of no ache", "?", "α"]
    entries = [*list_entries(kb).values()]
    pools = [
        pool_concepts(
            [
                FoundName(0.9 - n / 70, (n * step % 7) / 7, entry)
                for n, entry in enumerate(entries[step::2])
            ],
            kb.searcher.find_provenance,
        )
        for step in range(1, len(texts) + 1)
    ]
    filter = Filter(document_language=language)
    compute, groups = kb.parts.words.features, Groups([len(p.near) for p in pools])
    together = compute(texts, pools, filter)
    for number, (text, pool) in enumerate(zip(texts, pools, strict=True)):
        alone = compute([text], [pool], filter)
        for name, values in alone.items():
            beside = together[name][groups.owners == number]
            assert beside.tobytes() == values.tobytes(), (text, name)


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
        # "acute" is English, and the parts of the other word are known or not.
        assert shared.real == [True, zinc]
        expected = [math.log(18), math.log(18 / (1 + zinc))]
        assert shared.weights == pytest.approx(expected)
        if left is not None:  # of a concept without names, nothing is compared
            assert shared.covered == [[acute, zinc]]


def test_another_word_in_the_place_of_one_contradicts(make_kb, tmp_path):
    organs = [("pain", 1), ("failure", 2), ("stone", 3)]
    concepts = [
        Concept(f"K{n}", [f"renal {what}", f"kidney {what}"]) for what, n in organs
    ]
    concepts += [
        Concept("C1", ["viral pneumonia", "pneumonia due to virus"]),
        Concept("C2", ["renal cyst"]),
        Concept("C3", ["tonsil disease", "tonsil"]),
        Concept("C4", ["nasal disease", "nasal"]),
        Concept("C5", ["bacterial meningitis"]),
        Concept("C7", ["pneumonia"]),
        Concept("C6", ["vascular rash", "rash of vessels"], languages={"ENG": [0]}),
        Concept("C8", ["Increased creatinine", "high serum creatinine"]),
        Concept("C9", ["placenta disease", "disease of placenta", "placenta tissue"]),
        Concept("D1", ["Marskoccosis", "disease due to a germ"]),
        Concept("D2", ["alcoholism"]),
        Concept("D3", ["Zorbella infection", "zorbelliasis"]),
        Concept("D4", ["Zorb fever", "fever, Zorb"]),
        Concept("D5", ["Marsh fever", "Marsh virus infection"]),
        Concept("D6", ["hypotonia of zorb"]),
        Concept("D7", ["hypertonia of zorb"]),
        Concept("D8", ["rash with zorb"]),
        Concept("E2", ["hypotension"]),
        Concept("E3", ["hypertension"]),
        Concept("D9", ["abnormal zorb", "abnormality of zorb"]),
    ]
    kb = load_kb(make_kb(tmp_path, concepts))
    numbers = kb.store.numbers_of_cuis([concept.cui for concept in concepts])
    for text, cui, expected in (
        ("bacterial pneumonia", "C1", "bacterial ≠ viral"),
        ("Pneumonia, bacterial", "C1", "bacterial ≠ viral"),
        ("bactreial pneumonia", "C1", None),  # it may be misspelled
        ("viral pneumonias", "C1", None),
        ("bacterial lung pneumonia", "C1", None),  # more words differ
        ("bacterial", "C1", None),
        ("kidney cyst", "C2", None),  # names say that it is renal
        ("nasal cyst", "C2", "nasal ≠ renal"),
        ("tonsil rash", "C3", None),  # "disease" says little of what it is
        ("NSCLC rash", "C6", "nsclc ≠ vascular"),
        ("apneumonia", "C7", "apneumonia ≠ pneumonia"),
        ("neumonia", "C7", None),
        ("creatinine", "C8", "– ≠ increased"),
        ("high creatinine", "C8", None),
        ("placenta", "C9", None),  # it is tissue, too
        ("Marskoccus", "D1", "marskoccus ≠ marskoccose"),
        ("marskoccotic", "D1", None),
        ("alcohol", "D2", "alcohol ≠ alcoholism"),
        ("alcoholic", "D2", None),
        ("Zorbella", "D3", None),  # a name has the word
        ("Zorb fever virus", "D4", "virus ≠ –"),
        ("hyprtonia of zorb", "D6", "hyprtonia ≠ hypotonia"),
        ("hyprtonia of zorb", "D7", "hyprtonia ≠ hypertonia"),
        ("hypertonai of zorb", "D7", None),
        ("hyprtension", "E2", "hyprtension ≠ hypotension"),
        ("hypertensoin", "E3", None),
        ("rash wthout zorb", "D8", "wthout ≠ –"),
        ("zorb within normal limits", "D9", "normal ≠ –"),
        ("Zorb fever attack", "D4", None),
        ("Marsh fever virus", "D5", "virus ≠ –"),
    ):
        table, english = kb.parts.words, Filter(document_language="en")
        change = find_contradiction(table, text, numbers[cui], english)
        found = change and str(change).partition(" (")[0]
        assert found == expected, text
    # Concepts that were added later are compared as others.
    added = add_concepts(kb, [Concept("E1", ["Low zincatine", "zincopenic state"])])
    (number,) = added.store.numbers_of_cuis(["E1"]).values()
    change = find_contradiction(added.parts.words, "zincatine", number, english)
    assert str(change).startswith("– ≠ low")
    for text, expected in (("Zorb fever A", True), ("Zorb fever", False)):
        assert adds_number(kb.parts.words, text, numbers["D4"], english) is expected
    assert not adds_number(kb.parts.words, "X-linked fever", numbers["D4"], english)
    # What is contradicted is not linked, whatever its probability, but shown.
    (linked,) = kb.link(["nasal cyst"], threshold=0)
    assert (linked.note, linked.candidates[0]["cui"]) == ("excluded", "C2")
    assert linked.candidates[0]["probability"] == 0.4  # of 10 such mentions, 4 mean it


@pytest.mark.parametrize("added", [[], ["fungal pneumonia"]])
def test_names_with_one_word_for_another_are_found_by_numbers(make_kb, tmp_path, added):
    """As by reading all names; of an overlay there are more, which are read."""
    concepts = [
        Concept("C1", ["viral pneumonia", "virus pneumonia of lung", "Pneumonias"]),
        Concept("C2", ["bacterial pneumonia"], languages={"SPA": [0]}),
        Concept("C3", ["pneumonia type 2", "of the", "viral rash"]),
    ]
    kb = load_kb(make_kb(tmp_path, concepts))
    if added:
        kb = add_concepts(kb, [Concept("C1", ["viral pneumonia", *added])])
    names_of = {c: kb.store.names_of_concept(n) for c, n in number_concepts(kb)}
    for text in ("fungal pneumonia", "rash", "viral lesion of the lung", "type 3"):
        content = split_words(text).content
        for cui, number in number_concepts(kb):
            like, of_any = [], []
            for alias, origin, _ in names_of[cui]:
                words = split_words(alias).content
                if kb.store.rules_of(origin) == "english":
                    like += [alias] * (
                        len(content - words) == len(words - content) == 1
                    )
                    of_any += [alias] * (len(content ^ words) == 2)
                else:
                    of_any.append(alias)
            table = kb.parts.words
            found, every = (
                [
                    alias
                    for alias, _, _ in find_names_like(
                        table, content, number, only_english
                    )
                ]
                for only_english in (True, False)
            )
            assert {*found} <= {*every}
            if not (cui == "C1" and added):
                assert every == of_any, (text, cui)
            if cui == "C1" and added:
                assert {*like} <= {*found} <= {name[0] for name in names_of[cui]}
                assert added[0] in found
            else:
                assert found == like, (text, cui)


def number_concepts(kb: KnowledgeBase) -> list[tuple[str, int]]:
    return [*kb.store.numbers_of_cuis(kb.store.cuis()).items()]
