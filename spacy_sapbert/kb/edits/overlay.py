"""The overlay: concepts and names added or removed after the knowledge base was built.

An edit writes a new version of the overlay folder and names it in meta.json:

    concepts.jsonl  what was added, as it was given
    removed.json    names removed, by concept; an empty list = the whole concept
    taught.jsonl    annotated mentions, which are names of their concepts
    ranker.json     the order of candidates that was learned from them
    concepts.db     each changed concept whole, which replaces that of the base
    index.f32       the vectors of names that are not on a row of the base
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ...encoder.encoder import TokenIds
from ...errors import Errors, SapbertError
from ...system.writing import write_folder_atomically, write_json
from ...vocabularies.concepts import write_concepts
from ..building.store_writer import create_store
from ..folder.files import describe_files
from ..folder.manifest import check_writable, lock_kb, read_manifest, write_manifest
from ..folder.records import (
    NGRAMS,
    OVERLAY_FOLDER,
    OVERLAY_FORMAT,
    RANKER_FILE,
    STORE_FILE,
    TAUGHT_FILE,
    FileRecord,
    Manifest,
    OverlayRecord,
)
from ..indexes.registry import build_index
from ..knowledge_base import KnowledgeBase
from ..ngrams.build import build_ngrams
from ..store import Store, name_key
from .edits import CONCEPTS_FILE, REMOVED_FILE, Edits
from .taught import count_mentions, write_taught


def built_files(manifest: Manifest) -> dict[str, FileRecord]:
    """Return the files that are not of the overlay, by name."""
    return {
        name: record
        for name, record in manifest.files.items()
        if not OVERLAY_FOLDER.match(name)
    }


@contextmanager
def lock_version(kb: KnowledgeBase) -> Iterator[None]:
    """Lock the folder of a knowledge base, which must have the opened version.

    RAISES (SapbertError): If another process has changed or locked it, or it is
        read-only.
    """
    check_writable(kb.folder)
    with lock_kb(kb.folder):
        if read_manifest(kb.folder, old_overlay=True) != kb.manifest:
            raise SapbertError(Errors.E338.format(path=kb.folder))
        yield


def write_overlay(kb: KnowledgeBase, base: Store, edits: Edits) -> KnowledgeBase:
    """Write a new version of the overlay, then name it in meta.json."""
    with lock_version(kb):
        return publish_overlay(kb, write_version(kb, base, edits))


def write_version(kb: KnowledgeBase, base: Store, edits: Edits) -> Manifest:
    """Write a new overlay folder; the knowledge base does not use it yet.

    RETURNS (Manifest): The manifest with the new overlay, for `publish_overlay`.
    """
    record = kb.manifest.overlay
    number = int(record.folder.partition("-")[2]) + 1 if record else 1
    new = kb.folder / f"overlay-{number}"
    with write_folder_atomically(new, None) as part:
        added = [edits.added[cui] for cui in sorted(edits.added)]
        write_concepts(part / CONCEPTS_FILE, added)
        removed = {cui: sorted(edits.removed[cui]) for cui in sorted(edits.removed)}
        write_json(part / REMOVED_FILE, removed)
        if edits.teaching is not None:
            write_taught(part / TAUGHT_FILE, edits.taught)
        if edits.ranker is not None:
            write_json(part / RANKER_FILE, edits.ranker.model_dump())
        rows = write_changes(kb, base, edits, part)
    overlay = OverlayRecord(
        folder=new.name,
        format=OVERLAY_FORMAT,
        concepts=len(edits.added),
        rows=rows,
        removed=len(edits.removed),
        taught=edits.teaching,
    )
    return kb.manifest.model_copy(
        update={"overlay": overlay, "files": overlay_files(kb.manifest, new)}
    )


def overlay_files(manifest: Manifest, folder: Path) -> dict[str, FileRecord]:
    """Return the files of a knowledge base with another overlay folder, by name."""
    described = describe_files(folder).items()
    own = {f"{folder.name}/{name}": record for name, record in described}
    return built_files(manifest) | own


def publish_overlay(kb: KnowledgeBase, manifest: Manifest) -> KnowledgeBase:
    """Name a new overlay in meta.json, and remove old ones that nobody uses.

    RETURNS (KnowledgeBase): The new version.
    """
    manifest = write_manifest(kb.folder, manifest)
    versions = (kb.manifest.overlay, manifest.overlay)
    # Knowledge bases that are open may still read the version before.
    used = {record.folder for record in versions if record}
    for path in kb.folder.iterdir():
        if OVERLAY_FOLDER.fullmatch(path.name) and path.name not in used:
            shutil.rmtree(path, ignore_errors=True)
    return kb.open_version(manifest)


def write_changes(kb: KnowledgeBase, base: Store, edits: Edits, folder: Path) -> int:
    """Write the concepts.db and the index of an overlay.

    RETURNS (int): Number of new rows.
    """
    sql = "SELECT coalesce(max(origin), -1) + 1 FROM aliases"
    ((origins,),) = base.query(sql, columns="i")
    first_row = kb.manifest.counts.rows
    names: dict[bytes, str] = {}  # key of each new row → its name
    replaced: list[int] = []
    with create_store(
        folder / STORE_FILE,
        first_concept=base.total_concepts,
        first_row=first_row,
        first_origin=origins,
    ) as store:
        for cui in edits.changed():
            sql = "SELECT id FROM concepts WHERE cui = ?"
            number = next(iter(base.column(sql, cui, columns="i")), None)
            known = None if number is None else base.read_concept(number)
            if number is not None:
                replaced.append(number)
            concept = edits.apply(known, cui)
            if concept is None:
                continue
            token_ids, _ = kb.encoder.tokenize(concept.aliases)
            rows = find_rows(base, token_ids)
            for alias, ids in zip(concept.aliases, token_ids, strict=True):
                if ids and name_key(ids) not in rows:
                    names.setdefault(name_key(ids), alias)
            new = {key: first_row + place for place, key in enumerate(names)}
            rows = new | rows
            store.add(concept, [rows[name_key(i)] if i else None for i in token_ids])
        store.add_overlay_tables(replaced, count_mentions(edits.taught))
        store.finish(names)
    if names:
        vectors = np.ascontiguousarray(kb.embed([*names.values()]).vectors, dtype="<f4")
        if not np.isfinite(vectors).all():
            raise SapbertError(Errors.E315)
        build_index(vectors, folder, backend="exact", settings={})
        if kb.manifest.ngrams:
            build_ngrams(names.values(), folder / NGRAMS)
    return len(names)


def find_rows(base: Store, token_ids: list[TokenIds]) -> dict[bytes, int]:
    """Return the rows of the base by key."""
    return base.rows_of_keys(name_key(ids) for ids in token_ids if ids)
