"""The overlay: concepts and names added or removed after the knowledge base was built.

A version with edits has the files of the build, and the folder `overlay`; see `PARTS`.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np

from ...io.writing import write_json
from ...vocabularies.concepts import write_concepts
from ..building.store_writer import create_store
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
from ..ngrams import build_ngrams
from ..store import Store, name_key
from .edits import Edits, write_taught

CONCEPTS_AT_ONCE = 2_000  # tokenised together

Item = TypeVar("Item")


def write_overlay(draft: Draft, kb: KnowledgeBase, edits: Edits) -> Version:
    """Write the overlay of a draft, which uses the built files of a knowledge base.

    Names on a row of `kb` keep its vector, so that an edit embeds new names only.

    Args:
        draft: Of the folder of `kb`.
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
    names = write_changes(kb, edits, folder / STORE_FILE)
    if names:
        vectors = kb.embed(names).vectors
        if not np.isfinite(vectors).all():
            raise not_finite()
        build_index(vectors.astype("<f4"), folder, backend="exact", settings={})
        if kb.manifest.ngrams:
            database = Database(kb.version.path(STORE_FILE), folder / STORE_FILE)
            store, first = Store(database, kb.manifest.counts), kb.manifest.counts.rows
            build_ngrams(store, range(first, first + len(names)), folder / NGRAMS)
    overlay = OverlayRecord(
        concepts=len(added),
        rows=len(names),
        removed=len(removed),
        taught=edits.teaching,
        ranker=edits.ranker,
    )
    manifest = kb.manifest.model_copy(update={"overlay": overlay})
    return draft.describe(manifest, kb.version.keep(overlay=False))


def write_changes(kb: KnowledgeBase, edits: Edits, path: Path) -> list[str]:
    """Write each changed concept whole, and return the names on new rows, in order."""
    base, written = kb.base_store(), {""}
    new_rows: dict[bytes, int] = {}
    new_names: list[str] = []
    with create_store(
        path,
        first_concept=base.total_concepts,
        first_row=base.total_rows,
        first_origin=base.next_origin(),
    ) as store:
        store.create_overlay_tables()
        for cuis in split_batches(edits.changed()):
            numbers = base.numbers_of_cuis(cuis)
            concepts = []
            for cui in cuis:
                built = None
                if cui in numbers:
                    store.replace(numbers[cui])
                    built = base.read_concept(numbers[cui])
                if concept := edits.apply(built, cui):
                    concepts.append(concept)
            aliases = [alias for concept in concepts for alias in concept.aliases]
            token_ids, _ = kb.encoder.tokenize(aliases)
            keys = [name_key(ids) if ids else None for ids in token_ids]
            known = base.rows_of_keys(filter(None, keys))
            for key, alias in zip(keys, aliases, strict=True):
                if key is not None and key not in known and key not in new_rows:
                    new_rows[key] = base.total_rows + len(new_names)
                    new_names.append(alias)
            of_key = known | new_rows
            # None = the encoder cannot read the name.
            rows = iter([None if key is None else of_key[key] for key in keys])
            for concept in concepts:
                store.add(concept, [*islice(rows, len(concept.aliases))])
                written.add(concept.cui)
        # Annotations with a concept that was removed since do not count.
        counts = edits.count_mentions().items()
        store.add_annotated({pair: n for pair, n in counts if pair[1] in written})
        store.finish(new_rows)
    return new_names


def split_batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield batches that are tokenised together."""
    stream = iter(items)
    while batch := list(islice(stream, CONCEPTS_AT_ONCE)):
        yield batch
