"""The overlay: concepts and names added or removed after the knowledge base was built.

A version with edits has, beside the files of the build, the folder `overlay`:

    concepts.jsonl  what was added, as it was given
    removed.json    names removed, by concept; an empty list = the whole concept
    taught.jsonl    annotated mentions, which are names of their concepts
    ranker.json     the order of candidates that was learned from them
    concepts.db     each changed concept whole, which replaces that of the base
    index.f32       the vectors of names that are not on a row of the base
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...errors import Errors, SapbertError
from ...system.writing import write_json
from ...vocabularies.concepts import Concept, write_concepts
from ..building.store_writer import StoreWriter, create_store, extend_store
from ..database import Database
from ..folder.publication import Draft
from ..folder.records import (
    NGRAMS,
    OVERLAY,
    RANKER_FILE,
    STORE_FILE,
    TAUGHT_FILE,
    OverlayRecord,
)
from ..folder.versions import Version
from ..indexes.registry import build_index
from ..knowledge_base import KnowledgeBase
from ..ngrams.build import build_ngrams, iter_names
from ..store import Store, name_key
from .edits import CONCEPTS_FILE, REMOVED_FILE, Edits
from .taught import count_mentions, write_taught

CONCEPTS_AT_ONCE = 2_000  # tokenised together


class Row(NamedTuple):
    """A new row, and the name on it."""

    number: int
    name: str


def write_overlay(draft: Draft, kb: KnowledgeBase, old: Edits, edits: Edits) -> Version:
    """Write the overlay of a draft, which uses the built files of a knowledge base.

    If only something was added, what the overlay of `kb` has is not computed again.

    Args:
        draft: The draft, of the folder of `kb`.
        kb: The knowledge base, with the edits `old`.
        old: From `read_edits`.
        edits: All edits of the draft.
    """
    folder = draft.path / OVERLAY
    folder.mkdir()
    write_concepts(
        folder / CONCEPTS_FILE, [edits.added[c] for c in sorted(edits.added)]
    )
    removed = {cui: sorted(edits.removed[cui]) for cui in sorted(edits.removed)}
    write_json(folder / REMOVED_FILE, removed)
    if edits.teaching is not None:
        write_taught(folder / TAUGHT_FILE, edits.taught)
    if edits.ranker is not None:
        write_json(folder / RANKER_FILE, edits.ranker.model_dump())
    extends = kb.manifest.overlay is not None and edits.extends(old)
    rows = write_changes(kb, edits, old if extends else None, folder)
    overlay = OverlayRecord(
        concepts=len(edits.added),
        rows=rows,
        removed=len(edits.removed),
        taught=edits.teaching,
    )
    manifest = kb.manifest.model_copy(update={"overlay": overlay})
    return draft.describe(manifest, kb.version.keep(overlay=False))


def write_changes(
    kb: KnowledgeBase, edits: Edits, old: Edits | None, folder: Path
) -> int:
    """Write the concepts.db and the index of an overlay; return its number of rows.

    Args:
        kb: The knowledge base.
        edits: All edits.
        old: The edits of the overlay of `kb`, which is continued; None = a new one.
        folder: The folder of the overlay.
    """
    base, path = kb.base_store(), folder / STORE_FILE
    known = base if old is None else kb.store
    if old is None:
        changed = edits.changed()
    else:
        changed = sorted(c for c, one in edits.added.items() if old.added.get(c) != one)
        shutil.copyfile(kb.version.path(f"{OVERLAY}/{STORE_FILE}"), path)
    write = create_store if old is None else extend_store
    names: dict[bytes, Row] = {}  # by key
    with write(
        path,
        first_concept=known.total_concepts,
        first_row=known.total_rows,
        first_origin=known.next_origin(),
    ) as store:
        if old is None:
            store.create_overlay_tables()
        present: set[str] = set()
        for batch in split_batches(changed):
            present |= write_batch(kb, base, known, edits, batch, store, names)
        if old is None:
            # Annotations with a concept that was removed since do not count.
            counts = count_mentions(edits.taught).items()
            kept = {pair: n for pair, n in counts if not pair[1] or pair[1] in present}
            store.add_annotated(kept)
        store.finish(names)
    first = known.total_rows
    vectors = kb.embed([row.name for row in names.values()]).vectors
    if not np.isfinite(vectors).all():
        raise SapbertError(Errors.E315)
    total = first + len(names)
    if total == base.base_rows:
        return 0
    if old is not None:
        earlier = kb.vectors(np.arange(base.base_rows, first))
        vectors = np.concatenate([earlier, vectors])
    vectors = np.ascontiguousarray(vectors, dtype="<f4")
    build_index(vectors, folder, backend="exact", settings={})
    if kb.manifest.ngrams:
        merged = Database(kb.version.path(STORE_FILE), path)
        counts_of_kb = kb.manifest.counts
        rows = range(base.base_rows, total)
        build_ngrams(iter_names(Store(merged, counts_of_kb), rows), folder / NGRAMS)
    return total - base.base_rows


def split_batches(cuis: Sequence[str]) -> Iterator[list[str]]:
    """Yield batches of ids."""
    stream = iter(cuis)
    while batch := list(islice(stream, CONCEPTS_AT_ONCE)):
        yield batch


def write_batch(
    kb: KnowledgeBase,
    base: Store,
    known: Store,
    edits: Edits,
    cuis: Iterable[str],
    store: StoreWriter,
    names: dict[bytes, Row],
) -> set[str]:
    """Write changed concepts; return the ids of those that are not removed.

    Args:
        kb: The knowledge base.
        base: The concepts as they were built.
        known: The store whose rows are used.
        edits: All edits.
        cuis: Ids of the concepts.
        store: The concepts.db of the overlay.
        names: Gets the names of new rows, by key.
    """
    numbers = base.numbers_of_cuis(cuis)
    concepts: list[Concept] = []
    for cui in cuis:
        number = numbers.get(cui)
        if number is not None:
            store.replace(number)
        built = None if number is None else base.read_concept(number)
        concept = edits.apply(built, cui)
        if concept is not None:
            concepts.append(concept)
    aliases = [alias for concept in concepts for alias in concept.aliases]
    token_ids, _ = kb.encoder.tokenize(aliases)
    keys = [name_key(ids) if ids else None for ids in token_ids]
    rows: dict[bytes | None, int | None] = {None: None}
    rows.update(known.rows_of_keys(filter(None, keys)).items())
    for key, alias in zip(keys, aliases, strict=True):
        if key is not None and key not in rows:
            if key not in names:
                names[key] = Row(known.total_rows + len(names), alias)
            rows[key] = names[key].number
    rest = iter(keys)
    for concept in concepts:
        store.add(concept, [rows[key] for key in islice(rest, len(concept.aliases))])
    return {concept.cui for concept in concepts}
