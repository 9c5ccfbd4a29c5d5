"""What a build does first: the encoder, the plan, what can be reused."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ...encoder.encoder import Encoder, prefers_openvino
from ...encoder.export import export_encoder
from ...encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    read_settings,
    save_encoder,
)
from ...errors import SapbertError
from ...io.progress import show_progress
from ...io.reading import check_not_empty, file_digest
from ...io.writing import check_folder_output
from ...vocabularies.concepts import Concept, read_concepts
from ..folder.layout import ENCODER, EXPORTED, KB_FOLDER
from ..folder.publication import describe_files
from ..folder.records import encoder_fingerprint
from ..indexes.backend import Backend
from .options import BuildOptions
from .plan import (
    PLAN,
    SHARD_ROWS,
    agree_on_plan,
    check_plan,
    lock_work_folder,
    read_json,
)

if TYPE_CHECKING:
    from ..knowledge_base import KnowledgeBase


@dataclass(frozen=True)
class Preparation:
    """What a build has opened.

    Attributes:
        work: Folder of the build, locked.
        copy: A temporary folder with `encoder/`, and `openvino/` if that is the engine.
        plan: See `check_plan`.
        reused: Has the vectors of some names.
    """

    concepts_path: Path
    options: BuildOptions
    work: Path
    copy: Path
    encoder: Encoder
    plan: dict[str, Any]
    reused: "KnowledgeBase | None"

    def read_concepts(self) -> Iterator[Concept]:
        """Read the concepts, and show the progress."""
        concepts: Iterator[Concept] = show_progress(
            read_concepts(self.concepts_path),
            unit="concepts",
            desc="Read",
            quiet=not self.options.progress,
        )
        return concepts

    def agree_on_index(self, rows: int) -> Backend:
        """Return the index to build, for a number of rows; see `agree_on_plan`."""
        shape = {"rows": rows, "width": self.encoder.width}
        return agree_on_plan(self.work, self.plan, self.options.index, **shape)


@contextmanager
def open_build(
    concepts_path: Path, output: Path, encoder: str, options: BuildOptions
) -> Iterator[Preparation]:
    """Open the encoder, and check that shards of a stopped build are of the same plan.

    The encoder is a folder or a hub id.
    """
    from ..knowledge_base import load_kb

    check_not_empty(concepts_path, "concepts")
    check_folder_output(output, KB_FOLDER, force=options.force)
    with (
        lock_work_folder(output) as work,
        TemporaryDirectory(
            prefix=".encoder.", dir=work, ignore_cleanup_errors=True
        ) as folder,
    ):
        copy, config = Path(folder), options.config
        settings = copy_encoder(encoder, copy / ENCODER, options.settings)
        files = describe_files(copy)
        reused = load_kb(options.reuse) if options.reuse else None
        engine = config.engine
        if engine == "auto":  # as the shards and vectors that are there
            engine = reused.manifest.encoder.engine if reused else engine
            engine = read_json(work / PLAN).get("engine", engine)
        plan: dict[str, Any] = {
            "concepts_sha256": file_digest(concepts_path),
            "fingerprint": encoder_fingerprint(files),
            "settings": asdict(settings),
            "engine": export_if_needed(engine, copy, settings),
            "precision": config.precision,
            "names_per_pass": config.names_per_pass,
            "shard_rows": SHARD_ROWS,
        }
        check_plan(work, plan, options.index, replace=options.force)
        if reused:
            check_reused(reused, plan)
        config = replace(config, engine=plan["engine"])
        opened = Encoder.open(copy / ENCODER, config, settings=settings)
        yield Preparation(concepts_path, options, work, copy, opened, plan, reused)


def copy_encoder(
    name: str, folder: Path, settings: EncoderSettings | None
) -> EncoderSettings:
    """Save an encoder (a folder or a hub id) into a folder, and return its settings."""
    settings = settings or read_settings(Path(name))
    folder.mkdir()
    tokenizer, model = load_encoder(name)
    save_encoder(folder, tokenizer, model, settings)
    card = Path(name) / "README.md"
    if card.is_file():
        shutil.copyfile(card, folder / "README.md")
    return settings


def export_if_needed(engine: str, copy: Path, settings: EncoderSettings) -> str:
    """Export the encoder if OpenVINO is to run it; return the engine that runs it."""
    if engine == "auto" and not prefers_openvino():
        return "torch"
    if engine != "torch":
        try:
            export_encoder(copy / ENCODER, copy / EXPORTED, settings)
        except SapbertError:
            if engine != "auto":
                raise
            if (copy / EXPORTED).exists():
                shutil.rmtree(copy / EXPORTED)
            return "torch"
        return "openvino"
    return engine


def check_reused(kb: "KnowledgeBase", plan: dict[str, Any]) -> None:
    """Check that the vectors of `kb` are as a build would compute them."""
    # The files of the encoder have the settings too.
    for name in ("fingerprint", "engine", "precision"):
        if getattr(kb.manifest.encoder, name) != plan[name]:
            name = name.replace("fingerprint", "encoder")
            raise not_reusable(path=kb.folder, name=name)


def not_reusable(*, path: object, name: object) -> SapbertError:
    return SapbertError(
        "E393",
        f"Expected to reuse the vectors of {path}, but its {name} is another than "
        "that of the new knowledge base. Build without `--reuse`, or with the same "
        "settings.",
    )
