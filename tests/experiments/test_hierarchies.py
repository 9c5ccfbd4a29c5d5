"""What an encoder knows of a hierarchy."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import typer

from experiments.hierarchies.evaluate_hierarchy import (
    main,
    score_distances,
    score_encoder,
    score_relations,
)
from experiments.hierarchies.held_out_pairs import draw_pairs
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from tests.commands import invoke
from training.data.dictionary import read_dictionary
from training.data.hierarchy import build_hierarchy, compute_distances
from training.data.hold_out import hold_out
from training.data.pairs import hash_text


def test_read_dictionary_folds_names_and_reads_retired_ids():
    concepts = [
        Concept("C1", ["Fever", "FEVER", "high  temperature"], retired=["C9", "C2"]),
        Concept("C2", ["fever"]),
    ]
    dictionary = read_dictionary(concepts)
    assert dictionary.names == {"fever": 0, "high temperature": 1}
    assert dictionary.cuis == [["C1", "C2"], ["C1"]]
    assert dictionary.lookup("C9") == "C1"
    assert dictionary.lookup("C2") == "C2"  # an id in use was not retired
    assert dictionary.lookup("C3") is None


app = typer.Typer()
app.command()(main)
WORDS = ["heart", "attack", "fever", "pain", "acute", "lung", "skin", "bone", "liver"]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> tuple[Path, Path, Path]:
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


def test_draw_pairs_by_distance_has_the_distance_and_a_held_out_concept(files):
    whole, held, _ = files
    pairs = draw_pairs(whole, held, most=1000)
    hierarchy = build_hierarchy(read_concepts(whole))
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


def test_evaluate_hierarchy_writes_json_and_prints_tables(
    files, tiny_encoder, tmp_path
):
    whole, held, relations = files
    output = tmp_path / "results.json"
    words = [tiny_encoder, whole, held, output, "--relations", relations]
    table = invoke(*words, app=app, code=0).output
    result = json.loads(output.read_text("utf8"))
    assert list(result["auc"]) == ["0-1", "0-2", "0-3", "1-2", "1-3", "2-3"]
    assert all(0 <= area <= 1 for area in result["auc"].values())
    assert "| 0-3 |" in table
    assert "| `isa` |" in table
    pairs = draw_pairs(whole, held, relations, most=10_000)
    again = score_encoder(str(tiny_encoder), pairs)
    assert again["auc"] == result["auc"]
    held.write_text("", "utf8")
    assert "[E106]" in str(invoke(*words, "--force", app=app).exception)


def test_score_distances_by_hand():
    result = score_distances(
        np.array([0.9, 0.8, 0.6, 0.6, 0.2]), np.array([0, 1, 1, 3, 3])
    )
    assert result["pairs"] == {"0": 1, "1": 2, "3": 2}
    assert result["auc"] == {"0-1": 1.0, "0-3": 1.0, "1-3": 0.875}
    assert result["spearman"] is not None
    assert result["spearman"] > 0.8
    constant = score_distances(np.array([0.1, 0.2]), np.zeros(2, dtype=int))
    assert constant["spearman"] is None


def test_score_relations_by_hand():
    random = np.array([0.1, 0.3])
    names = np.array(["of", "in", "in"])
    result = score_relations(np.array([0.2, 0.9, 0.8]), names, random)
    assert list(result["relations"]) == ["in", "of"]
    assert result["relations"]["in"] == {"pairs": 2, "auc": 1.0}
    assert result["relations"]["of"] == {"pairs": 1, "auc": 0.5}
    assert result["mean_auc"] == 0.75
    assert score_relations(np.zeros(0), names[:0], random)["mean_auc"] is None
