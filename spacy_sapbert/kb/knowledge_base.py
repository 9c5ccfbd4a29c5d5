"""KnowledgeBase: a folder of concepts, index and encoder, verified and searched."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
)

import numpy as np

from ..encoder.huggingface import EncoderSettings
from ..errors import Errors, SapbertError, Warnings
from ..linking.link import Linked, link_mentions
from ..linking.options import DEFAULT_OPTIONS, LinkOptions, change_options
from ..linking.related import RelatedConcept, find_related
from ..system.forks import ProcessLock
from ..vocabularies.concepts import Concept
from .contents import Contents
from .indexes.registry import Index, load_index
from .installed import find_kb
from .layered_store import LayeredStore
from .layers import Layer
from .manifest import list_engines, read_meta, verify_files
from .store import Entry

if TYPE_CHECKING:
    from ..encoder.name_encoder import NameModel, Wordpieces


def load_kb(
    name: str | Path | None = None, *, encoder: "NameModel | None" = None
) -> "KnowledgeBase":
    """Open a knowledge base, after every file in it has been checked.

    name (str | Path | None): See `find_kb`.
    encoder (Model[list[str], Floats2d] | None): How to run its encoder; None = the
        defaults of `create_encoder`.
    RETURNS (KnowledgeBase): Ready to be asked; index and encoder are loaded when
        first used.
    RAISES (SapbertError): If there is none, or it is damaged or of another version.
    """
    folder = find_kb(name)
    meta = read_meta(folder)
    verify_files(folder, meta)
    return KnowledgeBase(folder, meta, encoder=encoder)


class KnowledgeBase:
    """Concepts, the index of their names, and the encoder that made it.

    folder (Path): Where it lies, verified.
    meta (dict[str, Any]): Its meta.json.
    encoder (Model[list[str], Floats2d] | None): See `load_kb`.
    """

    def __init__(
        self,
        folder: Path,
        meta: dict[str, Any],
        *,
        encoder: "NameModel | None" = None,
    ) -> None:
        self.folder = folder
        self.lock = ProcessLock()  # while index or encoder are loaded
        self.given_encoder = encoder
        self.loaded_encoder: NameModel | None = None
        self.loaded_index: Index | None = None
        self.read_layers(meta)

    def read_layers(self, meta: dict[str, Any]) -> None:
        """Take over what a meta.json says; index and encoder stay as they are.

        meta (dict[str, Any]): Of this folder, verified.
        """
        self.contents = Contents(
            self.folder,
            meta,
            open_index=lambda: self.index,
            open_encoder=lambda: self.encoder,
        )

    @property
    def meta(self) -> dict[str, Any]:
        """What meta.json says."""
        return self.contents.meta

    @property
    def layers(self) -> list[Layer]:
        """What was built, and what was added since."""
        return self.contents.layers

    @property
    def store(self) -> LayeredStore:
        """The concepts of all layers."""
        return self.contents.store

    def __reduce__(self) -> tuple[Any, ...]:
        # A process that gets it opens the same folder; nothing native is copied.
        return load_kb, (self.folder,)

    @property
    def encoder(self) -> "NameModel":
        """The encoder, loaded when it is first asked for."""
        with self.lock:
            if self.loaded_encoder is None:
                self.loaded_encoder = self.load_encoder()
        return self.loaded_encoder

    @property
    def index(self) -> Index:
        """The index of what was built, loaded when it is first asked for."""
        with self.lock:
            if self.loaded_index is None:
                self.loaded_index = load_index(
                    self.folder,
                    backend=self.meta["index"]["backend"],
                    settings=self.meta["index"]["settings"],
                    rows=self.meta["counts"]["rows"],
                    width=self.meta["encoder"]["width"],
                )
        return self.loaded_index

    def load_encoder(self) -> "NameModel":
        """Open the encoder that lies in the folder.

        RETURNS (Model[list[str], Floats2d]): The model that runs it.
        RAISES (SapbertError): If its vectors are not as wide as those of the index, or
            it is not there for the engine that is to run it.
        """
        from ..encoder.name_encoder import create_encoder, open_encoder

        model = self.given_encoder or create_encoder()
        described = self.meta["encoder"]
        settings = EncoderSettings(
            described["pooling"], described["max_length"], described["lowercase"]
        )
        engine, _, _ = model.attrs["run"]
        if engine not in list_engines(self.meta):
            raise SapbertError(Errors.E222.format(path=self.folder / "encoder"))
        open_encoder(model, self.folder / "encoder", settings=settings)
        if model.get_dim("nO") != described["width"]:
            raise SapbertError(
                Errors.E307.format(got=model.get_dim("nO"), width=described["width"])
            )
        return model

    def encode(self, names: Sequence[str]) -> np.ndarray:
        """Embed texts with the encoder of this knowledge base.

        names (Sequence[str]): The texts.
        RETURNS (np.ndarray): Unit vectors in float32. Shape: (n, width).
        """
        vectors: np.ndarray = self.encoder.predict(list(names))
        return vectors

    @property
    def rows(self) -> int:
        """How many rows there are to search."""
        return self.contents.rows

    def search(self, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the nearest rows; see `Contents.search`."""
        return self.contents.search(vectors, k)

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return what the index holds; see `Contents.vectors`."""
        return self.contents.vectors(rows)

    def entries(self, rows: Iterable[int]) -> dict[int, list[Entry]]:
        """Return every alias of every concept on some rows; see `Store.entries`."""
        return self.store.entries(rows)

    def embed(self, pieces: Sequence["Wordpieces"]) -> np.ndarray:
        """Embed tokenised names; see `Contents.embed`."""
        return self.contents.embed(pieces)

    def spellings(self, forms: Iterable[str]) -> dict[str, list[str]]:
        """Find which normalised forms are names; see `Store.spellings`."""
        return self.store.spellings(forms)

    def concept(self, cui: str) -> Concept | None:
        """Look a concept up, None if there is none; see `LayeredStore.concept`."""
        return self.store.concept(cui)

    def concepts(self) -> Iterator[Concept]:
        """Return all concepts; see `LayeredStore.concepts`."""
        return self.store.concepts()

    def children(self, cui: str) -> list[str]:
        """Return the ids one step down in the hierarchy, sorted."""
        return self.store.children(cui)

    def related(self, cui: str, k: int = 10) -> list[RelatedConcept]:
        """Find the concepts nearest to a concept by the vectors of their names.

        Nothing is encoded: the vectors are those of the index.

        cui (str): Id of the concept, or one that was retired for it.
        k (int): How many, 1 to 1000.
        RETURNS (list[RelatedConcept]): The others, the nearest first, each with what
            it is to the concept: "parent", "child", "sibling" or None.
        RAISES (SapbertError): If there is no such concept, or `k` is not possible.
        """
        k = change_options(DEFAULT_OPTIONS, {"k": k}).k
        return find_related(self.contents, self[cui].cui, k=k)

    def cuis(self, source: str, code: str) -> list[str]:
        """Find the concepts that a code of a source means; the way back is `codes`.

        source (str): The source, e.g. "ICD10CM".
        code (str): The code, e.g. "E11.9".
        RETURNS (list[str]): Their ids, sorted.
        """
        return self.store.cuis(source, code)

    def codes(self, cui: str, source: str) -> list[str]:
        """Return the codes that a concept has in a source.

        cui (str): Id of the concept, or one that was retired for it.
        source (str): The source, e.g. "ICD10CM".
        RETURNS (list[str]): The codes, none if it has none there.
        RAISES (SapbertError): If there is no such concept.
        """
        return list(self[cui].codes.get(source, ()))

    def __getitem__(self, cui: str) -> Concept:
        """Look a concept up, with a notice if its id was retired.

        cui (str): The id.
        RETURNS (Concept): The concept.
        RAISES (SapbertError): If there is none.
        """
        concept = self.concept(cui)
        if concept is None:
            raise SapbertError(Errors.E336.format(cui=repr(cui)))
        if concept.cui != cui:
            warnings.warn(
                Warnings.W001.format(cui=cui, now=concept.cui), UserWarning, 2
            )
        return concept

    def __contains__(self, cui: str) -> bool:
        return self.concept(cui) is not None

    def link(
        self,
        mentions: Sequence[str],
        *,
        labels: Sequence[str] | None = None,
        documents: Sequence[int] | None = None,
        options: LinkOptions = DEFAULT_OPTIONS,
        **settings: Any,
    ) -> list[Linked]:
        """Find the concepts that mentions may mean.

        mentions (Sequence[str]): Their texts; equal ones are looked up once.
        labels (Sequence[str] | None): Of their entities, for `label_types`.
        documents (Sequence[int] | None): The number of each one's document, for the
            evidence "coherence"; None = each mention is alone.
        options (LinkOptions): How to look them up.
        settings (Any): Fields of `LinkOptions` that differ: `k`, `threshold`, …
        RETURNS (list[Linked]): One for each mention. The candidates are there also
            where there is no concept; the note tells why.
        RAISES (SapbertError): If a setting is not possible.
        """
        options = change_options(options, settings)
        return link_mentions(
            self.contents, mentions, options, labels=labels, documents=documents
        )
