import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept
from training.experiments.figures import (
    choose_concepts,
    draw_curves,
    draw_recalls,
    sample_batch,
)


def assert_pictures(stem: Path) -> None:
    png = stem.with_name(f"{stem.name}.png").read_bytes()
    svg = stem.with_name(f"{stem.name}.svg").read_text("utf8")
    assert png.startswith(b"\x89PNG")
    assert len(png) > 5_000
    assert "<svg" in svg


def test_figures_draws_names_and_cosines_of_each_encoder(
    invoke: Callable[..., Any], concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    encoders = ["--encoder", f"before={tiny_encoder}", "--encoder", tiny_encoder]
    names = ["figures", "names", concepts_file, tmp_path / "n", *encoders]
    invoke(*names, "--fewest", 2)
    assert_pictures(tmp_path / "n")
    cosines = ["figures", "cosines", concepts_file, tmp_path / "c", *encoders]
    invoke(*cosines, "--pairs", 5)
    assert_pictures(tmp_path / "c")
    # drawn again it is the same file
    svg = (tmp_path / "c.svg").read_text("utf8")
    invoke(*cosines, "--pairs", 5, "--force")
    assert (tmp_path / "c.svg").read_text("utf8") == svg


def test_figures_draws_curves_of_logs(
    invoke: Callable[..., Any], tmp_path: Path
) -> None:
    log = tmp_path / "training.jsonl"
    entries = [{"step": n, "loss": 1 / n, "mined": 0.5} for n in range(1, 8)]
    entries[-1]["accuracy"] = 0.75
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf8")
    invoke(
        "figures", "curves", tmp_path / "curves", "--log", f"run={log}", "--window", 2
    )
    assert_pictures(tmp_path / "curves")


def test_draw_curves_averages_over_windows() -> None:
    log = [{"step": n, "loss": float(n), "mined": 0.5} for n in range(1, 6)]
    figure = draw_curves({"run": log}, window=2)
    steps, losses = figure.axes[0].lines[0].get_data()
    assert list(steps) == [2, 4, 5]
    assert list(losses) == [1.5, 3.5, 5]


def test_draw_recalls_has_a_plot_for_each_distance(
    invoke: Callable[..., Any], tmp_path: Path
) -> None:
    curve = [
        {"cosine": 0.9, "precision": 1.0, "recall": 0.5},
        {"cosine": 0.1, "precision": 0.5, "recall": 1.0},
    ]
    figure = draw_recalls({"one": {"0": curve}, "other": {"0": curve[:1], "1": curve}})
    assert [axis.get_title() for axis in figure.axes] == [
        "synonyms",
        "distance up to 1",
    ]
    recalls, precisions = figure.axes[0].lines[0].get_data()
    assert (list(recalls), list(precisions)) == ([0.5, 1.0], [1.0, 0.5])
    assert [len(line.get_data()[0]) for line in figure.axes[1].lines] == [0, 2]
    path = tmp_path / "base.json"
    path.write_text(json.dumps({"precision_recall": {"0": curve, "1": curve}}), "utf8")
    invoke("figures", "recalls", tmp_path / "recalls", "--result", f"base={path}")
    assert_pictures(tmp_path / "recalls")


@pytest.mark.parametrize("command", ["recalls", "curves"])
@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"a": 1}', '{"precision_recall": 1}']
)
def test_figures_of_another_file_is_an_error(
    invoke: Callable[..., Any], tmp_path: Path, command: str, text: str
) -> None:
    path = tmp_path / "file"
    if text:
        path.write_text(text, "utf8")
    option = "--result" if command == "recalls" else "--log"
    shown = invoke("figures", command, tmp_path / "out", option, path, code=1).output
    assert ("E763" if text else "E001") in shown
    assert not (tmp_path / "out.png").exists()


def test_choose_concepts_returns_concepts_with_enough_names() -> None:
    concepts = [Concept(f"C{n}", [f"{n} {i}" for i in range(n)]) for n in range(1, 9)]
    chosen = choose_concepts(concepts, count=3, fewest=5, seed=1)
    assert len({each.cui for each in chosen}) == 3
    assert all(len(each.aliases) >= 5 for each in chosen)
    with pytest.raises(SapbertError, match="99 names"):
        choose_concepts(concepts, count=3, fewest=99, seed=1)


def test_sample_batch_has_two_different_names_of_each_concept() -> None:
    concepts = [Concept(f"C{n}", [f"{n} a", f"{n} b", f"{n} c"]) for n in range(20)]
    names, labels = sample_batch(concepts, pairs=6, seed=0)
    assert len(set(names)) == 12
    assert labels.tolist() == [n for n in range(6) for _ in range(2)]


def test_figures_with_a_name_twice_is_an_error(
    invoke: Callable[..., Any], tmp_path: Path
) -> None:
    words = ["figures", "curves", tmp_path / "c", "--log", "a=x", "--log", "a=y"]
    assert "E709" in invoke(*words, code=1).output
