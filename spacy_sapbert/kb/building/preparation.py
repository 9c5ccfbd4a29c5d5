"""What a build and its workers do first: the index, the encoder, the plan."""

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...encoder.encoder import Encoder, EncoderConfig
from ...encoder.export import export_encoder
from ...encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    read_settings,
    save_encoder,
)
from ...system.reading import check_not_empty, file_digest
from ...system.writing import check_folder_output
from ..folder.publication import describe_files
from ..folder.records import ENCODER, EXPORTED, KB_FOLDER, encoder_fingerprint
from ..indexes.choice import Choice
from ..indexes.registry import check_library, complete_settings
from .plan import check_plan
from .row_vectors import SHARD_ROWS, open_reused

if TYPE_CHECKING:
    from ..knowledge_base import KnowledgeBase


class Preparation(NamedTuple):
    """What the vectors of a build depend on.

    encoder (Encoder): The encoder.
    settings (EncoderSettings): How it is run.
    fingerprint (str): Of its files.
    plan (dict[str, Any]): See `check_plan`.
    reused (KnowledgeBase | None): Has the vectors of some names.
    """

    encoder: Encoder
    settings: EncoderSettings
    fingerprint: str
    plan: dict[str, Any]
    reused: "KnowledgeBase | None"


def check_inputs(
    concepts_path: Path,
    output: Path,
    backend: str | None,
    backend_settings: dict[str, int] | None,
    *,
    force: bool,
) -> Choice | None:
    """Check what can be checked before anything is written; see `build_kb`.

    RETURNS (Choice | None): The index; None if it is to be chosen.
    RAISES (SapbertError): If the vocabulary is missing or empty, the output exists, or
        the index cannot be built.
    """
    check_not_empty(concepts_path, "concepts")
    check_folder_output(output, KB_FOLDER, force=force)
    if backend is None and not backend_settings:
        return None
    given = Choice(backend or "hnsw", backend_settings or {})
    complete_settings(*given)
    check_library(given.backend)
    return given


def copy_encoder(
    name: str, folder: Path, settings: EncoderSettings | None
) -> EncoderSettings:
    """Save an encoder (a folder or a hub id) into a folder, and return its settings."""
    settings = settings or read_settings(Path(name))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tokenizer, model = load_encoder(name)
    save_encoder(folder, tokenizer, model, settings)
    card = Path(name) / "README.md"
    if card.is_file():
        shutil.copyfile(card, folder / "README.md")
    return settings


def prepare(
    work: Path,
    folder: Path,
    config: EncoderConfig,
    *,
    concepts_path: Path,
    encoder: str,
    settings: EncoderSettings | None,
    index: Choice | None,
    reuse: Path | None,
    replace: bool,
) -> Preparation:
    """Open the encoder, and check that shards of a stopped build are of the same plan.

    work (Path): Folder of the build.
    folder (Path): Where to save the encoder: `encoder/`, and `openvino/` if it is run
        by OpenVINO.
    config (EncoderConfig): How to run the encoder.
    index (Choice | None): The index; None = any.
    replace (bool): Remove shards of another plan.
    RAISES (SapbertError): If the plan is another, or the encoder or the knowledge base
        to reuse is not usable.
    """
    settings = copy_encoder(encoder, folder / ENCODER, settings)
    described = describe_files(folder / ENCODER).items()
    fingerprint = encoder_fingerprint({f"{ENCODER}/{k}": v for k, v in described})
    plan: dict[str, Any] = {
        "concepts_sha256": file_digest(concepts_path),
        "fingerprint": fingerprint,
        "settings": asdict(settings),
        "engine": config.engine,
        "precision": config.precision,
        "names_per_pass": config.names_per_pass,
        "shard_rows": SHARD_ROWS,
    }
    check_plan(work, plan, index, replace=replace)
    reused = open_reused(reuse, plan) if reuse else None
    if config.engine == "openvino":
        export_encoder(folder / ENCODER, folder / EXPORTED, settings)
    opened = Encoder.open(folder / ENCODER, config, settings=settings, trusted=False)
    return Preparation(opened, settings, fingerprint, plan, reused)
