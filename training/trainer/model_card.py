"""Summary of a run, and the README.md beside its encoder."""

import platform
from collections import Counter
from importlib.metadata import version
from typing import Any

import numpy as np

import spacy_sapbert
from training.data.hierarchy import FAMILY
from training.data.tokenized_pairs import Corpus
from training.encoders.new_adapter import count_trainable
from training.trainer.checkpoints import Progress

SOURCES = {
    "pairs": "pairs of names",
    "relations": "pairs of related concepts",
    "families": "families of a hierarchy",
}


def group_size(source: str) -> int:
    """Return the number of lines of a source that belong together."""
    return FAMILY if source == "families" else 1


def summarize(
    log: list[dict[str, Any]],
    corpora: dict[str, Corpus],
    model: Any,
    progress: Progress,
    *,
    seconds: float,
) -> dict[str, Any]:
    """Compute counts, losses and speed of a run, for the table and the model card.

    Losses are means over the first and the last tenth of the steps.

    log (list[dict[str, Any]]): Entries of training.jsonl.
    corpora (dict[str, Corpus]): Training data by the name of its source.
    """
    tenth = max(len(log) // 10, 1)

    def mean(entries: list[dict[str, Any]], key: str) -> float:
        return round(float(np.mean([entry[key] for entry in entries])), 4)

    # the steps that the written weights have had
    used = log[: progress.best_step] if progress.best_step else log
    lines = Counter[str]()
    for entry in used:
        lines[entry["source"]] += entry["pairs"]
    pairs = corpora["pairs"]
    taken = sum(entry["seconds"] for entry in log)
    summary: dict[str, Any] = {
        "steps": len(log),
        **{name: len(corpus) // group_size(name) for name, corpus in corpora.items()},
        **{f"{name}_used": lines[name] // group_size(name) for name in corpora},
        "names": len(pairs.names),
        "concepts": pairs.concepts,
        "adapters": hasattr(model, "sapbert_adapter"),
        "trained_parameters": count_trainable(model),
        "first_loss": mean(log[:tenth], "loss"),
        "last_loss": mean(log[-tenth:], "loss"),
        "first_mined": mean(log[:tenth], "mined"),
        "last_mined": mean(log[-tenth:], "mined"),
        "pairs_per_second": round(sum(e["pairs"] for e in log) / max(taken, 1e-9), 1),
        "seconds": round(seconds, 1),
    }
    if progress.best_step:
        summary["best_step"] = progress.best_step
        summary["best_accuracy"] = round(progress.best_accuracy, 4)
    return summary


def format_model_card(run: dict[str, Any], summary: dict[str, Any]) -> str:
    """Format the model card as Markdown.

    run (dict[str, Any]): The settings of the run.
    """
    settings = "\n".join(f"| {key} | `{value}` |" for key, value in run.items())
    course = "\n".join(
        f"| {key.replace('_', ' ')} | {value} |" for key, value in summary.items()
    )
    versions = ", ".join(
        [f"spacy-sapbert {spacy_sapbert.__version__}"]
        + [f"{name} {version(name)}" for name in ("torch", "transformers", "numpy")]
        + [f"Python {platform.python_version()}"]
    )
    casing = ", lower-cased" if run["encoder.lowercase"] else ""
    how = "It loads with `AutoModel` and `AutoTokenizer`."
    if summary["adapters"]:
        how = (
            "It is a frozen encoder with adapters: `spacy_sapbert` loads both, plain "
            "`AutoModel` the encoder without them."
        )
    used = "\n".join(
        f"| {what} | {summary[f'{name}_used']:,} | {summary[name]:,} "
        f"| {summary[f'{name}_used'] / summary[name]:.3g} |"
        for name, what in SOURCES.items()
        if name in summary
    )
    steps, chosen = summary["steps"], "These weights were not validated."
    if "best_step" in summary:
        chosen = (
            f"The weights are those of step {summary['best_step']:,}, with the best "
            f"Acc@1 of all\nvalidations, {summary['best_accuracy']}."
        )
    return f"""---
tags: [biomedical, entity-linking, sapbert]
base_model: {run["encoder.base"]}
---

# Self-aligned encoder

Maps names of biomedical concepts to unit vectors; names of one concept have similar
vectors. Trained from `{run["encoder.base"]}`
in {steps:,} {"step" if steps == 1 else "steps"} with seed {run["training.seed"]},
`{run["training.miner.@miners"]}` and `{run["training.loss.@losses"]}`
(Liu et al. 2021, *Self-Alignment Pretraining for Biomedical Entity Representations*).

| data | used | in the file | epochs |
|---|---:|---:|---:|
{used}

The pairs of the file are of {summary["concepts"]:,} concepts. {chosen}

{how}

Use {run["encoder.pooling"]} pooling of the last layer, names of at most
{run["encoder.max_length"]} wordpieces{casing}, and cosine similarity; `sapbert.json`
has the same settings for `spacy_sapbert`. `training.cfg` has every setting.

## Settings

| setting | value |
|---|---|
{settings}

## Training

Means over the first and the last tenth of the steps.

| | |
|---|---|
{course}

`training.jsonl` has every step. The vocabulary of the names may have its own licence;
read it before you publish this encoder.

Made with {versions}.
"""
