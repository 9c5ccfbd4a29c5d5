"""KnowledgeBase: a folder of concepts, index and encoder, verified and searched."""

import hashlib
import threading
from array import array
from importlib.metadata import entry_points
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np

from .candidates import Candidate, describe_text, make_candidate, rank_concepts
from .concepts import Concept
from .errors import Errors, SapbertError
from .hf import EncoderSettings
from .indexes import Index, load_index
from .meta import read_meta, verify_files
from .store import Entry, Store

if TYPE_CHECKING:
    from .encoder import NameModel, Wordpieces

ENTRY_POINTS = "spacy_sapbert_kbs"
ROWS_PER_CONCEPT = 4  # rows asked for at first, for each concept that is wanted
FEWEST_ROWS = 32
MOST_ROWS = 4096


class Linked(NamedTuple):
    """What the search says of one mention.

    candidates (List[Candidate]): Concepts, the best first.
    note (Optional[str]): Why there is none, or that the mention was cut.
    """

    candidates: List[Candidate]
    note: Optional[str]


def name_key(pieces: "Wordpieces") -> bytes:
    """Name a row of the index by its wordpieces.

    pieces (Wordpieces): Ids, special ones included.
    RETURNS (bytes): 16 bytes, equal for equal wordpieces.
    """
    ids = array("q", pieces).tobytes()
    return hashlib.blake2b(ids, digest_size=16).digest()


def installed_kbs() -> Dict[str, Any]:
    """Find the knowledge bases that are installed as packages.

    RETURNS (Dict[str, EntryPoint]): By name.
    """
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def find_kb(name: Union[str, Path, None] = None) -> Path:
    """Find the folder of a knowledge base.

    name (Union[str, Path, None]): A folder, or the name of an installed knowledge
        base; None for the only one that is installed.
    RETURNS (Path): The folder.
    RAISES (SapbertError): If there is none, or None could mean several.
    """
    installed = installed_kbs()
    names = ", ".join(sorted(installed)) or "none"
    if name is None:
        if not installed:
            raise SapbertError(Errors.E308)
        if len(installed) > 1:
            raise SapbertError(Errors.E309.format(names=names))
        name = next(iter(installed))
    if Path(name).is_dir():
        return Path(name)
    if str(name) not in installed:
        raise SapbertError(Errors.E310.format(name=str(name), names=names))
    return Path(installed[str(name)].load())


def load_kb(
    name: Union[str, Path, None] = None, *, encoder: "Optional[NameModel]" = None
) -> "KnowledgeBase":
    """Open a knowledge base, after every file in it has been checked.

    name (Union[str, Path, None]): See `find_kb`.
    encoder (Optional[Model[List[str], Floats2d]]): How to run its encoder; None = the
        defaults of `create_transformer_encoder`.
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
    meta (Dict[str, Any]): Its meta.json.
    encoder (Optional[Model[List[str], Floats2d]]): See `load_kb`.
    """

    def __init__(
        self,
        folder: Path,
        meta: Dict[str, Any],
        *,
        encoder: "Optional[NameModel]" = None,
    ) -> None:
        self.folder = folder
        self.meta = meta
        self.store = Store(folder)
        self.lock = threading.Lock()
        self.given_encoder = encoder
        self.loaded_encoder: Optional[NameModel] = None
        self.loaded_index: Optional[Index] = None

    def __reduce__(self) -> Tuple[Any, ...]:
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
        """The index, loaded when it is first asked for."""
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

        RETURNS (Model[List[str], Floats2d]): The model that runs it.
        RAISES (SapbertError): If its vectors are not as wide as those of the index.
        """
        from .encoder import create_transformer_encoder, open_encoder

        model = self.given_encoder or create_transformer_encoder()
        described = self.meta["encoder"]
        settings = EncoderSettings(
            described["pooling"], described["max_length"], described["lowercase"]
        )
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

    def search(self, vectors: np.ndarray, k: int) -> Tuple[np.ndarray, np.ndarray]:
        """Find the nearest rows of the index.

        vectors (np.ndarray): Unit vectors in float32. Shape: (n, width).
        k (int): How many rows.
        RETURNS (Tuple[np.ndarray, np.ndarray]): Rows and cosines, the best first.
            Shape: (n, up to k) each.
        """
        return self.index.search(vectors, min(k, self.meta["counts"]["rows"]))

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Give what the index holds.

        rows (np.ndarray): Numbers of rows. Shape: (n,).
        RETURNS (np.ndarray): Unit vectors in float32. Shape: (n, width).
        """
        return self.index.vectors(np.asarray(rows, dtype=np.int64))

    def entries(self, rows: Iterable[int]) -> Dict[int, List[Entry]]:
        """Give every alias of every concept on some rows; see `Store.entries`."""
        return self.store.entries(rows)

    def spellings(self, forms: Iterable[str]) -> Dict[str, List[str]]:
        """Find which normalised forms are names; see `Store.spellings`."""
        return self.store.spellings(forms)

    def concept(self, cui: str) -> Optional[Concept]:
        """Look a concept up; see `Store.concept`."""
        return self.store.concept(cui)

    def concepts(self) -> Iterator[Concept]:
        """Give all concepts; see `Store.concepts`."""
        return self.store.concepts()

    def link(
        self, mentions: Sequence[str], *, k: int = 10, threshold: Optional[float] = None
    ) -> List[Linked]:
        """Find the concepts that mentions may mean.

        mentions (Sequence[str]): Their texts; equal ones are looked up once.
        k (int): Concepts for each at the most.
        threshold (Optional[float]): Cosine under which the best one does not count;
            None = the one of the knowledge base, if it has one.
        RETURNS (List[Linked]): One for each mention. The candidates are there also
            below the threshold; the note tells.
        """
        threshold = self.meta["threshold"] if threshold is None else threshold
        found: Dict[str, Linked] = {}
        texts: List[str] = []
        for text in dict.fromkeys(mentions):
            note = describe_text(text)
            if note:
                found[text] = Linked([], note)
            else:
                texts.append(text)
        if texts:
            found.update(
                zip(texts, self.link_distinct(texts, k, threshold), strict=True)
            )
        return [found[text] for text in mentions]

    def link_distinct(
        self, texts: List[str], k: int, threshold: Optional[float]
    ) -> List[Linked]:
        """Link distinct mentions that have a letter or digit; see `link`."""
        from .encoder import tokenize_names

        pieces, cut = tokenize_names(self.encoder, texts)
        vectors = self.embed(pieces)
        usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
        asked = np.flatnonzero(usable).tolist()
        ranked = dict(zip(asked, self.rank(vectors[asked], k), strict=True))
        types = self.store.types(
            entry.cui for concepts in ranked.values() for _, entry in concepts
        )
        results: List[Linked] = []
        for number, ids in enumerate(pieces):
            candidates = [
                make_candidate(score, entry, list(types.get(entry.cui, ())))
                for score, entry in ranked.get(number, ())
            ]
            note = "cut" if cut[number] else None
            if not ids:
                note = "unreadable"
            elif not candidates:
                note = "no vector"
            elif threshold is not None and ranked[number][0][0] < threshold:
                note = "below threshold"
            results.append(Linked(candidates, note))
        return results

    def embed(self, pieces: Sequence["Wordpieces"]) -> np.ndarray:
        """Embed tokenised names; those that are rows of the index cost nothing.

        pieces (Sequence[Wordpieces]): From `tokenize_names`.
        RETURNS (np.ndarray): Unit vectors in float32. Shape: (n, width).
        """
        from .encoder import encode_wordpieces

        distinct = {name_key(ids): ids for ids in pieces}
        rows = self.store.rows_of_keys(distinct)
        new = [key for key in distinct if key not in rows]
        place = {key: i for i, key in enumerate([*rows, *new])}
        known = self.vectors(np.fromiter(rows.values(), dtype=np.int64))
        computed = encode_wordpieces(self.encoder, [distinct[key] for key in new])
        vectors = np.concatenate([known.reshape(-1, computed.shape[1]), computed])
        return vectors[[place[name_key(ids)] for ids in pieces]]

    def rank(self, vectors: np.ndarray, k: int) -> List[List[Tuple[float, Entry]]]:
        """Find the k best concepts of each vector.

        Several rows may belong to one concept, so that more rows are asked for, and
        more again for those vectors that still lack concepts.

        vectors (np.ndarray): Unit vectors in float32. Shape: (n, width).
        k (int): Concepts for each at the most.
        RETURNS (List[List[Tuple[float, Entry]]]): See `rank_concepts`.
        """
        results: List[List[Tuple[float, Entry]]] = [[] for _ in vectors]
        pending = np.arange(len(vectors))
        total = self.meta["counts"]["rows"]
        count = min(max(FEWEST_ROWS, ROWS_PER_CONCEPT * k), total)
        while len(pending):
            rows, scores = self.search(vectors[pending], count)
            entries = self.entries(np.unique(rows))
            for place, number in enumerate(pending):
                results[number] = rank_concepts(
                    rows[place].tolist(), scores[place].tolist(), entries, k=k
                )
            if count >= min(total, MOST_ROWS) or rows.shape[1] < count:
                break
            count = min(count * 4, total, MOST_ROWS)
            pending = np.array([i for i in pending if len(results[i]) < k], dtype=int)
        return results
