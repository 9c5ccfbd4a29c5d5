"""The parts of an opened version: each is loaded when it is first used."""

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from ..errors import Errors, SapbertError
from ..linking.ranker import Ranker
from ..system.forks import ProcessLock
from .database import Database
from .folder.records import NGRAM_FILES, NGRAMS, OVERLAY, RANKER_FILE, STORE_FILE
from .folder.versions import Version
from .indexes.backend import Index
from .indexes.layered import LayeredIndex
from .indexes.registry import index_files, load_index
from .ngrams.index import NgramIndex, NgramLayers, load_ngrams
from .store import Store

if TYPE_CHECKING:
    from ..encoder.encoder import Encoder, EncoderConfig

OVERLAY_SETTINGS = {"compact": 0}


def open_store(version: Version, *, base: bool = False) -> Store:
    """Open the concepts of a version.

    Args:
        version: The version.
        base: As they were built, without the overlay.
    """
    manifest = version.manifest
    overlay = None if base else manifest.overlay
    names = [STORE_FILE, *([f"{OVERLAY}/{STORE_FILE}"] if overlay else [])]
    database = Database(*map(version.path, names), check=version.check)
    return Store(database, manifest.counts, overlay)


class Parts:
    """Encoder, index, 3-grams and learned order of a version.

    Args:
        version: Its files were verified.
        config: How to run the encoder; None = as `EncoderConfig` does by default.
        old: Parts of another version of the folder. What has equal files is shared.
    """

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
        self.lock = ProcessLock()  # while something is loaded
        self.loaded_encoder: Encoder | None = None
        self.loaded_base: Index | None = None
        self.loaded_index: Index | None = None
        self.loaded_ngrams: NgramIndex | NgramLayers | None = None
        self.ranker = self.load_ranker()
        if old is not None and old.config == config:
            if old.digests("encoder/") == self.digests("encoder/"):
                self.loaded_encoder = old.loaded_encoder
            if (old.manifest.index, old.digests("index.")) == (
                self.manifest.index,
                self.digests("index."),
            ):
                self.loaded_base = old.loaded_base

    def digests(self, start: str) -> dict[str, str]:
        """Return the sha256 of the files whose names start so."""
        files = self.manifest.files.items()
        return {name: file.sha256 for name, file in files if name.startswith(start)}

    @property
    def encoder(self) -> "Encoder":
        """The encoder.

        Raises:
            SapbertError: If the engine cannot run it, or its vectors are not as wide as
                those of the index.
        """
        with self.lock:
            if self.loaded_encoder is None:
                encoder = self.load_encoder()
                self.version.check()
                self.loaded_encoder = encoder
            return self.loaded_encoder

    def load_encoder(self) -> "Encoder":
        """Load the encoder of this version."""
        from ..encoder.encoder import Encoder, EncoderConfig
        from ..encoder.huggingface import EncoderSettings

        config = self.config or EncoderConfig()
        record = self.manifest.encoder
        if config.engine not in self.manifest.engines:
            raise SapbertError(Errors.E222.format(path=self.version.encoder))
        settings = EncoderSettings(record.pooling, record.max_length, record.lowercase)
        encoder = Encoder.open(
            self.version.encoder, config, settings=settings, trusted=False
        )
        if encoder.width != record.width:
            raise SapbertError(
                Errors.E307.format(got=encoder.width, width=record.width)
            )
        return encoder

    @property
    def index(self) -> Index:
        """The index of all rows."""
        with self.lock:
            if self.loaded_index is None:
                index = self.load_index()
                self.version.check()
                self.loaded_index = index
            return self.loaded_index

    def load_index(self) -> Index:
        """Load the index that was built, and that of the overlay."""
        record, rows = self.manifest.index, self.manifest.counts.rows
        if self.loaded_base is None:
            base = self.load_layer("", record.backend, record.settings, rows)
            self.version.check()
            self.loaded_base = base
        overlay = self.manifest.overlay
        if overlay is None or not overlay.rows:
            return self.loaded_base
        added = self.load_layer(f"{OVERLAY}/", "exact", OVERLAY_SETTINGS, overlay.rows)
        return LayeredIndex([(0, self.loaded_base), (rows, added)])

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

    @property
    def ngrams(self) -> NgramIndex | NgramLayers:
        """The character 3-grams of all names.

        Raises:
            SapbertError: If the knowledge base was built without them.
        """
        with self.lock:
            if self.loaded_ngrams is None:
                ngrams = self.load_ngrams()
                self.version.check()
                self.loaded_ngrams = ngrams
            return self.loaded_ngrams

    def load_ngrams(self) -> NgramIndex | NgramLayers:
        """Map the 3-grams of the base and of the overlay."""
        if not self.manifest.ngrams:
            raise SapbertError(Errors.E340)

        def load(folder: str, rows: int) -> NgramIndex:
            paths: dict[str, Path] = {
                name: self.version.path(f"{folder}/{name}.npy") for name in NGRAM_FILES
            }
            return load_ngrams(paths, rows=rows)

        base = load(NGRAMS, self.manifest.counts.rows)
        overlay = self.manifest.overlay
        if overlay is None or not overlay.rows:
            return base
        return NgramLayers(base, load(f"{OVERLAY}/{NGRAMS}", overlay.rows))

    def load_ranker(self) -> Ranker | None:
        """Load the learned order of candidates, if there is one.

        Raises:
            SapbertError: If the file is of another version of the package.
        """
        if not self.manifest.has_ranker:
            return None
        path = self.version.path(f"{OVERLAY}/{RANKER_FILE}")
        try:
            return Ranker.model_validate_json(path.read_bytes())
        except ValidationError as error:
            reason = error.errors(include_input=False)[0]["msg"]
            raise SapbertError(Errors.E360.format(path=path, reason=reason)) from None

    def load(self) -> None:
        """Load everything."""
        self.index  # noqa: B018
        self.encoder  # noqa: B018
        if self.manifest.ngrams:
            self.ngrams  # noqa: B018
