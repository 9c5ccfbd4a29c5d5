"""Add and remove concepts and names after a knowledge base was built.

Each function publishes a version if something changes, and returns it opened; the
knowledge base that it gets does not change.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from ...errors import SapbertError
from ...io.writing import write_json
from ...vocabularies.concepts import Concept, check_concept, write_concepts
from ..building.store_writer import create_store, not_readable, split_batches
from ..database import Database
from ..folder.installed import find_kb
from ..folder.layout import (
    CONCEPTS_FILE,
    NGRAMS,
    OVERLAY,
    REMOVED_FILE,
    STORE_FILE,
    TAUGHT_FILE,
)
from ..folder.publication import Draft, draft_version, lock_kb, lock_version
from ..folder.records import OverlayRecord
from ..folder.versions import Version, read_version
from ..indexes.registry import build_index
from ..indexes.row_file import not_finite
from ..knowledge_base import KnowledgeBase, open_version
from ..ngrams.build import build_ngrams
from ..store import Store, name_key
from .edits import Edits, find_concept, read_edits, remove_aliases, write_taught

MOST_NAMES = 5  # of a concept, in an error


def add_concepts(kb: KnowledgeBase, concepts: Iterable[Concept]) -> KnowledgeBase:
    """Add concepts, or names to concepts, to the folder of a knowledge base.

    Args:
        kb: The knowledge base; the object itself does not change.
        concepts: A concept with a known id adds its names, types, codes and parents to
            that concept, which keeps its preferred name.

    Returns:
        The new version.

    Examples:
        >>> kb = add_concepts(kb, [Concept("C0027051", ["widow maker"])])
        >>> kb.link(["widow maker"])[0].cui
        'C0027051'
    """
    edits, base = read_edits(kb), kb.base_store()
    for batch in split_batches(concepts):
        for concept in batch:
            check_concept(concept)
        check_readable(kb, batch)
        for concept in batch:
            # The id may be retired.
            known = find_concept(base, edits, concept.cui)
            cui = known.cui if known else concept.cui
            edits.add(replace(concept, cui=cui))
            check_concept(edits.added[cui])
    return publish_edits(kb, edits)


def remove_concepts(
    kb: KnowledgeBase, cuis: Iterable[str], *, alias: str | None = None
) -> KnowledgeBase:
    """Remove concepts, or one name of each, from the folder of a knowledge base.

    Args:
        kb: The knowledge base; the object itself does not change.
        cuis: Ids of the concepts.
        alias: The name to remove; None = the whole concept.

    Returns:
        The new version.

    Examples:
        >>> kb = remove_concepts(kb, ["C0027051"], alias="Heart attack")
        >>> "C0027051" in remove_concepts(kb, ["C0027051"])
        False
        >>> kb = discard_edits("models/sample/kb")
        >>> kb["C0027051"].name
        'Myocardial infarction'
    """
    edits, base = read_edits(kb), kb.base_store()
    for cui in cuis:
        concept = find_concept(base, edits, cui)
        if concept is None:
            raise SapbertError(
                "E336",
                "Expected the id of a concept, but the knowledge base has no "
                f"{repr(cui)}. Look for it with `spacy sapbert kb search`.",
            )
        if alias is None:
            edits.removed[concept.cui] = set()
            edits.added.pop(concept.cui, None)
            continue
        check_alias(concept, cui, alias)
        if edits.removed.get(concept.cui) != set():
            edits.removed.setdefault(concept.cui, set()).add(alias)
        added = edits.added.pop(concept.cui, None)
        if added and (left := remove_aliases(added, {alias})):
            edits.added[concept.cui] = left
    return publish_edits(kb, edits)


def discard_teaching(kb: KnowledgeBase) -> KnowledgeBase:
    """Remove all that a knowledge base has learned from annotated mentions.

    Concepts and names that were added or removed stay so.
    """
    edits = read_edits(kb)
    return publish_edits(kb, Edits(edits.added, edits.removed))


def discard_edits(name: str | Path) -> KnowledgeBase:
    """Remove all edits of a knowledge base, even if they are damaged.

    Args:
        name: Folder or name; see `find_kb`.

    Returns:
        The knowledge base as it was built.
    """
    folder = find_kb(name)
    with lock_kb(folder):
        version = read_version(folder)
        if version.manifest.overlay is not None:
            with draft_version(version.folder) as draft:
                manifest = version.manifest.model_copy(update={"overlay": None})
                draft.describe(manifest, version.keep(overlay=False))
                version = draft.publish()
    return open_version(version)


def check_readable(kb: KnowledgeBase, concepts: list[Concept]) -> None:
    """Raise an error if the encoder can read none of the names of a concept."""
    aliases = [alias for concept in concepts for alias in concept.aliases]
    token_ids = iter(kb.encoder.tokenize(aliases)[0])
    for concept in concepts:
        if not any([*islice(token_ids, len(concept.aliases))]):
            raise not_readable(concept.cui, "Add another name.")


def check_alias(concept: Concept, cui: str, alias: str) -> None:
    """Raise an error unless a name of a concept can be removed."""
    if alias not in concept.aliases or len(concept.aliases) == 1:
        names = ", ".join(map(repr, concept.aliases[:MOST_NAMES]))
        raise SapbertError(
            "E367",
            f"Expected {cui} to have the name of `--alias` and another one, but its "
            f"names are {names}. Correct the name, or remove the whole concept, "
            "without `--alias`.",
        )


def publish_edits(kb: KnowledgeBase, edits: Edits) -> KnowledgeBase:
    """Publish a version with other edits, and open it; `kb` if they are the same."""
    with lock_version(kb.version):
        if edits == read_edits(kb):
            return kb
        with draft_version(kb.folder) as draft:
            write_overlay(draft, kb, edits)
            version = draft.publish()
    return open_version(version, encoder=kb.encoder_config, old=kb)


def write_overlay(draft: Draft, kb: KnowledgeBase, edits: Edits) -> Version:
    """Write the overlay of a draft, which uses the built files of a knowledge base.

    Names on a row of `kb` keep its vector, so that an edit embeds new names only.
    """
    built = kb.version.keep(overlay=False)
    kept = draft.keep_or_copy(kb.version, built, link=True)
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
    return draft.describe(manifest, kept)


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
            rows = [None if key is None else of_key[key] for key in keys]
            store.add_all(concepts, rows)
            written |= {concept.cui for concept in concepts}
        # Annotations with a concept that was removed since do not count.
        counts = edits.count_mentions().items()
        store.add_annotated({pair: n for pair, n in counts if pair[1] in written})
        store.finish(new_rows)
    return new_names
