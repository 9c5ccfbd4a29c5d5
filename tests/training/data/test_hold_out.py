from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.gold_mentions import (
    read_mentions,
)
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from training.data.hold_out import draw_synonym, hold_out, hold_out_names, is_held_out


def test_hold_out_has_each_concept_once_in_order(tmp_path: Path) -> None:
    concepts = [Concept(f"C{i:03}", [f"name {i}"]) for i in range(500)]
    whole, one, other = (tmp_path / f"{name}.jsonl" for name in "abc")
    write_concepts(whole, concepts)
    counts = hold_out(whole, one, other, share=0.2, seed=1)
    trained, held = list(read_concepts(one)), list(read_concepts(other))
    assert counts == {"trained": len(trained), "held_out": len(held), "nameless": 0}
    assert 60 < len(held) < 140
    assert sorted([*trained, *held], key=lambda each: each.cui) == concepts
    assert trained == sorted(trained, key=lambda each: each.cui)


def test_is_held_out_does_not_depend_on_other_concepts() -> None:
    chosen = [i for i in range(20) if is_held_out(f"C{i}", share=0.3)]
    assert chosen == [i for i in range(20) if is_held_out(f"C{i}", share=0.3, seed=0)]
    larger = [i for i in range(20) if is_held_out(f"C{i}", share=0.6)]
    assert set(chosen) < set(larger)
    assert chosen != [i for i in range(20) if is_held_out(f"C{i}", share=0.3, seed=1)]


def test_hold_out_removes_held_out_names(tmp_path: Path) -> None:
    held = next(f"C{i}" for i in range(99) if is_held_out(f"C{i}", share=0.3))
    one, two = [f"D{i}" for i in range(99) if not is_held_out(f"D{i}", share=0.3)][:2]
    concepts = [
        Concept(held, ["Fever", "pyrexia"]),
        Concept(
            one,
            ["High fever", "FEVER", "hot"],
            parents=[held],
            languages={"ENG": [0, 1], "LAT": [1], "SPA": [2]},
            sources={"A": [1, 2]},
        ),
        Concept(two, ["Pyrexia"]),
    ]
    paths = [tmp_path / f"{name}.jsonl" for name in "abc"]
    write_concepts(paths[0], concepts)
    counts = hold_out(*paths, share=0.3)
    assert counts == {"trained": 1, "held_out": 1, "nameless": 1}
    assert list(read_concepts(paths[1])) == [
        Concept(
            one,
            ["High fever", "hot"],
            parents=[held],
            languages={"ENG": [0], "SPA": [1]},
            sources={"A": [1]},
        )
    ]
    assert list(read_concepts(paths[2])) == concepts[:1]


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_hold_out_with_an_empty_part_is_an_error(tmp_path: Path, share: float) -> None:
    write_concepts(tmp_path / "a.jsonl", [Concept("C1", ["a"]), Concept("C2", ["b"])])
    paths = [tmp_path / f"{name}.jsonl" for name in "abc"]
    with pytest.raises(SapbertError, match="E331"):
        hold_out(*paths, share=share)
    assert not paths[1].exists()


def test_draw_synonym_is_unlike_all_other_names() -> None:
    names = ["Heart Attack", "attack, heart", "heart attacks", "infarction", "MI", "mi"]
    drawn = {draw_synonym(Concept("C1", names), seed=seed) for seed in range(20)}
    assert drawn == {"infarction", "mi"}
    assert draw_synonym(Concept("C1", names[:3]), seed=0) is None
    assert draw_synonym(Concept("C1", ["pain"]), seed=0) is None


def test_hold_out_names_moves_a_name_of_one_concept_to_the_mentions(
    tmp_path: Path,
) -> None:
    concepts = [
        Concept("C1", ["fever", "Pyrexia", "pyrexia"], languages={"ENG": [0, 1]}),
        Concept("C2", ["hot", "shared"]),
        Concept("C3", ["cold", "Shared"]),
        Concept("C4", ["lonely"]),
    ]
    whole, trained = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    write_concepts(whole, concepts)
    counts = hold_out_names(whole, trained, tmp_path / "c.tsv", share=1.0)
    assert counts == {"concepts": 4, "held_out": 1}
    left = Concept("C1", ["fever"], languages={"ENG": [0]})
    assert list(read_concepts(trained)) == [left, *concepts[1:]]
    golds = list(read_mentions(tmp_path / "c.tsv"))
    assert [(gold.mention, gold.parts) for gold in golds] == [("pyrexia", [["C1"]])]


def test_hold_out_names_without_synonyms_is_an_error(tmp_path: Path) -> None:
    write_concepts(tmp_path / "a.jsonl", [Concept("C1", ["a"]), Concept("C2", ["b"])])
    with pytest.raises(SapbertError, match="E106"):
        hold_out_names(tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "c.tsv")
    assert not (tmp_path / "b.jsonl").exists()
