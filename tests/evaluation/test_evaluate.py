import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from spacy_sapbert.evaluation.evaluate import main

SENTINEL = "xyzzy"
GOLD = f"""mention\tids
Fever\tC0000004
MI\tC0000001
heart attack\tC9999999
{SENTINEL} {SENTINEL}\tC0000001+C0000002
headache\tMESH:1
nothing\t-1
"""

app = typer.Typer()
app.command()(main)


@pytest.fixture
def gold_file(tmp_path: Path) -> Path:
    path = tmp_path / "gold.tsv"
    path.write_text(GOLD, "utf8")
    return path


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_evaluate_writes_results_and_predictions(
    sample_kb: Path, gold_file: Path, tmp_path: Path
) -> None:
    aliases, seen = tmp_path / "aliases.tsv", tmp_path / "seen.txt"
    aliases.write_text("MESH:1\tC0000007\n", "utf8")
    seen.write_text("fever||C0000004\n", "utf8")
    output, predictions = tmp_path / "results.json", tmp_path / "predictions.jsonl"
    options = ["--aliases", aliases, "--seen", seen, "--output", output]
    result = run(sample_kb, gold_file, *options, "--predictions", predictions)
    assert result.exit_code == 0, result.output
    results = json.loads(output.read_text("utf8"))
    assert results["settings"]["ks"] == [1, 5]
    assert results["kb"]["counts"]["concepts"] == 8
    assert results["versions"]["spacy-sapbert"]
    assert results["index_recall"]["recall@10"] == 1
    (file,) = results["files"]
    assert (file["mentions"], file["judged"], file["without_id"]) == (6, 5, 1)
    assert file["coverage"] == 1
    groups = file["accuracy"]
    assert (groups["seen"]["mentions"], groups["unseen"]["mentions"]) == (1, 4)
    # Right for certain: fever, heart attack, headache; MI ties between two concepts;
    # a composite cannot be right with one answer.
    ties = groups["all"]["concepts"]["acc@1"]
    assert (ties["expected"], ties["strict"]) == (0.7, 0.6)
    rows = [json.loads(line) for line in predictions.read_text("utf8").splitlines()]
    assert [row["line"] for row in rows] == [2, 3, 4, 5, 6]
    assert rows[1]["cuis"][:2] == ["C0000001", "C0000002"]
    assert rows[4]["cuis"][0] == "C0000007"
    for written in (result.output, output.read_text(), predictions.read_text()):
        assert SENTINEL not in written
    assert "0.7000" in result.output


def test_evaluate_looks_training_mentions_up_first_if_asked(
    sample_kb: Path, gold_file: Path, tmp_path: Path
) -> None:
    train, output = tmp_path / "train.txt", tmp_path / "results.json"
    train.write_text("mi||C0000001\nheadache||C0000004\n", "utf8")
    result = run(sample_kb, gold_file, "--back-off", train, "--output", output)
    assert result.exit_code == 0, result.output
    results = json.loads(output.read_text("utf8"))
    assert list(results["settings"]["back_off"]) == ["train.txt"]
    # MI does not tie any more; "headache" has no id here, and would be wrong now
    accuracy = results["files"][0]["accuracy"]["covered"]
    assert accuracy["mentions"] == 4
    assert accuracy["concepts"]["acc@1"]["strict"] == 0.75


def test_evaluate_is_quiet_when_asked(sample_kb: Path, gold_file: Path) -> None:
    result = run(sample_kb, gold_file, "--quiet", "--k", 1)
    assert (result.exit_code, result.output) == (0, "")


def test_evaluate_counts_the_first_answer_once_with_k_1(
    sample_kb: Path, gold_file: Path
) -> None:
    result = run(sample_kb, gold_file, "--k", 1)
    assert "Acc@1 strict" in result.output
    assert "Acc@5" not in result.output


def test_evaluate_tells_file_and_line_and_leaves_no_output(
    sample_kb: Path, gold_file: Path, tmp_path: Path
) -> None:
    gold_file.write_text(f"{GOLD}{SENTINEL}\n", "utf8")
    output = tmp_path / "results.json"
    result = run(sample_kb, gold_file, "--output", output)
    assert result.exit_code == 1
    assert "gold.tsv:8:" in result.output.replace("\n", "")
    assert SENTINEL not in result.output
    assert not output.exists()


@pytest.mark.parametrize("option", ["parts", "released"])
def test_evaluate_knows_two_ways_of_composites(
    sample_kb: Path, gold_file: Path, tmp_path: Path, option: str
) -> None:
    output = tmp_path / "results.json"
    run(sample_kb, gold_file, "--composite", option, "--k", 8, "--output", output)
    results = json.loads(output.read_text("utf8"))
    assert results["settings"]["composite"] == option
    assert results["files"][0]["accuracy"]["all"]["concepts"]["acc@8"]["strict"] == 0.8


def test_evaluate_refuses_a_third_way(sample_kb: Path, gold_file: Path) -> None:
    result = run(sample_kb, gold_file, "--composite", "half")
    assert result.exit_code == 1
    assert "released" in result.output


def test_evaluate_refuses_a_folder_that_is_no_knowledge_base(
    tmp_path: Path, gold_file: Path
) -> None:
    assert run(tmp_path, gold_file).exit_code == 1


def test_evaluate_help_says_what_goes_in_and_out() -> None:
    output = run("--help").output
    assert "kb/ + mentions.tsv -> results.json" in output
    assert "Example: python -m spacy_sapbert.evaluation.evaluate" in output
