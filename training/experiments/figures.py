"""Encoders, results and logs → figures: where people would rather look than read."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer
from wasabi import msg

from training.errors import Errors, SapbertError
from spacy_sapbert.evaluation.accuracy import TIES
from spacy_sapbert.evaluation.canvas import write_figure
from spacy_sapbert.evaluation.gold_mentions import make_resolver, read_aliases
from spacy_sapbert.evaluation.predictions import (
    check_predictions,
    judge_predictions,
    read_golds,
    read_predictions,
)
from spacy_sapbert.evaluation.score_mentions import EvaluationSettings
from spacy_sapbert.system.reading import open_to_read
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts
from training.data.batches import permute
from training.data.pairs import distinct_names
from training.encoders.embedding import embed_names
from training.experiments.drawing import (
    draw_cosines,
    draw_curves,
    draw_names,
    draw_recalls,
    draw_thresholds,
)

app = typer.Typer(add_completion=False)


def choose_concepts(
    concepts: Iterable[Concept], *, count: int, fewest: int, seed: int
) -> list[Concept]:
    """Draw some concepts with many names.

    concepts (Iterable[Concept]): The vocabulary.
    count (int): How many.
    fewest (int): Names that a concept has at least.
    seed (int): Which ones.
    RETURNS (list[Concept]): In the order of the vocabulary.
    RAISES (SapbertError): If no concept has so many names.
    """
    rich = [each for each in concepts if len(distinct_names(each)) >= fewest]
    if not rich:
        raise SapbertError(Errors.E753.format(fewest=fewest))
    drawn = permute(np.arange(min(count, len(rich))), len(rich), seed=seed, epoch=0)
    return [rich[number] for number in sorted(drawn.tolist())]


def sample_batch(
    concepts: Iterable[Concept], *, pairs: int, seed: int
) -> tuple[list[str], np.ndarray]:
    """Draw a batch as training does: two names of each of some concepts.

    concepts (Iterable[Concept]): The vocabulary.
    pairs (int): How many.
    seed (int): Which ones.
    RETURNS (tuple[list[str], np.ndarray]): Names, and the concept of each as a number.
        Shape: (2 * pairs,).
    """
    chosen = choose_concepts(concepts, count=pairs, fewest=2, seed=seed)
    chance = np.random.default_rng(seed)
    names: list[str] = []
    for concept in chosen:
        own = distinct_names(concept)
        names += [own[i] for i in chance.choice(len(own), 2, replace=False)]
    return names, np.repeat(np.arange(len(chosen)), 2)


def judge_first_answers(
    path: Path, mentions: Sequence[Path], aliases: dict[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Hold predictions against gold.

    path (Path): As `spacy_sapbert.evaluation.evaluate --predictions` writes them.
    mentions (Sequence[Path]): The gold mentions.
    aliases (dict[str, str]): Ids that another one stands for.
    RETURNS (tuple[np.ndarray, np.ndarray]): Score of each first answer, −1 without one,
        and how right it is, ties by their probability. Shape: (n,) each.
    RAISES (SapbertError): If the predictions are not for these mentions.
    """
    settings = EvaluationSettings(ks=(1,))
    golds = read_golds(mentions, settings)
    predictions = read_predictions(path, aliases)
    check_predictions(path, predictions, golds, partial=False)
    resolve = make_resolver(str, aliases)
    judged = judge_predictions(predictions, golds, resolve, settings.composite)
    answers = [predictions[place].answers for place in golds]
    scores = np.array([each[0].score if each else -1.0 for each in answers])
    return scores, judged[:, TIES.index("expected")]


def parse_named(values: Sequence[str], setting: str) -> dict[str, str]:
    """Read `NAME=PATH`s; a path alone is named by its last part."""
    named: dict[str, str] = {}
    for value in values:
        name, equals, path = value.partition("=")
        named[name if equals else Path(value).name] = path or value
    if len(named) < len(values):
        raise SapbertError(Errors.E709.format(setting=setting, value=values[-1]))
    return named


def read_log(path: Path) -> list[dict[str, Any]]:
    """Read the log of a training.

    path (Path): training.jsonl.
    RETURNS (list[dict[str, Any]]): Its lines.
    RAISES (SapbertError): If it is something else, or cut.
    """
    with open_to_read(path) as file:
        lines = file.read().splitlines()
    try:
        log = [dict(json.loads(line)) for line in lines]
        if not all({"step", "loss", "mined"} <= each.keys() for each in log):
            raise ValueError
    except (ValueError, TypeError):
        expected, command = "a log of steps", "training.trainer.train_encoder"
        raise SapbertError(
            Errors.E763.format(path=path, expected=expected, command=command)
        ) from None
    return log


def read_recalls(path: Path) -> dict[str, list[dict[str, float]]]:
    """Read the precision–recall curves of an encoder.

    path (Path): From `training.experiments.evaluate_hierarchy`.
    RETURNS (dict[str, list[dict[str, float]]]): Points by distance.
    RAISES (SapbertError): If it is something else.
    """
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
        expected, command = "a result", "training.experiments.evaluate_hierarchy"
        raise SapbertError(
            Errors.E763.format(path=path, expected=expected, command=command)
        ) from None


def tell(paths: Sequence[Path], quiet: bool) -> None:
    """Say what was written."""
    if not quiet:
        for path in paths:
            msg.good(f"Wrote {path}")


@app.command("names")
def names_main(
    concepts: Path = typer.Argument(..., help="concepts.jsonl"),
    output: Path = typer.Argument(..., help="Where, without an ending."),
    encoder: list[str] = typer.Option(..., help="NAME=FOLDER; may be repeated."),
    count: int = typer.Option(18, min=2, help="Concepts."),
    fewest: int = typer.Option(8, min=2, help="Names that each has at least."),
    seed: int = typer.Option(0, min=0, help="Which concepts, and of t-SNE."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """concepts.jsonl + encoders -> names.png, names.svg (t-SNE by concept)

    Example: python -m training.experiments.figures names corpus/concepts.jsonl results/names
    --encoder before=models/minilm --encoder after=models/encoder
    """
    try:
        chosen = choose_concepts(
            read_concepts(concepts), count=count, fewest=fewest, seed=seed
        )
        own = [distinct_names(concept) for concept in chosen]
        labels = np.repeat(np.arange(len(own)), [len(names) for names in own])
        texts = [name for names in own for name in names]
        encoders = parse_named(encoder, "--encoder").items()
        vectors = {title: embed_names(folder, texts) for title, folder in encoders}
        titles = [concept.name for concept in chosen]
        figure = draw_names(titles, labels, vectors, seed=seed)
        tell(write_figure(figure, output), quiet)
    except SapbertError as error:
        msg.fail(str(error), exits=1)


@app.command("cosines")
def cosines_main(
    concepts: Path = typer.Argument(..., help="concepts.jsonl"),
    output: Path = typer.Argument(..., help="Where, without an ending."),
    encoder: list[str] = typer.Option(..., help="NAME=FOLDER; may be repeated."),
    pairs: int = typer.Option(256, min=2, help="In the batch."),
    margin: float = typer.Option(0.2, help="Of the miner."),
    seed: int = typer.Option(0, min=0, help="Which pairs."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """concepts.jsonl + encoders -> cosines.png, cosines.svg (all and mined pairs)

    Example: python -m training.experiments.figures cosines corpus/concepts.jsonl results/cosines
    --encoder before=models/minilm --encoder after=models/encoder
    """
    try:
        batch, labels = sample_batch(read_concepts(concepts), pairs=pairs, seed=seed)
        encoders = parse_named(encoder, "--encoder").items()
        vectors = {title: embed_names(folder, batch) for title, folder in encoders}
        figure = draw_cosines(batch, labels, vectors, margin=margin)
        tell(write_figure(figure, output), quiet)
    except SapbertError as error:
        msg.fail(str(error), exits=1)


@app.command("thresholds")
def thresholds_main(
    predictions: Path = typer.Argument(
        ..., help="Of `spacy_sapbert.evaluation.evaluate`."
    ),
    mentions: list[Path] = typer.Argument(..., help="The gold mentions."),
    output: Path = typer.Option(..., help="Where, without an ending."),
    aliases: Path | None = typer.Option(None, help="Ids and what they alias."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """predictions.jsonl + mentions.tsv … -> thresholds.png, thresholds.svg

    Example: python -m training.experiments.figures thresholds predictions.jsonl corpus/dev.tsv
    --output results/thresholds
    """
    try:
        known = read_aliases(aliases) if aliases else {}
        figure = draw_thresholds(*judge_first_answers(predictions, mentions, known))
        tell(write_figure(figure, output), quiet)
    except SapbertError as error:
        msg.fail(str(error), exits=1)


@app.command("curves")
def curves_main(
    output: Path = typer.Argument(..., help="Where, without an ending."),
    log: list[str] = typer.Option(..., help="NAME=training.jsonl; may be repeated."),
    window: int = typer.Option(50, min=1, help="Steps that are averaged."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """training.jsonl … -> curves.png, curves.svg

    Example: python -m training.experiments.figures curves results/curves --log
    mined=models/encoder/training.jsonl
    """
    try:
        named = parse_named(log, "--log")
        logs = {name: read_log(Path(path)) for name, path in named.items()}
        tell(write_figure(draw_curves(logs, window=window), output), quiet)
    except SapbertError as error:
        msg.fail(str(error), exits=1)


@app.command("recalls")
def recalls_main(
    output: Path = typer.Argument(..., help="Where, without an ending."),
    result: list[str] = typer.Option(..., help="NAME=FILE; may be repeated."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """results of `training.experiments.evaluate_hierarchy` … -> recalls.png, recalls.svg

    Example: python -m training.experiments.figures recalls results/recalls --result
    before=results/base.json --result after=results/hierarchical.json
    """
    try:
        named = parse_named(result, "--result")
        results = {name: read_recalls(Path(path)) for name, path in named.items()}
        tell(write_figure(draw_recalls(results), output), quiet)
    except SapbertError as error:
        msg.fail(str(error), exits=1)


if __name__ == "__main__":
    app()
