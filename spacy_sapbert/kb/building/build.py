"""concepts.jsonl + encoder → the folder of a knowledge base."""

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ... import __version__
from ...encoder.encoder import EncoderConfig
from ...encoder.huggingface import EncoderSettings
from ...errors import Errors, SapbertError, check_range
from ...system.progress import show_progress
from ...system.terminal import msg
from ...system.writing import link_file, sync_path, write_json
from ...vocabularies.concepts import read_concepts
from ..database import Database
from ..folder.publication import (
    LOCK_WAIT,
    Draft,
    describe_files,
    draft_version,
    lock_kb,
    open_target,
)
from ..folder.records import (
    CURRENT,
    ENCODER,
    NGRAMS,
    STORE_FILE,
    Counts,
    EncoderRecord,
    IndexRecord,
    Manifest,
)
from ..indexes.choice import Choice, choose_index, uses_compact_rows
from ..indexes.registry import build_index
from ..indexes.row_file import RowFile
from ..knowledge_base import open_version
from ..ngrams.build import build_ngrams, iter_names
from ..packages.distribution import find_vocabularies
from ..probe import estimate_threshold, measure_recall, probe_kb
from ..store import Store
from .names import write_store
from .plan import EMBEDDED, VECTORS, agree_on_plan, lock_work_folder, read_json
from .preparation import Preparation, check_inputs, prepare
from .row_vectors import embed_rows, merge_shards


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
    engine (str): See `EncoderConfig`. With "openvino" the encoder is exported, and the
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
    given = check_inputs(concepts_path, output, backend, backend_settings, force=force)
    if threshold is not None:
        check_range("threshold", threshold, -1, 1)
    config = EncoderConfig(engine, names_per_pass, precision)
    with lock_work_folder(output) as work:
        prepared = prepare(
            work,
            work,
            config,
            concepts_path=concepts_path,
            encoder=encoder,
            settings=settings,
            index=given,
            reuse=reuse,
            replace=force,
        )
        matrix, counts, index = embed_names(
            work, concepts_path, prepared, given, progress=progress
        )
        with open_target(output) as root, draft_version(root) as draft:
            part = draft.path
            shutil.copytree(work / ENCODER, part / ENCODER)
            link_file(work / STORE_FILE, part / STORE_FILE)
            used = build_index(
                matrix,
                part,
                backend=index.backend,
                settings=index.settings,
                threads=threads,
                progress=progress,
                work=work,
            )
            store = Store(Database(part / STORE_FILE), counts)
            if ngrams:
                build_ngrams(iter_names(store, range(counts.rows)), part / NGRAMS)
            described_encoder = {
                # Only the name of a folder: its path may be private.
                "base": Path(encoder).name if Path(encoder).is_dir() else encoder,
                "fingerprint": prepared.fingerprint,
                "width": prepared.encoder.width,
                "engine": config.engine,
                "precision": config.precision,
                **asdict(prepared.settings),
            }
            manifest = Manifest(
                package_version=__version__,
                encoder=EncoderRecord.model_validate(described_encoder),
                index=IndexRecord(backend=index.backend, settings=used),
                counts=counts,
                ngrams=ngrams,
                sources=list(sources),
                vocabularies=find_vocabularies(store, concepts_path),
                threshold=threshold,
                files=describe_files(part),
            )
            manifest = probe_draft(draft, manifest, config, output)
            with ExitStack() as stack:
                if (root / CURRENT).exists():
                    stack.enter_context(lock_kb(root, wait=LOCK_WAIT))
                draft.publish()
    return manifest


def probe_draft(
    draft: Draft, manifest: Manifest, config: EncoderConfig, output: Path
) -> Manifest:
    """Check that a new index finds its names, measure it, and write meta.json.

    Args:
        draft: Has all files but meta.json.
        manifest: meta.json without what is measured.
        config: How to run the encoder.
        output: The knowledge base, for the error.
    """
    try:
        built = open_version(draft.write(manifest), encoder=config)
        probe_kb(built)
        measured: dict[str, Any] = {"recall": measure_recall(built)}
        if manifest.threshold is None and (found := estimate_threshold(built)):
            measured |= {"threshold": found[0], "estimate": found[1]}
        return draft.write(manifest.model_copy(update=measured)).manifest
    except SapbertError as error:
        # hnswlib ignores write errors, so that a full disk cuts the index.
        raise SapbertError(Errors.E355.format(path=output, reason=error)) from error


def embed_names(
    work: Path,
    concepts_path: Path,
    prepared: Preparation,
    given: Choice | None,
    *,
    progress: bool,
) -> tuple[RowFile, Counts, Choice]:
    """Write concepts.db and the vectors of all names, or use those of a stopped build.

    work (Path): Folder of the build.
    given (Choice | None): The index; None = that of the stopped build, or see
        `choose_index`.
    RETURNS (tuple[RowFile, Counts, Choice]): The vectors, the counts for meta.json, and
        the index to build.
    """
    encoder = prepared.encoder
    width = encoder.width
    finished = read_json(work / EMBEDDED)
    if finished:
        counts = Counts.model_validate(finished)
    else:
        concepts = show_progress(
            read_concepts(concepts_path),
            unit="concepts",
            desc="Read",
            quiet=not progress,
        )
        names, counts = write_store(concepts, work / STORE_FILE, encoder)
    index = given or choose_index(counts.rows)
    index = agree_on_plan(work, prepared.plan, index, fixed=given is not None)
    compact = uses_compact_rows(index)
    if progress:
        msg.info(f"{counts.rows:,} distinct names; index: {index.backend}")
    if finished:
        path = work / VECTORS
        return (
            RowFile(path, rows=counts.rows, width=width, compact=compact),
            counts,
            index,
        )
    reused = prepared.reused
    embed_rows(names, work, encoder, compact=compact, reused=reused, progress=progress)
    matrix = merge_shards(names.by_length(), work, width=width, compact=compact)
    sync_path(work / STORE_FILE)
    write_json(work / EMBEDDED, counts.model_dump())
    return matrix, counts, index
