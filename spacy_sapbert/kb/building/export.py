"""Adds the encoder as OpenVINO runs it to a knowledge base."""

from pathlib import Path

from ...encoder.export import export_encoder
from ...encoder.huggingface import check_settings
from ...system.writing import write_folder_atomically
from ..folder.files import describe_files, open_files
from ..folder.manifest import (
    check_writable,
    lock_kb,
    read_manifest,
    write_manifest,
)
from ..folder.records import EXPORTED


def export_kb(folder: Path) -> float:
    """Add the encoder as OpenVINO runs it; the index does not change.

    folder (Path): Folder of the knowledge base, changed in place; it is complete at
        each moment.
    RETURNS (float): See `export_encoder`.
    RAISES (SapbertError): If the knowledge base is damaged, read-only or locked, or as
        `export_encoder` does.
    """
    check_writable(folder)
    with lock_kb(folder):
        manifest = read_manifest(folder)
        open_files(folder, manifest.files)
        encoder = manifest.encoder
        settings = check_settings(
            encoder.model_dump(include={"pooling", "max_length", "lowercase"})
        )
        place, prefix = folder / EXPORTED, f"{EXPORTED}/"
        files = manifest.files
        kept = {name: r for name, r in files.items() if not name.startswith(prefix)}
        if len(kept) < len(files):
            # Files that meta.json does not list may be replaced.
            manifest.files = kept
            write_manifest(folder, manifest)
        with write_folder_atomically(place, None) as part:
            cosine = export_encoder(folder / "encoder", part, settings)
        added = {prefix + name: r for name, r in describe_files(place).items()}
        manifest.files = {**kept, **added}
        write_manifest(folder, manifest)
    return cosine
