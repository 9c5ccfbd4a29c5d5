"""The overlay: concepts and names added or removed after the knowledge base was built.

A version with edits has, with the files of the build, the folder `overlay`:

    concepts.jsonl  what was added, as it was given
    removed.json    names removed, by concept; an empty list = the whole concept
    taught.jsonl    annotated mentions, which are names of their concepts
    concepts.db     each changed concept whole, which replaces that of the base
    index.f32       the vectors of names that are not on a row of the base
"""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ...io.writing import write_json
from ...vocabularies.concepts import write_concepts
from ..building.store_writer import StoreWriter, create_store, extend_store
from ..database import Database
from ..folder.layout import (
    CONCEPTS_FILE,
    NGRAMS,
    OVERLAY,
    REMOVED_FILE,
    STORE_FILE,
    TAUGHT_FILE,
)
from ..folder.publication import Draft
from ..folder.records import OverlayRecord
from ..folder.versions import Version
from ..indexes.registry import build_index
from ..indexes.row_file import not_finite
from ..knowledge_base import KnowledgeBase
from ..ngrams.build import build_ngrams
from ..store import Store, name_key
from .edits import Edits
from .taught import count_mentions, write_taught

if TYPE_CHECKING:
    from ...encoder.encoder import Encoder

CONCEPTS_AT_ONCE = 2_000  # tokenised together

Item = TypeVar("Item")


def write_overlay(draft: Draft, kb: KnowledgeBase, old: Edits, edits: Edits) -> Version:
    """Write the overlay of a draft, which uses the built files of a knowledge base.

    If only something was added, what the overlay of `kb` has is not computed again.

    Args:
        draft: The draft, of the folder of `kb`.
        kb: The knowledge base, with the edits `old`.
        edits: All edits of the draft.
    """
    folder = draft.path / OVERLAY
    folder.mkdir()
    added = [concept for _, concept in sorted(edits.added.items())]
    write_concepts(draft.path / CONCEPTS_FILE, added)
    removed = {cui: sorted(names) for cui, names in sorted(edits.removed.items())}
    write_json(draft.path / REMOVED_FILE, removed)
    if edits.teaching is not None:
        write_taught(draft.path / TAUGHT_FILE, edits.taught)
    extends = kb.manifest.overlay is not None and edits.extends(old)
    overlay = OverlayRecord(
        concepts=len(added),
        rows=write_changes(kb, edits, old if extends else None, folder),
        removed=len(removed),
        taught=edits.teaching,
        ranker=edits.ranker,
    )
    manifest = kb.manifest.model_copy(update={"overlay": overlay})
    return draft.describe(manifest, kb.version.keep(overlay=False))


def write_changes(
    kb: KnowledgeBase, edits: Edits, old: Edits | None, folder: Path
) -> int:
    """Write the concepts.db and the index of an overlay; return its number of rows.

    Args:
        old: The edits of the overlay of `kb`, which is continued; None = a new one.
    """
    base, path = kb.base_store(), folder / STORE_FILE
    known = base if old is None else kb.store
    if old is None:
        changed = edits.changed()
    else:
        changed = sorted(c for c in edits.added if old.added.get(c) != edits.added[c])
        shutil.copyfile(kb.version.path(f"{OVERLAY}/{STORE_FILE}"), path)
    write = create_store if old is None else extend_store
    with write(
        path,
        first_concept=known.total_concepts,
        first_row=known.total_rows,
        first_origin=known.next_origin(),
    ) as store:
        writer = ChangeWriter(kb.encoder, edits, base, known, store)
        if old is None:
            store.create_overlay_tables()
        for batch in split_batches(changed):
            writer.write(batch)
        if old is None:
            # Annotations with a concept that was removed since do not count.
            counts = count_mentions(edits.taught).items()
            written = {*writer.written, ""}
            store.add_annotated({pair: n for pair, n in counts if pair[1] in written})
        store.finish(writer.new_rows)
    vectors = kb.embed(writer.new_names).vectors
    if not np.isfinite(vectors).all():
        raise not_finite()
    rows = range(base.base_rows, known.total_rows + len(writer.new_names))
    if rows:
        if old is not None:
            earlier = kb.vectors(np.arange(base.base_rows, known.total_rows))
            vectors = np.concatenate([earlier, vectors])
        build_index(vectors.astype("<f4"), folder, backend="exact", settings={})
        if kb.manifest.ngrams:
            merged = Store(
                Database(kb.version.path(STORE_FILE), path), kb.manifest.counts
            )
            build_ngrams(merged, rows, folder / NGRAMS)
    return len(rows)


def split_batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield batches that are tokenised together."""
    stream = iter(items)
    while batch := list(islice(stream, CONCEPTS_AT_ONCE)):
        yield batch


@dataclass
class ChangeWriter:
    """Writes changed concepts to the concepts.db of an overlay, and numbers new rows.

    Attributes:
        base: The concepts as they were built.
        known: The store whose rows are used.
        store: The concepts.db of the overlay.
        new_rows: Numbers of the new rows, by key.
        new_names: Names on the new rows, in order.
        written: Ids of the concepts that are not removed.
    """

    encoder: "Encoder"
    edits: Edits
    base: Store
    known: Store
    store: StoreWriter
    new_rows: dict[bytes, int] = field(default_factory=dict)
    new_names: list[str] = field(default_factory=list)
    written: set[str] = field(default_factory=set)

    def write(self, cuis: list[str]) -> None:
        """Write the concepts with some ids as they are after the edits."""
        numbers = self.base.numbers_of_cuis(cuis)
        concepts = []
        for cui in cuis:
            built = None
            if cui in numbers:
                self.store.replace(numbers[cui])
                built = self.base.read_concept(numbers[cui])
            if concept := self.edits.apply(built, cui):
                concepts.append(concept)
        aliases = [alias for concept in concepts for alias in concept.aliases]
        rows = iter(self.number_rows(aliases))
        for concept in concepts:
            self.store.add(concept, [*islice(rows, len(concept.aliases))])
            self.written.add(concept.cui)

    def number_rows(self, aliases: list[str]) -> list[int | None]:
        """Return the row of each name; None = the encoder cannot read it."""
        token_ids, _ = self.encoder.tokenize(aliases)
        keys = [name_key(ids) if ids else None for ids in token_ids]
        known = self.known.rows_of_keys(filter(None, keys))
        rows: list[int | None] = []
        for key, alias in zip(keys, aliases, strict=True):
            if key is not None and key not in known and key not in self.new_rows:
                self.new_rows[key] = self.known.total_rows + len(self.new_names)
                self.new_names.append(alias)
            rows.append(None if key is None else known.get(key, self.new_rows.get(key)))
        return rows
