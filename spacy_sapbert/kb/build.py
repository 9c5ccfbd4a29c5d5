"""concepts.jsonl + encoder → the folder of a knowledge base."""

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from .. import __version__
from ..encoder.huggingface import (
    EncoderSettings,
    check_settings,
    load_encoder,
    read_settings,
    save_encoder,
)
from ..encoder.name_encoder import (
    NameModel,
    create_encoder,
    open_encoder,
    tokenize_names,
)
from ..encoder.openvino_export import export_encoder
from ..errors import Errors, SapbertError, check_range
from ..system.reading import check_file, file_digest
from ..system.writing import write_folder_atomically
from ..vocabularies.concepts import Concept, read_concepts
from .folder.manifest import (
    EXPORTED,
    Counts,
    EncoderRecord,
    IndexRecord,
    Manifest,
    check_writable,
    describe_files,
    encoder_fingerprint,
    lock_kb,
    read_manifest,
    verify_files,
    write_manifest,
)
from .indexes.registry import build_index
from .knowledge_base import load_kb
from .ngrams.build import build_ngrams, iter_names
from .ngrams.index import FOLDER as NGRAMS_FOLDER
from .row_vectors import SHARD_ROWS, Names, embed_rows
from .store import FILE as STORE_FILE
from .store import Store
from .store_writer import create_store

CONCEPTS_AT_ONCE = 2_000  # tokenised together


def write_store(
    concepts: Iterable[Concept], path: Path, model: NameModel
) -> tuple[Names, Counts]:
    """Write concepts.db, and number the names to embed.

    concepts (Iterable[Concept]): Each concept once.
    path (Path): The file to write.
    model (Model[list[str], Floats2d]): The encoder.
    RETURNS (tuple[Names, Counts]): The names, and the counts for meta.json.
    RAISES (SapbertError): If a concept comes twice, or the encoder can read no name.
    """
    names = Names()
    counts = Counts(concepts=0, aliases=0, rows=0)
    path.unlink(missing_ok=True)
    with create_store(path) as store:
        stream = iter(concepts)
        while batch := list(islice(stream, CONCEPTS_AT_ONCE)):
            aliases = [alias for concept in batch for alias in concept.aliases]
            token_ids, _ = tokenize_names(model, aliases)
            rows = iter([names.add(ids) for ids in token_ids])
            for concept in batch:
                own = list(islice(rows, len(concept.aliases)))
                store.add(concept, own)
                counts.concepts += 1
                counts.aliases += len(own)
                counts.unreadable += own.count(None)
        if not names.rows:
            raise SapbertError(Errors.E311.format(concepts=counts.concepts))
        store.finish(names.rows)
    counts.rows = len(names.rows)
    return names, counts


def open_work_folder(folder: Path, plan: dict[str, Any]) -> None:
    """Keep the shards of a stopped build if its plan was the same, else remove them.

    folder (Path): Folder of the build.
    plan (dict[str, Any]): Everything that decides the vectors; plain JSON types.
    """
    path = folder / "plan.json"
    if not path.is_file() or json.loads(path.read_text("utf8")) != plan:
        for shard in folder.glob("shard-*.npy"):
            shard.unlink()
        path.write_text(json.dumps(plan, indent=2), "utf8")


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


def build_kb(
    concepts_path: Path,
    output: Path,
    encoder: str,
    *,
    settings: EncoderSettings | None = None,
    backend: str = "hnsw",
    backend_settings: dict[str, int] | None = None,
    threshold: float | None = None,
    sources: Sequence[str] = (),
    engine: str = "torch",
    names_per_pass: int = 64,
    precision: str = "float32",
    threads: int = 0,
    ngrams: bool = False,
    force: bool = False,
    progress: bool = False,
) -> Manifest:
    """Build a knowledge base; a build that was stopped is continued.

    concepts_path (Path): concepts.jsonl.
    output (Path): The folder to write.
    encoder (str): A folder or a hub id.
    settings (EncoderSettings | None): How to run it; None = as in its folder.
    backend (str): Index backend, "hnsw" or "exact".
    backend_settings (dict[str, int] | None): Settings that differ from the defaults.
    threshold (float | None): Cosine below which a mention has no concept.
    sources (Sequence[str]): The vocabularies and their releases, for `kb info`.
    engine (str): See `create_encoder`. With "openvino" the encoder is exported, and the
        linker may use the engine too.
    names_per_pass (int): Names in one forward pass.
    precision (str): "float32" or "bf16".
    threads (int): Threads of the index build, 0 = all. With 1, equal input gives equal
        bytes.
    ngrams (bool): Index the character 3-grams of the names, for `fusion`.
    force (bool): Replace an existing folder.
    progress (bool): Show progress bars.
    RETURNS (Manifest): The meta.json of the knowledge base.
    RAISES (SapbertError): If input, encoder, settings or folder are not usable.
    """
    check_file(concepts_path)
    if output.exists() and not force:
        raise SapbertError(Errors.E003.format(path=output))
    if threshold is not None:
        check_range("threshold", threshold, -1, 1)
    model = create_encoder(engine, names_per_pass, precision)
    work = output.with_name(f".{output.name}.build")
    settings = copy_encoder(encoder, work / "encoder", settings)
    fingerprint = encoder_fingerprint(describe_files(work / "encoder"))
    plan = {
        "concepts_sha256": file_digest(concepts_path),
        "fingerprint": fingerprint,
        "settings": asdict(settings),
        "engine": engine,
        "precision": precision,
        "names_per_pass": names_per_pass,
        "shard_rows": SHARD_ROWS,
    }
    open_work_folder(work, plan)
    if engine == "openvino":
        export_encoder(work / "encoder", work / EXPORTED, settings)
    open_encoder(model, work / "encoder", settings=settings, sealed=True)
    concepts = tqdm(
        read_concepts(concepts_path),
        unit=" concepts",
        desc="Read",
        disable=not progress,
    )
    names, counts = write_store(concepts, work / STORE_FILE, model)
    matrix = embed_rows(names, work, model, progress=progress)
    with write_folder_atomically(output) as part:
        shutil.copytree(work / "encoder", part / "encoder")
        shutil.copyfile(work / STORE_FILE, part / STORE_FILE)
        used = build_index(
            matrix,
            part,
            backend=backend,
            settings=backend_settings or {},
            threads=threads,
            progress=progress,
        )
        if ngrams:
            build_ngrams(iter_names(Store(part), len(matrix)), part / NGRAMS_FOLDER)
        record = EncoderRecord(
            # Only the name of a folder: its path may be private.
            base=Path(encoder).name if Path(encoder).is_dir() else encoder,
            fingerprint=fingerprint,
            width=int(matrix.shape[1]),
            engine=engine,
            precision=precision,
            **asdict(settings),
        )
        manifest = Manifest(
            package_version=__version__,
            encoder=record,
            index=IndexRecord(backend=backend, settings=used),
            counts=counts,
            ngrams=ngrams,
            sources=list(sources),
            threshold=threshold,
            files=describe_files(part),
        )
        write_manifest(part, manifest)
    shutil.rmtree(work, ignore_errors=True)
    return load_kb(output).manifest


def export_kb(folder: Path) -> float:
    """Add the encoder as OpenVINO runs it; the index does not change.

    folder (Path): Folder of the knowledge base, changed in place; it is complete at
        each moment.
    RETURNS (float): See `export_encoder`.
    RAISES (SapbertError): If the knowledge base is damaged, read-only or locked, or as
        `export_encoder` does.
    """
    check_writable(folder)
    with lock_kb(folder):
        manifest = read_manifest(folder)
        verify_files(folder, manifest)
        encoder = manifest.encoder
        settings = check_settings(
            encoder.model_dump(include={"pooling", "max_length", "lowercase"})
        )
        place, prefix = folder / EXPORTED, f"{EXPORTED}/"
        files = manifest.files
        kept = {name: r for name, r in files.items() if not name.startswith(prefix)}
        if len(kept) < len(files):
            # Files that meta.json does not list may be replaced.
            manifest.files = kept
            write_manifest(folder, manifest)
        with write_folder_atomically(place) as part:
            cosine = export_encoder(folder / "encoder", part, settings)
        added = {prefix + name: r for name, r in describe_files(place).items()}
        manifest.files = {**kept, **added}
        write_manifest(folder, manifest)
    return cosine
