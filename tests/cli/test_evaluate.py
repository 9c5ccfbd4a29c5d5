import json
import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.cli.main import app
from tests.commands import invoke
from tests.faults import DONE, KILLED, REFUSED, stop_at

SENTINEL = "xyzzy"
GOLD = f"""mention\tids
Fever\tC0000004
MI\tC0000001
heart attack\tC9999999
{SENTINEL} {SENTINEL}\tC0000001+C0000002
headache\tMESH:1
nothing\t-1
"""


@pytest.fixture
def gold_file(tmp_path: Path) -> Path:
    path = tmp_path / "gold.tsv"
    path.write_text(GOLD, "utf8")
    return path


run = partial(invoke, "evaluate")


def test_evaluate_writes_results_and_predictions(
    sample_kb: Path, gold_file: Path, tmp_path: Path
) -> None:
    aliases, seen = tmp_path / "aliases.tsv", tmp_path / "seen.txt"
    aliases.write_text("MESH:1\tC0000007\n", "utf8")
    seen.write_text("fever||C0000004\n", "utf8")
    output, predictions = tmp_path / "evaluation.json", tmp_path / "predictions.jsonl"
    options = ["--aliases", aliases, "--seen", seen, "--output", output]
    result = run(sample_kb, gold_file, *options, "--predictions", predictions, code=0)
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
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[:5] == [
        "gold.tsv: 5 mentions (1 without an id, or repeated, are left out)",
        "",
        "first answer is right 70.0% (29.9% to 92.7%)",
        "one of the first 5 is right 100.0% (56.6% to 100.0%)",
        "",
    ]
    assert all("Wrote" in line for line in lines[5::2])


def test_evaluate_prints_nothing_if_quiet(sample_kb: Path, gold_file: Path) -> None:
    result = run(sample_kb, gold_file, "--quiet", "--k", 1)
    assert (result.exit_code, result.output) == (0, "")


def test_evaluate_has_one_row_for_k_1(sample_kb: Path, gold_file: Path) -> None:
    result = run(sample_kb, gold_file, "--k", 1)
    assert "first answer" in result.output
    assert "one of" not in result.output


def test_evaluate_names_the_bad_line_and_writes_nothing(
    sample_kb: Path, gold_file: Path, tmp_path: Path
) -> None:
    gold_file.write_text(f"{GOLD}{SENTINEL}\n", "utf8")
    output = tmp_path / "evaluation.json"
    result = run(sample_kb, gold_file, "--output", output, code=1)
    assert "gold.tsv:8:" in result.output.replace("\n", "")
    assert SENTINEL not in result.output
    assert not output.exists()


@pytest.mark.parametrize("option", ["parts", "released"])
def test_evaluate_scores_composites_in_two_ways(
    sample_kb: Path, gold_file: Path, tmp_path: Path, option: str
) -> None:
    output = tmp_path / "evaluation.json"
    run(sample_kb, gold_file, "--composite", option, "--k", 8, "--output", output)
    results = json.loads(output.read_text("utf8"))
    assert results["settings"]["composite"] == option
    assert results["files"][0]["accuracy"]["all"]["concepts"]["acc@8"]["strict"] == 0.8


def test_evaluate_refuses_other_composites(sample_kb: Path, gold_file: Path) -> None:
    assert "released" in run(sample_kb, gold_file, "--composite", "half", code=2).output


def test_evaluate_help_names_input_and_output() -> None:
    output = run("--help").output
    assert "kb/ + mentions.tsv … -> accuracy, metrics.json" in output
    assert "Example: spacy sapbert evaluate" in output


def write_predictions(path: Path, cuis: Sequence[str], file: str = "gold.tsv") -> Path:
    rows = [
        {"file": file, "line": line, "cuis": [cui], "scores": [0.9]}
        for line, cui in enumerate(cuis, 2)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf8")
    return path


OTHER = ["C0000004", "C0000002", "C0000008", "C0000001", "C0000007"]


def test_evaluate_compares_with_other_predictions(
    sample_kb: Path, gold_file: Path, tmp_path: Path
) -> None:
    pytest.importorskip("scipy", reason="no scipy")
    aliases, output = tmp_path / "aliases.tsv", tmp_path / "evaluation.json"
    aliases.write_text("MESH:1\tC0000007\n", "utf8")
    other = write_predictions(tmp_path / "other.jsonl", OTHER)
    options = ["--aliases", aliases, "--compare", other, "--output", output]
    result = run(sample_kb, gold_file, *options, code=0)
    assert "other.jsonl" in result.output
    comparison = json.loads(output.read_text("utf8"))["comparison"]
    assert comparison["with"]["file"] == "other.jsonl"
    (found,) = comparison["results"]
    strict = found["ties"]["strict"]
    # Both link fever and headache; only this one links heart attack for certain.
    assert (strict["first"], strict["second"]) == (0.4, 0.6)
    assert (strict["only_first"], strict["only_second"], strict["p"]) == (0, 1, 1)
    assert SENTINEL not in result.output + output.read_text("utf8")


def test_evaluate_compared_with_itself_has_no_difference(
    sample_kb: Path, gold_file: Path, tmp_path: Path
) -> None:
    pytest.importorskip("scipy", reason="no scipy")
    own = tmp_path / "own.jsonl"
    run(sample_kb, gold_file, "--predictions", own, code=0)
    assert (
        "+0.0% (+0.0% to +0.0%)" in run(sample_kb, gold_file, "--compare", own).output
    )


@pytest.mark.parametrize(
    ("cuis", "file", "code"),
    [(OTHER[:4], "gold.tsv", "E743"), ([*OTHER, "C1"], "gold.tsv", "E743")]
    + [(OTHER, "other.tsv", "E743")],
)
def test_evaluate_refuses_predictions_for_other_mentions(
    sample_kb: Path, gold_file: Path, tmp_path: Path, cuis: list, file: str, code: str
) -> None:
    other = write_predictions(tmp_path / "other.jsonl", cuis, file)
    assert code in run(sample_kb, gold_file, "--compare", other, code=1).output


def test_evaluate_refuses_two_files_of_one_name(
    sample_kb: Path, gold_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "more").mkdir()
    twin = tmp_path / "more" / gold_file.name
    twin.write_text(GOLD, "utf8")
    assert "E423" in run(sample_kb, gold_file, twin, code=1).output


def test_evaluate_of_ids_in_another_form_is_an_error(
    sample_kb: Path, tmp_path: Path
) -> None:
    path = tmp_path / "gold.tsv"
    rows = "".join(f"{SENTINEL} {number}\tUMLS:C0000004\n" for number in range(10))
    path.write_text(f"mention\tids\n{rows}", "utf8")
    result = run(sample_kb, path, code=1)
    assert "E725" in result.output
    assert "none of 10 has one, e.g. 'UMLS:C0000004'" in result.output
    assert SENTINEL not in result.output
    # The columns are swapped.
    rows = "".join(f"C0000004 {number}\t{SENTINEL}\n" for number in range(10))
    path.write_text(f"mention\tids\n{rows}", "utf8")
    result = run(sample_kb, path, code=1)
    assert "E725" in result.output
    assert SENTINEL not in result.output


def test_evaluate_of_few_ids_with_another_prefix_is_an_error(
    sample_kb: Path, tmp_path: Path
) -> None:
    path = tmp_path / "gold.tsv"
    path.write_text(f"mention\tids\n{SENTINEL}\tUMLS:C0000001\n", "utf8")
    result = run(sample_kb, path, code=1)
    assert "E725" in result.output
    assert "It has 'C0000001'." in result.output
    path.write_text(f"mention\tids\n{SENTINEL}\tC8888888\n", "utf8")
    assert "the concepts of 0.0%" in " ".join(
        run(sample_kb, path, code=0).output.split()
    )


def test_evaluate_prints_no_line_longer_than_80_characters(
    sample_kb: Path, tmp_path: Path
) -> None:
    path = tmp_path / "gold.tsv"
    path.write_text(f"mention\tids\n{SENTINEL}\tC0000001\n", "utf8")
    result = run(sample_kb, path, code=0)
    assert max(map(len, result.output.splitlines())) <= 80
    assert "\x1b" not in result.output
    assert "====" not in result.output


def stop_evaluations(kb: Path, gold: Path, work: Path) -> None:
    """Stop an evaluation at many writes: each output is whole, or there is none."""
    from transformers import AutoModel  # noqa: F401, once and not in each fork

    def evaluate(folder: Path) -> None:
        outputs = ["--output", folder / "e.json", "--predictions", folder / "p.jsonl"]
        outputs += ["--errors", folder / "e.html", "--errors", folder / "e.jsonl"]
        app([str(word) for word in ("evaluate", kb, gold, "--quiet", *outputs)])

    assert stop_at("kill", 1000, lambda: evaluate(work / "whole")) == DONE
    whole = {path.name: path.read_bytes() for path in (work / "whole").iterdir()}
    assert len(whole) == 4
    few = range(1, 60, 4)
    moments = {"kill": few, "full": few, "limit": (1, 700, 2000, 1_000_000)}
    for how, each in moments.items():
        ends, written = set(), set()
        for moment in each:
            folder = work / "out"
            ends.add(stop_at(how, moment, lambda: evaluate(folder)))  # noqa: B023
            for path in folder.glob("[!.]*"):
                assert path.read_bytes() == whole[path.name], (how, moment)
                written.add(path.name)
            shutil.rmtree(folder, ignore_errors=True)
        assert ends == {DONE, KILLED if how == "kill" else REFUSED}, how
        assert written == {*whole}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_evaluate_stopped_at_any_write_leaves_whole_outputs(
    sample_kb: Path, gold_file: Path, tmp_path: Path, new_process: Any
) -> None:
    new_process.call(stop_evaluations, sample_kb, gold_file, tmp_path)
