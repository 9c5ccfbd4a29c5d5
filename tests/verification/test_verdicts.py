"""Whether an id is the right one for a text: ids, chances, abbreviations, batches."""

from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path

import pytest
import srsly

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.naming import Named
from spacy_sapbert.kb.store import NameOfKey
from spacy_sapbert.verification.chances import (
    TABLE,
    Chances,
    compute_chances,
    is_short,
    is_spelled,
    weigh,
)
from spacy_sapbert.verification.ids import (
    FoundId,
    find_id,
    has_check_digit,
    repair_digits,
)
from spacy_sapbert.verification.verdicts import (
    Claim,
    Measured,
    Verdict,
    Verifier,
    add_counts,
    find_name_chance,
    judge,
)
from spacy_sapbert.vocabularies.concepts import Concept

BY_HAND = Path(__file__).parent / "verdicts.jsonl"


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
    swapped, broader = Verifier(kb).verify(
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


def test_a_concept_is_never_certain_if_a_text_is_not_a_name_of_it():
    values = dict.fromkeys(TABLE["right"]["weights"], 0.0)
    values |= dict.fromkeys(TABLE["right_named"]["weights"], 0.0)
    values |= dict.fromkeys(TABLE["related"]["weights"], 0.0)
    for model, named in (("right", False), ("right_named", True)):
        weights = TABLE[model]["weights"]
        sure = values | {name: 99 * weight for name, weight in weights.items()}
        assert weigh(sure, model) > 0.99
        assert compute_chances(sure, named=named).right == 0.98
        unsure = values | {name: -99 * weight for name, weight in weights.items()}
        assert compute_chances(unsure, named=named).right < 0.01


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


def test_a_verdict_does_not_depend_on_the_batch(thousand_names_kb):
    many = load_kb(thousand_names_kb)
    names = [*islice(many.store.preferred_names(40), 30)]
    texts = [f"{name} today" for _, name in names]
    ids = [cui for cui, _ in reversed(names)]
    verifier = Verifier(many)
    together = verifier.verify(texts, ids)
    alone = [verifier.verify([t], [c])[0] for t, c in zip(texts, ids, strict=True)]
    for one, other in zip(together, alone, strict=True):
        for name, value in asdict(one).items():
            if isinstance(value, float):  # of sums that differ with the batch
                assert value == pytest.approx(getattr(other, name), abs=1e-4)
            else:
                assert value == getattr(other, name)
    with pytest.raises(SapbertError, match="E359"):
        verifier.verify(texts, ids[:1])
