import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.encoder.huggingface import load_encoder
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from training.data.hierarchy import compute_distances, read_hierarchy
from training.data.hold_out import hold_out
from training.data.pairs import hash_text
from training.experiments.evaluate_hierarchy import (
    area_under_curve,
    compare_names,
    format_tables,
    score_distances,
    score_encoder,
    score_relations,
)
from training.experiments.held_out_pairs import NamePair, draw_pairs
from training.trainer.validation import embed_texts

WORDS = ["heart", "attack", "fever", "pain", "acute", "lung", "skin", "bone", "liver"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Nine parents of four children each; a name begins with its concept's id."""
    folder = tmp_path_factory.mktemp("held-out")
    concepts = [Concept(f"p{i}", [f"p{i} {word}"]) for i, word in enumerate(WORDS)]
    concepts += [
        Concept(f"c{i}{j}", [f"c{i}{j} {one}", f"c{i}{j} {two}"], parents=[f"p{i}"])
        for i, one in enumerate(WORDS)
        for j, two in enumerate(WORDS)
        if one != two and j < 4
    ]
    whole, trained, held = (folder / f"{name}.jsonl" for name in ("all", "one", "two"))
    write_concepts(whole, concepts)
    hold_out(whole, trained, held, share=0.3)
    rows = [("p0", "p1", "causes"), *((f"c{i}0", f"p{i}", "isa") for i in range(1, 9))]
    (folder / "MRREL.RRF").write_text(
        "".join(f"{a}||||{b}|||{rela}|||||||N||\n" for a, b, rela in rows), "utf8"
    )
    return whole, held, folder / "MRREL.RRF"


def test_draw_pairs_by_distance_has_the_distance_and_a_held_out_concept(
    files: tuple[Path, Path, Path],
) -> None:
    whole, held, _ = files
    pairs = draw_pairs(whole, held, most=1000)
    hierarchy = read_hierarchy(whole)
    unseen = {concept.cui for concept in read_concepts(held)}
    for pair in pairs:
        cuis = pair.one.split()[0], pair.other.split()[0]
        labels = np.array([hash_text(cui) for cui in cuis])
        assert compute_distances(hierarchy, labels)[0, 1] == int(pair.kind)
        assert cuis[0] in unseen
        assert pair.one != pair.other
    counts = Counter(pair.kind for pair in pairs)
    assert set(counts) == {"0", "1", "2", "3"}
    assert counts["3"] == len(unseen)
    assert draw_pairs(whole, held, most=1000) == pairs
    assert draw_pairs(whole, held, most=1000, seed=1) != pairs
    few = draw_pairs(whole, held, most=2)
    assert Counter(pair.kind for pair in few) == dict.fromkeys("0123", 2)
    assert set(few) <= set(pairs)


def test_draw_pairs_by_relation_has_a_held_out_concept(
    files: tuple[Path, Path, Path],
) -> None:
    whole, held, relations = files
    pairs = [
        pair
        for pair in draw_pairs(whole, held, relations, most=1000)
        if not pair.kind.isdigit()
    ]
    unseen = {concept.cui for concept in read_concepts(held)}
    expected = {f"p{i} c{i}0" for i in range(1, 9) if {f"p{i}", f"c{i}0"} & unseen} | (
        {"p1 p0"} if {"p0", "p1"} & unseen else set()
    )
    found = {f"{pair.one.split()[0]} {pair.other.split()[0]}" for pair in pairs}
    assert found == expected


def test_compare_names_has_the_cosines_of_the_encoder(tiny_encoder: Path) -> None:
    pairs = [NamePair("0", "heart attack", "fever"), NamePair("3", "pain", "fever")]
    tokenizer, model = load_encoder(str(tiny_encoder))
    names = ["heart attack", "fever", "pain"]
    one, fever, pain = embed_texts(
        model.eval(), tokenizer, names, pooling="mean", max_length=25
    )
    expected = [float(one @ fever), float(pain @ fever)]
    assert compare_names(str(tiny_encoder), pairs) == pytest.approx(expected, abs=1e-5)


def test_evaluate_hierarchy_writes_json_and_tables(
    invoke: Callable[..., Any],
    files: tuple[Path, Path, Path],
    tiny_encoder: Path,
    tmp_path: Path,
) -> None:
    whole, held, relations = files
    output = tmp_path / "results.json"
    words = ["evaluate-hierarchy", tiny_encoder, whole, held, output]
    invoke(*words, "--relations", relations)
    result = json.loads(output.read_text("utf8"))
    assert list(result["auc"]) == ["0-1", "0-2", "0-3", "1-2", "1-3", "2-3"]
    assert all(0 <= area <= 1 for area in result["auc"].values())
    assert list(result["average_precision"]) == ["0", "1", "2"]
    table = output.with_suffix(".md").read_text("utf8")
    assert table == format_tables(result)
    assert "| 0-3 |" in table
    assert "| `isa` |" in table
    pairs = draw_pairs(whole, held, relations, most=10_000)
    again = score_encoder(str(tiny_encoder), pairs)
    assert again["auc"] == result["auc"]


def test_draw_pairs_without_a_hierarchy_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "concepts.jsonl"
    write_concepts(path, [Concept("1", ["a", "b"])])
    with pytest.raises(SapbertError, match="E106"):
        draw_pairs(path, path, most=10)


few = st.lists(st.integers(-3, 3).map(lambda each: each / 4), min_size=1, max_size=20)


@given(few, few)
def test_area_under_curve_is_the_share_of_comparisons_won(
    near: list[float], far: list[float]
) -> None:
    won = sum((a > b) + (a == b) / 2 for a in near for b in far)
    found = area_under_curve(np.array(near), np.array(far))
    assert found == pytest.approx(won / len(near) / len(far))
    assert area_under_curve(np.array(near), np.zeros(0)) is None
    assert area_under_curve(np.zeros(0), np.array(far)) is None


def test_area_under_curve_names_the_extra_without_scikit_learn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)
    with pytest.raises(SapbertError, match=r"E521.*pip install"):
        area_under_curve(np.ones(2), np.ones(2))


def test_score_distances_by_hand() -> None:
    result = score_distances(
        np.array([0.9, 0.8, 0.6, 0.6, 0.2]), np.array([0, 1, 1, 3, 3])
    )
    assert result["pairs"] == {"0": 1, "1": 2, "3": 2}
    assert result["mean_cosine"] == {"0": 0.9, "1": 0.7, "3": 0.4}
    assert result["auc"] == {"0-1": 1.0, "0-3": 1.0, "1-3": 0.875}
    assert result["spearman"] is not None
    assert result["spearman"] > 0.8
    # of the three pairs up to 1, precision is 1, 1, and 3/4 at the tie of two
    assert result["average_precision"] == {"0": 1.0, "1": 0.9167}
    constant = score_distances(np.array([0.1, 0.2]), np.zeros(2, dtype=int))
    assert constant["spearman"] is None


def test_score_relations_by_hand() -> None:
    random = np.array([0.1, 0.3])
    names = np.array(["of", "in", "in"])
    result = score_relations(np.array([0.2, 0.9, 0.8]), names, random)
    assert list(result["relations"]) == ["in", "of"]
    assert result["relations"]["in"] == {"pairs": 2, "auc": 1.0}
    assert result["relations"]["of"] == {"pairs": 1, "auc": 0.5}
    assert result["mean_auc"] == 0.75
    assert score_relations(np.zeros(0), names[:0], random)["mean_auc"] is None
