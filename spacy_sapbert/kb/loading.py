"""Opens store, encoder, index and 3-grams of a knowledge base from verified files."""

from contextlib import ExitStack
from functools import partial

from pydantic import ValidationError

from ..encoder.encoder import Encoder, EncoderConfig
from ..encoder.huggingface import EncoderSettings
from ..errors import Errors, SapbertError
from ..linking.ranker import Ranker
from .database import Database
from .folder.files import KbFiles
from .folder.records import (
    ENCODER,
    NGRAM_FILES,
    NGRAMS,
    OVERLAY_FORMAT,
    RANKER_FILE,
    STORE_FILE,
    Manifest,
)
from .indexes.layered import LayeredIndex
from .indexes.registry import Index, index_files, load_index
from .ngrams.index import NgramIndex, NgramLayers, load_ngrams
from .store import Store

OVERLAY_SETTINGS = {"compact": 0}


def open_store(files: KbFiles, manifest: Manifest, *, base: bool = False) -> Store:
    """Open the concepts, with the overlay if it has the present format.

    An overlay of an older format is only read to write it again.

    base (bool): Without the overlay.
    """
    overlay = None if base else manifest.overlay
    if overlay is not None and overlay.format != OVERLAY_FORMAT:
        overlay = None
    names = [STORE_FILE, *([f"{overlay.folder}/{STORE_FILE}"] if overlay else [])]
    paths = [files.folder / name for name in names]
    database = Database(*paths, check_files=partial(files.check, names))
    return Store(database, manifest.counts, overlay)


def load_encoder(
    files: KbFiles, manifest: Manifest, config: EncoderConfig | None
) -> Encoder:
    """Load the encoder of a knowledge base.

    files (KbFiles): The files of the knowledge base.
    manifest (Manifest): Its manifest.
    config (EncoderConfig | None): How to run it; None = by default.
    RAISES (SapbertError): If its vectors are not as wide as those of the index, the
        engine cannot run it, or its files were replaced.
    """
    config = config or EncoderConfig()
    record = manifest.encoder
    settings = EncoderSettings(record.pooling, record.max_length, record.lowercase)
    folder, names = files.folder / ENCODER, files.names_in(ENCODER)
    if config.engine not in manifest.engines:
        raise SapbertError(Errors.E222.format(path=folder))
    # Its libraries open the files by their paths. Whatever they raise for files that
    # were replaced, that is the cause.
    files.check(names)
    try:
        encoder = Encoder.open(folder, config, settings=settings, trusted=False)
    finally:
        files.check(names)
    if encoder.width != record.width:
        raise SapbertError(Errors.E307.format(got=encoder.width, width=record.width))
    return encoder


def load_ranker(files: KbFiles, manifest: Manifest) -> Ranker | None:
    """Load the learned order of candidates; None if there is none.

    RAISES (SapbertError): If the file is of another version of the package.
    """
    if manifest.overlay is None or not manifest.has_ranker:
        return None
    name = f"{manifest.overlay.folder}/{RANKER_FILE}"
    try:
        with files.open(name) as file:
            return Ranker.model_validate_json(file.read())
    except ValidationError as error:
        reason = error.errors(include_input=False)[0]["msg"]
        path = files.folder / name
        raise SapbertError(Errors.E360.format(path=path, reason=reason)) from None


def load_base_index(files: KbFiles, manifest: Manifest) -> Index:
    """Load the index that was built, without the overlay."""
    index = manifest.index
    return load_index_files(
        files, manifest, index.backend, index.settings, manifest.counts.rows
    )


def load_index_files(
    files: KbFiles,
    manifest: Manifest,
    backend: str,
    settings: dict[str, int],
    rows: int,
    folder: str = "",
) -> Index:
    """Load an index from the verified files of a knowledge base.

    folder (str): Of the overlay, with a slash; "" = none.
    """
    with ExitStack() as stack:
        paths = {
            name: stack.enter_context(files.open_path(folder + name))
            for name in index_files(backend, settings)
        }
        width = manifest.encoder.width
        return load_index(
            paths, backend=backend, settings=settings, rows=rows, width=width
        )


def add_overlay_index(base: Index, files: KbFiles, manifest: Manifest) -> Index:
    """Return the index of the base and, if there is one, of the overlay."""
    overlay = manifest.overlay
    if overlay is None or not overlay.rows:
        return base
    added = load_index_files(
        files, manifest, "exact", OVERLAY_SETTINGS, overlay.rows, f"{overlay.folder}/"
    )
    return LayeredIndex([(0, base), (manifest.counts.rows, added)])


def load_all_ngrams(files: KbFiles, manifest: Manifest) -> NgramIndex | NgramLayers:
    """Map the 3-grams of the base and, if there is one, of the overlay.

    RAISES (SapbertError): If the knowledge base was built without them.
    """
    if not manifest.ngrams:
        raise SapbertError(Errors.E340)

    def load(folder: str, rows: int) -> NgramIndex:
        with ExitStack() as stack:
            names = {name: f"{folder}/{name}.npy" for name in NGRAM_FILES}
            opened = {k: files.open_path(name) for k, name in names.items()}
            paths = {k: stack.enter_context(path) for k, path in opened.items()}
            return load_ngrams(paths, rows=rows)

    rows, overlay = manifest.counts.rows, manifest.overlay
    base = load(NGRAMS, rows)
    if overlay is None or not overlay.rows:
        return base
    added = load(f"{overlay.folder}/{NGRAMS}", overlay.rows)
    return NgramLayers(base, added)
