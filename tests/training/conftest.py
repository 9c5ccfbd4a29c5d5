"""A few pairs, and configs to train the tiny encoder on them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confection import Config

from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from training.data.families import write_families
from training.trainer.run import train
from training.trainer.settings import RunPaths, read_config

WORDS = ["heart", "attack", "fever", "pain", "acute", "lung", "skin", "bone", "liver"]


@pytest.fixture(scope="session")
def pairs_file(tmp_path_factory) -> Path:
    """Two orders of two words are one concept: easy to learn."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    lines = [
        f"C{i}{j}\t{one} {other}\t{other}, {one}"
        for i, one in enumerate(WORDS)
        for j, other in enumerate(WORDS)
        if i != j
    ]
    path.write_text("\n".join(lines) + "\n", "utf8")
    return path


@pytest.fixture(scope="session")
def forest(tmp_path_factory) -> dict[str, str]:
    """Files of nine concepts, each with four children, and relations between them,
    as settings."""
    folder = tmp_path_factory.mktemp("forest")
    concepts = []
    for i, word in enumerate(WORDS):
        concepts.append(Concept(f"p{i}", [word, f"{word} of it"]))
        concepts += [
            Concept(
                f"c{i}{j}", [f"{word} {other}", f"{other}, {word}"], parents=[f"p{i}"]
            )
            for j, other in enumerate(WORDS[:4])
        ]
    write_concepts(folder / "concepts.jsonl", concepts)
    write_families(folder / "concepts.jsonl", folder / "families.tsv")
    lines = [f"{one}+{WORDS[0]}\t{one}\t{WORDS[0]}" for one in WORDS[1:]]
    (folder / "relations.tsv").write_text("\n".join(lines) + "\n", "utf8")
    return {
        "training.relations": str(folder / "relations.tsv"),
        "hierarchy.families": str(folder / "families.tsv"),
        "hierarchy.concepts": str(folder / "concepts.jsonl"),
    }


@pytest.fixture(scope="session")
def quiet_encoder(tiny_encoder, tmp_path_factory) -> Path:
    """The tiny encoder without dropout, which differs between processes."""
    folder = Path(shutil.copytree(tiny_encoder, tmp_path_factory.mktemp("q") / "e"))
    config = json.loads((folder / "config.json").read_text("utf8"))
    config["hidden_dropout_prob"] = config["attention_probs_dropout_prob"] = 0.0
    (folder / "config.json").write_text(json.dumps(config), "utf8")
    return folder


@pytest.fixture(scope="session")
def small_settings(tiny_encoder) -> dict[str, Any]:
    """What differs from the default config, by dotted names."""
    return {
        "encoder.base": str(tiny_encoder),
        "encoder.pooling": "mean",
        "training.batch_size": 16,
        "training.epochs": 3,
        "training.precision": "float32",
        "training.optimizer.learning_rate": 1e-3,
    }


@pytest.fixture(scope="session")
def make_config(small_settings) -> Callable[..., Config]:
    """Make a config of these settings and some more."""

    def make(more: dict[str, Any] | None = None) -> Config:
        return read_config(None, {**small_settings, **(more or {})})

    return make


@pytest.fixture(scope="session")
def run_training() -> Callable[..., Any]:
    """Train into a folder, with all that belongs to the run beside the encoder."""

    def run(folder: Path, pairs: Path, config: Config, **kwargs: Any) -> Any:
        return train(
            RunPaths(pairs, folder / "encoder"),
            config,
            progress_bar=False,
            **kwargs,
        )

    return run


@pytest.fixture
def train_small(run_training, make_config, pairs_file, tmp_path) -> Callable[..., Any]:
    """Train on the pairs with some settings, into a folder of the test."""

    def run(more: dict[str, Any] | None = None, name: str = "", **kwargs: Any) -> Any:
        return run_training(tmp_path / name, pairs_file, make_config(more), **kwargs)

    return run
