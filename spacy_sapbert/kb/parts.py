"""The parts of an opened version: each is loaded when it is first used."""

from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from ..errors import SapbertError
from ..io.forks import ProcessLock
from ..linking.name_index import NameIndex
from .agreement import WordTable
from .database import Database
from .folder.layout import (
    ENGLISH,
    NGRAM_FILES,
    NGRAMS,
    OVERLAY,
    STORE_FILE,
    WORD_FILES,
    WORDS,
    has_rows,
)
from .folder.versions import Version
from .indexes.backends import Index, index_files, load_index
from .indexes.exact import LayeredIndex
from .ngrams import NgramIndex, load_ngrams
from .store import Store, row_key

if TYPE_CHECKING:
    from ..encoder.encoder import Encoder, EncoderConfig

Part = TypeVar("Part")
Found = tuple[Sequence[bytes | None], np.ndarray]  # keys of rows, and their vectors
MENTIONS_AT_ONCE = 64  # searched together: limits memory, does not change results


def open_store(version: Version, *, base: bool = False) -> Store:
    """Open the concepts of a version; `base` = as they were built."""
    manifest = version.manifest
    overlay = None if base else manifest.overlay
    names = [STORE_FILE, *([f"{OVERLAY}/{STORE_FILE}"] if overlay else [])]
    database = Database(*map(version.path, names), check=version.check)
    return Store(database, manifest.counts, overlay)


class loaded_once(Generic[Part]):
    """A property that one thread loads, while the others wait.

    `cached_property` of Python 3.11 has one lock, which a fork may inherit locked.
    """

    def __init__(self, load: Callable[["Parts"], Part]) -> None:
        self.load = load
        self.__doc__ = load.__doc__

    def __get__(self, parts: "Parts", owner: type | None = None) -> Part:
        name, loaded = self.load.__name__, vars(parts)
        with parts.lock:
            if name not in loaded:
                part = self.load(parts)
                parts.version.check()
                loaded[name] = part
            value: Part = loaded[name]
            return value


class Parts:
    """What a version has, each loaded once; `old` shares what has equal files."""

    def __init__(
        self,
        version: Version,
        config: "EncoderConfig | None" = None,
        *,
        old: "Parts | None" = None,
    ) -> None:
        self.version = version
        self.manifest = version.manifest
        self.config = config
        self.store = open_store(version)
        self.lock = ProcessLock()  # while something is loaded
        self.ranker = version.manifest.ranker
        self.chance = version.manifest.probability
        self.detects_names = old is not None and "name_index" in vars(old)
        if old is not None and old.config == config:
            for name, files in (("encoder", "encoder/"), ("base_index", "index.")):
                if name in vars(old) and old.settings(files) == self.settings(files):
                    vars(self)[name] = vars(old)[name]

    def settings(self, start: str) -> tuple[object, dict[str, str]]:
        """Return settings of the index, and the sha256 of files by their start."""
        files = self.manifest.files.items()
        digests = {n: file.sha256 for n, file in files if n.startswith(start)}
        return self.manifest.index if start == "index." else None, digests

    @loaded_once
    def encoder(self) -> "Encoder":
        """The encoder; an error if the engine cannot run it, or its width is wrong."""
        from ..encoder.encoder import Encoder, EncoderConfig
        from ..encoder.huggingface import EncoderSettings
        from ..encoder.onnx_engine import not_exported

        config = self.config or EncoderConfig()
        record = self.manifest.encoder
        folder = self.version.encoder
        if (config.engine, config.device, record.engine) == ("auto", "auto", "onnx"):
            # A mention has the same scores on every machine.
            config = replace(config, device="cpu")
        if config.engine == "onnx" and "onnx" not in self.manifest.engines:
            raise not_exported(path=folder)
        settings = EncoderSettings(record.pooling, record.max_length, record.lowercase)
        encoder = Encoder.open(folder, config, settings=settings)
        if encoder.width != record.width:
            raise SapbertError(
                "E307",
                "Expected the index and the encoder of one knowledge base, but the "
                f"encoder gives vectors of width {encoder.width} and the index holds "
                f"width {record.width}. Build the knowledge base again with this "
                "encoder.",
            )
        return encoder

    @loaded_once
    def base_index(self) -> Index:
        record = self.manifest.index
        rows = self.manifest.counts.rows
        return self.load_layer("", record.backend, record.settings, rows)

    @loaded_once
    def index(self) -> Index:
        """The index of all rows: that was built, and that of the overlay."""
        overlay, hidden = self.manifest.overlay, self.hidden_rows
        if overlay is None or not (overlay.rows or hidden.any()):
            return self.base_index
        added = None
        if overlay.rows:
            added = self.load_layer(f"{OVERLAY}/", "exact", {}, overlay.rows)
        return LayeredIndex(self.base_index, added, hidden)

    @cached_property
    def hidden_rows(self) -> np.ndarray:
        """Which rows that were built have no name any more. Bool, (rows,)"""
        hidden = np.zeros(self.manifest.counts.rows, dtype=bool)
        hidden[self.store.hidden_rows()] = True
        return hidden

    def load_layer(
        self, folder: str, backend: str, settings: dict[str, int], rows: int
    ) -> Index:
        """Load the files of one index; `folder` ends with a slash."""
        return load_index(
            {n: self.version.path(folder + n) for n in index_files(backend, settings)},
            backend=backend,
            settings=settings,
            rows=rows,
            width=self.manifest.encoder.width,
        )

    @loaded_once
    def ngrams(self) -> NgramIndex:
        return self.open_ngrams(english=False)

    @loaded_once
    def english_ngrams(self) -> NgramIndex:
        return self.open_ngrams(english=True)

    def open_ngrams(self, *, english: bool) -> NgramIndex:
        folders = [NGRAMS]
        if has_rows(self.manifest):
            folders.append(f"{OVERLAY}/{NGRAMS}")
        layers = []
        for folder in folders:
            paths = {n: self.version.path(f"{folder}/{n}.npy") for n in NGRAM_FILES}
            layers.append(load_ngrams(paths, english=english))
        return NgramIndex(*layers, hidden=self.hidden_rows)

    @loaded_once
    def name_index(self) -> NameIndex:
        """The keys of the names, for `sapbert_mentions`."""
        # Of a connection of its own: the others do not wait until all are read.
        return NameIndex.from_keys(open_store(self.version).keys())

    @loaded_once
    def words(self) -> WordTable:
        paths = {n: self.version.path(f"{WORDS}/{n}.npy") for n in WORD_FILES}
        return WordTable(paths, self.store)

    @loaded_once
    def english_words(self) -> np.ndarray:
        """Vectors of some English words, float32. Shape: (n, width)."""
        vectors: np.ndarray = np.load(
            self.version.path(f"{WORDS}/{ENGLISH}.npy"), allow_pickle=False
        )
        return vectors

    def load(self) -> None:
        """Load everything that the older version had loaded, or that linking uses."""
        self.index  # noqa: B018
        self.encoder  # noqa: B018
        self.words  # noqa: B018
        if self.manifest.ngrams:
            self.ngrams  # noqa: B018
        if self.detects_names:
            self.name_index  # noqa: B018


class EmbeddedTexts(NamedTuple):
    """Texts with their vectors."""

    vectors: np.ndarray  # unit, float32; zero if the encoder cannot read it (n, width)
    truncated: np.ndarray  # longer than the maximum of the encoder, bool (n,)
    readable: np.ndarray  # of which the encoder has a token, bool (n,)

    @property
    def usable(self) -> np.ndarray:
        """Texts with a vector that can be searched for, bool. Shape: (n,)."""
        usable: np.ndarray = np.isfinite(self.vectors).all(axis=1)
        return usable & self.vectors.any(axis=1) & self.readable

    def take(self, numbers: Sequence[int]) -> "EmbeddedTexts":
        return EmbeddedTexts(*(values[numbers] for values in self))


def embed_texts(parts: Parts, texts: Sequence[str]) -> EmbeddedTexts:
    """Embed texts; one with the token ids of a row has the vector of the row."""
    count = len(texts)
    vectors = np.zeros((count, parts.encoder.width), dtype=np.float32)
    embedded = EmbeddedTexts(vectors, np.zeros(count, bool), np.zeros(count, bool))
    for numbers, some in embed_in_parts(parts, texts):
        for values, part in zip(embedded, some, strict=True):
            values[numbers] = part
    return embedded


def embed_in_parts(
    parts: Parts, texts: Sequence[str], *, needed: Container[str] | None = None
) -> Generator[tuple[list[int], EmbeddedTexts], None, None]:
    """Embed texts, `MENTIONS_AT_ONCE` at a time in any order; yield which, and them.

    Other threads run the encoder while a part is used, first of what needs no encoder.
    It is not run for others than the `needed` ones, which have zeros; None = all are.
    """
    token_ids, truncated = parts.encoder.tokenize(texts)
    numbers_of: dict[bytes | None, list[int]] = {}
    for number, (ids, text) in enumerate(zip(token_ids, texts, strict=True)):
        key = row_key(ids) if needed is None or text in needed else None
        numbers_of.setdefault(key, []).append(number)
    rows = parts.store.rows_of_keys(filter(None, numbers_of))
    new = [key for key in numbers_of if key and key not in rows]

    def find_known() -> Iterator[Found]:
        yield [None], np.zeros((1, parts.encoder.width), dtype=np.float32)
        if rows:
            every = np.array([*rows.values()], dtype=np.int64)
            yield [*rows], parts.index.vectors(every)

    def take(numbers: list[int], vectors: list[np.ndarray]) -> EmbeddedTexts:
        return EmbeddedTexts(
            np.stack(vectors),
            np.array([truncated[number] for number in numbers], dtype=bool),
            np.array([bool(token_ids[number]) for number in numbers], dtype=bool),
        )

    def gather(found: Iterable[Found]) -> Iterator[tuple[list[int], EmbeddedTexts]]:
        numbers: list[int] = []
        vectors: list[np.ndarray] = []
        for keys, of_keys in found:
            for key, vector in zip(keys, of_keys, strict=True):
                some = numbers_of.get(key, [])
                numbers += some
                vectors += [vector] * len(some)
            while len(numbers) >= MENTIONS_AT_ONCE:
                part = numbers[:MENTIONS_AT_ONCE]
                yield part, take(part, vectors[:MENTIONS_AT_ONCE])
                del numbers[:MENTIONS_AT_ONCE], vectors[:MENTIONS_AT_ONCE]
        if numbers:
            yield numbers, take(numbers, vectors)

    some = [token_ids[numbers_of[key][0]] for key in new]
    with parts.encoder.encode_passes(some) as passes:
        yield from gather(find_known())
        yield from gather(([new[n] for n in ns], vectors) for ns, vectors in passes)
