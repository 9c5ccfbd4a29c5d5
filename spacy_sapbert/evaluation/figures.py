"""Figures by matplotlib, and the figure of a calibration."""

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SapbertError
from ..io.plugins import require
from ..io.writing import check_name, write_atomically
from ..kb.folder.records import Logistic
from ..linking.probability import TopScores, compute_measures, score_probability

# SOURCE: Okabe and Ito: colours that people with any colour vision can distinguish.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
ENDINGS = (".png", ".svg")
CURVES = {"precision": "-", "recall": "--", "f1": "-."}
POINTS = 200
GROUPS = 10  # of mentions, for the shares of right answers


def open_figure(rows: int, columns: int, *, width: float = 5.0) -> tuple[Any, Any]:
    """Return a figure of plots of a width in inches, and its axes.

    Shape of the axes: (rows, columns).
    """
    library = require("matplotlib.figure", "matplotlib")
    size = (width * columns, 0.8 * width * rows)
    figure = library.Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def check_figure(path: Path) -> None:
    """Check that a figure can be drawn, before anything takes long."""
    if path.suffix not in ENDINGS:
        known = " or ".join(ENDINGS)
        option = "--figure"
        raise SapbertError(
            "E110",
            f"Expected `{option}` to end with {known}, but got {path}. Correct it.",
        )
    open_figure(1, 1)


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure to a file; equal figures make equal files."""
    import matplotlib as mpl

    ending = path.suffix.removeprefix(".")
    # By default an SVG has the date and random ids.
    options = {"metadata": {"Date": None}} if ending == "svg" else {"dpi": 150}
    with (
        write_atomically(path) as file,
        mpl.rc_context({"svg.hashsalt": "spacy-sapbert"}),
    ):
        figure.savefig(file, format=ending, **options)


def name_figures(stem: Path) -> list[Path]:
    """Return the paths of a figure as PNG and as SVG."""
    check_name(stem)
    return [stem.with_name(f"{stem.name}{ending}") for ending in ENDINGS]


def write_figure(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as PNG and as SVG, and return both paths."""
    paths = name_figures(stem)
    for path in paths:
        save_figure(figure, path)
    return paths


def draw_calibration(top: TopScores, calibration: dict[str, Any]) -> Any:
    """Draw the measures by threshold, and the probability by score."""
    figure, axes = open_figure(1, 2)
    (left, right), threshold = axes[0], calibration["threshold"]
    logistic = Logistic.model_validate(calibration["logistic"])
    ordered, score = calibration["by"] == "probability", "score"
    if ordered:
        chances = score_probability(logistic, top.scores)
        top = top._replace(scores=np.where(np.isfinite(top.scores), chances, -np.inf))
        score = "probability of the order"
    answered = np.isfinite(top.scores)
    scores, is_right = top.scores[answered], top.right[answered]
    line = np.linspace(scores[0], scores[-1], POINTS)
    measures = compute_measures(top, line)
    for (name, style), colour in zip(CURVES.items(), COLOURS, strict=False):
        label = "F1" if name == "f1" else name
        left.plot(line, measures[name], style, color=colour, label=label)
    left.set(title=f"threshold {threshold:.3f}", xlabel=f"threshold ({score})")
    left.legend(frameon=False, loc="lower left", fontsize=8)
    probabilities = line if ordered else score_probability(logistic, line)
    right.plot(line, probabilities, color=COLOURS[0], label="probability")
    groups = np.array_split(np.arange(len(scores)), GROUPS)
    right.plot(
        [scores[group].mean() for group in groups],
        [is_right[group].mean() for group in groups],
        "o",
        color=COLOURS[1],
        label=f"share right, {GROUPS} groups of equal size",
    )
    right.set(title="probability that the link is right", xlabel=score)
    right.legend(frameon=False, loc="upper left", fontsize=8)
    for axis in (left, right):
        axis.axvline(threshold, color=COLOURS[-1], linewidth=1, linestyle=":")
        axis.set_ylim(0, 1.02)
        axis.grid(alpha=0.3)
    return figure
