"""Summary of a run, and the README.md in the folder of its encoder."""

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import spacy_sapbert
from training.data.dataset import PairDataset
from training.data.hierarchy import FAMILY
from training.encoders.new_adapter import trainable_parameters
from training.trainer.checkpoints import Progress

SOURCES = {
    "pairs": "pairs of names",
    "relations": "pairs of related concepts",
    "families": "families of a hierarchy",
}
TEMPLATE = Path(__file__).with_suffix(".md")


def summarize(
    log: list[dict[str, Any]],
    datasets: dict[str, PairDataset],
    model: Any,
    progress: Progress,
    *,
    seconds: float,
) -> dict[str, Any]:
    """Compute counts, losses and speed of a run, for the table and the model card.

    Losses are means over the first and the last tenth of the steps.

    Args:
        log: Entries of training.jsonl.
        datasets: By the name of their source.
    """
    tenth = max(len(log) // 10, 1)
    parts = {"first": log[:tenth], "last": log[-tenth:]}
    summary: dict[str, Any] = {"steps": progress.step}
    sizes = {name: FAMILY if name == "families" else 1 for name in datasets}
    for name, dataset in datasets.items():
        summary[name] = dataset.meta.pairs // sizes[name]
    # the steps that the written weights have had
    last = progress.best_step or progress.step
    used = [entry for entry in log if entry["step"] <= last]
    for name, size in sizes.items():
        lines = sum(entry["pairs"] for entry in used if entry["source"] == name)
        summary[f"{name}_used"] = lines // size
    summary |= {
        "names": datasets["pairs"].meta.names,
        "concepts": datasets["pairs"].meta.concepts,
        "adapters": hasattr(model, "sapbert_adapter"),
        "trained_parameters": sum(p.numel() for p in trainable_parameters(model)),
    }
    for key in ("loss", "mined"):
        for place, entries in parts.items():
            mean = np.mean([entry[key] for entry in entries])
            summary[f"{place}_{key}"] = round(float(mean), 4)
    taken = sum(entry["seconds"] for entry in log)
    pairs = sum(entry["pairs"] for entry in log)
    summary["pairs_per_second"] = round(pairs / max(taken, 1e-9), 1)
    summary["seconds"] = round(seconds, 1)
    summary["bytes_written_by_checkpoints"] = progress.checkpoint_bytes
    if progress.best_step:
        summary["best_step"] = progress.best_step
        summary["best_accuracy"] = round(progress.best_accuracy, 4)
    return summary


def format_model_card(run: dict[str, Any], summary: dict[str, Any]) -> str:
    """Format the model card of a run with these settings as Markdown."""
    loads = (
        "It loads with `AutoModel` and `AutoTokenizer`, and with `SentenceTransformer`."
    )
    if summary["adapters"]:
        loads = (
            "It is a frozen encoder with adapters: `spacy_sapbert` loads both, plain "
            "`AutoModel` the encoder without them."
        )
    chosen = "These weights were not validated."
    if "best_step" in summary:
        chosen = (
            f"The weights are those of step {summary['best_step']:,}, with the best "
            f"Acc@1 of all\nvalidations, {summary['best_accuracy']}."
        )
    used = [
        f"| {what} | {summary[f'{name}_used']:,} | {summary[name]:,} "
        f"| {summary[f'{name}_used'] / summary[name]:.3g} |"
        for name, what in SOURCES.items()
        if name in summary
    ]
    libraries = [
        f"{name} {version(name)}" for name in ("torch", "transformers", "numpy")
    ]
    versions = [f"spacy-sapbert {spacy_sapbert.__version__}", *libraries]
    return TEMPLATE.read_text("utf8").format(
        base=run["encoder.base"],
        library="transformers" if summary["adapters"] else "sentence-transformers",
        steps=f"{summary['steps']:,} step{'s' * (summary['steps'] != 1)}",
        seed=run["training.seed"],
        miner=run["training.miner.@miners"],
        loss=run["training.loss.@losses"],
        used="\n".join(used),
        concepts=summary["concepts"],
        chosen=chosen,
        loads=loads,
        pooling=run["encoder.pooling"],
        max_length=run["encoder.max_length"],
        casing=", lower-cased" if run["encoder.lowercase"] else "",
        settings="\n".join(f"| {key} | `{value}` |" for key, value in run.items()),
        course="\n".join(
            f"| {key.replace('_', ' ')} | {value} |" for key, value in summary.items()
        ),
        versions=", ".join([*versions, f"Python {platform.python_version()}"]),
    )
