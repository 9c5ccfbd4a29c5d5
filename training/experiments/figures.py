"""Encoders, results and logs → figures."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

from spacy_sapbert.cli.app import make_app
from spacy_sapbert.evaluation.figures import name_figures, write_figure
from spacy_sapbert.system.reading import open_to_read
from spacy_sapbert.system.terminal import msg
from spacy_sapbert.system.writing import check_outputs
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts
from training.data.pairs import distinct_names
from training.data.reporting import Force, Quiet
from training.data.shuffling import permute
from training.encoders.embedding import embed_names
from training.errors import Errors, SapbertError
from training.experiments.drawing import (
    Curves,
    Log,
    draw_cosines,
    draw_curves,
    draw_names,
    draw_recalls,
)

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
    drawn = permute(np.arange(min(count, len(rich))), len(rich), seed=seed, epoch=0)
    return [rich[number] for number in sorted(drawn.tolist())]


def sample_batch(
    concepts: Iterable[Concept], *, pairs: int, seed: int
) -> tuple[list[str], np.ndarray]:
    """Draw two names of each of some concepts, as a batch of training has them.

    RETURNS (tuple[list[str], np.ndarray]): Names, and the concept of each as a number.
        Shape: (2 * pairs,).
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
    return {title: embed_names(folder, names) for title, folder in folders}


def read_log(path: Path) -> Log:
    """Read training.jsonl; another file raises a SapbertError."""
    with open_to_read(path) as file:
        lines = file.read().splitlines()
    try:
        log: Log = [dict(json.loads(line)) for line in lines]
        if not all({"step", "loss", "mined"} <= each.keys() for each in log):
            raise ValueError
    except (ValueError, TypeError):
        command = "python -m training train"
        raise SapbertError(
            Errors.E763.format(path=path, expected="steps", command=command)
        ) from None
    return log


def read_recalls(path: Path) -> Curves:
    """Read the precision–recall curves in a result of `evaluate-hierarchy`."""
    with open_to_read(path) as file:
        text = file.read()
    try:
        return {
            str(int(distance)): [
                {key: float(point[key]) for key in ("precision", "recall")}
                for point in points
            ]
            for distance, points in json.loads(text)["precision_recall"].items()
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        command = "python -m training evaluate-hierarchy"
        raise SapbertError(
            Errors.E763.format(path=path, expected="results", command=command)
        ) from None


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
    logs = {name: read_log(Path(path)) for name, path in named.items()}
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
    results = {name: read_recalls(Path(path)) for name, path in named.items()}
    save(draw_recalls(results), output, quiet)
