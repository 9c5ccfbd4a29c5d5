"""Whether an id is the right one for a text: ids, names, vetoes, labels, contexts."""

import math
from itertools import islice

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.teaching.teach import teach_documents
from spacy_sapbert.kb.verification.chances import (
    TABLE,
    compute_chances,
    is_short,
    is_spelled,
)
from spacy_sapbert.kb.verification.verify import VERDICTS
from spacy_sapbert.vocabularies.concepts import Concept
from tests.building import annotated_document, annotated_mention
from tests.thousand_names import LACKING


@pytest.fixture(scope="module")
def kb(sample_kb) -> KnowledgeBase:
    return load_kb(sample_kb)


@pytest.fixture(scope="module")
def many(thousand_names_kb) -> KnowledgeBase:
    return load_kb(thousand_names_kb)


@pytest.mark.parametrize(
    ("text", "id", "verdict", "cui"),
    [
        ("Heart attack", "C0000001", "right", "C0000001"),
        ("(heart attack).", " C0000001 ", "right", "C0000001"),
        ("Heart attack", "C9999999", "retired", "C0000001"),
        ("Heart attack", "ICD10CM:I21", "right", "C0000001"),
        ("Fever", "C0000001", "wrong", "C0000001"),
        ("Cardiac disease", "C0000001", "near", "C0000001"),
        ("Heart attack", "C1234567", "unknown", None),
        ("Heart attack", "HP:0001658", "unknown", None),  # of another vocabulary
        ("Heart attack", "\ud800", "unknown", None),
        ("–", "C0000001", "unsure", "C0000001"),
        ("MI", "C0000001", "unsure", "C0000001"),  # of two concepts
    ],
)
def test_verdict(kb, text, id, verdict, cui):
    (found,) = kb.verify([text], [id])
    assert (found.verdict, found.cui) == (verdict, cui)
    assert found.verdict in VERDICTS
    assert found.why.endswith(".")


def test_relation_and_better_concept(kb):
    parent, child, other = kb.verify(
        ["Heart attack", "Heart disease", "Pyrexia"],
        ["C0000003", "C0000001", "C0000005"],
    )
    assert (parent.relation, parent.better) == ("parent", "C0000001")
    assert parent.why == "Heart disease is a parent of Myocardial infarction."
    assert (child.relation, child.better_name) == ("child", "Heart disease")
    assert (other.verdict, other.better) == ("wrong", "C0000004")


@pytest.mark.parametrize(
    ("id", "meant"),
    [
        ("UMLS:C0000001", "C0000001"),
        ("http://linkedlifedata.com/resource/umls/id/C0000001", "C0000001"),
        ("I2.1", "I21"),
    ],
)
def test_id_that_may_be_meant(kb, id, meant):
    (found,) = kb.verify(["Heart attack"], [id])
    assert found.verdict == "unknown"
    assert found.meant[0] == meant


def test_snomed_ids_and_dots(make_kb, tmp_path):
    concepts = [
        Concept("22298006", ["Myocardial infarction"]),
        Concept("73211009", ["Diabetes mellitus"], codes={"ICD10CM": ["E11.9"]},
                related_codes={"broader": {"ICD10": ["E14"]}}),
    ]  # fmt: skip
    kb = load_kb(make_kb(tmp_path, concepts))
    swapped, dotless, broader = kb.verify(
        ["Myocardial infarction", "Diabetes mellitus", "Diabetes mellitus"],
        ["22289006", "E119", "E14"],
    )
    assert swapped.meant == ("22298006",)
    assert "mistyped" in swapped.why
    assert dotless.meant == ("E11.9",)
    assert (broader.verdict, broader.relation) == ("near", "broader")


@pytest.mark.parametrize("end", ["", " today"])
def test_what_excludes_a_concept_is_never_right(many, end):
    claims = [
        (mention + end, cui)
        for mention, family in LACKING.items()
        for cui in many
        if cui.startswith(family)
    ]
    assert len(claims) > 70
    verdicts = many.verify([text for text, _ in claims], [cui for _, cui in claims])
    assert {verdict.verdict for verdict in verdicts} <= {"wrong", "near"}


@pytest.mark.parametrize(
    ("text", "name", "spelled"),
    [
        ("CHF", "congestive heart failure", True),
        ("CHF", "Heart Failure, Congestive", True),
        ("LAD", "Alexander disease, late", True),
        ("COD", "Carcinoma of the duct", False),
        ("CHF", "congestive heart failure, left", False),
    ],
)
def test_an_abbreviation_is_spelled_by_the_words_of_a_name(text, name, spelled):
    assert is_spelled(text, name) is spelled
    assert [*filter(is_short, ("mRNA", "SAIDS", "fever"))] == ["mRNA", "SAIDS"]


def test_chances_are_those_of_the_model_for_named_texts():
    names = TABLE["right"]["weights"].keys() | TABLE["right_named"]["weights"].keys()
    values = dict.fromkeys({*names, *TABLE["related"]["weights"]}, 0.0)
    for named, model in ((True, "right_named"), (False, "right")):
        expected = 1 / (1 + math.exp(-TABLE[model]["intercept"]))
        right = compute_chances(values, named=named).right
        assert right == pytest.approx(expected, abs=1e-6)


def test_a_verdict_does_not_depend_on_the_batch(many):
    names = [*islice(many.store.preferred_names(40), 30)]
    texts = [f"{name} today" for _, name in names]
    ids = [cui for cui, _ in reversed(names)]
    together = many.verify(texts, ids)
    alone = [many.verify([t], [c])[0] for t, c in zip(texts, ids, strict=True)]
    assert together == alone


def test_label_is_compared_with_id_and_text(kb):
    texts = ["Heart attack", "Heart attack", "Fever", "Fever"]
    ids = ["C0000001"] * 4
    labels = ["Myocardial infarction", "Fever", "Myocardial infarction", ""]
    answers = [
        (v.verdict, v.label, v.label_text) for v in kb.verify(texts, ids, labels=labels)
    ]
    assert answers == [
        ("right", "right", "right"),
        ("right", "wrong", "wrong"),
        ("wrong", "right", "wrong"),
        ("wrong", None, None),
    ]


def test_context_explains_an_abbreviation(kb):
    context = "Heart disease (HD) is common."
    alone, explained = (
        kb.verify(["HD"], ["C0000003"], contexts=given)[0]
        for given in (None, [context])
    )
    assert explained.verdict == "right"
    assert alone.probability is not None
    assert explained.probability is not None
    assert alone.probability < explained.probability


def test_taught_mentions_count(own_kb):
    mention = annotated_mention("MI", [["C0000002"]])
    documents = [annotated_document(f"{n}.txt", "MI", [mention]) for n in range(3)]
    kb = load_kb(own_kb)
    before = kb.verify(["MI", "MI"], ["C0000002", "C0000001"])
    taught, _ = teach_documents(kb, documents, force=True)
    after = taught.verify(["MI", "MI"], ["C0000002", "C0000001"])
    assert [v.verdict for v in before] == ["unsure", "unsure"]
    assert after[0].verdict == "right"
    assert after[1].probability < before[1].probability


def test_lists_of_other_lengths_are_an_error(kb):
    with pytest.raises(SapbertError, match="E359"):
        kb.verify(["fever", "pain"], ["C0000001"])
