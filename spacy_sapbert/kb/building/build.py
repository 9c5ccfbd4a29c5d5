"""concepts.jsonl + encoder → the folder of a knowledge base."""

import shutil
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...errors import SapbertError
from ...io.terminal import msg
from ...io.version import __version__
from ...io.writing import link_file, sync_path, write_json
from ..database import Database
from ..folder.layout import CURRENT, NGRAMS, STORE_FILE, WORDS
from ..folder.publication import (
    LOCK_WAIT,
    Draft,
    describe_files,
    draft_version,
    lock_kb,
    open_target,
)
from ..folder.records import Counts, EncoderRecord, IndexRecord, Manifest
from ..indexes.backend import Backend, BuildRun
from ..indexes.row_file import RowFile
from ..knowledge_base import open_version
from ..ngrams.build import build_ngrams
from ..order.names import learn_order
from ..packages import find_vocabularies
from ..probe import measure_recall, probe_kb
from ..store import Store
from ..words import build_words
from .names import read_names
from .options import BuildOptions
from .plan import EMBEDDED, VECTORS, read_json
from .preparation import Preparation, open_build
from .row_vectors import embed_rows, merge_shards
from .store_writer import create_store

# Above, a search by 3-grams takes longer than the encoder; see docs/speed.md.
MOST_ROWS = 1_000_000


def build_kb(
    concepts_path: Path, output: Path, encoder: str, **options: Any
) -> Manifest:
    """Build a knowledge base; a build that was stopped is continued.

    Args:
        concepts_path: concepts.jsonl.
        output: The folder to write.
        encoder: A folder or a hub id.
        options: Fields of `BuildOptions` (in `kb.building.options`): `backend`,
            `threshold`, `order`, `force`, `progress` … as `spacy sapbert kb build` has
            them.

    Returns:
        The meta.json of the knowledge base.

    Raises:
        SapbertError: If input, encoder, options or folder are not usable.

    Examples:
        >>> concepts = read_vocabulary(Path("assets/sample"))
        >>> count = write_concepts(Path("concepts.jsonl"), concepts)
        >>> encoder = "models/sample/encoder"
        >>> manifest = build_kb(Path("concepts.jsonl"), Path("models/kb"), encoder)
        >>> manifest.counts.concepts == count
        True
    """
    build = BuildOptions(**options)
    with open_build(concepts_path, output, encoder, build) as prepared:
        matrix, counts, index = embed_names(prepared)
        with open_target(output) as root, draft_version(root) as draft:
            shutil.copytree(prepared.copy, draft.path, dirs_exist_ok=True)
            link_file(prepared.work / STORE_FILE, draft.path / STORE_FILE)
            run = BuildRun(build.threads, build.progress, prepared.work)
            index.build(matrix, draft.path, run)
            store = Store(Database(draft.path / STORE_FILE), counts)
            build_words(store, prepared.encoder.list_tokens(), draft.path / WORDS)
            ngrams = build.order == "names" and counts.rows <= MOST_ROWS
            if ngrams:
                build_ngrams(store, range(counts.rows), draft.path / NGRAMS)
            elif build.order == "names" and build.progress:
                msg.info(f"No order is learned for more than {MOST_ROWS:,} names")
            described_encoder = {
                # Only the name of a folder: its path may be private.
                "base": Path(encoder).name if Path(encoder).is_dir() else encoder,
                "fingerprint": prepared.plan["fingerprint"],
                "width": prepared.encoder.width,
                "engine": prepared.plan["engine"],
                "precision": build.precision,
                **asdict(prepared.encoder.settings),
            }
            manifest = Manifest(
                package_version=__version__,
                encoder=EncoderRecord.model_validate(described_encoder),
                index=IndexRecord(backend=index.name, settings=index.settings),
                counts=counts,
                ngrams=ngrams,
                sources=list(build.sources),
                vocabularies=find_vocabularies(store, concepts_path),
                threshold=build.threshold,
                files=describe_files(draft.path),
            )
            manifest = probe_draft(draft, manifest, build, output)
            replaces = (root / CURRENT).exists()
            with lock_kb(root, wait=LOCK_WAIT) if replaces else nullcontext():
                draft.publish()
    return manifest


def probe_draft(
    draft: Draft, manifest: Manifest, options: BuildOptions, output: Path
) -> Manifest:
    """Check that a new index finds its names, measure it, and write meta.json.

    If there are 3-grams, an order is learned; without an order they are removed.
    """
    try:
        built = open_version(draft.write(manifest), encoder=options.config)
        probe_kb(built)
        measured: dict[str, Any] = {"recall": measure_recall(built)}
        if manifest.ngrams:
            learned = learn_order(built, progress=options.progress)
            measured["order"] = learned
            if learned is None:
                shutil.rmtree(draft.path / NGRAMS)
                files = describe_files(draft.path)
                measured |= {"ngrams": False, "files": files}
        return draft.write(manifest.model_copy(update=measured)).manifest
    except SapbertError as error:
        # hnswlib ignores write errors, so that a full disk cuts the index.
        raise SapbertError(
            "E355",
            f"Expected to write a knowledge base that works to {output}, but: {error} "
            "Nothing was replaced. If the disk is full, make space, and repeat the "
            "command.",
        ) from error


def embed_names(prepared: Preparation) -> tuple[RowFile, Counts, Backend]:
    """Write concepts.db and the vectors of all names, unless a stopped build did."""
    work, encoder = prepared.work, prepared.encoder
    store_path = work / STORE_FILE
    finished = read_json(work / EMBEDDED)
    if finished:
        counts = Counts.model_validate(finished)
    else:
        store_path.unlink(missing_ok=True)
        with create_store(store_path) as store:
            names, counts = read_names(prepared.read_concepts(), encoder, store)
    index = prepared.agree_on_index(counts.rows)
    shape: dict[str, Any] = {"width": encoder.width, "compact": index.stores_16_bits}
    if prepared.options.progress:
        msg.info(f"{counts.rows:,} distinct names; index: {index.name}")
    if finished:
        return RowFile(work / VECTORS, rows=counts.rows, **shape), counts, index
    embed_rows(names, prepared, compact=index.stores_16_bits)
    matrix = merge_shards(names.by_length(), work, **shape)
    sync_path(store_path)
    write_json(work / EMBEDDED, counts.model_dump())
    return matrix, counts, index
