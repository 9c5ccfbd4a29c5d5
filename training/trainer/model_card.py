"""Summary of a run, and the README.md beside its encoder."""

import platform
from importlib.metadata import version
from typing import Any

import numpy as np

import spacy_sapbert
from spacy_sapbert.encoder.adapters import count_trainable
from training.data.hierarchy import FAMILY
from training.data.tokenized_pairs import Corpus
from training.trainer.checkpoints import Progress


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

    pairs = corpora["pairs"]
    taken = sum(entry["seconds"] for entry in log)
    summary: dict[str, Any] = {
        "steps": len(log),
        **{
            name: len(corpus) // (FAMILY if name == "families" else 1)
            for name, corpus in corpora.items()
        },
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
    besides = "".join(
        f",\n{summary[name]:,} {what}"
        for name, what in (
            ("relations", "pairs of related concepts"),
            ("families", "families of a hierarchy"),
        )
        if name in summary
    )
    return f"""---
tags: [biomedical, entity-linking, sapbert]
base_model: {run["encoder.base"]}
---

# Self-aligned encoder

Maps names of biomedical concepts to unit vectors; names of one concept have similar
vectors. Trained from `{run["encoder.base"]}`
on {summary["pairs"]:,} pairs of names of {summary["concepts"]:,} concepts{besides}
with `{run["training.miner.@miners"]}` and `{run["training.loss.@losses"]}`
(Liu et al. 2021, *Self-Alignment Pretraining for Biomedical Entity Representations*).

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
