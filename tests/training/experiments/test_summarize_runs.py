import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from training.experiments.tables import read_results, summarize_runs

summarize = partial(summarize_runs, quiet=True)


def write(
    path: Path,
    value: float | None,
    *,
    file: str = "dev.tsv",
    sha256: str = "0",
    **settings: Any,
) -> Path:
    ties = {"lenient": value, "expected": value, "strict": 0.1}
    levels = {level: {"acc@1": ties, "acc@5": ties} for level in ("concepts", "rows")}
    result: dict[str, Any] = {"file": file, "sha256": sha256, "coverage": 0.9}
    result["accuracy"] = {"all": levels}
    data = {"settings": {"ks": [1, 5], **settings}, "files": [result]}
    path.write_text(json.dumps(data), "utf8")
    return path


def find(data: dict[str, Any], tie: str) -> list[Any]:
    return [
        (row["file"], row["ties"][tie]["mean"], row["ties"][tie]["deviation"])
        for row in data["accuracy"]
        if (row["level"], row["k"]) == ("concepts", 1)
    ]


def test_summarize_runs_has_mean_and_sample_deviation(tmp_path: Path) -> None:
    values = [0.5, 0.6, 0.85]
    paths = [write(tmp_path / f"{value}.json", value) for value in values]
    data = summarize(paths)
    # squares of -0.15, -0.05 and 0.2 add up to 0.065; the root of 0.0325
    assert find(data, "expected") == [("dev.tsv", 0.65, 0.180278)]
    assert find(data, "strict") == [("dev.tsv", 0.1, 0)]
    assert len(data["accuracy"]) == 4
    assert data["accuracy"][0]["ties"]["lenient"]["values"] == values


def test_summarize_runs_separates_or_joins_files(tmp_path: Path) -> None:
    one = write(tmp_path / "a.json", 0.5, file="fold-0.tsv")
    other = write(tmp_path / "b.json", 0.7, file="fold-1.tsv")
    apart = summarize([one, other])
    assert find(apart, "lenient") == [
        ("fold-0.tsv", 0.5, None),
        ("fold-1.tsv", 0.7, None),
    ]
    together = summarize([one, other], together=True)
    assert find(together, "lenient") == [("all files", 0.6, 0.141421)]


def test_summarize_runs_leaves_empty_groups_out(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a.json", 0.5), write(tmp_path / "b.json", None)]
    assert find(summarize(paths), "lenient") == [("dev.tsv", 0.5, None)]
    assert summarize(paths[1:])["accuracy"] == []


def test_summarize_runs_lists_different_files_of_one_name(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{i}.json", 0.5, sha256=str(i)) for i in range(2)]
    assert summarize(paths)["different_files"] == ["dev.tsv"]


def test_summarize_runs_refuses_other_settings(tmp_path: Path) -> None:
    one = write(tmp_path / "a.json", 0.5, composite="parts")
    other = write(tmp_path / "b.json", 0.5, composite="released")
    with pytest.raises(SapbertError, match=r"E746.*b\.json.*a\.json.*`composite`"):
        summarize([one, other])


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "[" * 5000]
    + ['{"settings": {"ks": [1]}, "files": [{"file": "a", "sha256": "b"}]}'],
)
def test_read_results_refuses_other_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, "utf8")
    with pytest.raises(SapbertError, match=r"a\.json.*spacy sapbert evaluate"):
        read_results([path])
    with pytest.raises(SapbertError, match=r"E747.*'seen'"):
        read_results([write(tmp_path / "a.json", 0.5)], "seen")


def test_summarize_runs_prints_a_table_and_writes_json(
    invoke: Callable[..., Any], tmp_path: Path
) -> None:
    paths = [write(tmp_path / f"{i}.json", 0.5 + i / 10) for i in range(2)]
    output = tmp_path / "summary.json"
    words = ["summarize-runs", *paths, "--output", output]
    assert "0.5500 ± 0.0707" in invoke(*words).output
    assert json.loads(output.read_text("utf8"))["runs"] == ["0.json", "1.json"]
    assert invoke(*words, "--force", "--quiet").output == ""
    invoke("summarize-runs", tmp_path / "none.json", code=1)
