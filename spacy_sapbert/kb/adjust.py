"""Changes of a knowledge base that need no new build: settings, threshold, engine."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ..errors import SapbertError
from ..io.writing import link_file
from ..linking.options import check_threshold
from .folder.publication import (
    change_manifest,
    describe_files,
    draft_version,
    lock_kb,
    lock_version,
)
from .folder.records import ENCODER, EXPORTED, Calibration, IndexRecord, Manifest
from .folder.versions import Version, read_version, verify_files
from .indexes.backends import make_backend
from .knowledge_base import open_version
from .probe import measure_recall


def change_kb(
    folder: Path, *, index: dict[str, int] | None = None, threshold: float | None = None
) -> Manifest:
    """Publish a version with other settings of the index, or another threshold.

    Its recall is measured anew. The threshold is the least probability of a link, 0 =
    link everything, None = no change.
    """
    with lock_kb(folder):
        version = read_version(folder)
        manifest = version.manifest
        changes: dict[str, Any] = {}
        if threshold is not None:
            changes["threshold"] = check_threshold(threshold)
        if index:
            record = manifest.index
            settings = change_settings(record, index)
            changes["index"] = record.model_copy(update={"settings": settings})
            changed = manifest.model_copy(update=changes)
            opened = open_version(replace(version, manifest=changed))
            changes["recall"] = measure_recall(opened)
        return change_manifest(version, **changes).manifest


def change_settings(record: IndexRecord, changes: dict[str, int]) -> dict[str, int]:
    """Return the settings of an index, some changed that need no new build."""
    changed = make_backend(record.backend, {**record.settings, **changes})
    known = sorted(i.name for i in fields(changed) if i.metadata["changeable"])
    for name, value in changes.items():
        if name not in known and value != record.settings[name]:
            raise SapbertError(
                "E356",
                f"Expected a setting of the index {record.backend} that can change "
                f"without a new build ({known or 'none'}), but got {name}. Build the "
                f"knowledge base again with `--setting {name}=…`.",
            )
    return changed.settings


def write_calibration(version: Version, calibration: Calibration) -> Manifest:
    """Publish a threshold and its calibration; `version` must still be in use."""
    with lock_version(version):
        threshold = calibration.threshold
        changes = {"threshold": threshold, "calibration": calibration}
        return change_manifest(version, **changes).manifest


def export_kb(folder: Path) -> float:
    """Publish a version that ONNX Runtime can run; return what `export_encoder` does.

    If the export is the one that is there, no version is published.
    """
    from ..encoder.export import export_encoder
    from ..encoder.huggingface import EncoderSettings

    with lock_kb(folder):
        version = read_version(folder)
        verify_files(version)
        record = version.manifest.encoder
        settings = EncoderSettings(record.pooling, record.max_length, record.lowercase)
        with draft_version(version.folder) as draft:
            kept = version.keep(overlay=True)
            known = version.manifest.files
            # The encoder is opened as one folder, so the new version has all of it.
            for name in [name for name in kept if name.startswith(f"{ENCODER}/")]:
                del kept[name]
                if not name.startswith(f"{EXPORTED}/"):
                    (draft.path / name).parent.mkdir(parents=True, exist_ok=True)
                    link_file(version.path(name), draft.path / name)
            target = draft.path / EXPORTED
            cosine = export_encoder(draft.path / ENCODER, target, settings)
            made = describe_files(draft.path)
            if any(
                name not in known or known[name].sha256 != record.sha256
                for name, record in made.items()
            ):
                draft.describe(version.manifest, kept)
                draft.publish()
    return cosine
