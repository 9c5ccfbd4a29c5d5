"""Add and remove concepts and names after a knowledge base was built.

Each function publishes a version if something changes, and returns it opened; the
knowledge base that it gets does not change.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ...errors import SapbertError
from ...vocabularies.concepts import Concept, check_concept
from ..folder.installed import find_kb
from ..folder.publication import draft_version, lock_kb, lock_version
from ..folder.versions import read_version
from ..knowledge_base import KnowledgeBase, open_version
from .edits import Edits, find_concept, read_edits, remove_aliases
from .overlay import split_batches, write_overlay

MOST_NAMES = 5  # of a concept, in an error


def publish_edits(kb: KnowledgeBase, edits: Edits) -> KnowledgeBase:
    """Publish a version with other edits, and open it; `kb` if they are the same."""
    with lock_version(kb.version):
        if edits == read_edits(kb):
            return kb
        with draft_version(kb.folder) as draft:
            write_overlay(draft, kb, edits)
            version = draft.publish()
    return open_version(version, encoder=kb.encoder_config, old=kb)


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


def check_readable(kb: KnowledgeBase, concepts: list[Concept]) -> None:
    """Raise an error if the encoder can read none of the names of a concept."""
    aliases = [alias for concept in concepts for alias in concept.aliases]
    token_ids = iter(kb.encoder.tokenize(aliases)[0])
    for concept in concepts:
        if not any([*islice(token_ids, len(concept.aliases))]):
            raise SapbertError(
                "E339",
                f"Expected at least one name of {concept.cui} that the encoder can "
                "read, but got none. Add another name.",
            )


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


def check_alias(concept: Concept, cui: str, alias: str) -> None:
    """Raise an error unless a name of a concept can be removed."""
    if alias not in concept.aliases:
        names = ", ".join(map(repr, concept.aliases[:MOST_NAMES]))
        raise SapbertError(
            "E367",
            f"Expected {cui} to have the name of `--alias`, but its names are "
            f"{names}. Correct the name.",
        )
    if len(concept.aliases) == 1:
        raise SapbertError(
            "E337",
            f"Expected {cui} to have another name besides this one, but it has none. "
            "Remove the whole concept, without `--alias`.",
        )
