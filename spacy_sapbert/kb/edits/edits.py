"""What was changed since a knowledge base was built; `change` writes the files."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ...errors import SapbertError
from ...io.reading import read_lines
from ...io.writing import write_atomically
from ...linking.ranker import Ranker
from ...linking.ranking import has_text
from ...linking.text import name_form
from ...vocabularies.concepts import (
    ANNOTATED,
    Concept,
    change_names,
    clean_name,
    read_concepts,
)
from ...vocabularies.merge import unite_concepts
from ..folder.layout import CONCEPTS_FILE, REMOVED_FILE, TAUGHT_FILE
from ..folder.records import Teaching
from ..knowledge_base import KnowledgeBase
from ..store import Store

VOCABULARY = "vocabulary"  # source of a name whose source is not known
REMOVED = TypeAdapter(dict[str, set[str]])
Text = Annotated[str, Field(min_length=1)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class TaughtDocument(BaseModel):
    """The mentions of one annotated document. Its text and their places are not kept.

    Attributes:
        digest: Of its text; of its id and source if it has no text. What is taught with
            an equal digest later replaces it.
        note: Of its text; of its id alone if it has no text. Documents with an equal
            one are in one fold, since two annotators may have read the same note.
        source: Name of the file, or "" for Docs.
        mentions: Texts that the linker searches for, each with its concept; "" = none.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    digest: Digest
    note: Digest
    source: str
    mentions: list[tuple[Text, str]]


@dataclass
class Edits:
    """All edits since the knowledge base was built.

    Attributes:
        added: Concepts and names, by id.
        removed: Names, by id; an empty set = the whole concept.
        ranker: The correction of the order of candidates that was learned.
    """

    added: dict[str, Concept] = field(default_factory=dict)
    removed: dict[str, set[str]] = field(default_factory=dict)
    taught: list[TaughtDocument] = field(default_factory=list)
    teaching: Teaching | None = None
    ranker: Ranker | None = None

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
        """The annotated mentions as names of their concepts, by id.

        Of mentions that differ in case or blanks only, the first is the name.
        """
        names: dict[str, dict[str, str]] = defaultdict(dict)
        for document in self.taught:
            for text, cui in document.mentions:
                if cui and has_text(text):
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

    def add(self, concept: Concept) -> None:
        """Add a concept, or names to one that was added."""
        cui = concept.cui
        self.added[cui] = unite(self.added.get(cui), concept)
        self.retired.update(dict.fromkeys(concept.retired, cui))
        # A removed name that is added again is no longer removed.
        if names := self.removed.get(cui):
            self.removed[cui] = names - {*concept.aliases}
            if not self.removed[cui]:
                del self.removed[cui]

    def changed(self) -> list[str]:
        """Return the ids of all concepts that were changed, sorted."""
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


def unite(*concepts: Concept | None) -> Concept:
    """Return a new concept with what some concepts of one id have."""
    first, *others = filter(None, concepts)
    return unite_concepts([replace(first), *others])


def add_taught_names(known: Concept, taught: Concept) -> Concept:
    """Add annotated mentions to the names of a concept.

    A name without a source that is also an annotated mention gets the source
    `VOCABULARY`, so that it differs from names that are annotated mentions only.
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
        "E354",
        f"{path}: Expected {expected}, but got something else. Remove all edits with "
        "`spacy sapbert kb discard-edits`.",
    )
