"""Encoders, knowledge bases → figures, for colour-blind readers, too.

The loss of a run is drawn by its tracker (`training.tracker`).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from spacy_sapbert.cli.app import make_app
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation import calibration
from spacy_sapbert.evaluation.gold_mentions import read_aliases
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_outputs
from spacy_sapbert.kb.folder.records import Logistic
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.linking.probability import (
    TopScores,
    compute_measures,
    score_probability,
)
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts
from training.data.options import AliasFile, Concepts, Force, Quiet
from training.data.pairs import distinct_names
from training.encoders.open import open_encoder
from training.experiments.plots import (
    COLOURS,
    MARKERS,
    name_figures,
    open_figure,
    write_figure,
)
from training.losses.sapbert import mine_all_pairs, mine_hard_pairs
from training.trainer.settings import LARGEST_SEED

Output = Annotated[
    Path, typer.Argument(help="File to write as PNG and as SVG, without an ending.")
]
CURVES = {"precision": "-", "recall": "--", "f1": "-."}
POINTS = 200
GROUPS = 10  # of mentions, for the shares of right answers
Encoders = Annotated[
    list[str], typer.Option("--encoder", help="NAME=FOLDER; may be repeated.")
]
Seed = Annotated[
    int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of what is drawn at random.")
]

app = make_app(
    add_completion=False,
    no_args_is_help=True,
    help="Draw figures, as PNG and as SVG.",
)


@app.command("names")
def draw_names(
    concepts: Concepts,
    output: Output,
    encoder: Encoders,
    count: Annotated[int, typer.Option(min=2, help="Concepts.")] = 18,
    fewest: Annotated[int, typer.Option(min=2, help="Names of each at least.")] = 8,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """concepts.jsonl + encoders -> names.png, names.svg (t-SNE by concept)

    The names of some concepts, one plot for each encoder, as in Figure 1 of Liu et al.
    (2021).

    Example: python -m training figures names corpus/concepts.jsonl results/names
    --encoder before=models/minilm --encoder after=models/encoder
    """
    from sklearn.manifold import TSNE

    check_outputs(*name_figures(output), force=force)
    chosen = choose_concepts(
        read_concepts(concepts), count=count, fewest=fewest, seed=seed
    )
    own = [distinct_names(concept) for concept in chosen]
    labels = np.repeat(np.arange(len(own)), [len(names) for names in own])
    vectors = embed_with_each(encoder, [name for names in own for name in names])
    figure, axes = open_figure(1, len(vectors), width=6)
    perplexity = min(15, max(2, (len(labels) - 1) // 3))
    for axis, (title, rows) in zip(axes[0], vectors.items(), strict=True):
        flat = TSNE(
            metric="cosine", init="random", perplexity=perplexity, random_state=seed
        ).fit_transform(rows)
        for number, concept in enumerate(chosen):
            axis.scatter(
                *flat[labels == number].T,
                s=18,
                color=COLOURS[number % len(COLOURS)],
                marker=MARKERS[number % len(MARKERS)],
                label=concept.name[:40],
            )
        axis.set(title=title, xticks=[], yticks=[])
    figure.legend(
        *axes[0][0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        fontsize=7,
        frameon=False,
    )
    save(figure, output, quiet)


@app.command("cosines")
def draw_cosines(
    concepts: Concepts,
    output: Output,
    encoder: Encoders,
    pairs: Annotated[int, typer.Option(min=2, help="Pairs in the batch.")] = 256,
    margin: Annotated[float, typer.Option(help="Margin of the miner.")] = 0.2,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """concepts.jsonl + encoders -> cosines.png, cosines.svg (all and mined pairs)

    Histograms of the positives and negatives of a batch, as in Figure 3 of Liu et al.
    (2021).

    Example: python -m training figures cosines corpus/concepts.jsonl results/cosines
    --encoder before=models/minilm --encoder after=models/encoder
    """
    check_outputs(*name_figures(output), force=force)
    names, labels = sample_batch(read_concepts(concepts), pairs=pairs, seed=seed)
    vectors = embed_with_each(encoder, names)
    figure, axes = open_figure(len(vectors), 2, width=4.5)
    label_ids = torch.from_numpy(labels)
    numbers = {name.lower(): number for number, name in enumerate(names)}
    name_ids = torch.tensor([numbers[name.lower()] for name in names])
    for row, (title, array) in zip(axes, vectors.items(), strict=True):
        unit = torch.from_numpy(array)
        cosines = (unit @ unit.T).numpy()
        every = mine_all_pairs(unit, label_ids, name_ids)
        mined = mine_hard_pairs(unit, label_ids, name_ids, margin=margin)
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
    save(figure, output, quiet)


@app.command("calibration")
def draw_calibration_command(
    kb: Annotated[str, typer.Argument(help="Folder or name of a knowledge base.")],
    mentions: Annotated[list[Path], typer.Argument(help="As for `calibrate`.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="As PNG and as SVG; no ending.")
    ],
    criterion: Annotated[str, typer.Option(help="As for `calibrate`.")] = "f1",
    aliases: AliasFile = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """kb/ + mentions.tsv -> calibration.png, calibration.svg

    The measures by threshold, and the probability by score, with the threshold that
    `spacy sapbert calibrate` chooses.

    Example: python -m training figures calibration models/kb corpus/train.tsv -o
    results/calibration
    """
    check_outputs(*name_figures(output), force=force)
    files = calibration.read_gold_files(mentions)
    opened = load_kb(kb)
    ordered = opened.ranker is not None
    known = read_aliases(aliases) if aliases else {}
    top = calibration.score_top1(
        opened, files, known, ordered=ordered, progress=not quiet
    )
    found = calibration.calibrate(top, files, criterion, ordered=ordered)
    save(draw_calibration(top, found), output, quiet)


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


def choose_concepts(
    concepts: Iterable[Concept], *, count: int, fewest: int, seed: int
) -> list[Concept]:
    """Draw concepts with at least `fewest` names, in the order of the vocabulary."""
    rich = [each for each in concepts if len(distinct_names(each)) >= fewest]
    if not rich:
        raise SapbertError(
            "E106",
            f"Expected concepts with {fewest} names or more, but got none. Lower "
            "`--fewest`, or name another vocabulary.",
        )
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


def embed_with_each(encoders: Sequence[str], names: list[str]) -> dict[str, np.ndarray]:
    """Compute the vectors of names with each encoder, NAME=FOLDER or a folder."""
    folders: dict[str, str] = {}
    for value in encoders:
        name, _, folder = value.rpartition("=")
        folders[name or Path(folder).name] = folder
    if len(folders) < len(encoders):
        setting = "--encoder"
        raise SapbertError(
            "E331",
            f"Expected {setting} as NAME=FOLDER, each name once, but got "
            f"{encoders[-1]!r}. Write it like `{setting} trained=models/kb`.",
        )
    return {name: open_encoder(folder).embed(names) for name, folder in folders.items()}


def save(figure: Any, output: Path, quiet: bool) -> None:
    """Write a figure as PNG and as SVG."""
    for path in write_figure(figure, output):
        if not quiet:
            msg.good(f"Wrote {path}")
