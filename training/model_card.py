"""The README.md that is written beside a trained encoder."""

import platform
from importlib.metadata import version
from typing import Any, Dict

import spacy_sapbert


def model_card(run: Dict[str, Any], summary: Dict[str, Any]) -> str:
    """Describe a trained encoder: base, data, loss, settings, course and versions.

    run (Dict[str, Any]): The settings of the run.
    summary (Dict[str, Any]): What it did.
    RETURNS (str): Markdown.
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
    return f"""---
tags: [biomedical, entity-linking, sapbert]
base_model: {run["base"]}
---

# Self-aligned encoder

Maps names of biomedical concepts to unit vectors, so that the names of one concept lie
close together. Trained from `{run["base"]}` on {summary["pairs"]:,} pairs of names of
{summary["concepts"]:,} concepts, with online hard pair mining and Multi-Similarity loss
(Liu et al. 2021, *Self-Alignment Pretraining for Biomedical Entity Representations*).

It loads with `AutoModel` and `AutoTokenizer`. Use {run["pooling"]} pooling of the last
layer, names of at most {run["max_length"]} wordpieces{
        ", lower-cased" if run["lowercase"] else ""
    }, and cosine similarity; `sapbert.json` says the same to `spacy_sapbert`.

## Settings

| setting | value |
|---|---|
{settings}

## Course

Means over the first and the last tenth of the steps.

| | |
|---|---|
{course}

`training.jsonl` has every step. The vocabulary that the names come from may have a
licence of its own; look there before you pass this encoder on.

Made with {versions}.
"""
