"""Local concepts: added to a knowledge base, or removed, at once and for good."""

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..encoder.name_encoder import tokenize_names
from ..errors import Errors, SapbertError
from ..system.writing import write_folder_atomically, write_json
from ..vocabularies.concepts import Concept, write_concepts
from ..vocabularies.merge import unite_concepts
from .indexes.registry import build_index
from .knowledge_base import KnowledgeBase
from .layers import Layer, without_aliases
from .manifest import FILE as META_FILE
from .manifest import OVERLAY_FOLDER, describe_files, hold_kb, read_meta
from .ngrams.build import build_ngrams, iterate_names
from .ngrams.index import FOLDER as NGRAMS_FOLDER
from .overlay_files import (
    CONCEPTS_FILE,
    REMOVED_FILE,
    Removed,
    overlay_folder,
    read_overlay,
)
from .store import FILE as STORE_FILE
from .store import Store, name_key
from .store_writer import add_concept, create_store, finish_store


def add_concepts(kb: KnowledgeBase, concepts: Iterable[Concept]) -> int:
    """Add concepts, or names to concepts that are there; at once, and for good.

    kb (KnowledgeBase): Its folder is changed, and what is open sees it.
    concepts (Iterable[Concept]): The concepts; for one that is there, its other names,
        types, codes and parents count too, and its preferred name stays.
    RETURNS (int): How many there were.
    RAISES (SapbertError): If the encoder can read none of the names of one, or the
        folder cannot be written.
    """
    added, removed = read_overlay(kb.folder, kb.meta)
    united = {concept.cui: concept for concept in added}
    count = 0
    for concept in concepts:
        count += 1
        if there := kb.concept(concept.cui):
            concept = replace(concept, cui=there.cui)  # it may be a retired id
        known = united.get(concept.cui)
        both = [known, concept] if known else [concept]
        united[concept.cui] = unite_concepts(
            [replace(one, codes={**one.codes}) for one in both]
        )
        # A name that was taken away and is given again is there again.
        if gone := removed.get(concept.cui):
            removed[concept.cui] = gone - {*concept.aliases}
            if not removed[concept.cui]:
                del removed[concept.cui]
    write_overlay(kb, [united[cui] for cui in sorted(united)], removed)
    return count


def remove_concepts(
    kb: KnowledgeBase, cuis: Iterable[str], *, alias: str | None = None
) -> int:
    """Remove concepts, or one name of each; at once, and for good.

    kb (KnowledgeBase): Its folder is changed, and what is open sees it.
    cuis (Iterable[str]): Ids of the concepts.
    alias (str | None): The name to remove; None = the whole concept.
    RETURNS (int): How many there were.
    RAISES (SapbertError): If there is no such concept or name, or it is the only one.
    """
    added, removed = read_overlay(kb.folder, kb.meta)
    united = {concept.cui: concept for concept in added}
    count = 0
    for cui in cuis:
        concept = kb.concept(cui)
        if concept is None:
            raise SapbertError(Errors.E336.format(cui=repr(cui)))
        count += 1
        if alias is None:
            removed[concept.cui] = set()
            united.pop(concept.cui, None)
            continue
        if alias not in concept.aliases or len(concept.aliases) == 1:
            raise SapbertError(Errors.E337.format(cui=cui))
        if concept.cui not in removed or removed[concept.cui]:
            removed.setdefault(concept.cui, set()).add(alias)
        local = united.pop(concept.cui, None)
        if local and (left := without_aliases(local, {alias})):
            united[left.cui] = left
    write_overlay(kb, [united[cui] for cui in sorted(united)], removed)
    return count


def write_overlay(kb: KnowledgeBase, concepts: list[Concept], removed: Removed) -> None:
    """Write an overlay beside the one that is there, and then name it in meta.json.

    kb (KnowledgeBase): The knowledge base.
    concepts (list[Concept]): What is added, sorted by id.
    removed (Removed): What is gone of what was built.
    RAISES (SapbertError): If somebody changed the knowledge base meanwhile or is
        changing it, or the folder cannot be written.
    """
    with hold_kb(kb.folder):
        if read_meta(kb.folder) != kb.meta:
            raise SapbertError(Errors.E338.format(path=kb.folder))
        old = overlay_folder(kb.folder, kb.meta)
        number = int(old.name.partition("-")[2]) + 1 if old else 1
        new = kb.folder / f"overlay-{number}"
        with write_folder_atomically(new) as part:
            write_concepts(part / CONCEPTS_FILE, concepts)
            gone = {cui: sorted(removed[cui]) for cui in sorted(removed)}
            write_json(part / REMOVED_FILE, gone)
            rows = write_layer(kb, concepts, part, removed)
        files = {
            name: entry
            for name, entry in kb.meta["files"].items()
            if not OVERLAY_FOLDER.match(name)
        }
        files.update(
            {f"{new.name}/{name}": entry for name, entry in describe_files(new).items()}
        )
        described = {
            "folder": new.name,
            "concepts": len(concepts),
            "rows": rows,
            "removed": len(removed),
        }
        meta = {**kb.meta, "overlay": described, "files": files}
        write_json(kb.folder / META_FILE, meta)
        kb.read_layers(read_meta(kb.folder))
        for path in kb.folder.iterdir():
            # A search that began before may still read the one that this one replaces.
            if OVERLAY_FOLDER.fullmatch(path.name) and path not in (new, old):
                shutil.rmtree(path, ignore_errors=True)


def name_again(known: Concept, added: Concept) -> Concept:
    """Return what a filter has to know of a concept where names are added to it.

    known (Concept): As it was built.
    added (Concept): What is added.
    RETURNS (Concept): Its types, its preferred name, and those of its names that are
        added once more, with their languages and sources.
    """
    others = {*known.aliases} - {known.name, *added.aliases}
    left = without_aliases(known, others) or known
    return replace(left, codes={}, parents=[], definition=None, retired=[])


def write_layer(
    kb: KnowledgeBase, concepts: list[Concept], folder: Path, removed: Removed
) -> int:
    """Write concepts.db and the index of what is added.

    kb (KnowledgeBase): With what was built, and its encoder.
    concepts (list[Concept]): What is added.
    folder (Path): Where to.
    removed (Removed): What is gone of what was built.
    RETURNS (int): How many rows the index has.
    RAISES (SapbertError): If the encoder cannot read any name of a concept.
    """
    base = kb.layers[0]
    built = Layer(
        base.folder, base.open_index, first=0, rows=base.rows, removed=removed
    )
    rows: dict[bytes, int] = {}
    names: list[tuple[int, ...]] = []
    origins: dict[Any, int] = {}
    with create_store(folder / STORE_FILE) as connection:
        for number, concept in enumerate(concepts):
            pieces, _ = tokenize_names(kb.encoder, concept.aliases)
            taken: list[int | None] = []
            for ids in pieces:
                if ids and name_key(ids) not in rows:
                    rows[name_key(ids)] = len(names)
                    names.append(ids)
                taken.append(rows[name_key(ids)] if ids else None)
            if not any(pieces):
                raise SapbertError(Errors.E339.format(cui=concept.cui))
            if known := built.concept(concept.cui):
                by_name = dict(zip(concept.aliases, taken, strict=True))
                concept = unite_concepts([name_again(known, concept), concept])
                taken = [by_name.get(name) for name in concept.aliases]
            add_concept(connection, number, concept, taken, origins)
        finish_store(connection, rows, origins)
    if names:
        vectors = np.ascontiguousarray(kb.embed(names), dtype="<f4")
        if not np.isfinite(vectors).all():
            raise SapbertError(Errors.E315)
        build_index(vectors, folder, backend="exact", settings={})
        if kb.meta.get("ngrams"):
            texts = iterate_names(Store(folder), len(names))
            build_ngrams(texts, folder / NGRAMS_FOLDER)
    return len(names)
