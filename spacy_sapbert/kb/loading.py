"""Loads encoder, index and 3-grams of a knowledge base whose files were verified."""

from pathlib import Path
from typing import TYPE_CHECKING

from ..encoder.huggingface import EncoderSettings
from ..errors import Errors, SapbertError
from .folder.manifest import OVERLAY_FORMAT, Manifest
from .indexes.layered import LayeredIndex
from .indexes.registry import Index, index_file, load_index
from .ngrams.index import FOLDER as NGRAMS_FOLDER
from .ngrams.index import NgramIndex, NgramLayers, load_ngrams
from .store import Store

if TYPE_CHECKING:
    from ..encoder.name_encoder import NameModel


def find_overlay(folder: Path, manifest: Manifest) -> Path | None:
    """Return the folder of the overlay, if there is one."""
    return None if manifest.overlay is None else folder / manifest.overlay.folder


def open_store(folder: Path, manifest: Manifest) -> Store:
    """Open the concepts, with the overlay if it has the present format.

    An overlay of an older format is only read to write it again.
    """
    overlay = manifest.overlay
    current = overlay is not None and overlay.format == OVERLAY_FORMAT
    return Store(folder, find_overlay(folder, manifest) if current else None)


def load_encoder(
    folder: Path, manifest: Manifest, model: "NameModel | None"
) -> "NameModel":
    """Load the encoder of a knowledge base.

    folder (Path): Folder of the knowledge base.
    manifest (Manifest): Its manifest.
    model (Model[list[str], Floats2d] | None): Runs the encoder; None = as
        `create_encoder` does by default.
    RAISES (SapbertError): If its vectors are not as wide as those of the index, or the
        engine cannot run it.
    """
    from ..encoder.name_encoder import create_encoder, open_encoder

    model = model or create_encoder()
    record = manifest.encoder
    settings = EncoderSettings(record.pooling, record.max_length, record.lowercase)
    engine, _, _ = model.attrs["run"]
    if engine not in manifest.engines:
        raise SapbertError(Errors.E222.format(path=folder / "encoder"))
    open_encoder(model, folder / "encoder", settings=settings, sealed=True)
    if model.get_dim("nO") != record.width:
        raise SapbertError(
            Errors.E307.format(got=model.get_dim("nO"), width=record.width)
        )
    return model


def load_base_index(folder: Path, manifest: Manifest) -> Index:
    """Load the index that was built, without the overlay."""
    backend = manifest.index.backend
    return load_index(
        folder / index_file(backend),
        backend=backend,
        settings=manifest.index.settings,
        rows=manifest.counts.rows,
        width=manifest.encoder.width,
    )


def add_overlay_index(base: Index, folder: Path, manifest: Manifest) -> Index:
    """Return the index of the base and, if there is one, of the overlay."""
    overlay = manifest.overlay
    if overlay is None or not overlay.rows:
        return base
    added = load_index(
        folder / overlay.folder / index_file("exact"),
        backend="exact",
        settings={},
        rows=overlay.rows,
        width=manifest.encoder.width,
    )
    return LayeredIndex([(0, base), (manifest.counts.rows, added)])


def load_all_ngrams(folder: Path, manifest: Manifest) -> NgramIndex | NgramLayers:
    """Map the 3-grams of the base and, if there is one, of the overlay.

    RAISES (SapbertError): If the knowledge base was built without them.
    """
    if not manifest.ngrams:
        raise SapbertError(Errors.E340)
    rows, overlay = manifest.counts.rows, manifest.overlay
    base = load_ngrams(folder / NGRAMS_FOLDER, rows=rows)
    if overlay is None or not overlay.rows:
        return base
    added = load_ngrams(folder / overlay.folder / NGRAMS_FOLDER, rows=overlay.rows)
    return NgramLayers([(0, base), (rows, added)])
