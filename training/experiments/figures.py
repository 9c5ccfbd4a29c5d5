"""Encoders, results and logs → matplotlib figures for colour-blind readers, too."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
import typer

from spacy_sapbert.cli.app import make_app
from spacy_sapbert.encoder.encoder import Encoder
from spacy_sapbert.evaluation.figures import (
    COLOURS,
    MARKERS,
    name_figures,
    open_figure,
    write_figure,
)
from spacy_sapbert.io.reading import open_to_read
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_outputs
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts
from training.data.options import Force, Quiet
from training.data.pairs import distinct_names
from training.errors import Errors, SapbertError
from training.losses.sapbert import mine_all_pairs, mine_hard_pairs

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

    Args:
        titles: Titles of the concepts.
        labels: The concept of each name. Shape: (names,).
        vectors: By encoder. Shape: (names, width).

    Source:
        van der Maaten and Hinton (2008); Liu et al. (2021), Figure 1.
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

    Source:
        Liu et al. (2021), Figure 3.
    """
    figure, axes = open_figure(len(vectors), 2, width=4.5)
    concepts = torch.from_numpy(labels)
    numbers = {name.lower(): number for number, name in enumerate(names)}
    texts = torch.tensor([numbers[name.lower()] for name in names])
    for row, (title, array) in zip(axes, vectors.items(), strict=True):
        unit = torch.from_numpy(array)
        cosines = (unit @ unit.T).numpy()
        every = mine_all_pairs(unit, concepts, texts)
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
    """Draw loss and mined share, means of `window` steps, and accuracy by step."""
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
    """Draw precision by recall, one plot for the pairs up to each distance."""
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


OUTPUT = typer.Argument(..., help="File to write, without an ending.")
ENCODER = typer.Option(..., help="NAME=FOLDER; may be repeated.")

app = make_app(
    add_completion=False,
    no_args_is_help=True,
    help="Draw figures, as PNG and as SVG.",
)


def choose_concepts(
    concepts: Iterable[Concept], *, count: int, fewest: int, seed: int
) -> list[Concept]:
    """Draw concepts with at least `fewest` names, in the order of the vocabulary."""
    rich = [each for each in concepts if len(distinct_names(each)) >= fewest]
    if not rich:
        raise SapbertError(Errors.E753.format(fewest=fewest))
    drawn = np.random.default_rng(seed).permutation(len(rich))[:count]
    return [rich[number] for number in sorted(drawn.tolist())]


def sample_batch(
    concepts: Iterable[Concept], *, pairs: int, seed: int
) -> tuple[list[str], np.ndarray]:
    """Draw two names of each of some concepts, as a batch of training has them.

    Returns:
        Names, and the concept of each as a number. Shape: (2 * pairs,).
    """
    chosen = choose_concepts(concepts, count=pairs, fewest=2, seed=seed)
    rng = np.random.default_rng(seed)
    names: list[str] = []
    for concept in chosen:
        own = distinct_names(concept)
        names += [own[i] for i in rng.choice(len(own), 2, replace=False)]
    return names, np.repeat(np.arange(len(chosen)), 2)


def parse_named(values: Sequence[str], setting: str) -> dict[str, str]:
    """Return paths by name from `NAME=PATH`; without a name, by their last part."""
    named: dict[str, str] = {}
    for value in values:
        name, equals, path = value.partition("=")
        named[name if equals else Path(value).name] = path or value
    if len(named) < len(values):
        raise SapbertError(Errors.E709.format(setting=setting, value=values[-1]))
    return named


def embed_with_each(encoders: Sequence[str], names: list[str]) -> dict[str, np.ndarray]:
    """Compute the vectors of names with each encoder, given as `NAME=FOLDER`."""
    folders = parse_named(encoders, "--encoder").items()
    return {title: Encoder.open(folder).embed(names) for title, folder in folders}


def read_results(path: Path, parse: Callable[[bytes], Any], what: str) -> Any:
    """Read a file of results by a function that raises for another file."""
    with open_to_read(path) as file:
        text = file.read()
    try:
        return parse(text)
    except (ValueError, TypeError, KeyError, AttributeError):
        expected, _, command = what.partition(" of ")
        values = {"expected": expected, "command": f"python -m training {command}"}
        raise SapbertError(Errors.E763.format(path=path, **values)) from None


def parse_log(text: bytes) -> Log:
    """Parse the steps of training.jsonl."""
    log: Log = [dict(json.loads(line)) for line in text.splitlines()]
    if not all({"step", "loss", "mined"} <= entry.keys() for entry in log):
        raise ValueError
    return log


def parse_recalls(text: bytes) -> Curves:
    """Parse the precision–recall curves in a result of `evaluate-hierarchy`."""
    return {
        str(int(distance)): [
            {key: float(point[key]) for key in ("precision", "recall")}
            for point in points
        ]
        for distance, points in json.loads(text)["precision_recall"].items()
    }


def save(figure: Any, output: Path, quiet: bool) -> None:
    """Write a figure as PNG and as SVG."""
    for path in write_figure(figure, output):
        if not quiet:
            msg.good(f"Wrote {path}")


@app.command("names")
def names_main(
    concepts: Path = typer.Argument(..., help="concepts.jsonl"),
    output: Path = OUTPUT,
    encoder: list[str] = ENCODER,
    count: int = typer.Option(18, min=2, help="Concepts."),
    fewest: int = typer.Option(8, min=2, help="Names of each at least."),
    seed: int = typer.Option(0, min=0, help="Seed of concepts and t-SNE."),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """concepts.jsonl + encoders -> names.png, names.svg (t-SNE by concept)

    Example: python -m training figures names corpus/concepts.jsonl results/names
    --encoder before=models/minilm --encoder after=models/encoder
    """
    check_outputs(*name_figures(output), force=force)
    chosen = choose_concepts(
        read_concepts(concepts), count=count, fewest=fewest, seed=seed
    )
    own = [distinct_names(concept) for concept in chosen]
    labels = np.repeat(np.arange(len(own)), [len(names) for names in own])
    texts = [name for names in own for name in names]
    vectors = embed_with_each(encoder, texts)
    titles = [concept.name for concept in chosen]
    figure = draw_names(titles, labels, vectors, seed=seed)
    save(figure, output, quiet)


@app.command("cosines")
def cosines_main(
    concepts: Path = typer.Argument(..., help="concepts.jsonl"),
    output: Path = OUTPUT,
    encoder: list[str] = ENCODER,
    pairs: int = typer.Option(256, min=2, help="Pairs in the batch."),
    margin: float = typer.Option(0.2, help="Margin of the miner."),
    seed: int = typer.Option(0, min=0, help="Seed of the pairs."),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """concepts.jsonl + encoders -> cosines.png, cosines.svg (all and mined pairs)

    Example: python -m training figures cosines corpus/concepts.jsonl results/cosines
    --encoder before=models/minilm --encoder after=models/encoder
    """
    check_outputs(*name_figures(output), force=force)
    batch, labels = sample_batch(read_concepts(concepts), pairs=pairs, seed=seed)
    vectors = embed_with_each(encoder, batch)
    figure = draw_cosines(batch, labels, vectors, margin=margin)
    save(figure, output, quiet)


@app.command("curves")
def curves_main(
    output: Path = OUTPUT,
    log: list[str] = typer.Option(..., help="NAME=training.jsonl; may be repeated."),
    window: int = typer.Option(50, min=1, help="Steps to average."),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """training.jsonl … -> curves.png, curves.svg

    Example: python -m training figures curves results/curves --log
    mined=models/encoder/training.jsonl
    """
    check_outputs(*name_figures(output), force=force)
    named = parse_named(log, "--log")
    logs = {
        name: read_results(Path(path), parse_log, "steps of train")
        for name, path in named.items()
    }
    save(draw_curves(logs, window=window), output, quiet)


@app.command("recalls")
def recalls_main(
    output: Path = OUTPUT,
    result: list[str] = typer.Option(..., help="NAME=FILE; may be repeated."),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """results of evaluate-hierarchy … -> recalls.png, recalls.svg

    Example: python -m training figures recalls results/recalls --result
    before=results/base.json --result after=results/hierarchical.json
    """
    check_outputs(*name_figures(output), force=force)
    named = parse_named(result, "--result")
    what = "results of evaluate-hierarchy"
    results = {
        name: read_results(Path(path), parse_recalls, what)
        for name, path in named.items()
    }
    save(draw_recalls(results), output, quiet)
