import json
from pathlib import Path

import typer
from typer.testing import CliRunner

from benchmarks.compare_losses import VARIANTS, main
from spacy_sapbert.concepts import Concept, write_concepts
from training import losses, mining, other_losses  # noqa: F401 (registers)
from training.config import flatten_config, read_config
from training.registry import registry


def test_variants_are_all_losses_and_mining_on_and_off() -> None:
    configs = [
        dict(flatten_config(read_config(None, dict(each))))
        for each in VARIANTS.values()
    ]
    used = {config["training.loss.@losses"] for config in configs}
    assert used == {name for name in registry.losses.get_all() if "spacy-sap" in name}
    miners = {config["training.miner.@miners"] for config in configs}
    assert miners == {"spacy-sapbert.TripletMiner.v1", "spacy-sapbert.NoMiner.v1"}


def test_compare_losses_trains_what_is_not_there_and_writes_a_table(
    pairs_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    app = typer.Typer()
    app.command()(main)
    write_concepts(tmp_path / "concepts.jsonl", [Concept("C1", ["heart attack"])])
    (tmp_path / "dev.tsv").write_text("mention\tids\nHeart attack\tC1\n", "utf8")
    command = [str(pairs_file), str(tmp_path / "dev.tsv"), "--steps", "2"]
    command += ["--concepts", str(tmp_path / "concepts.jsonl")]
    command += ["--base", str(tiny_encoder), "--out", str(tmp_path / "out")]
    command += ["--only", "cosine"]
    for _ in range(2):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        assert "| cosine | 1.000 / 1.000 / 1.000 |" in result.output
    data = json.loads((tmp_path / "out" / "comparison.json").read_text("utf8"))
    assert data["runs"].keys() == {"base", "cosine"}
