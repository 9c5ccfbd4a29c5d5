import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.compare_linkers import main

app = typer.Typer()
app.command()(main)


@pytest.fixture
def gold_file(tmp_path: Path) -> Path:
    path = tmp_path / "gold.txt"
    path.write_text("Fever||C0000004\nMI||C0000002\nheadaches||C0000007\n", "utf8")
    return path


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_compare_linkers_puts_all_on_one_table(
    sample_kb: Path, concepts_file: Path, gold_file: Path, tmp_path: Path
) -> None:
    output, seen = tmp_path / "comparison.json", tmp_path / "train.txt"
    seen.write_text("fever||C0000004\n", "utf8")
    options = ["--dictionary", concepts_file, "--seen", seen]
    options += ["--kb", f"tiny={sample_kb}", "--kb", f"tiny={sample_kb}"]
    result = run(gold_file, *options, "--output", output)
    assert result.exit_code == 0, result.output
    data = json.loads(output.read_text("utf8"))
    assert list(data["linkers"]) == ["exact look-up", "TF-IDF", "tiny"]
    assert data["machine"]["versions"]["scikit-learn"]
    seeds = data["files"][0]["linkers"]
    assert {name: len(each) for name, each in seeds.items()} == {
        "exact look-up": 1,
        "TF-IDF": 1,
        "tiny": 2,
    }
    judged = {name: each[0] for name, each in seeds.items()}
    assert judged["TF-IDF"]["accuracy"]["unseen"]["mentions"] == 2
    exact = judged["exact look-up"]["accuracy"]["all"]["concepts"]["acc@1"]
    assert exact == {"lenient": 0.666667, "expected": 0.5, "strict": 0.333333}
    ngrams = judged["TF-IDF"]["accuracy"]["all"]["concepts"]["acc@1"]
    assert ngrams == {"lenient": 1.0, "expected": 0.833333, "strict": 0.666667}
    assert all(linker["coverage"] == 1 for linker in judged.values())
    assert "| exact look-up | 1.000 | 0.667 / 0.500 / 0.333 |" in result.output
    assert "± 0.000" in result.output.partition("| tiny | 1.000 |")[2]


def test_compare_linkers_runs_without_a_knowledge_base(
    concepts_file: Path, gold_file: Path
) -> None:
    result = run(gold_file, "--dictionary", concepts_file, "--quiet")
    assert (result.exit_code, result.output) == (0, "")
