"""concepts.jsonl + encoder → the folder of a knowledge base."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from .. import __version__
from ..encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    read_settings,
    save_encoder,
)
from ..encoder.huggingface import check_settings as check_encoder_settings
from ..encoder.name_encoder import (
    NameModel,
    create_encoder,
    open_encoder,
    tokenize_names,
)
from ..encoder.openvino_export import export_encoder
from ..errors import Errors, SapbertError, check_range
from ..system.progress import show_progress
from ..system.reading import check_not_empty, file_digest
from ..system.terminal import msg
from ..system.writing import link_file, write_folder_atomically
from ..vocabularies.concepts import Concept, read_concepts
from .database import Database
from .folder.files import describe_files, open_files
from .folder.manifest import (
    check_writable,
    lock_kb,
    read_manifest,
    replace_kb,
    write_manifest,
)
from .folder.records import (
    ENCODER,
    EXPORTED,
    NGRAMS,
    STORE_FILE,
    Counts,
    EncoderRecord,
    IndexRecord,
    Manifest,
    encoder_fingerprint,
)
from .indexes.choice import (
    Choice,
    choose_index,
    describe_choices,
    free_memory,
    uses_compact_rows,
)
from .indexes.registry import build_index, check_library, complete_settings
from .ngrams.build import build_ngrams, iter_names
from .opening import open_kb
from .probe import estimate_threshold, measure_recall, probe_kb
from .row_vectors import (
    SHARD_ROWS,
    Names,
    drop_other_shards,
    embed_rows,
    lock_work_folder,
    open_reused,
    resumed_index,
)
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
    concept_count = alias_count = unreadable = 0
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
                concept_count += 1
                alias_count += len(own)
                unreadable += own.count(None)
        if not names.rows:
            raise SapbertError(Errors.E311.format(concepts=concept_count))
        store.finish(names.rows)
    return names, Counts(
        concepts=concept_count,
        aliases=alias_count,
        rows=len(names.rows),
        unreadable=unreadable,
    )


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
    backend: str | None = None,
    backend_settings: dict[str, int] | None = None,
    threshold: float | None = None,
    sources: Sequence[str] = (),
    engine: str = "torch",
    names_per_pass: int = 64,
    precision: str = "float32",
    threads: int = 0,
    ngrams: bool = False,
    reuse: Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> Manifest:
    """Build a knowledge base; a build that was stopped is continued.

    concepts_path (Path): concepts.jsonl.
    output (Path): The folder to write.
    encoder (str): A folder or a hub id.
    settings (EncoderSettings | None): How to run it; None = as in its folder.
    backend (str | None): "hnsw", "faiss" or "exact"; None = see `choose_index`, or
        "hnsw" if there are settings. A stopped build continues with its own.
    backend_settings (dict[str, int] | None): Settings that differ from the defaults.
    threshold (float | None): Cosine below which a mention has no concept; None = see
        `estimate_threshold`; 0 or −1 = link everything.
    sources (Sequence[str]): The vocabularies and their releases, for `kb info`.
    engine (str): See `create_encoder`. With "openvino" the encoder is exported, and the
        linker may use the engine too.
    names_per_pass (int): Names in one forward pass.
    precision (str): "float32" or "bf16".
    threads (int): Threads of the index build, 0 = all. With 1, equal input gives equal
        bytes.
    ngrams (bool): Index the character 3-grams of the names, for `fusion`.
    reuse (Path | None): A knowledge base of the same encoder, e.g. of the release
        before: only names that it lacks are embedded. The bytes are the same.
    force (bool): Replace an existing folder.
    progress (bool): Show progress bars.
    RETURNS (Manifest): The meta.json of the knowledge base.
    RAISES (SapbertError): If input, encoder, settings or folder are not usable.
    """
    check_not_empty(concepts_path, "concepts")
    if output.exists() and not force:
        raise SapbertError(Errors.E003.format(path=output))
    if threshold is not None:
        check_range("threshold", threshold, -1, 1)
    given = None
    if backend is not None or backend_settings:
        given = Choice(backend or "hnsw", backend_settings or {})
        complete_settings(*given)
        check_library(given.backend)
    model = create_encoder(engine, names_per_pass, precision)
    with lock_work_folder(output) as work:
        settings = copy_encoder(encoder, work / ENCODER, settings)
        described = describe_files(work / ENCODER).items()
        fingerprint = encoder_fingerprint({f"{ENCODER}/{k}": v for k, v in described})
        plan: dict[str, Any] = {
            "concepts_sha256": file_digest(concepts_path),
            "fingerprint": fingerprint,
            "settings": asdict(settings),
            "engine": engine,
            "precision": precision,
            "names_per_pass": names_per_pass,
            "shard_rows": SHARD_ROWS,
        }
        old = open_reused(reuse, plan) if reuse else None
        if engine == "openvino":
            export_encoder(work / ENCODER, work / EXPORTED, settings)
        open_encoder(model, work / ENCODER, settings=settings, sealed=True)
        concepts = show_progress(
            read_concepts(concepts_path),
            unit="concepts",
            desc="Read",
            quiet=not progress,
        )
        names, counts = write_store(concepts, work / STORE_FILE, model)
        width = model.get_dim("nO")
        index = given or resumed_index(work, plan)
        index = index or choose_index(counts.rows, width, free=free_memory())
        if progress:
            msg.info(describe_choices(index, counts.rows, width))
        drop_other_shards(work, plan | {"index": index._asdict()})
        compact = uses_compact_rows(index)
        matrix = embed_rows(
            names, work, model, compact=compact, reused=old, progress=progress
        )
        del names, old  # gigabytes, of ten million
        with replace_kb(output) as part:
            shutil.copytree(work / ENCODER, part / ENCODER)
            link_file(work / STORE_FILE, part / STORE_FILE)
            used = build_index(
                matrix,
                part,
                backend=index.backend,
                settings=index.settings,
                threads=threads,
                progress=progress,
            )
            if ngrams:
                store = Store(Database(part / STORE_FILE), counts)
                build_ngrams(iter_names(store, counts.rows), part / NGRAMS)
            described_encoder = {
                # Only the name of a folder: its path may be private.
                "base": Path(encoder).name if Path(encoder).is_dir() else encoder,
                "fingerprint": fingerprint,
                "width": width,
                "engine": engine,
                "precision": precision,
                **asdict(settings),
            }
            manifest = Manifest(
                package_version=__version__,
                encoder=EncoderRecord.model_validate(described_encoder),
                index=IndexRecord(backend=index.backend, settings=used),
                counts=counts,
                ngrams=ngrams,
                sources=list(sources),
                threshold=threshold,
                files=describe_files(part),
            )
            write_manifest(part, manifest)
            try:
                built = open_kb(part, encoder=model)
                probe_kb(built)
                manifest.recall = measure_recall(built)
                estimated = None if threshold is not None else estimate_threshold(built)
                if estimated is not None:
                    manifest.threshold, manifest.estimate = estimated
                manifest = write_manifest(part, manifest)
            except SapbertError as error:
                # hnswlib ignores write errors, so that a full disk cuts the index.
                raise SapbertError(
                    Errors.E355.format(path=output, reason=error)
                ) from error
    return manifest


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
        open_files(folder, manifest.files)
        encoder = manifest.encoder
        settings = check_encoder_settings(
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
