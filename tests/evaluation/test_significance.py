import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from spacy_sapbert.evaluation.evaluate import main as evaluate
from spacy_sapbert.evaluation.significance import main

SENTINEL = "xyzzy"
# The first is right on lines 2 and 8, the second on 3 to 8; line 9 has no id.
GOLD = "mention\tids\n" + "".join(
    f"{SENTINEL} {mention}\t{ids}\n"
    for mention, ids in [
        ("a", "C1"),
        *(("b", "C2|C3") for _ in range(5)),
        ("c", "C9"),
        ("d", "-"),
    ]
)

app = typer.Typer()
app.command()(main)
evaluation = typer.Typer()
evaluation.command()(evaluate)


def write(path: Path, cuis: Sequence[str], file: str = "gold.tsv") -> Path:
    rows = [
        {"file": file, "line": line, "cuis": [cui, "C8"], "scores": [0.9, 0.1]}
        for line, cui in enumerate(cuis, 2)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    gold = tmp_path / "gold.tsv"
    gold.write_text(GOLD, "utf8")
    one = write(tmp_path / "one.jsonl", ["C1", *["C7"] * 5, "C9"])
    other = write(tmp_path / "other.jsonl", ["C7", *["C3"] * 5, "C9"])
    return {"gold": gold, "one": one, "other": other}


def run(*arguments: Any, first: Path, second: Path) -> Any:
    options = [*arguments, "--first", first, "--second", second]
    return CliRunner().invoke(app, [str(option) for option in options])


def compare(files: dict[str, Path], tmp_path: Path, *options: Any) -> dict[str, Any]:
    output = tmp_path / "output.json"
    result = run(
        files["gold"],
        *options,
        "--output",
        output,
        first=files["one"],
        second=files["other"],
    )
    assert result.exit_code == 0, result.output
    assert SENTINEL not in result.output + output.read_text("utf8")
    data: dict[str, Any] = json.loads(output.read_text("utf8"))
    return data


def test_significance_gives_accuracy_difference_and_the_exact_test(
    files: dict[str, Path], tmp_path: Path
) -> None:
    data = compare(files, tmp_path)
    (result,) = data["results"]
    assert (result["file"], result["mentions"]) == ("gold.tsv", 7)
    strict = result["ties"]["strict"]
    assert (strict["first"], strict["second"]) == (0.285714, 0.857143)
    assert (strict["only_first"], strict["only_second"]) == (1, 5)
    assert strict["p"] == 0.21875  # 2 · (1 + 6) / 64
    low, high = strict["interval"]
    assert low < strict["difference"] < high
    assert data["first"]["file"] == "one.jsonl"


def test_significance_counts_what_is_repeated_once_if_asked(
    files: dict[str, Path], tmp_path: Path
) -> None:
    (result,) = compare(files, tmp_path, "--distinct")["results"]
    assert result["mentions"] == 3
    strict = result["ties"]["strict"]
    assert (strict["only_first"], strict["only_second"], strict["p"]) == (1, 1, 1)


def test_significance_of_the_same_file_is_none(files: dict[str, Path]) -> None:
    result = run(files["gold"], first=files["one"], second=files["one"])
    assert result.exit_code == 0
    assert "+0.0000 to +0.0000" in result.output
    rows = [line.split() for line in result.output.splitlines() if "McNemar" in line]
    assert [row[-3] for row in rows] == ["1", "1"]


def test_significance_adds_all_files_up(files: dict[str, Path], tmp_path: Path) -> None:
    more = tmp_path / "more.tsv"
    more.write_text("x||C1\n", "utf8")
    for name in ("one", "other"):
        row = {"file": "more.tsv", "line": 1, "cuis": ["C1"], "scores": [1]}
        with open(files[name], "a", encoding="utf8") as file:
            file.write(json.dumps(row) + "\n")
    results = compare(files, tmp_path, more)["results"]
    counts = [(result["file"], result["mentions"]) for result in results]
    assert counts == [("gold.tsv", 7), ("more.tsv", 1), ("all 2 files", 8)]


def test_significance_takes_what_evaluate_writes(
    sample_kb: Path, tmp_path: Path
) -> None:
    gold = tmp_path / "gold.tsv"
    gold.write_text("mention\tids\nFever\tC0000004\nMI\tC9999999\n", "utf8")
    path = tmp_path / "predictions.jsonl"
    arguments = [sample_kb, gold, "--predictions", path, "--quiet"]
    CliRunner().invoke(evaluation, [str(argument) for argument in arguments])
    for options, expected in (([], 0.5), (["--kb", sample_kb], 1.0)):
        output = tmp_path / "output.json"
        run(gold, *options, "--output", output, first=path, second=path)
        ties = json.loads(output.read_text("utf8"))["results"][0]["ties"]
        assert ties["lenient"]["first"] == expected  # the id of MI is retired


@pytest.mark.parametrize(
    ("cuis", "file", "code"),
    [(["C1"] * 6, "gold.tsv", "E744"), (["C1"] * 8, "gold.tsv", "E743")]
    + [(["C1"] * 7, "other.tsv", "E743")],
)
def test_significance_refuses_predictions_for_other_mentions(
    files: dict[str, Path], cuis: Sequence[str], file: str, code: str
) -> None:
    write(files["other"], cuis, file)
    result = run(files["gold"], first=files["one"], second=files["other"])
    assert result.exit_code == 1
    assert code in result.output


def test_significance_refuses_a_third_way_of_composites(
    files: dict[str, Path],
) -> None:
    options = {"first": files["one"], "second": files["one"]}
    result = run(files["gold"], "--composite", "half", **options)
    assert result.exit_code == 1
    assert "released" in result.output


def test_significance_is_quiet_when_asked(files: dict[str, Path]) -> None:
    result = run(files["gold"], "--quiet", first=files["one"], second=files["other"])
    assert (result.exit_code, result.output) == (0, "")
