"""Whether an id is the right one for a text: ids, names, vetoes, labels, contexts."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import srsly

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.naming import Named
from spacy_sapbert.kb.store import NameOfKey
from spacy_sapbert.kb.teaching.teach import teach_documents
from spacy_sapbert.kb.verification.chances import (
    Chances,
    is_short,
    is_spelled,
)
from spacy_sapbert.kb.verification.ids import (
    FoundId,
    find_id,
    has_check_digit,
    repair_digits,
)
from spacy_sapbert.kb.verification.verify import (
    VERDICTS,
    Claim,
    Measured,
    Verdict,
    add_counts,
    find_name_chance,
    judge,
)
from spacy_sapbert.vocabularies.concepts import Concept
from tests.building import annotated_document, annotated_mention
from tests.thousand_names import LACKING

BY_HAND = Path(__file__).parent / "verdicts.jsonl"


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


def test_ids_as_somebody_wrote_them(make_kb, tmp_path):
    heart, codes = "22298006", {"ICD10CM": ["E11.9"]}
    related = {"broader": {"ICD10": ["E14"]}}
    concepts = [
        Concept(heart, ["Myocardial infarction"], retired=["OLD"]),
        Concept("73211009", ["Diabetes mellitus"], codes=codes, related_codes=related),
        Concept("C1", ["Diabetes"], codes=codes),
    ]
    kb = load_kb(make_kb(tmp_path, concepts))
    for kind, id, found, *_ in srsly.read_jsonl(BY_HAND):
        if kind == "id":
            lists = {
                k: tuple(v) if isinstance(v, list) else v for k, v in found.items()
            }
            assert find_id(kb.store, id) == FoundId(**lists), id
    swapped, broader = kb.verify(
        ["Myocardial infarction", "Diabetes mellitus"], ["22289006", "E14"]
    )
    assert swapped.why.endswith(f"is mistyped. {heart} is written almost so.")
    assert (broader.verdict, broader.relation) == ("near", "broader")
    assert broader.why == "The code is broader than Diabetes mellitus."
    (tmp_path / "mesh").mkdir()
    store = load_kb(make_kb(tmp_path / "mesh", [Concept("MESH:D1", ["fever"])])).store
    assert {find_id(store, id).meant for id in ("D1", "d1", "X:D1")} == {("MESH:D1",)}


@pytest.mark.parametrize("id", ["22298006", "404684003", "138875005", "64572001"])
def test_each_wrong_digit_of_a_snomed_id_is_noticed(id):
    assert has_check_digit(id)
    others = [
        id[:place] + digit + id[place + 1 :]
        for place, old in enumerate(id)
        for digit in "0123456789"
        if digit != old
    ]
    assert not any(map(has_check_digit, others))
    assert all(id in {*repair_digits(other)} for other in others)


def test_judge_by_hand():
    """Chances, what is known, measured and found of an id, the verdict and why."""
    for kind, *given, verdict, why in srsly.read_jsonl(BY_HAND):
        if kind == "verdict":
            chances, known, measured, found = given
            claim = Verdict("unsure", name="N", cui="C1", **known)
            judged = judge(
                claim, Measured(Chances(*chances), **measured), FoundId(**found)
            )
            assert judged == replace(claim, verdict=verdict, why=why)


def test_chances_of_names_and_of_annotated_mentions_by_hand():
    def name(*likeness: int) -> list[Named]:
        """Names of the concepts 0, 1, …"""
        keys = [NameOfKey("x", 0, concept, 0) for concept in range(len(likeness))]
        return [Named(*pair) for pair in zip(keys, likeness, strict=True)]

    named = name(3, 2, 3)
    chances = [find_name_chance(named, concept) for concept in range(4)]
    assert chances == [0.495, 0.3, 0.495, 0.0]
    assert find_name_chance([*name(2), *name(3)], 0) == 0.99
    counts = {"x": {"C1": 3, "C2": 1}, "y": {}}
    for text, cui, expected in (
        ("x", "C1", (0.666667, 1.0)),  # (3 + 2 · 0.5) of (4 + 2)
        ("x", "C3", (0.166667, 0.2)),
        ("y", "C1", (0.5, 0.2)),
    ):
        assert add_counts(Chances(0.5, 0.2), counts, Claim(text, cui)) == expected


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
        ("BIs", "bed incident", True),
        ("Bs", "bed", False),  # too short for a plural
        ("CD", "Carcinoma of the duct", True),
        ("SOB", "shortness of breath", True),
        ("COD", "Carcinoma of the duct", False),
        ("CHF", "congestive heart failure, left", False),
    ],
)
def test_an_abbreviation_is_spelled_by_the_words_of_a_name(text, name, spelled):
    assert is_spelled(text, name) is spelled
    assert [*filter(is_short, ("mRNA", "SAIDS", "fever"))] == ["mRNA", "SAIDS"]


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
