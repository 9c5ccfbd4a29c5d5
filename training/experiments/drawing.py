"""Vectors, predictions and logs → matplotlib figures for colour-blind readers, too."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch

from spacy_sapbert.evaluation.figures import COLOURS, MARKERS, open_figure
from training.losses.miners import keep_all_pairs, mine_hard_pairs

LINE_STYLES = ("-", "--", "-.", ":")
LOGGED = {"loss": "loss", "mined": "share of mined positives", "accuracy": "Acc@1"}

Log = list[dict[str, float]]  # lines of training.jsonl
Curves = dict[str, list[dict[str, float]]]  # precision and recall, by distance


def draw_names(
    titles: Sequence[str],
    labels: np.ndarray,
    vectors: dict[str, np.ndarray],
    *,
    seed: int,
) -> Any:
    """Draw the names of some concepts by t-SNE, one plot for each encoder.

    titles (Sequence[str]): Titles of the concepts.
    labels (np.ndarray): The concept of each name. Shape: (names,).
    vectors (dict[str, np.ndarray]): Vectors by encoder. Shape: (names, width).
    SOURCE: van der Maaten and Hinton (2008); Liu et al. (2021), Figure 1.
    """
    from sklearn.manifold import TSNE

    figure, axes = open_figure(1, len(vectors), width=6)
    perplexity = min(15, max(2, (len(labels) - 1) // 3))
    for axis, (encoder, rows) in zip(axes[0], vectors.items(), strict=True):
        flat = TSNE(
            metric="cosine", init="random", perplexity=perplexity, random_state=seed
        ).fit_transform(rows)
        for number, title in enumerate(titles):
            axis.scatter(
                *flat[labels == number].T,
                s=18,
                color=COLOURS[number % len(COLOURS)],
                marker=MARKERS[number % len(MARKERS)],
                label=title[:40],
            )
        axis.set(title=encoder, xticks=[], yticks=[])
    handles, texts = axes[0][0].get_legend_handles_labels()
    figure.legend(
        handles, texts, loc="outside lower center", ncols=3, fontsize=7, frameon=False
    )
    return figure


def draw_cosines(
    names: Sequence[str],
    labels: np.ndarray,
    vectors: dict[str, np.ndarray],
    *,
    margin: float,
) -> Any:
    """Draw histograms of cosines of a batch: positives and negatives, all and mined.

    labels (np.ndarray): The concept of each name. Shape: (names,).
    vectors (dict[str, np.ndarray]): Vectors by encoder. Shape: (names, width).
    RETURNS (Figure): Two plots for each encoder.
    SOURCE: Liu et al. (2021), Figure 3.
    """
    figure, axes = open_figure(len(vectors), 2, width=4.5)
    concepts = torch.from_numpy(labels)
    numbers = {name.lower(): number for number, name in enumerate(names)}
    texts = torch.tensor([numbers[name.lower()] for name in names])
    for row, (title, array) in zip(axes, vectors.items(), strict=True):
        unit = torch.from_numpy(array)
        cosines = (unit @ unit.T).numpy()
        every = keep_all_pairs(unit, concepts, texts)
        mined = mine_hard_pairs(unit, concepts, texts, margin=margin)
        for axis, masks, kind in ((row[0], every, "all"), (row[1], mined, "mined")):
            for mask, colour, hatch, sign in zip(
                masks, COLOURS, ("//", None), ("positives", "negatives"), strict=False
            ):
                values = cosines[mask.numpy()]
                axis.hist(
                    values,
                    np.linspace(-0.4, 1, 57),
                    density=True,
                    histtype="stepfilled",
                    alpha=0.45,
                    color=colour,
                    edgecolor=colour,
                    hatch=hatch,
                    label=f"{len(values):,} {sign}",
                )
            axis.set(title=f"{title}: {kind} pairs", xlabel="cosine", yticks=[])
            axis.legend(frameon=False, fontsize=8)
    return figure


def draw_lines(
    axis: Any, lines: Mapping[str, Sequence[tuple[float, float]]], **settings: Any
) -> None:
    """Draw lines of points by name, each in its own style."""
    for number, (name, points) in enumerate(lines.items()):
        axis.plot(
            [x for x, _ in points],
            [y for _, y in points],
            LINE_STYLES[number % len(LINE_STYLES)],
            color=COLOURS[number % len(COLOURS)],
            label=name,
        )
    axis.set(**settings)
    axis.grid(alpha=0.3)


def average_points(log: Log, key: str, window: int) -> list[tuple[float, float]]:
    """Return last step and mean of a logged number for each `window` steps."""
    points = [(entry["step"], entry[key]) for entry in log if key in entry]
    groups = groupby(points, lambda point: (point[0] - 1) // window)
    listed = [list(group) for _, group in groups]
    return [(each[-1][0], float(np.mean([y for _, y in each]))) for each in listed]


def draw_curves(logs: dict[str, Log], *, window: int) -> Any:
    """Draw loss, mined share and accuracy by step, one plot for each.

    window (int): Steps to average; not for the accuracy.
    """
    logged = [
        key for key in LOGGED if any(key in e for log in logs.values() for e in log)
    ]
    figure, axes = open_figure(1, len(logged), width=4.5)
    for axis, key in zip(axes[0], logged, strict=True):
        size = 1 if key == "accuracy" else window
        lines = {name: average_points(log, key, size) for name, log in logs.items()}
        draw_lines(axis, lines, title=LOGGED[key], xlabel="step")
    axes[0][0].legend(frameon=False, fontsize=8)
    return figure


def draw_recalls(results: dict[str, Curves]) -> Any:
    """Draw precision by recall, one plot for the pairs up to each distance.

    SOURCE: HiPrBERT (2023).
    """
    known = sorted({each for curves in results.values() for each in curves}, key=int)
    figure, axes = open_figure(1, len(known), width=4)
    for axis, distance in zip(axes[0], known, strict=True):
        lines = {
            name: [(p["recall"], p["precision"]) for p in curves.get(distance, [])]
            for name, curves in results.items()
        }
        near = "synonyms" if distance == "0" else f"distance up to {distance}"
        limits = {"xlim": (0, 1), "ylim": (0, 1.02)}
        draw_lines(axis, lines, title=near, xlabel="recall", **limits)
    axes[0][0].set(ylabel="precision")
    axes[0][0].legend(frameon=False, fontsize=8)
    return figure
