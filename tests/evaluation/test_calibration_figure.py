import copy
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.evaluation.calibration import calibrate_answers
from spacy_sapbert.evaluation.calibration_figure import draw_calibration
from spacy_sapbert.evaluation.canvas import close_figure
from spacy_sapbert.evaluation.thresholds import Criterion, make_judged

pytest.importorskip("matplotlib", reason="no matplotlib")


@pytest.fixture(scope="module")
def calibration() -> dict[str, Any]:
    scores = np.linspace(0.5, 1, 300).round(6)
    right = np.arange(300) % 10 < np.arange(300) // 30
    judged = make_judged(scores, right, [True] * 300, list(range(300)))
    found = calibrate_answers(judged, Criterion("f1"), samples=50)
    return {"criterion": "f1", **found}


def test_the_figure_shows_what_the_calibration_says(
    calibration: dict[str, Any],
) -> None:
    figure = draw_calibration(calibration)
    curves = {line.get_label(): line for line in figure.axes[0].lines}
    for name, label in (("precision", "precision"), ("recall", "recall"), ("f1", "F1")):
        values = [point[name] for point in calibration["curve"]]
        assert curves[label].get_ydata().tolist() == values
    chosen = calibration["threshold"]
    marked = [line.get_xdata()[0] for line in figure.axes[0].lines[3:]]
    assert marked == [chosen] * 4
    assert figure.axes[1].lines[0].get_ydata().max() < 1
    counts = [text.get_text() for text in figure.axes[2].texts]
    assert counts == [f"{each['mentions']:,}" for each in calibration["reliability"]]
    assert sum(each["mentions"] for each in calibration["reliability"]) == 300
    close_figure(figure)


@pytest.mark.parametrize("bounds", [None, [0.6, None], [None, None]])
def test_an_interval_may_have_no_end(calibration: dict[str, Any], bounds: Any) -> None:
    changed = copy.deepcopy(calibration)
    changed["interval"]["threshold"] = bounds
    changed["calibration_error"], changed["reliability"] = None, []
    close_figure(draw_calibration(changed))
