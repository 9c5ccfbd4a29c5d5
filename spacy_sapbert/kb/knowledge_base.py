"""KnowledgeBase: a version of concepts, index and encoder, opened to search."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import SapbertError, UnknownConceptError
from ..io.forks import TemporaryFolder
from ..linking.candidates import Entry, RankedEntry, round_score
from ..linking.filters import Filter
from ..linking.link import Linked, check_mentions
from ..linking.options import DEFAULT_OPTIONS, LinkOptions, change_options
from ..linking.ranker import Ranker
from ..vocabularies.concepts import Concept
from .filters import FilterResult
from .folder.publication import unpack_files, version_to_files
from .folder.versions import Version, find_kb, read_version, verify_files
from .indexes.backends import Index
from .parts import EmbeddedTexts, Parts, embed_texts, open_store
from .scispacy_names import KNOWLEDGE_BASE, missing_attribute
from .search import MentionSearch
from .store import Store

if TYPE_CHECKING:
    from ..encoder.encoder import Encoder, EncoderConfig


def load_kb(
    name: str | Path | None = None,
    *,
    encoder: "EncoderConfig | None" = None,
    digest: str | None = None,
) -> "KnowledgeBase":
    """Open a knowledge base after every file in it has been checked.

    Index and encoder are loaded when they are first used.

    Args:
        name: A folder, or the name of an installed knowledge base; None = the only one
            that is installed.
        encoder: How to run its encoder; None = as `EncoderConfig` does by default.
        digest: The digest that it must have (`kb info` prints it); None = any.

    Examples:
        >>> kb = load_kb("models/sample/kb", encoder=EncoderConfig(names_per_pass=16))
        >>> kb.link(["heart attack"])[0].cui
        'C0027051'
    """
    return open_version(read_version(find_kb(name)), encoder=encoder, digest=digest)


def open_version(
    version: Version,
    *,
    encoder: "EncoderConfig | None" = None,
    digest: str | None = None,
    old: "KnowledgeBase | None" = None,
    whole: bool = False,
) -> "KnowledgeBase":
    """Open a version; what has equal files in `old`, of the same folder, is shared."""
    got = version.manifest.digest
    if digest not in (None, got):
        raise SapbertError(
            "E351",
            f"Expected the knowledge base with the digest {digest}, but "
            f"{version.folder} has the digest {got}. Install the one that is pinned, "
            "or pin this one if you trust it.",
        )
    verify_files(version, known=old.version if old is not None else None, whole=whole)
    return KnowledgeBase(version, encoder=encoder, old=old)


def reopen(
    folder: Path,
    real_folder: Path,
    name: str,
    digest: str,
    encoder: "EncoderConfig | None",
) -> "KnowledgeBase":
    """Open the version of a pickled knowledge base."""
    version = replace(read_version(real_folder, name), folder=folder)
    return open_version(version, encoder=encoder, digest=digest)


def open_files(
    files: dict[str, bytes],
    encoder: "EncoderConfig | None" = None,
    digest: str | None = None,
) -> "KnowledgeBase":
    """Open the files of `version_to_files` in a temporary folder."""
    temporary = unpack_files(files)
    version = read_version(temporary.path.resolve())
    kb = open_version(version, encoder=encoder, digest=digest)
    kb.temporary = temporary
    return kb


class RelatedConcept(NamedTuple):
    """A concept near another one, and its preferred name."""

    cui: str
    name: str
    score: float  # highest cosine of a name of the one and one of the other
    relation: str | None  # "parent", "child" or "sibling", which shares a parent


class KnowledgeBase(Mapping[str, Concept]):
    """Concepts, the index of their names, and the encoder that made it.

    It maps ids, also retired ones, to concepts.

    An opened knowledge base does not change. `add_concepts` and `remove_concepts` write
    a new version of the folder and return it opened.

    Attributes:
        folder: Its folder, an absolute path.
        manifest: Its meta.json.
        encoder_config: See `load_kb`.
        temporary: The folder, if it is temporary: it is removed with this object.

    Examples:
        >>> kb = load_kb("models/sample/kb")
        >>> kb["C0027051"].name
        'Myocardial infarction'
        >>> "C9999999" in kb
        False
    """

    def __init__(
        self,
        version: Version,
        *,
        encoder: "EncoderConfig | None" = None,
        old: "KnowledgeBase | None" = None,
    ) -> None:
        self.version = version
        self.folder = version.folder
        self.manifest = version.manifest
        self.encoder_config = encoder
        self.temporary: TemporaryFolder | None = None
        if old is not None and old.folder == self.folder:
            self.temporary = old.temporary
        self.parts: Parts = Parts(version, encoder, old=old.parts if old else None)
        self.store = self.parts.store
        self.searcher = MentionSearch(self.parts)

    def newest(self, *, digest: str | None = None) -> "KnowledgeBase":
        """Return the version of the folder that is used now, loaded; may be this one.

        Args:
            digest: The digest that a new version must have; None = any.
        """
        version = read_version(self.folder)
        if version.manifest.digest == self.manifest.digest:
            return self
        new = open_version(
            version, encoder=self.encoder_config, digest=digest, old=self
        )
        new.load()
        return new

    def base_store(self) -> Store:
        """Open the concepts as they were built, without later edits."""
        return open_store(self.version, base=True)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.temporary is not None:  # another process can outlive it
            return open_files, (version_to_files(self.version), self.encoder_config)
        # Another process opens the same version; nothing native is copied.
        version = self.version
        values = (self.folder, version.real_folder, version.name, self.manifest.digest)
        return reopen, (*values, self.encoder_config)

    @property
    def rows(self) -> int:
        """Number of rows to search."""
        return self.store.total_rows

    @property
    def encoder(self) -> "Encoder":
        """The encoder, loaded when first used."""
        return self.parts.encoder

    @property
    def ranker(self) -> Ranker | None:
        """The learned order of candidates, if there is one."""
        return self.parts.ranker

    @property
    def index(self) -> Index:
        """The index, loaded when first used."""
        return self.parts.index

    def load(self) -> None:
        """Load now what is loaded when first used otherwise: encoder, index, …"""
        self.parts.load()

    def embed(self, texts: Sequence[str]) -> EmbeddedTexts:
        """Embed texts; one with the token ids of a row gets the vector of the row."""
        return embed_texts(self.parts, texts)

    def search(self, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the k nearest rows.

        Args:
            vectors: Unit vectors in float32. Shape: (n, width).

        Returns:
            Rows (int64; −1 = none) and cosines (float32), the best first.
            Shape: (n, up to k) each.
        """
        return self.index.search(vectors, k)

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the unit vectors of rows, float32. Shape: (n,) → (n, width)."""
        return self.index.vectors(np.asarray(rows, dtype=np.int64))

    def entries(self, rows: Iterable[int]) -> dict[int, list[Entry]]:
        """Return every alias of every concept on some rows, by row."""
        return self.store.entries(rows)

    def resolve_filter(self, filter: Filter) -> FilterResult:
        """Find what a filter leaves; an error if it names what is not there."""
        return self.searcher.nearest.resolve_filter(filter)

    def find_written(
        self, text: str, lang: str, *, max_tokens: int, min_length: int
    ) -> list[tuple[int, int]]:
        """Find the names that are written in a text, in any way to write them.

        Args:
            lang: Language of the text. Names in other languages do not count.
            max_tokens: See `NameIndex.find_windows`.
            min_length: Minimum of characters, except for abbreviations, which must be
                written exactly so.

        Returns:
            Start and end in characters, in order; also names inside other names.
        """
        names, index = self.searcher.names, self.parts.name_index
        windows = index.find_windows(text, names.rules(lang), max_tokens)
        written = names.find_written(text, [*windows], lang, min_length=min_length)
        return list(dict.fromkeys((w.start, w.end) for w in written))

    def check_options(self, options: LinkOptions) -> None:
        """Raise an error if there are no types, sources, … that options name."""
        self.searcher.check(options)

    def clear_cache(self) -> None:
        """Remove all cached search results."""
        self.searcher.results.clear()

    def link(
        self,
        mentions: Sequence[str],
        *,
        labels: Sequence[str] | None = None,
        documents: Sequence[int] | None = None,
        options: LinkOptions = DEFAULT_OPTIONS,
        **settings: Any,
    ) -> list[Linked]:
        """Link mentions to concepts.

        Args:
            mentions: Their texts.
            labels: Labels of their entities, for `label_types`.
            documents: Number of the document of each mention, for the evidence
                "coherence"; None = each mention is alone.
            options: How mentions are linked.
            settings: Options by name, which replace those of `options`.

        Returns:
            The link of each mention, in their order.

        Examples:
            >>> heart, blood = kb.link(["heart attack", "high cholesterol"], k=3)
            >>> heart.cui, heart.candidates[0]["name"], len(heart.candidates)
            ('C0027051', 'Myocardial infarction', 3)
            >>> blood.candidates[0]["score"]
            1.0
        """
        options = change_options(options, settings)
        check_mentions(mentions, labels, documents)
        return self.searcher.link(
            mentions,
            [""] * len(mentions) if labels is None else labels,
            range(len(mentions)) if documents is None else documents,
            options,
        )

    def concept(self, cui: str) -> Concept | None:
        """Return the concept with an id or retired id; None if there is none."""
        return self.store.concept(cui)

    def __getitem__(self, cui: str) -> Concept:
        """Return the concept with an id, with a warning if the id was retired."""
        concept = self.concept(cui)
        if concept is None:
            raise UnknownConceptError(
                "E336",
                "Expected the id of a concept, but the knowledge base has no "
                f"{repr(cui)}. Look for it with `spacy sapbert kb search`.",
            )
        if concept.cui != cui:
            message = (
                f"[W001] The id {cui} was retired; the concept is now {concept.cui}."
            )
            warnings.warn(message, UserWarning, 2)
        return concept

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of all concepts; retired ids are not among them."""
        return self.store.cuis()

    def __len__(self) -> int:
        return self.store.count_concepts()

    def __contains__(self, cui: object) -> bool:
        return isinstance(cui, str) and self.concept(cui) is not None

    def __repr__(self) -> str:
        counts, index = self.manifest.counts, self.manifest.index.backend
        has = f"{counts.concepts:,} concepts, {self.rows:,} names, index {index}"
        return f"<KnowledgeBase {self.folder}: {has}>"

    __hash__ = object.__hash__  # two opened knowledge bases are not compared
    __eq__ = object.__eq__

    if not TYPE_CHECKING:  # type checkers would accept any attribute

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(self, name, KNOWLEDGE_BASE)

    @property
    def cui_to_entity(self) -> Mapping[str, Concept]:
        """The knowledge base itself, under the name that it has in scispaCy."""
        return self

    def concepts(self) -> Iterator[Concept]:
        """Yield all concepts: those built, then those changed or added."""
        return self.store.concepts()

    def other_prefix(self, cui: str) -> str | None:
        """Return the id that differs only in its prefix (`MESH:`), if there is one."""
        prefix, colon, _ = next(iter(self), "").rpartition(":")
        bare = cui.rpartition(":")[2]
        others = (bare, f"{prefix}{colon}{bare}")
        return next((other for other in others if other != cui and other in self), None)

    def children(self, cui: str) -> list[str]:
        """Return the ids of the children of a concept, sorted; empty if unknown."""
        return self.store.children(cui)

    def related(self, cui: str, k: int = 10) -> list[RelatedConcept]:
        """Find the concepts nearest to a concept by the vectors of their names.

        Args:
            cui: Its id; it may be retired.
            k: Number of concepts, 1 to 1000.

        Returns:
            The nearest first, equal scores by id; empty if the encoder can read no name
            of the concept.

        Examples:
            >>> len(kb.related("C0027051", k=5))
            5
        """
        k = change_options(DEFAULT_OPTIONS, {"k": k}).k
        cui = self[cui].cui
        rows = sorted({entry.row for entry in self.store.entries_of(cui)})
        vectors = self.vectors(np.array(rows))
        depth = k + 1  # since each name is nearest to its own concept
        while True:
            ranked = self.searcher.nearest.rank(vectors, Filter(), k=depth)
            nearest: dict[str, RankedEntry] = {}
            for near in chain.from_iterable(ranked):
                best = nearest.setdefault(near.entry.cui, near)
                if near.score > best.score:
                    nearest[near.entry.cui] = near
            nearest.pop(cui, None)
            scores = {other: round_score(near.score) for other, near in nearest.items()}
            cuis = sorted(nearest, key=lambda other: (-scores[other], other))[:k]
            # Others may have the score of the last one, and come before it by their id.
            if not any(
                len(found) == depth and round_score(found[-1].score) >= scores[cuis[-1]]
                for found in ranked
            ):
                break
            depth *= 2
        relations = self.store.relate(cui, cuis)
        return [
            RelatedConcept(other, nearest[other].entry.name, scores[other], relation)
            for other, relation in zip(cuis, relations, strict=True)
        ]

    def cuis(self, source: str, code: str) -> list[str]:
        """Return the ids of concepts with a code, e.g. "E11.9" of "ICD10CM", sorted."""
        return self.store.cuis_with_code([source], code)

    def codes(self, cui: str, source: str) -> list[str]:
        """Return the codes of a concept in a source, e.g. "ICD10CM"; may be empty."""
        return list(self[cui].codes.get(source, ()))
