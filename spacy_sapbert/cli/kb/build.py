"""`spacy sapbert kb build`."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import typer

from ...encoder.huggingface import (
    LONGEST,
    EncoderSettings,
    check_settings,
    read_settings,
)
from ...io.terminal import msg
from ...io.writing import check_folder_output
from ...kb.folder.layout import KB_FOLDER
from ...kb.folder.records import Manifest
from ...linking.probability import DEFAULT_THRESHOLD
from ..options import RUNNING, Device, Engine, Force, Panel, Precision, Quiet
from .app import kb_app, parse_numbers
from .description import describe_manifest

GOOD_RECALL = 0.99
ENCODER: Panel = {"rich_help_panel": "Encoder"}
INDEX: Panel = {"rich_help_panel": "Index"}


def choose_settings(
    encoder: str,
    pooling: str | None,
    max_length: int | None,
    lowercase: bool | None,
) -> EncoderSettings:
    """Return the settings of an encoder, replaced by options that are not None."""
    given = {"pooling": pooling, "max_length": max_length, "lowercase": lowercase}
    settings = asdict(read_settings(Path(encoder)))
    settings.update((key, value) for key, value in given.items() if value is not None)
    return check_settings(settings)


@kb_app.command("build")
def build(
    concepts: Path = typer.Argument(..., help="concepts.jsonl"),
    kb: Path = typer.Argument(..., help="Folder to write."),
    encoder: str = typer.Option(
        ...,
        help="Folder or hub id of the encoder. `spacy sapbert fetch-encoder "
        "models/minilm` gets a small one for `--encoder models/minilm`.",
    ),
    pooling: Literal["cls", "mean"] | None = typer.Option(
        None, help="[as in the folder of the encoder, else cls]", **ENCODER
    ),
    max_length: int | None = typer.Option(
        None, min=3, max=LONGEST, help="Tokens of a name. [25]", **ENCODER
    ),
    lowercase: bool | None = typer.Option(
        None, help="Lower-case names. [yes]", **ENCODER
    ),
    backend: str | None = typer.Option(
        None, help="exact, hnsw or faiss. [by number of names and memory]", **INDEX
    ),
    setting: list[str] = typer.Option(
        [], help="Of the backend, like M=32; may be repeated.", **INDEX
    ),
    threshold: float = typer.Option(
        DEFAULT_THRESHOLD,
        help="Least probability of a link, 0 = link everything.",
    ),
    source: list[str] = typer.Option(
        [], help="A vocabulary and its release, for `kb info`; may be repeated."
    ),
    order: Literal["names", "none"] = typer.Option(
        "names",
        help="names: learn an order of candidates from the names, which finds "
        "misspelled mentions; none: by cosine alone.",
    ),
    threads: int = typer.Option(
        0,
        min=0,
        help="0 = all; with 1 the bytes are always the same.",
        **INDEX,
    ),
    names_per_pass: int = typer.Option(
        64, min=1, help="Names embedded at once.", **RUNNING
    ),
    engine: Engine = None,
    precision: Precision = None,
    reuse: Path | None = typer.Option(
        None, help="Knowledge base of the same encoder; only other names are embedded."
    ),
    device: Device = "auto",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """concepts.jsonl + encoder -> kb/

    The same command continues a build that was stopped.

    Example: spacy sapbert kb build assets/concepts.jsonl models/kb --encoder
    cambridgeltl/SapBERT-from-PubMedBERT-fulltext --source "UMLS 2024AA"
    """
    from ...kb.building.build import build_kb

    check_folder_output(kb, KB_FOLDER, force=force)
    inputs: dict[str, Any] = {
        "concepts_path": concepts,
        "output": kb,
        "encoder": encoder,
        "settings": choose_settings(encoder, pooling, max_length, lowercase),
        "backend": backend,
        "backend_settings": parse_numbers(setting),
        "engine": engine or "auto",
        "names_per_pass": names_per_pass,
        "precision": precision or "float32",
        "device": device,
        "reuse": reuse,
        "force": force,
        "progress": not quiet,
    }
    manifest = build_kb(
        **inputs,
        threshold=threshold,
        sources=[*filter(None, source)],
        threads=threads,
        order=order,
    )
    if not quiet:
        msg.table(describe_manifest(manifest))
        warn_of_recall(kb, manifest)
        msg.good(f"Wrote {kb}")


def warn_of_recall(kb: Path, manifest: Manifest) -> None:
    """Print how to find more, if the index misses more than one name in a hundred."""
    if manifest.recall and manifest.recall.at_1 < GOOD_RECALL:
        ef = 2 * manifest.index.settings["ef"]
        msg.warn(
            f"The index finds {manifest.recall.at_1:.1%} of the nearest names. A "
            f"slower search finds more: spacy sapbert kb set {kb} ef={ef}"
        )
