"""KnowledgeBase: a folder of concepts, index and encoder, opened to search."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..encoder.name_encoder import Embeddings
from ..errors import Errors, SapbertError, UnknownConceptError, Warnings
from ..linking.candidates import Entry
from ..linking.filters import Filter
from ..linking.link import Linked, check_mentions
from ..linking.options import DEFAULT_OPTIONS, LinkOptions, change_options
from ..system.cache import LruCache
from ..system.forks import ProcessLock
from ..vocabularies.concepts import Concept
from .embedding import embed_texts
from .filtering import (
    FilterResult,
    check_options,
    check_sources_of_codes,
    foreign_origins,
    resolve_filter,
)
from .folder.files import KbFiles, open_files
from .folder.manifest import read_manifest
from .folder.records import Manifest
from .indexes.layered import search_among
from .indexes.registry import Index
from .loading import (
    add_overlay_index,
    load_all_ngrams,
    load_base_index,
    load_encoder,
    load_ranker,
    open_store,
)
from .mention_search import link_mentions
from .ngrams.index import NgramIndex, NgramLayers
from .related import RelatedConcept, find_related
from .reranking import read_provenance

if TYPE_CHECKING:
    from ..encoder.name_encoder import NameModel

FILTER_CACHE = 16  # filters
SEARCH_CACHE = 5_000  # mentions, about 5 KB each
CONCEPT_CACHE = 20_000  # concepts, about 1 KB each


class KnowledgeBase(Mapping[str, Concept]):
    """Concepts, the index of their names, and the encoder that made it.

    It maps ids, also retired ones, to concepts.

    An opened knowledge base does not change, also if its folder is replaced.
    `add_concepts` and `remove_concepts` write a new version of the folder and return it
    opened.

    files (KbFiles): Its verified files.
    manifest (Manifest): Its meta.json.
    encoder (Model[list[str], Floats2d] | None): See `load_kb`.
    """

    def __init__(
        self, files: KbFiles, manifest: Manifest, *, encoder: "NameModel | None" = None
    ) -> None:
        self.files = files
        self.folder = files.folder
        self.manifest = manifest
        self.given_encoder = encoder
        self.store = open_store(files, manifest)
        self.filter_cache: LruCache[Filter, FilterResult] = LruCache(FILTER_CACHE)
        self.search_cache: LruCache[Any, Any] = LruCache(SEARCH_CACHE)
        self.concept_cache: LruCache[str, Any] = LruCache(CONCEPT_CACHE)
        self.foreign_origins = lru_cache(partial(foreign_origins, self.store))
        self.check_codes = lru_cache(partial(check_sources_of_codes, self.store))
        self.ranker = load_ranker(files, manifest)
        self.provenance = read_provenance(self.store)
        self.lock = ProcessLock()  # while index or encoder are loaded
        self.loaded_encoder: NameModel | None = None
        self.loaded_base: Index | None = None
        self.loaded_index: Index | None = None
        self.loaded_ngrams: NgramIndex | NgramLayers | None = None

    def open_version(self, manifest: Manifest) -> "KnowledgeBase":
        """Open a new version of the folder; what did not change is shared."""
        files = open_files(self.folder, manifest.files, known=self.files)
        other = KnowledgeBase(files, manifest, encoder=self.given_encoder)
        other.loaded_encoder = self.loaded_encoder
        other.loaded_base = self.loaded_base
        return other

    def newest(self, *, digest: str | None = None) -> "KnowledgeBase":
        """Return the present version of the folder, opened and loaded.

        digest: The digest that a new version must have; None = any.
        RETURNS: This object, if there is no new version.
        RAISES (SapbertError): If the new version cannot be loaded.
        """
        if read_manifest(self.folder).digest == self.manifest.digest:
            return self
        from .opening import open_kb

        return open_kb(
            self.folder, encoder=self.given_encoder, digest=digest, load=True
        )

    def __reduce__(self) -> tuple[Any, ...]:
        from .opening import load_kb

        # The other process opens the same version; nothing native is copied.
        return partial(load_kb, digest=self.manifest.digest), (self.folder,)

    @property
    def rows(self) -> int:
        """Number of rows to search."""
        overlay = self.manifest.overlay
        return self.manifest.counts.rows + (overlay.rows if overlay else 0)

    @property
    def encoder(self) -> "NameModel":
        """The encoder, loaded when first used."""
        with self.lock:
            if self.loaded_encoder is None:
                self.loaded_encoder = load_encoder(
                    self.files, self.manifest, self.given_encoder
                )
        return self.loaded_encoder

    @property
    def index(self) -> Index:
        """The index, loaded when first used."""
        with self.lock:
            if self.loaded_index is None:
                if self.loaded_base is None:
                    self.loaded_base = load_base_index(self.files, self.manifest)
                self.loaded_index = add_overlay_index(
                    self.loaded_base, self.files, self.manifest
                )
        return self.loaded_index

    @property
    def ngrams(self) -> NgramIndex | NgramLayers:
        """The character 3-grams of all names, mapped when first used.

        RAISES (SapbertError): If the knowledge base was built without them.
        """
        with self.lock:
            if self.loaded_ngrams is None:
                self.loaded_ngrams = load_all_ngrams(self.files, self.manifest)
        return self.loaded_ngrams

    def load(self) -> None:
        """Load what is loaded when first used, before the knowledge base is used.

        RAISES (SapbertError): If a file cannot be read, or a library is missing.
        """
        self.index  # noqa: B018
        self.encoder  # noqa: B018
        if self.manifest.ngrams:
            self.ngrams  # noqa: B018

    def embed(self, texts: Sequence[str], *, variants: bool = False) -> Embeddings:
        """Embed texts; one with the token ids of a row gets the vector of the row.

        texts (Sequence[str]): Any texts.
        variants (bool): A text that is no name gets the vector of the name that is an
            English variant of it, if there is one; see `list_variants`.
        RETURNS (Embeddings): Vectors of shape (n, width); whether each text was
            truncated, and whether the encoder can read it.
        """
        return embed_texts(self, texts, variants=variants)

    def search(
        self, vectors: np.ndarray, k: int, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the nearest rows.

        vectors (np.ndarray): Unit vectors in float32. Shape: (n, width).
        k (int): Number of rows.
        rows (np.ndarray | None): The rows to search, ascending; None = all.
            Shape: (m,).
        RETURNS (tuple[np.ndarray, np.ndarray]): Rows (int64; −1 = none) and cosines
            (float32), the best first. Shape: (n, up to k) each.
        """
        if rows is None:
            return self.index.search(vectors, k)
        return search_among(self.index, vectors, k, rows, total=self.rows)

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of rows, float32. Shape: (n,) → (n, width)."""
        rows = np.asarray(rows, dtype=np.int64)
        if len(rows) and not 0 <= rows.min() <= rows.max() < self.rows:
            raise SapbertError(Errors.E352.format(rows=self.rows))
        return self.index.vectors(rows)

    def entries(self, rows: Iterable[int]) -> dict[int, list[Entry]]:
        """Return every alias of every concept on some rows, by row."""
        return self.store.entries(rows)

    def resolve_filter(self, filter: Filter) -> FilterResult:
        """Find what a filter leaves; the results of the last filters are cached.

        RAISES (SapbertError): If it has an unknown type, source or language.
        """
        cached = self.filter_cache.get_many([filter])
        if not cached:
            cached = {filter: resolve_filter(self.store, filter)}
            self.filter_cache.put_many(cached)
        return cached[filter]

    def check_options(self, options: LinkOptions) -> None:
        """Check that options name types, sources and languages of this knowledge base.

        RAISES (SapbertError): If not, or they need 3-grams that it does not have.
        """
        check_options(self.store, self.manifest, options)

    def clear_cache(self) -> None:
        """Remove all cached search results."""
        self.search_cache.clear()

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

        mentions (Sequence[str]): Their texts.
        labels (Sequence[str] | None): Labels of their entities, for `label_types`.
        documents (Sequence[int] | None): Number of the document of each mention, for
            the evidence "coherence"; None = each mention is alone.
        options (LinkOptions): How mentions are linked.
        settings (Any): Options by name, which replace those of `options`.
        RETURNS (list[Linked]): One for each mention.
        RAISES (SapbertError): If an option is not possible, or the mentions are no list
            of texts, with as many labels and documents.
        """
        options = change_options(options, settings)
        check_mentions(mentions, labels, documents)
        return link_mentions(
            self,
            mentions,
            labels=[""] * len(mentions) if labels is None else labels,
            documents=range(len(mentions)) if documents is None else documents,
            options=options,
        )

    def concept(self, cui: str) -> Concept | None:
        """Return the concept with an id or retired id; None if there is none."""
        return self.store.concept(cui)

    def __getitem__(self, cui: str) -> Concept:
        """Return the concept with an id, with a warning if the id was retired.

        RAISES (UnknownConceptError): If there is none.
        """
        concept = self.concept(cui)
        if concept is None:
            raise UnknownConceptError(Errors.E336.format(cui=repr(cui)))
        if concept.cui != cui:
            message = Warnings.W001.format(cui=cui, now=concept.cui)
            warnings.warn(message, UserWarning, 2)
        return concept

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of all concepts; retired ids are not among them."""
        return self.store.cuis()

    def __len__(self) -> int:
        return self.store.count_concepts()

    def __contains__(self, cui: object) -> bool:
        return isinstance(cui, str) and self.concept(cui) is not None

    __hash__ = object.__hash__  # two opened knowledge bases are not compared
    __eq__ = object.__eq__

    @property
    def cui_to_entity(self) -> Mapping[str, Concept]:
        """The knowledge base itself, under the name that it has in scispaCy."""
        return self

    def concepts(self) -> Iterator[Concept]:
        """Yield all concepts: those built, then those changed or added."""
        return self.store.concepts()

    def children(self, cui: str) -> list[str]:
        """Return the ids of the children of a concept, sorted."""
        return self.store.children(cui)

    def related(self, cui: str, k: int = 10) -> list[RelatedConcept]:
        """Find the concepts nearest to a concept by the vectors of their names.

        cui (str): Its id; it may be retired.
        k (int): Number of concepts, 1 to 1000.
        RETURNS (list[RelatedConcept]): The nearest first, equal scores by id; empty if
            the encoder can read no name of the concept.
        RAISES (SapbertError): If there is no such concept, or `k` is out of range.
        """
        k = change_options(DEFAULT_OPTIONS, {"k": k}).k
        return find_related(self, self[cui].cui, k=k)

    def cuis(self, source: str, code: str) -> list[str]:
        """Return the ids of the concepts with a code of a source, sorted.

        source (str), code (str): For example "ICD10CM" and "E11.9".
        """
        return self.store.cuis_of_code(source, code)

    def codes(self, cui: str, source: str) -> list[str]:
        """Return the codes of a concept, which must exist, in a source."""
        return list(self[cui].codes.get(source, ()))
