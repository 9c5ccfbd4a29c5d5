"""Whether an id is the right one for a text: ids, chances, abbreviations, batches."""

from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path

import pytest
import srsly

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.ids import (
    FoundId,
    find_id,
    read_term,
)
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.naming import Named
from spacy_sapbert.kb.store import NameOfKey
from spacy_sapbert.verification.chances import (
    TABLE,
    Chances,
    compute_chances,
    is_apart,
    is_short,
    is_spelled,
    weigh,
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

# Of families, so that those before and after are written almost so
SYMBOLS = (
    "SELENOI SELENOS SELENOK SELENOT IL6 IL6R IL6ST CXCL8 CXCR1 CXCR2 BRCA1 BRCA2 TP53 "
    "TP63 TP73 KRAS NRAS HRAS EGFR ERBB2 ERBB3 MLH1 MLH3 MSH2 MSH6 PMS2 CDK4 CDK6 "
    "CDKN2A CDKN2B SMAD2 SMAD3 SMAD4 NOTCH1 NOTCH2 NOTCH3 FGFR1 FGFR2 FGFR3 COL1A1 "
    "COL1A2 COL4A5 SCN1A SCN2A SCN5A KCNQ1 KCNQ2 KCNH2 HBA1 HBA2 HBB HBD TSC1 TSC2 "
    "PKD1 PKD2 APOE APOB APOA1 STAT1 STAT3 JAK1 JAK2 PSEN1 PSEN2 VEGFA"
)
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
            assert find_id(kb.store, id)._replace(names=()) == FoundId(**lists), id
    swapped, broader = Verifier(kb).verify(
        ["Myocardial infarction", "Diabetes mellitus"], ["22289006", "E14"]
    )
    assert swapped.why.endswith(f"is mistyped. {heart} is written almost so.")
    assert (broader.verdict, broader.relation) == ("near", "broader")
    assert broader.why == "The code is broader than Diabetes mellitus."
    named = [*concepts, Concept("C9", ["E11.9"])]
    (tmp_path / "named").mkdir()
    codes_and_names = load_kb(make_kb(tmp_path / "named", named))
    (verdict,) = Verifier(codes_and_names).verify(["E11.9"], ["C1"])
    assert verdict.probability == pytest.approx(0.33)  # two have the code, one the name
    # What `map` finds for a term that is an id or a code is right.
    texts = [heart, "E11.9", "E14", "73211009"]
    verdicts = Verifier(kb).verify(texts, [heart, "C1", "E14", heart])
    found = [(v.verdict, v.why) for v in verdicts]
    assert found[0] == ("right", "The text is an id of Myocardial infarction.")
    assert [verdict for verdict, _ in found[1:]] == ["unsure", "near", "wrong"]
    (tmp_path / "mesh").mkdir()
    store = load_kb(make_kb(tmp_path / "mesh", [Concept("MESH:D1", ["fever"])])).store
    ids = ("D1", "d1", "X:D1", "MESH_D1")
    assert {find_id(store, id).meant for id in ids} == {("MESH:D1",)}
    assert find_id(store, "X:1, MESH:D1").meant == ("MESH:D1",)  # not D1 alone
    assert read_term(store, "MESH_D1").cuis == ("MESH:D1",)


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


def test_nearest_concept_of_a_vocabulary_that_lacks_the_right_one_is_not_right(
    thousand_names_kb,
):
    """Where `link` has no hope, the claim has none but that of the person."""
    kb = load_kb(thousand_names_kb)
    texts = ["glaucoma", "snake bite", "psoriasis of scalp", "lupus erythematosus"]
    firsts = [link.candidates[0] for link in kb.link(texts)]
    verdicts = Verifier(kb).verify(texts, [first["cui"] for first in firsts])
    for first, verdict in zip(firsts, verdicts, strict=True):
        assert first["probability"] < 0.1
        assert (verdict.verdict, verdict.better) == ("unsure", None)
        assert verdict.probability == 0.5
        assert "is the nearest concept, but" in verdict.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("h/o heart attack", "past: h/o"),
        ("F/H heart attack", "family: F/H"),
        ("? heart attack", "suspected: ?"),
        ("heart attack, left", ""),  # a side is not another concept
    ],
)
def test_text_that_says_something_else_than_the_concept_is_for_a_person(kb, text, why):
    verdict, retired = Verifier(kb).verify([text] * 2, ["C0000001", "C9999999"])
    if why:
        assert verdict.verdict == retired.verdict == "unsure"
        assert verdict.why.endswith(f"than {verdict.name}: {why}.")
    else:
        assert "says something else" not in verdict.why


def test_chances_of_names_and_of_annotated_mentions_by_hand():
    def name(*likeness: int) -> list[Named]:
        """Names of the concepts 0, 1, …"""
        keys = [NameOfKey("x", 0, concept, 0) for concept in range(len(likeness))]
        return [Named(*pair) for pair in zip(keys, likeness, strict=True)]

    named = name(3, 2, 3)
    chances = [find_name_chance(named, concept) for concept in range(4)]
    assert chances == [0.495, 0.3, 0.495, 0.0]
    assert find_name_chance([*name(2), *name(3)], 0) == 0.99
    # the text is the preferred name of 2, and of 1, which is written less alike
    chances = [find_name_chance(named, concept, {1, 2}) for concept in range(4)]
    assert chances == [0.3, 0.3, 0.99, 0.0]
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


def test_a_symbol_with_the_id_of_another_gene_is_wrong(make_kb, tmp_path):
    """Each with its id, and with those of the genes before and after it."""
    symbols = SYMBOLS.split()
    assert len(symbols) == 66
    concepts = [Concept(f"G{n}", [f"{s} gene", s]) for n, s in enumerate(symbols)]
    verifier = Verifier(load_kb(make_kb(tmp_path, concepts)))
    ids = [concept.cui for concept in concepts]
    found = [verdict.verdict for verdict in verifier.verify(symbols, ids)]
    assert found == ["right"] * 66
    for others in (ids[1:] + ids[:1], ids[-1:] + ids[:-1]):
        found = [verdict.verdict for verdict in verifier.verify(symbols, others)]
        assert found == ["wrong"] * 66


def test_a_text_that_is_the_name_of_another_concept(make_kb, tmp_path):
    """Wrong, unless it may be an abbreviation of the claimed, or is broader."""
    concepts = [
        Concept("LIP", ["Lipitor", "Lipitor tablets"]),
        Concept("ATO", ["atorvastatin", "Lipitor"]),
        Concept("ZOC", ["simvastatin", "Zocor"]),
        Concept("MYO", ["myocardial infarction", "MI"]),
        Concept("MIT", ["mitral insufficiency"]),
        Concept("HYP", ["hypersensitivity"]),
        Concept("DRU", ["drug hypersensitivity"]),
        Concept("ONE", ["cold"]),
        Concept("TWO", ["cold"]),
    ]
    verifier = Verifier(load_kb(make_kb(tmp_path, concepts)))
    expected = [
        ("Lipitor", "LIP", "right"),  # its preferred name
        ("lipitor", "LIP", "right"),
        ("Lipitor", "ATO", "unsure"),
        ("Lipitor", "ZOC", "wrong"),
        ("Zocor", "ATO", "wrong"),
        ("MI", "MYO", "right"),
        ("MI", "MIT", "unsure"),  # its initials
        ("MI", "ATO", "wrong"),
        ("hypersensitivity", "DRU", "unsure"),
        ("cold", "ONE", "unsure"),
    ]
    texts, ids, verdicts = map(list, zip(*expected, strict=True))
    found = [verdict.verdict for verdict in verifier.verify(texts, ids)]
    assert [*zip(texts, ids, found, strict=True)] == expected


@pytest.mark.parametrize(
    ("text", "names", "apart"),
    [
        ("SELENOI", ["SELENOS", "selenoprotein S"], True),
        ("IL6", ["IL6R gene", "IL6R"], True),
        ("tetanus", ["Tetany"], True),
        ("fever", [], True),
        ("psychoses", ["Psychosis, Substance-Induced"], False),
        ("familial breast cancer", ["Neoplasm of breast", "Breast cancers"], False),
        ("MI", ["Infarction", "mitral insufficiency"], False),
        ("mi", ["mitral insufficiency"], True),
    ],
)
def test_is_apart_unless_an_abbreviation_or_broader_or_narrower(text, names, apart):
    assert is_apart(text, names) is apart


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
