import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from training.experiments.ablate import (
    Run,
    format_grid,
    read_grid,
    read_how,
    shared_settings,
)
from training.losses.registry import load_registry
from training.trainer.settings import DEFAULT_CONFIG, flatten_config, read_config

GRIDS = sorted((DEFAULT_CONFIG.parent / "ablations").glob("*.toml"))


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_read_grid_of_every_file_has_valid_runs(path: Path, tiny_encoder: Path) -> None:
    runs = read_grid(path)
    assert len({run.folder for run in runs}) == len(runs)
    for run in runs:
        read_how(Run(run.name, {**run.settings, "encoder.base": str(tiny_encoder)}))


def test_read_grid_of_losses_has_every_loss_and_miner() -> None:
    path = DEFAULT_CONFIG.parent / "ablations" / "losses.toml"
    configs = [
        dict(flatten_config(read_config(None, r.settings))) for r in read_grid(path)
    ]
    used = {config["training.loss.@losses"] for config in configs}
    assert used == {
        name for name in load_registry().losses.get_all() if "spacy-sap" in name
    }
    miners = {config["training.miner.@miners"] for config in configs}
    assert miners == {"spacy-sapbert.TripletMiner.v1", "spacy-sapbert.NoMiner.v1"}


def test_read_grid_combines_runs_and_values(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(
        '[every]\n"training.steps" = 2\n[grid]\n"training.seed" = [0, 1]\n'
        '"training.chunks" = [1]\n[runs.a]\n[runs.b]\n"training.steps" = 3\n',
        "utf8",
    )
    runs = read_grid(path)
    assert runs[1].folder == "a-training.chunks-1-seed-1"
    assert [(run.name, run.settings) for run in runs] == [
        (name, {"training.steps": steps, "training.seed": seed, "training.chunks": 1})
        for name, steps in (("a, training.chunks 1", 2), ("b, training.chunks 1", 3))
        for seed in (0, 1)
    ]


@pytest.mark.parametrize(
    "text", ["[other]\n", "[grid]\nx = 3\n", "[runs]\nx = 3\n", "[", '"training.x" = 1']
)
def test_read_grid_of_another_file_is_an_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(text, "utf8")
    with pytest.raises(SapbertError, match="E750"):
        read_grid(path)


def test_format_grid_has_mean_and_deviation_of_seeds() -> None:
    def result(name: str, value: float) -> Any:
        ties = dict.fromkeys(("lenient", "expected", "strict"), value)
        level = {"acc@1": ties, "acc@5": ties}
        accuracy = {"all": {"concepts": level, "rows": level}}
        return {
            "name": name,
            "files": {"dev": {"judged": 9, "coverage": 1.0, "accuracy": accuracy}},
        }

    table = format_grid([result("a", 0.5), result("b", 0.1), result("b", 0.3)])
    assert "| a | 1 | 0.500 / 0.500 / 0.500 |" in table
    assert "| b | 2 | 0.200 ± 0.141 /" in table


def test_shared_settings_are_those_of_all_runs() -> None:
    pooled = {"encoder.pooling": "mean", "training.steps": 2}
    runs = [
        Run("a", {**pooled, "encoder.max_length": 15}),
        Run("b", {**pooled, "encoder.max_length": 25}),
        Run("c", pooled),
    ]
    assert shared_settings(runs) == {"encoder.pooling": "mean"}
    assert shared_settings(runs[:1]) == {
        "encoder.pooling": "mean",
        "encoder.max_length": 15,
    }


def test_ablate_trains_missing_runs_and_writes_one_table(
    invoke: Callable[..., Any], tiny_encoder: Path, tmp_path: Path
) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(
        '[every]\n"training.steps" = 1\n"training.batch_size" = 2\n[runs.plain]\n'
        f'[runs.few]\n"pairs.most" = 1\n"pairs.concepts" = "{tmp_path}/fewer.jsonl"\n',
        "utf8",
    )
    concepts = [
        Concept("C1", ["heart attack", "infarction", "MI"]),
        Concept("C2", ["fever", "pyrexia"]),
    ]
    write_concepts(tmp_path / "concepts.jsonl", concepts)
    write_concepts(tmp_path / "fewer.jsonl", concepts[:1])
    (tmp_path / "dev.tsv").write_text("mention\tids\nHeart attack\tC1\n", "utf8")
    words = ["ablate", grid, tmp_path / "dev.tsv", "--base", tiny_encoder]
    words += ["--concepts", tmp_path / "concepts.jsonl", "--out", tmp_path / "out"]
    shown = invoke(*words).output
    assert "| plain | 1 | 1.000 / 1.000 / 1.000 |" in shown
    data = json.loads((tmp_path / "out" / "ablation.json").read_text("utf8"))
    assert [each["name"] for each in data] == ["before training", "plain", "few"]
    pairs = {
        len(path.read_text("utf8").splitlines())
        for path in (tmp_path / "out").glob("pairs-*.tsv")
    }
    assert pairs == {4, 1}  # of all concepts, and one of the only concept
    weights = tmp_path / "out" / "few-seed-0" / "encoder" / "model.safetensors"
    before = weights.stat().st_mtime_ns
    invoke(*words)
    assert weights.stat().st_mtime_ns == before
    # the folder of a run with another dictionary, whatever its name, or other settings
    (tmp_path / "other").mkdir()
    write_concepts(tmp_path / "other" / "concepts.jsonl", concepts[:1])
    for more in (
        ("--dictionary", tmp_path / "other" / "concepts.jsonl"),
        ("--pooling", "mean"),
    ):
        assert "E751" in invoke(*words, *more, code=1).output
    # another grid does not replace the table, and other settings no run, without force
    grid.write_text('[every]\n"training.steps" = 1\n[runs.other]\n', "utf8")
    assert "E624" in invoke(*words, code=1).output
    assert (tmp_path / "out" / "other-seed-0").exists() is False
    assert "| other | 1 |" in invoke(*words, "--force").output
    assert "| before training" in invoke(*words, "--pooling", "mean", "--force").output
