"""Adds the encoder as OpenVINO runs it to a knowledge base."""

from pathlib import Path

from ...encoder.export import export_encoder
from ...encoder.huggingface import EncoderSettings
from ..folder.publication import draft_version, link_files, lock_kb
from ..folder.records import ENCODER, EXPORTED
from ..folder.verification import verify_files
from ..folder.versions import read_version


def export_kb(folder: Path) -> float:
    """Publish a version whose encoder OpenVINO can run too; the index does not change.

    Returns the smallest cosine of `export_encoder`.
    """
    with lock_kb(folder):
        version = read_version(folder)
        verify_files(version)
        record = version.manifest.encoder
        settings = EncoderSettings(record.pooling, record.max_length, record.lowercase)
        with draft_version(version.folder) as draft:
            kept = version.keep(overlay=True)
            names = [name for name in kept if name.startswith(f"{ENCODER}/")]
            exported = {name for name in names if name.startswith(f"{EXPORTED}/")}
            link_files(version, sorted({*names} - exported), draft.path)
            target = draft.path / EXPORTED
            cosine = export_encoder(draft.path / ENCODER, target, settings)
            rest = {name: record for name, record in kept.items() if name not in names}
            draft.describe(version.manifest, rest)
            draft.publish()
    return cosine
