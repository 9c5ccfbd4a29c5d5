"""Add and remove concepts and names after a knowledge base was built.

Each function publishes a version if something changes, and returns it opened.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ...errors import SapbertError
from ...io.reading import read_lines
from ...io.writing import write_atomically, write_json
from ...linking.decisions import list_keys
from ...linking.ranker import Ranker
from ...linking.text import name_form
from ...vocabularies.concepts import (
    ANNOTATED,
    Concept,
    change_names,
    check_concept,
    clean_name,
    read_concepts,
    unite_concepts,
    write_concepts,
)
from ..building.store_writer import create_store, not_readable, split_batches
from ..database import Database
from ..folder.layout import (
    CONCEPTS_FILE,
    NGRAMS,
    OVERLAY,
    REMOVED_FILE,
    STORE_FILE,
    TAUGHT_FILE,
)
from ..folder.publication import (
    Draft,
    draft_version,
    lock_version,
)
from ..folder.records import OverlayRecord, Teaching
from ..folder.versions import Version
from ..indexes.backends import build_index
from ..indexes.row_file import not_finite
from ..knowledge_base import KnowledgeBase, open_version
from ..ngrams import build_ngrams
from ..store import Store, row_key

MOST_NAMES = 5  # of a concept, in an error
VOCABULARY = "vocabulary"  # source of a name whose source is not known
REMOVED = TypeAdapter(dict[str, set[str]])
Text = Annotated[str, Field(min_length=1)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class TaughtDocument(BaseModel):
    """The mentions of an annotated document, without its text and their places."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    digest: Digest  # of text, else id and source; a later equal one replaces it
    note: Digest  # of its text, else its id; equal ones are in one fold
    source: str  # name of the file; "" = Docs
    mentions: list[tuple[Text, str]]  # what is searched for, and concept; "" = none

    @property
    def is_term(self) -> bool:
        """Whether a mention is all of the document, as a term of a table is."""
        texts = {text for text, _ in self.mentions}
        return len(texts) == 1 and self.digest == hash_values("text", *texts)


@dataclass
class Edits:
    """All edits since the knowledge base was built, by id."""

    added: dict[str, Concept] = field(default_factory=dict)
    # Names, by id; an empty set = the whole concept.
    removed: dict[str, set[str]] = field(default_factory=dict)
    taught: list[TaughtDocument] = field(default_factory=list)
    teaching: Teaching | None = None
    ranker: Ranker | None = None  # corrects the order of candidates

    @cached_property
    def retired(self) -> dict[str, str]:
        """The present id of each retired id of what was added."""
        return {
            old: concept.cui
            for concept in self.added.values()
            for old in concept.retired
        }

    @cached_property
    def taught_concepts(self) -> dict[str, Concept]:
        """The annotated mentions as names, by id; the first of those that are alike.

        None if they make answers to other mentions worse.
        """
        names: dict[str, dict[str, str]] = defaultdict(dict)
        as_names = self.teaching is not None and self.teaching.as_names
        for document in self.taught if as_names else ():
            for text, cui in document.mentions:
                if cui:
                    names[cui].setdefault(name_form(text), clean_name(text))
        return {
            cui: Concept(
                cui, [*forms.values()], sources={ANNOTATED: [*range(len(forms))]}
            )
            for cui, forms in names.items()
        }

    def count_mentions(self) -> Counter[tuple[str, str]]:
        """Count how often each normalised text was annotated with each concept."""
        return Counter(
            (name_form(text), cui)
            for document in self.taught
            for text, cui in document.mentions
        )

    def count_votes(self) -> Counter[tuple[str, str]]:
        """Count the votes for concepts, by key; an added name means some concept."""
        names = {name_form(name) for c in self.added.values() for name in c.aliases}
        return Counter(
            {
                (key, cui): count
                for key, votes in count_votes(self.taught).items()
                for cui, count in votes.items()
                if cui or name_form(key) not in names
            }
        )

    def add(self, concept: Concept) -> None:
        cui = concept.cui
        self.added[cui] = unite(self.added.get(cui), concept)
        self.retired.update(dict.fromkeys(concept.retired, cui))
        # A removed name that is added again is no longer removed.
        if names := self.removed.get(cui):
            self.removed[cui] = names - {*concept.aliases}
            if not self.removed[cui]:
                del self.removed[cui]

    def changed(self) -> list[str]:
        return sorted({*self.added, *self.removed, *self.taught_concepts})

    def apply(self, base: Concept | None, cui: str) -> Concept | None:
        """Return a concept of the base after the edits; None if it is removed."""
        removed, taught = self.removed.get(cui), self.taught_concepts.get(cui)
        if removed is not None and base is not None:
            base = remove_aliases(base, removed) if removed else None
        if removed and taught is not None:
            taught = remove_aliases(taught, removed)
        added = self.added.get(cui)
        if base is None and added is None:
            return None
        known = unite(base, added)
        return add_taught_names(known, taught) if taught else known


def count_votes(documents: Iterable[TaughtDocument]) -> dict[str, Counter[str]]:
    """Count the documents that say what a mention means, "" = nothing, by `list_keys`.

    What is said of a term alone, as in a table of terms, holds for it everywhere:
    beside it, mentions within texts do not count. Annotators of one text count once
    each if they differ.
    """
    own: dict[str, dict[bool, set[tuple[str, str]]]] = {}
    of_form: dict[str, dict[bool, set[tuple[str, str]]]] = {}
    read_keys = cache(list_keys)  # texts come again
    for document in documents:
        is_term = document.is_term
        for text, cui in {*document.mentions}:
            if not (keys := read_keys(text)):
                continue
            form = keys[-1]
            for said in (own.setdefault(keys[0], {}), of_form.setdefault(form, {})):
                said.setdefault(is_term, set()).add((document.note, cui))
    # an abbreviation stands for its form if nobody has written it otherwise
    return {
        key: Counter(cui for _, cui in said.get(True) or said[False])
        for key, said in {**of_form, **own}.items()
    }


def hash_values(*values: str) -> str:
    content = json.dumps(values, ensure_ascii=False).encode("utf8", "replace")
    return hashlib.sha256(content).hexdigest()[:32]


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
            "E336",
            f"Expected {cui} to have the name of `--alias` and another one, but its "
            f"names are {names}. Correct the name, or remove the whole concept, "
            "without `--alias`.",
        )


def unite(*concepts: Concept | None) -> Concept:
    """Return a new concept with what some concepts of one id have."""
    first, *others = filter(None, concepts)
    return unite_concepts([replace(first), *others])


def add_taught_names(known: Concept, taught: Concept) -> Concept:
    """Add annotated mentions to the names of a concept.

    A name without a source that is also such a mention gets the source `VOCABULARY`.
    """
    sourced = {place for places in known.sources.values() for place in places}
    names = {*taught.aliases}
    unnamed = [
        alias
        for place, alias in enumerate(known.aliases)
        if place not in sourced and alias in names
    ]
    if not unnamed:
        return unite(known, taught)
    sources = {VOCABULARY: [*range(len(unnamed))]}
    return unite(known, taught, Concept(known.cui, unnamed, sources=sources))


def remove_aliases(concept: Concept, names: set[str]) -> Concept | None:
    """Return a copy of a concept without some names; None if no name is left."""
    left = replace(concept)
    change_names(left, ["" if name in names else name for name in concept.aliases])
    return left if left.aliases else None


def find_concept(base: Store, edits: Edits, cui: str) -> Concept | None:
    """Return the concept with an id, or with a retired id, after the edits."""
    known = base.concept(cui)
    if known is not None and known.cui != cui:
        now, known = known.cui, None
    else:
        now = edits.retired.get(cui, cui)
    if known is None and cui not in edits.added:
        return None if now == cui else find_concept(base, edits, now)
    return edits.apply(known, cui)


def read_edits(kb: KnowledgeBase) -> Edits:
    """Read the edits of the overlay; there may be none."""
    overlay = kb.manifest.overlay
    if overlay is None:
        return Edits()
    path = kb.version.path(REMOVED_FILE)
    try:
        removed = REMOVED.validate_json(path.read_bytes())
    except ValidationError:
        raise damaged_edits(path, "lists of names by concept") from None
    added = read_concepts(kb.version.path(CONCEPTS_FILE))
    edits = Edits({concept.cui: concept for concept in added}, removed)
    if overlay.taught is not None:
        edits.taught = list(read_taught(kb.version.path(TAUGHT_FILE)))
        edits.teaching, edits.ranker = overlay.taught, overlay.ranker
    return edits


def write_taught(path: Path, documents: Iterable[TaughtDocument]) -> None:
    with write_atomically(path) as file:
        for document in documents:
            line = json.dumps(document.model_dump(), ensure_ascii=False)
            file.write(line.encode("utf8", "replace") + b"\n")


def read_taught(path: Path) -> Iterator[TaughtDocument]:
    """Read taught.jsonl; the error of a bad line has its number."""
    for number, line in read_lines(path):
        try:
            yield TaughtDocument.model_validate_json(line)
        except ValidationError:
            raise damaged_edits(path, f"a document in line {number}") from None


def damaged_edits(path: Path, expected: str) -> SapbertError:
    return SapbertError(
        "E306",
        f"{path}: Expected {expected}, but got something else. Find a version "
        "from before the edits with `spacy sapbert kb versions`, and use it with "
        "`spacy sapbert kb use`.",
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
    """Write the overlay of a draft; only names that `kb` lacks are embedded."""
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
            keys = [row_key(ids) if ids else None for ids in token_ids]
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
        meant = {cui for document in edits.taught for _, cui in document.mentions}
        written |= base.numbers_of_cuis(meant.difference(edits.changed())).keys()
        for table, counts in (
            ("annotated", edits.count_mentions()),
            ("votes", edits.count_votes()),
        ):
            some = {pair: n for pair, n in counts.items() if pair[1] in written}
            store.add_counts(table, some)
        store.finish(new_rows)
    return new_names
