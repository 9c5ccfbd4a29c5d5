"""Vectors, predictions and logs → matplotlib figures for colour-blind readers, too."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch

from spacy_sapbert.evaluation.figures import COLOURS, MARKERS, open_figure
from training.losses.miners import mine_hard_pairs, split_pairs


def draw_names(
    titles: Sequence[str],
    labels: np.ndarray,
    vectors: dict[str, np.ndarray],
    *,
    seed: int,
) -> Any:
    """Draw the names of some concepts by t-SNE, one plot for each encoder.

    labels (np.ndarray): The concept of each name. Shape: (names,).
    vectors (dict[str, np.ndarray]): Vectors by encoder. Shape: (names, width).
    RETURNS (Figure): The figure.
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
            chosen = flat[labels == number]
            axis.scatter(
                chosen[:, 0],
                chosen[:, 1],
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
    bins = np.linspace(-0.4, 1, 57)
    every = split_pairs(concepts, names=texts)
    for row, (title, array) in zip(axes, vectors.items(), strict=True):
        unit = torch.from_numpy(array)
        cosines = (unit @ unit.T).numpy()
        mined = mine_hard_pairs(unit, concepts, margin=margin, names=texts)
        for axis, masks, kind in ((row[0], every, "all"), (row[1], mined, "mined")):
            for mask, colour, sign in zip(
                masks, COLOURS, ("positives", "negatives"), strict=False
            ):
                values = cosines[mask.numpy()]
                axis.hist(
                    values,
                    bins,
                    density=True,
                    histtype="stepfilled",
                    alpha=0.45,
                    color=colour,
                    edgecolor=colour,
                    hatch="//" if sign == "positives" else None,
                    label=f"{len(values):,} {sign}",
                )
            axis.set(title=f"{title}: {kind} pairs", xlabel="cosine", yticks=[])
            axis.legend(frameon=False, fontsize=8)
    return figure


def draw_curves(logs: dict[str, list[dict[str, Any]]], *, window: int) -> Any:
    """Draw loss, mined share and accuracy by step.

    logs (dict[str, list[dict[str, Any]]]): Entries of training.jsonl by title.
    window (int): Steps to average; not for the accuracy.
    RETURNS (Figure): A plot for each logged number.
    """
    keys = ["loss", "mined"]
    keys += (
        ["accuracy"]
        if any("accuracy" in e for log in logs.values() for e in log)
        else []
    )
    titles = {"loss": "loss", "mined": "share of mined positives", "accuracy": "Acc@1"}
    figure, axes = open_figure(1, len(keys), width=4.5)
    styles = ("-", "--", "-.", ":")
    for axis, key in zip(axes[0], keys, strict=True):
        for number, (name, log) in enumerate(logs.items()):
            points = [(e["step"], e[key]) for e in log if key in e]
            if key != "accuracy":
                points = [
                    (group[-1][0], float(np.mean([value for _, value in group])))
                    for _, each in groupby(points, lambda p: (p[0] - 1) // window)
                    for group in [list(each)]
                ]
            axis.plot(
                *zip(*points, strict=True),
                styles[number % len(styles)],
                color=COLOURS[number % len(COLOURS)],
                label=name,
            )
        axis.set(title=titles[key], xlabel="step")
        axis.grid(alpha=0.3)
    axes[0][0].legend(frameon=False, fontsize=8)
    return figure


def draw_recalls(results: dict[str, dict[str, list[dict[str, float]]]]) -> Any:
    """Draw precision by recall, one plot for the pairs up to each distance.

    results (dict[str, dict[str, list[dict[str, float]]]]): Points of `precision_recall`
        by encoder and distance.
    RETURNS (Figure): The figure.
    SOURCE: HiPrBERT (2023).
    """
    known = sorted({each for curves in results.values() for each in curves}, key=int)
    figure, axes = open_figure(1, len(known), width=4)
    styles = ("-", "--", "-.", ":")
    for axis, distance in zip(axes[0], known, strict=True):
        for number, (name, curves) in enumerate(results.items()):
            points = curves.get(distance, [])
            axis.plot(
                [point["recall"] for point in points],
                [point["precision"] for point in points],
                styles[number % len(styles)],
                color=COLOURS[number % len(COLOURS)],
                label=name,
            )
        near = "synonyms" if distance == "0" else f"distance up to {distance}"
        axis.set(title=near, xlabel="recall", xlim=(0, 1), ylim=(0, 1.02))
        axis.grid(alpha=0.3)
    axes[0][0].set(ylabel="precision")
    axes[0][0].legend(frameon=False, fontsize=8)
    return figure
