"""Add and remove concepts and names after a knowledge base was built."""

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ...errors import Errors, SapbertError
from ...vocabularies.concepts import Concept, check_concept
from ...vocabularies.merge import unite_concepts
from ..folder.installed import find_kb
from ..folder.manifest import check_writable, lock_kb, read_manifest, write_manifest
from ..folder.records import OVERLAY_FOLDER
from ..knowledge_base import KnowledgeBase
from ..loading import open_store
from ..opening import open_kb
from .edits import Edits, copy, find_concept, read_edits, remove_aliases
from .overlay import built_files, write_overlay


def discard_teaching(kb: KnowledgeBase) -> KnowledgeBase:
    """Remove all that a knowledge base has learned from annotated mentions.

    Concepts and names that were added or removed stay so.

    kb (KnowledgeBase): The knowledge base; the object itself does not change.
    RETURNS (KnowledgeBase): The new version.
    RAISES (SapbertError): If the folder has changed, is locked or cannot be written.
    """
    edits = read_edits(kb)
    base = open_store(kb.files, kb.manifest, base=True)
    return write_overlay(kb, base, Edits(edits.added, edits.removed))


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
        if not any(kb.encoder.tokenize(concept.aliases)[0]):
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
