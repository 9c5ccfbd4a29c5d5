"""The overlay: concepts and names added or removed after the knowledge base was built.

An edit writes a new version of the overlay folder and names it in meta.json:

    concepts.jsonl  what was added, as it was given
    removed.json    names removed, by concept; an empty list = the whole concept
    concepts.db     each changed concept whole, which replaces that of the base
    index.f32       the vectors of names that are not on a row of the base
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from ..encoder.name_encoder import TokenIds, tokenize_names
from ..errors import Errors, SapbertError
from ..system.writing import write_folder_atomically, write_json
from ..vocabularies.concepts import (
    Concept,
    change_names,
    check_concept,
    read_concepts,
    write_concepts,
)
from ..vocabularies.merge import unite_concepts
from .folder.files import describe_files
from .folder.installed import find_kb
from .folder.manifest import check_writable, lock_kb, read_manifest, write_manifest
from .folder.records import (
    NGRAMS,
    OVERLAY_FOLDER,
    OVERLAY_FORMAT,
    STORE_FILE,
    FileRecord,
    Manifest,
    OverlayRecord,
)
from .indexes.registry import build_index
from .knowledge_base import KnowledgeBase
from .loading import open_store
from .ngrams.build import build_ngrams
from .opening import open_kb
from .store import Store, name_key
from .store_writer import create_store

CONCEPTS_FILE = "concepts.jsonl"
REMOVED_FILE = "removed.json"
REMOVED = TypeAdapter(dict[str, set[str]])


@dataclass
class Edits:
    """All edits since the knowledge base was built.

    added (dict[str, Concept]): Concepts and names that were added, by id.
    removed (dict[str, set[str]]): Names that were removed, by id; an empty set = the
        whole concept.
    """

    added: dict[str, Concept]
    removed: dict[str, set[str]]

    def apply(self, base: Concept | None, cui: str) -> Concept | None:
        """Return a concept of the base after the edits; None if it is removed."""
        removed = self.removed.get(cui)
        if base is not None and removed is not None:
            base = remove_aliases(base, removed) if removed else None
        parts = [part for part in (base, self.added.get(cui)) if part is not None]
        return unite_concepts([copy(part) for part in parts]) if parts else None


def copy(concept: Concept) -> Concept:
    """Return a copy that `unite_concepts` may change."""
    return replace(concept, codes={**concept.codes})


def remove_aliases(concept: Concept, names: set[str]) -> Concept | None:
    """Return a copy of a concept without some names; None if no name is left."""
    left = replace(concept)
    change_names(left, ["" if name in names else name for name in concept.aliases])
    return left if left.aliases else None


def load_kb_to_edit(name: str | Path) -> KnowledgeBase:
    """Open a knowledge base to edit it; its overlay may have an older format.

    name (str | Path): Folder or name; see `find_kb`.
    RAISES (SapbertError): If it is missing, damaged or of another format.
    """
    return open_kb(find_kb(name), old_overlay=True)


def discard_edits(name: str | Path) -> KnowledgeBase:
    """Remove all edits of a knowledge base, also if they are damaged.

    name (str | Path): Folder or name; see `find_kb`.
    RETURNS (KnowledgeBase): The knowledge base as it was built.
    RAISES (SapbertError): If what was built is damaged, or the folder is locked or
        cannot be written.
    """
    folder = find_kb(name)
    check_writable(folder)
    with lock_kb(folder):
        manifest = read_manifest(folder, old_overlay=True)
        update = {"overlay": None, "files": built_files(manifest)}
        write_manifest(folder, manifest.model_copy(update=update))
        for path in folder.iterdir():
            if OVERLAY_FOLDER.fullmatch(path.name):
                shutil.rmtree(path, ignore_errors=True)
    return open_kb(folder)


def built_files(manifest: Manifest) -> dict[str, FileRecord]:
    """Return the files that are not of the overlay, by name."""
    return {
        name: record
        for name, record in manifest.files.items()
        if not OVERLAY_FOLDER.match(name)
    }


def add_concepts(kb: KnowledgeBase, concepts: Iterable[Concept]) -> KnowledgeBase:
    """Add concepts, or names to concepts, to the folder of a knowledge base.

    kb (KnowledgeBase): The knowledge base; the object itself does not change.
    concepts (Iterable[Concept]): A concept with a known id adds its names, types, codes
        and parents to that concept, which keeps its preferred name.
    RETURNS (KnowledgeBase): The new version.
    RAISES (SapbertError): If the encoder can read none of the names of a concept, or
        the folder has changed, is locked or cannot be written.
    """
    base, edits = open_store(kb.files, kb.manifest, base=True), read_edits(kb)
    for concept in concepts:
        check_concept(concept)
        # The id may be retired.
        known = find_concept(base, edits, concept.cui)
        cui = known.cui if known else concept.cui
        if not any(tokenize_names(kb.encoder, concept.aliases)[0]):
            raise SapbertError(Errors.E339.format(cui=cui))
        parts = [*filter(None, [edits.added.get(cui)]), replace(concept, cui=cui)]
        edits.added[cui] = unite_concepts([copy(part) for part in parts])
        check_concept(edits.added[cui])
        # A removed name that is added again is no longer removed.
        if names := edits.removed.get(cui):
            edits.removed[cui] = names - {*concept.aliases}
            if not edits.removed[cui]:
                del edits.removed[cui]
    return write_overlay(kb, base, edits)


def remove_concepts(
    kb: KnowledgeBase, cuis: Iterable[str], *, alias: str | None = None
) -> KnowledgeBase:
    """Remove concepts, or one name of each, from the folder of a knowledge base.

    kb (KnowledgeBase): The knowledge base; the object itself does not change.
    cuis (Iterable[str]): Ids of the concepts.
    alias (str | None): The name to remove; None = the whole concept.
    RETURNS (KnowledgeBase): The new version.
    RAISES (SapbertError): If there is no such concept or name, it is the only name, or
        the folder has changed, is locked or cannot be written.
    """
    base, edits = open_store(kb.files, kb.manifest, base=True), read_edits(kb)
    for cui in cuis:
        concept = find_concept(base, edits, cui)
        if concept is None:
            raise SapbertError(Errors.E336.format(cui=repr(cui)))
        if alias is None:
            edits.removed[concept.cui] = set()
            edits.added.pop(concept.cui, None)
            continue
        if alias not in concept.aliases or len(concept.aliases) == 1:
            raise SapbertError(Errors.E337.format(cui=cui))
        if concept.cui not in edits.removed or edits.removed[concept.cui]:
            edits.removed.setdefault(concept.cui, set()).add(alias)
        added = edits.added.pop(concept.cui, None)
        if added and (left := remove_aliases(added, {alias})):
            edits.added[concept.cui] = left
    return write_overlay(kb, base, edits)


def find_concept(base: Store, edits: Edits, cui: str) -> Concept | None:
    """Return the concept with an id, or with a retired id, after the edits."""
    known = base.concept(cui)
    if known is not None and known.cui != cui:
        retired_for, known = known.cui, None
    else:
        added = edits.added.values()
        retired_for = next((one.cui for one in added if cui in one.retired), cui)
    if known is None and cui not in edits.added:
        return None if retired_for == cui else find_concept(base, edits, retired_for)
    return edits.apply(known, cui)


def read_edits(kb: KnowledgeBase) -> Edits:
    """Read the edits of the overlay; empty if there is none."""
    overlay = kb.manifest.overlay
    if overlay is None:
        return Edits({}, {})
    names = [f"{overlay.folder}/{name}" for name in (CONCEPTS_FILE, REMOVED_FILE)]
    kb.files.check(names)
    try:
        with kb.files.open(names[1]) as file:
            removed = REMOVED.validate_json(file.read())
    except ValidationError:
        path = kb.folder / names[1]
        raise SapbertError(Errors.E354.format(path=path, kb=kb.folder)) from None
    added = read_concepts(kb.folder / names[0])
    edits = Edits({concept.cui: concept for concept in added}, removed)
    kb.files.check(names)
    return edits


def write_overlay(kb: KnowledgeBase, base: Store, edits: Edits) -> KnowledgeBase:
    """Write a new version of the overlay, then name it in meta.json."""
    with lock_kb(kb.folder):
        if read_manifest(kb.folder, old_overlay=True) != kb.manifest:
            raise SapbertError(Errors.E338.format(path=kb.folder))
        record = kb.manifest.overlay
        old = kb.folder / record.folder if record else None
        number = int(old.name.partition("-")[2]) + 1 if old else 1
        new = kb.folder / f"overlay-{number}"
        with write_folder_atomically(new) as part:
            added = [edits.added[cui] for cui in sorted(edits.added)]
            write_concepts(part / CONCEPTS_FILE, added)
            removed = {cui: sorted(edits.removed[cui]) for cui in sorted(edits.removed)}
            write_json(part / REMOVED_FILE, removed)
            rows = write_changes(kb, base, edits, part)
        files = built_files(kb.manifest)
        files |= {f"{new.name}/{name}": r for name, r in describe_files(new).items()}
        overlay = OverlayRecord(
            folder=new.name,
            format=OVERLAY_FORMAT,
            concepts=len(edits.added),
            rows=rows,
            removed=len(edits.removed),
        )
        update = {"overlay": overlay, "files": files}
        manifest = write_manifest(kb.folder, kb.manifest.model_copy(update=update))
        for path in kb.folder.iterdir():
            # Knowledge bases that are open may still read the version before.
            if OVERLAY_FOLDER.fullmatch(path.name) and path not in (new, old):
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
        for cui in sorted({*edits.added, *edits.removed}):
            sql = "SELECT id FROM concepts WHERE cui = ?"
            number = next(iter(base.column(sql, cui, columns="i")), None)
            known = None if number is None else base.read_concept(number)
            if number is not None:
                replaced.append(number)
            concept = edits.apply(known, cui)
            if concept is None:
                continue
            token_ids, _ = tokenize_names(kb.encoder, concept.aliases)
            rows = find_rows(base, token_ids)
            for alias, ids in zip(concept.aliases, token_ids, strict=True):
                if ids and name_key(ids) not in rows:
                    names.setdefault(name_key(ids), alias)
            new = {key: first_row + place for place, key in enumerate(names)}
            rows = new | rows
            store.add(concept, [rows[name_key(i)] if i else None for i in token_ids])
        store.finish(names, replaced)
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
