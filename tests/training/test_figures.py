import json
from pathlib import Path
from typing import Any, List

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from spacy_sapbert.concepts import Concept
from spacy_sapbert.errors import SapbertError
from training.drawing import Prediction, draw_curves, draw_thresholds
from training.figures import app, choose_concepts, read_predictions, sample_batch
from training.mentions import GoldMention


def invoke(*words: Any) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


def assert_pictures(stem: Path) -> None:
    png = stem.with_name(f"{stem.name}.png").read_bytes()
    svg = stem.with_name(f"{stem.name}.svg").read_text("utf8")
    assert png.startswith(b"\x89PNG")
    assert len(png) > 5_000
    assert "<svg" in svg


def test_names_and_cosines_are_drawn_for_each_encoder(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    encoders = ["--encoder", f"before={tiny_encoder}", "--encoder", tiny_encoder]
    invoke("names", concepts_file, tmp_path / "n", *encoders, "--fewest", 2)
    assert_pictures(tmp_path / "n")
    invoke("cosines", concepts_file, tmp_path / "c", *encoders, "--pairs", 5)
    assert_pictures(tmp_path / "c")
    # drawn again it is the same file
    svg = (tmp_path / "c.svg").read_text("utf8")
    invoke("cosines", concepts_file, tmp_path / "c", *encoders, "--pairs", 5)
    assert (tmp_path / "c.svg").read_text("utf8") == svg


def test_curves_are_drawn_of_logs(tmp_path: Path) -> None:
    log = tmp_path / "training.jsonl"
    entries = [{"step": n, "loss": 1 / n, "mined": 0.5} for n in range(1, 8)]
    entries[-1]["accuracy"] = 0.75
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf8")
    invoke("curves", tmp_path / "curves", "--log", f"run={log}", "--window", 2)
    assert_pictures(tmp_path / "curves")


def test_curves_average_over_windows_and_end_with_the_last_step() -> None:
    log = [{"step": n, "loss": float(n), "mined": 0.5} for n in range(1, 6)]
    figure = draw_curves({"run": log}, window=2)
    steps, losses = figure.axes[0].lines[0].get_data()
    assert list(steps) == [2, 4, 5]
    assert list(losses) == [1.5, 3.5, 5]


def test_thresholds_by_hand() -> None:
    predictions = [
        Prediction(0.9, True, True),
        Prediction(0.7, False, True),
        Prediction(0.5, True, True),
        Prediction(0.6, False, False),
    ]
    figure = draw_thresholds(predictions)
    at = {
        line.get_label(): dict(
            zip(line.get_xdata().round(2), line.get_ydata(), strict=True)
        )
        for line in figure.axes[0].lines
    }
    assert at["accuracy (NIL counts)"][0.0] == 0.5
    assert at["accuracy (NIL counts)"][0.65] == 0.5  # one right less, one NIL more
    assert at["precision"][0.0] == 0.5
    assert at["precision"][0.8] == 1
    assert np.isnan(at["precision"][0.95])
    assert at["recall"][0.0] == pytest.approx(2 / 3)
    assert at["recall"][0.95] == 0


def test_read_predictions_holds_them_against_gold(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    rows: List[dict] = [
        {"file": "dev.tsv", "line": 2, "cuis": ["C1"], "scores": [0.9]},
        {"file": "dev.tsv", "line": 3, "cuis": [], "scores": []},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf8")
    golds = [GoldMention(2, "", "x", [["OLD"]]), GoldMention(3, "", "y", [["C2"]])]
    assert read_predictions(path, {"dev.tsv": golds}, {"OLD": "C1"}) == [
        Prediction(0.9, True, True),
        Prediction(-1.0, False, True),
    ]


def test_choose_concepts_takes_rich_ones_and_no_others() -> None:
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


def test_a_file_that_is_named_twice_is_an_error(tmp_path: Path) -> None:
    words = ["curves", str(tmp_path / "c"), "--log", "a=x", "--log", "a=y"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert "E709" in result.output
