import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.hybrid import main
from benchmarks.misspellings import misspell, misspell_mentions
from spacy_sapbert.evaluation.gold_mentions import GoldMention

app = typer.Typer()
app.command()(main)


@pytest.fixture
def gold_file(tmp_path: Path) -> Path:
    path = tmp_path / "gold.txt"
    lines = ["Fever||C0000004", "MI||C0000002", "headaches||C0000007", "...||C0000001"]
    path.write_text("\n".join(lines) + "\n", "utf8")
    return path


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_misspell_makes_one_mistake_and_always_the_same() -> None:
    for seed in range(30):
        changed = misspell("type 2 diabetes", seed)
        assert changed == misspell("type 2 diabetes", seed)
        assert changed != "type 2 diabetes"
        assert changed is not None
        assert abs(len(changed) - len("type 2 diabetes")) <= 1
        assert "2" in changed
    assert len({misspell("fever", seed) for seed in range(30)}) > 5


def test_misspell_leaves_out_what_is_short() -> None:
    assert misspell("p53 CD4", 0) is None
    golds = [GoldMention(1, "", "MI", [["C1"]]), GoldMention(2, "", "fever", [["C2"]])]
    (gold,) = misspell_mentions(golds, 0)
    assert (gold.line, gold.parts) == (2, [["C2"]])


def test_hybrid_puts_all_on_one_table(
    sample_kb: Path, gold_file: Path, tmp_path: Path
) -> None:
    output, train = tmp_path / "hybrid.json", tmp_path / "train.txt"
    train.write_text("febrile||C0000004\naspirin||C0000006\n", "utf8")
    result = run(gold_file, "--kb", sample_kb, "--train", train, "--output", output)
    assert result.exit_code == 0, result.output
    data = json.loads(output.read_text("utf8"))
    names = [*data["files"]]
    assert names == [
        "train.txt",
        "train.txt, misspelled",
        "gold.txt",
        "gold.txt, misspelled",
    ]
    assert [data["files"][name]["judged"] for name in names] == [2, 2, 4, 2]
    linkers = data["files"]["gold.txt"]["linkers"]
    assert [*linkers][0] == "cosine alone"
    assert [*linkers][-1] == "rrf"
    assert linkers["3-grams alone"]["acc@1"]["lenient"] == 0.75
    assert data["chosen"] == "weighted, 0.1"  # all are right: the smallest
    assert data["ngrams"]["names"] == data["kb"]["counts"]["rows"]
    assert "| 3-grams alone | 0.750 / 0.625 |" in result.output


def test_hybrid_names_what_is_missing(gold_file: Path, tmp_path: Path) -> None:
    result = run(gold_file, "--kb", tmp_path / "none")
    assert result.exit_code == 1
    assert "E310" in result.output


def test_hybrid_refuses_files_of_one_name(sample_kb: Path, gold_file: Path) -> None:
    result = run(gold_file, "--kb", sample_kb, "--train", gold_file)
    assert result.exit_code == 1
    assert "E740" in result.output
