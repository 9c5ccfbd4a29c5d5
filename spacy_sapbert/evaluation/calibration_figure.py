"""A calibration → a picture of its thresholds and of its probabilities."""

from typing import Any

import numpy as np

from .calibration import Logistic, compute_probabilities
from .canvas import COLOURS, MARKERS, open_canvas

CURVES = (("precision", "-"), ("recall", "--"), ("f1", "-."))
LABELS = {"precision": "precision", "recall": "recall", "f1": "F1"}


def draw_thresholds(axis: Any, calibration: dict[str, Any]) -> None:
    """Draw precision, recall and F1 against the threshold, and the chosen one.

    axis (Axes): Is drawn on.
    calibration (dict[str, Any]): What meta.json has under `calibration`.
    """
    curve = calibration["curve"]
    thresholds = [point["threshold"] for point in curve]
    interval = calibration["interval"] or {}
    bounds = interval.get("threshold")
    if bounds and bounds[0] is not None:
        share = interval["confidence"]
        high = thresholds[-1] if bounds[1] is None else bounds[1]
        label = f"{share:.0%} interval"
        axis.axvspan(bounds[0], high, color="0.88", label=label, linewidth=0)
    for (name, style), colour in zip(CURVES, COLOURS, strict=False):
        values = [np.nan if p[name] is None else p[name] for p in curve]
        axis.plot(thresholds, values, style, color=colour, label=LABELS[name])
    chosen = calibration["threshold"]
    axis.axvline(chosen, color=COLOURS[-1], linewidth=1, linestyle=":")
    for (name, _), colour, sign in zip(CURVES, COLOURS, MARKERS, strict=False):
        value = np.nan if calibration[name] is None else calibration[name]
        axis.plot([chosen], [value], sign, color=colour)
    axis.set(
        title=f"chosen by {calibration['criterion']}: {chosen:.3f}",
        xlabel="threshold (cosine)",
        ylim=(0, 1.02),
    )
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, loc="lower left", fontsize=8)


def draw_logistic(axis: Any, calibration: dict[str, Any]) -> None:
    """Draw the probability of being right against the cosine.

    axis (Axes): Is drawn on.
    calibration (dict[str, Any]): What meta.json has under `calibration`.
    """
    curve = calibration["curve"]
    scores = np.linspace(curve[0]["threshold"], curve[-1]["threshold"], 200)
    logistic = Logistic(**calibration["logistic"])
    probabilities = compute_probabilities(logistic, scores)
    axis.plot(scores, probabilities, color=COLOURS[3])
    axis.axvline(calibration["threshold"], color=COLOURS[-1], linewidth=1, ls=":")
    axis.set(
        title="probability beside the cosine",
        xlabel="cosine of the best concept",
        ylabel="probability that it is right",
        ylim=(0, 1.02),
    )
    axis.grid(alpha=0.3)


def draw_reliability(axis: Any, calibration: dict[str, Any]) -> None:
    """Draw the share of right answers against their probability, with counts.

    axis (Axes): Is drawn on.
    calibration (dict[str, Any]): What meta.json has under `calibration`.
    """
    table = calibration["reliability"]
    total = sum(each["mentions"] for each in table)
    axis.plot([0, 1], [0, 1], "--", color="0.6", linewidth=1)
    probabilities = [each["probability"] for each in table]
    shares = [each["right"] for each in table]
    areas = [20 + 400 * each["mentions"] / total for each in table]
    axis.plot(probabilities, shares, "-", color=COLOURS[0], linewidth=1)
    axis.scatter(probabilities, shares, s=areas, color=COLOURS[0], alpha=0.6)
    for number, each in enumerate(table):
        above = each["right"] > each["probability"]
        reach = 3 + (areas[number] / np.pi) ** 0.5
        axis.annotate(
            f"{each['mentions']:,}",
            (each["probability"], each["right"]),
            xytext=(0, reach if above else -reach),
            textcoords="offset points",
            ha="center",
            va="bottom" if above else "top",
            fontsize=8,
        )
    error = calibration["calibration_error"]
    says = "" if error is None else f", error {error:.3f}"
    axis.set(
        title=f"probability against share right{says}",
        xlabel="probability, from other documents",
        ylabel="share right (mentions)",
        xlim=(-0.03, 1.05),
        ylim=(-0.03, 1.05),
    )
    axis.grid(alpha=0.3)


def draw_calibration(calibration: dict[str, Any]) -> Any:
    """Draw how the threshold was found, and how far the probability can be trusted.

    calibration (dict[str, Any]): What meta.json has under `calibration`.
    RETURNS (Figure): Three pictures.
    RAISES (SapbertError): If matplotlib is not installed.
    """
    figure, axes = open_canvas(1, 3, width=4.8)
    draw_thresholds(axes[0][0], calibration)
    draw_logistic(axes[0][1], calibration)
    draw_reliability(axes[0][2], calibration)
    return figure
