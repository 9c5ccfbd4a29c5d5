"""Batches with hard negatives: which pairs are in a batch, and training on them.

Every second pair of a batch is one of the concept with the name nearest to the pair
before it, as the encoder before training sees them.
"""

from pathlib import Path

import numpy as np
import torch
import typer

from experiments.annotated.split_documents import run
from spacy_sapbert.cli.app import make_app
from spacy_sapbert.encoder.huggingface import (
    ENCODER_FOLDER,
    load_encoder,
    save_encoder,
)
from spacy_sapbert.evaluation.gold_mentions import read_aliases
from spacy_sapbert.evaluation.score_mentions import select_mentions
from spacy_sapbert.io.progress import show_progress
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import (
    check_folder_output,
    check_outputs,
    write_atomically,
    write_folder_atomically,
)
from spacy_sapbert.vocabularies.concepts import read_concepts, write_concepts
from training.data.dataset import PairDataset, build_dataset
from training.data.sample import sample_concepts
from training.trainer.batches import Source, arrange_names, collate_batch
from training.trainer.distributed import SINGLE
from training.trainer.embedding import NameEmbedder
from training.trainer.settings import (
    TrainingSettings,
    complete_encoder,
    make_settings,
    read_config,
)
from training.trainer.step import make_state, train_step
from training.trainer.validation import SETTINGS

app = make_app(add_completion=False)
NAMES_AT_ONCE = 512
MOST_NEAREST = 256  # names that are looked at, to find one of another concept

Pairs = typer.Argument(..., help="pairs.tsv")
Base = typer.Option(..., help="Encoder before training.")
Forced = typer.Option(False, "--force", help="Replace existing outputs.")


def load_settings(config: Path | None, base: str, **changed: float) -> TrainingSettings:
    """Read a config, with other values by dotted names, and float32."""
    fixed = {"encoder.base": base, "training.precision": "float32"}
    return make_settings(complete_encoder(read_config(config, {**fixed, **changed})))


def open_pairs(path: Path, tokenizer: object, settings: TrainingSettings) -> Source:
    """Tokenise pairs beside their file, or open what is there."""
    how = settings.encoder.how
    dataset = build_dataset(
        path,
        path.with_name(f"{path.stem}-tokens"),
        tokenizer,
        max_length=how.max_length,
        lowercase=how.lowercase,
    )
    return Source("pairs", path, dataset)


@torch.no_grad()
def embed_names(dataset: PairDataset, embedder: NameEmbedder) -> torch.Tensor:
    """Compute the vectors of all names of a dataset. Shape: (names, width)."""
    vectors = []
    several = embedder.layout is not None
    numbers = np.arange(len(dataset.names))
    blocks = np.array_split(numbers, -(-len(numbers) // NAMES_AT_ONCE))
    with show_progress(total=len(numbers), unit="names", quiet=False) as bar:
        for block in blocks:
            rows = arrange_names(dataset, block, several=several, multiple=1)
            vectors.append(embedder.embed(rows))
            bar.update(len(block))
    return torch.cat(vectors)


def find_partners(
    dataset: PairDataset,
    vectors: torch.Tensor,
    lines: np.ndarray,
    rng: np.random.Generator,
    *,
    below: float = 1.01,
) -> tuple[np.ndarray, np.ndarray]:
    """Find a pair of the concept with the nearest name of another concept.

    A name that both concepts have is none of them.

    Args:
        vectors: Of all names, unit-length rows. Shape: (names, width).
        lines: Of the pairs, whose first names are compared. Shape: (n,).
        below: Names with a cosine of at least this are left out.

    Returns:
        The line of a pair with the nearest name, and its cosine; −1 and NaN if none
        of the nearest names is of another concept. Shape: (n,) each.
    """
    pairs = dataset.pairs[:]
    names, labels = pairs["names"], pairs["label"]
    order = rng.permutation(len(pairs))
    line_of = np.zeros(len(dataset.names), np.int64)  # of a name, any of its lines
    line_of[names[order]] = order[:, None]
    concepts = np.unique(labels, return_inverse=True)[1]
    texts = np.unique(dataset.names["hash"], return_inverse=True)[1]
    total = texts.max() + 1
    # what a concept is called, as one number for concept and text
    own = np.unique(concepts[line_of] * total + texts)
    found, cosines = np.full(len(lines), -1), np.full(len(lines), np.nan)
    for start in range(0, len(lines), NAMES_AT_ONCE):
        part = lines[start : start + NAMES_AT_ONCE]
        scores = vectors[names[part, 0]] @ vectors.T
        scores, nearest = scores.topk(min(MOST_NEAREST, len(vectors)), dim=1)
        shared = np.isin(concepts[part, None] * total + texts[nearest.numpy()], own)
        fits = ~shared & (scores.numpy() < below)
        first = fits.argmax(1)
        rows = np.flatnonzero(fits.any(1))
        found[start + rows] = line_of[nearest.numpy()[rows, first[rows]]]
        cosines[start + rows] = scores.numpy()[rows, first[rows]]
    return found, cosines


@app.command("draw")
def draw_batches(
    pairs: Path = Pairs,
    output: Path = typer.Argument(..., help="batches.npz"),
    base: str = Base,
    steps: int = typer.Option(150, min=1, help="Batches of each kind."),
    size: int = typer.Option(128, min=2, help="Pairs of a batch."),
    seeds: int = typer.Option(2, min=1, help="Orders, from seed 0."),
    below: float = typer.Option(0.9, help="Cosine of the kind `below`, at most."),
    force: bool = Forced,
) -> None:
    """pairs -> the lines of batches: random-SEED, nearest-SEED, below-SEED"""
    check_outputs(output, force=force)
    settings = load_settings(None, base)
    tokenizer, model = load_encoder(base)
    dataset = open_pairs(pairs, tokenizer, settings).dataset
    embedder = NameEmbedder(model.eval(), settings, SINGLE)
    vectors = embed_names(dataset, embedder)
    batches = {}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        needed = steps * size
        rounds = -(-needed // len(dataset.pairs))
        order = [rng.permutation(len(dataset.pairs)) for _ in range(rounds)]
        drawn = np.concatenate(order)[:needed].reshape(steps, size)
        batches[f"random-{seed}"] = drawn
        kept = drawn[:, : size // 2].reshape(-1)
        for kind, most in (("nearest", 1.01), ("below", below)):
            found, cosines = find_partners(dataset, vectors, kept, rng, below=most)
            # without a neighbour, a random pair
            others = drawn[:, size // 2 : size // 2 * 2].reshape(-1)
            found = np.where(found < 0, others, found)
            lines = np.stack([kept, found], axis=1).reshape(steps, -1)
            batches[f"{kind}-{seed}"] = lines
            known = cosines[~np.isnan(cosines)]
            average = f"{known.mean():.3f}" if len(known) else "–"
            msg.info(
                f"{kind}-{seed}: {len(known):,} of {len(found):,} pairs have a hard "
                f"negative, whose cosine is {average} on average"
            )
    with write_atomically(output) as file:
        np.savez(file, **batches)
    msg.good(f"Wrote {output}")


@app.command("dictionary")
def write_dictionary(
    concepts: Path = typer.Argument(..., help="concepts.jsonl"),
    output: Path = typer.Argument(..., help="To write: those to link to."),
    mentions: list[Path] = typer.Argument(..., help="Annotated files."),
    aliases: Path | None = typer.Option(None, help="Ids that are aliases of others."),
    others: int = typer.Option(1000, min=1, help="Concepts that no mention has."),
    force: bool = Forced,
) -> None:
    """concepts, mentions -> the concepts of the mentions, and a sample of others"""
    check_outputs(output, force=force)
    golds = [gold for path in mentions for gold in select_mentions(path, SETTINGS)[0]]
    known = read_aliases(aliases) if aliases else {}
    kept = sample_concepts(read_concepts(concepts), golds, known, others)
    msg.good(f"Wrote {write_concepts(output, kept):,} concepts to {output}")


@app.command("train")
def train_encoder(
    pairs: Path = Pairs,
    batches: Path = typer.Argument(..., help="batches.npz"),
    encoder: Path = typer.Argument(..., help="To write: the encoder."),
    kind: str = typer.Option(..., help="random, nearest or below."),
    config: Path = typer.Option(..., help="Config file with the loss."),
    base: str = Base,
    seed: int = typer.Option(0, min=0, help="Of the batches and of dropout."),
    steps: int = typer.Option(0, min=0, help="Batches; 0 = all."),
    rate: float = typer.Option(2e-5, help="Learning rate."),
    force: bool = Forced,
) -> None:
    """pairs, batches -> encoder"""
    check_folder_output(encoder, ENCODER_FOLDER, force=force)
    changed = {"training.seed": seed, "training.optimizer.learning_rate": rate}
    settings = load_settings(config, base, **changed)
    tokenizer, state = make_state(settings, SINGLE)
    source = open_pairs(pairs, tokenizer, settings)
    several = state.embedder.layout is not None
    plan = np.load(batches)[f"{kind}-{seed}"][: steps or None]
    with show_progress(total=len(plan), unit="steps", quiet=False) as bar:
        for step, lines in enumerate(plan):
            for group in state.optimizer.param_groups:
                group["lr"] = settings.learning_rate(step, len(plan))
            batch = collate_batch(source, lines, several=several)
            result = train_step(state, batch, settings)
            bar.set_postfix_str(f"loss {result.loss:.4f}, mined {result.mined:.0%}")
            bar.update()
    with write_folder_atomically(encoder, ENCODER_FOLDER) as part:
        save_encoder(part, tokenizer, state.model.eval(), settings.encoder.how)


if __name__ == "__main__":
    run(app)
