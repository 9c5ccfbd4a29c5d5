"""A run over pairs, relations and families."""

import json
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch
from confection import Config
from safetensors.torch import load_file
from transformers import AutoTokenizer

from spacy_sapbert.errors import SapbertError
from training.data.dataset import build_dataset
from training.data.hierarchy import FAMILY, read_hierarchy
from training.data.pairs import hash_text
from training.trainer.batches import Source, collate_batch
from training.trainer.settings import DEFAULT_CONFIG, make_settings, read_config

MakeConfig = Callable[..., Config]


@pytest.fixture(scope="module")
def config(
    forest: dict[str, str], small_settings: dict[str, Any]
) -> Callable[..., Config]:
    """The config file for hierarchies with the tiny encoder."""

    def make(more: dict[str, Any] | None = None) -> Config:
        path = DEFAULT_CONFIG.with_name("hierarchy.cfg")
        return read_config(path, {**small_settings, **forest, **(more or {})})

    return make


def test_collate_batch_of_families_has_every_distance(
    forest: dict[str, str], tiny_encoder: Path, tmp_path: Path
) -> None:
    families = Path(forest["hierarchy.families"])
    dataset = build_dataset(
        families,
        tmp_path / "corpus",
        AutoTokenizer.from_pretrained(tiny_encoder),
        max_length=12,
        lowercase=True,
    )
    hierarchy = read_hierarchy(Path(forest["hierarchy.concepts"]))
    firsts = np.arange(0, 45, 9)[:, None] * FAMILY
    numbers = (firsts + np.arange(FAMILY)).reshape(-1)
    source = Source("families", families, dataset, hierarchy)
    batch = collate_batch(source, numbers)
    assert batch.distances is not None
    assert batch.distances.shape == (len(batch.labels), len(batch.labels))
    assert set(batch.distances.unique().tolist()) == {0, 1, 2, 3}
    same = batch.labels[:, None] == batch.labels[None, :]
    assert torch.equal(batch.distances == 0, same)
    assert int(batch.labels[0]) == hash_text("p0")
    alone = source._replace(hierarchy=None)
    assert collate_batch(alone, numbers).distances is None


def test_train_on_all_files_lowers_the_loss_of_families(
    config: MakeConfig, run_training: Any, tmp_path: Path, pairs_file: Path
) -> None:
    summary = run_training(tmp_path, pairs_file, config({"training.epochs": 6}))
    # 72 pairs are 5 batches of 16, 8 relations 1, 45 families of three 9
    assert summary["steps"] == 6 * (5 + 1 + 9)
    assert (summary["pairs"], summary["relations"]) == (72, 8)
    assert summary["families"] == 45
    folder = tmp_path / "encoder"
    lines = (folder / "training.jsonl").read_text("utf8").splitlines()
    log = [json.loads(line) for line in lines]
    by_source = {
        name: [entry["loss"] for entry in log if entry["source"] == name]
        for name in ("pairs", "relations", "families")
    }
    assert [len(each) for each in by_source.values()] == [30, 6, 54]
    losses = by_source["families"]
    assert np.mean(losses[-9:]) < np.mean(losses[:9])
    card = (folder / "README.md").read_text("utf8")
    assert "| families of a hierarchy | 270 | 45 | 6 |" in card
    assert "| hierarchy_sha256 |" in card


def test_train_on_all_files_resumed_equals_an_unbroken_run(
    config: MakeConfig, run_training: Any, tmp_path: Path, pairs_file: Path
) -> None:
    made = config({"training.epochs": 1})
    run_training(tmp_path / "whole", pairs_file, made)
    stop = Event()
    stop.set()
    for _ in range(4):
        assert run_training(tmp_path / "cut", pairs_file, made, stop=stop) is None
    assert run_training(tmp_path / "cut", pairs_file, made)["steps"] == 15
    one, other = (
        load_file(tmp_path / name / "encoder" / "model.safetensors")
        for name in ("whole", "cut")
    )
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_make_settings_with_families_needs_concepts(config: MakeConfig) -> None:
    with pytest.raises(SapbertError, match="E423"):
        make_settings(config({"hierarchy.concepts": None}))


def test_train_on_incomplete_families_is_an_error(
    config: MakeConfig, run_training: Any, tmp_path: Path, pairs_file: Path
) -> None:
    odd = tmp_path / "odd.tsv"
    odd.write_text("a\tb\tc\n", "utf8")
    with pytest.raises(SapbertError, match="families of 3 lines.*1 lines"):
        run_training(tmp_path, pairs_file, config({"hierarchy.families": str(odd)}))
