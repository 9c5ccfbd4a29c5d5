"""The versions of a knowledge base: what each changed, and going back to one."""

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ..errors import Errors, SapbertError
from .folder.publication import lock_kb, use_version
from .folder.records import FILE, OVERLAY, STORE_FILE, Manifest
from .folder.verification import verify_files
from .folder.versions import Version, list_versions, read_current, read_version


class HistoryEntry(NamedTuple):
    """A version of a knowledge base.

    Attributes:
        name: For example "v3".
        used: Whether it is the one that is used.
        date: When it was written.
        size: Bytes of the files that no earlier version has.
        changes: What it changed, against the version before.
    """

    name: str
    used: bool
    date: datetime
    size: int
    changes: list[str]


def list_history(folder: Path) -> list[HistoryEntry]:
    """Describe the versions of a knowledge base, the oldest first."""
    current = read_current(folder)
    entries: list[HistoryEntry] = []
    before: Manifest | None = None
    for name in list_versions(folder):
        manifest = read_version(folder, name).manifest
        files = manifest.files.values()
        written = (folder / name / FILE).stat().st_mtime
        date = datetime.fromtimestamp(written).astimezone()
        size = sum(record.size for record in files if record.version is None)
        changes = describe_changes(before, manifest)
        entries.append(HistoryEntry(name, name == current, date, size, changes))
        before = manifest
    return entries


def describe_changes(old: Manifest | None, new: Manifest) -> list[str]:
    """Describe in words what a version changed; `old` is the version before, if any."""
    built = f"{new.counts.concepts:,} concepts, {new.counts.rows:,} distinct names"
    if old is None:
        return [f"built or copied: {built}", *describe_overlay(None, new)]
    changes: list[str] = []
    same_store = old.files[STORE_FILE].sha256 == new.files[STORE_FILE].sha256
    if not same_store or old.encoder.fingerprint != new.encoder.fingerprint:
        changes.append(f"built again: {built}")
    if old.index != new.index:
        settings = new.index.settings.items()
        differing = [f"{k} {v}" for k, v in settings if old.index.settings.get(k) != v]
        changes.append(f"index: {new.index.backend} {', '.join(differing)}".rstrip())
    if old.threshold != new.threshold:
        reason = "calibrated" if new.calibration else "threshold"
        changes.append(f"{reason}: {old.threshold} → {new.threshold}")
    chances = [m.order.ranker.threshold if m.order else None for m in (old, new)]
    if chances[0] != chances[1] and old.order and new.order:
        changes.append(f"calibrated: probability {chances[0]} → {chances[1]}")
    if old.engines != new.engines:
        changes.append(f"engines: {', '.join(new.engines)}")
    changes += describe_overlay(old, new)
    return changes or ["nothing"]


def describe_overlay(old: Manifest | None, new: Manifest) -> list[str]:
    """Describe how the edits differ."""
    before, after = old.overlay if old else None, new.overlay
    if after is None:
        return ["all edits discarded"] if before else []
    changes: list[str] = []
    for words, was, now in (
        ("concepts changed or added", before and before.concepts, after.concepts),
        (
            "concepts removed, or names of them",
            before and before.removed,
            after.removed,
        ),
    ):
        if (was or 0) != now:
            changes.append(f"{words}: {was or 0:,} → {now:,}")
    if after.taught is None and before and before.taught:
        changes.append("teaching discarded")
    elif after.taught and (before is None or before.taught != after.taught):
        taught = after.taught
        documents = sum(file.documents for file in taught.files)
        changes.append(
            f"taught: {documents:,} documents, {taught.mentions:,} mentions, right "
            f"first answers {taught.before:.3f} → {taught.best:.3f}"
        )
    if not changes and old and before:
        digests = [
            {n: file.sha256 for n, file in files.items() if n.startswith(f"{OVERLAY}/")}
            for files in (old.files, new.files)
        ]
        changes += ["names added"] * (digests[0] != digests[1])
    return changes


def go_back(folder: Path, name: str) -> Version:
    """Use a version that was published before, e.g. "v2"; all versions stay."""
    with lock_kb(folder):
        known = list_versions(folder)
        if name not in known:
            values = {"path": folder, "got": name, "known": ", ".join(known)}
            raise SapbertError(Errors.E348.format(**values))
        version = read_version(folder, name)
        verify_files(version)
        use_version(folder, name)
    return version
