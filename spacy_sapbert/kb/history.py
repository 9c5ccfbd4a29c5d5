"""The versions of a knowledge base: what each changed, and going back to one."""

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ..errors import Errors, SapbertError
from .folder.publication import lock_kb, use_version
from .folder.records import FILE, STORE_FILE, Manifest
from .folder.verification import verify_files
from .folder.versions import Version, list_versions, read_current, read_version


class HistoryEntry(NamedTuple):
    """A version of a knowledge base.

    Attributes:
        name: Its name, e.g. "v3".
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
    before: Version | None = None
    for name in list_versions(folder):
        version = read_version(folder, name)
        files = version.manifest.files.values()
        written = (version.folder / name / FILE).stat().st_mtime
        entries.append(
            HistoryEntry(
                name,
                name == current,
                datetime.fromtimestamp(written).astimezone(),
                sum(record.size for record in files if record.version is None),
                describe_changes(before.manifest if before else None, version.manifest),
            )
        )
        before = version
    return entries


def describe_changes(old: Manifest | None, new: Manifest) -> list[str]:
    """Describe in words what a version changed.

    Args:
        old: meta.json of the version before; None = there is none.
        new: meta.json of the version.
    """
    counts = new.counts
    built = f"{counts.concepts:,} concepts, {counts.rows:,} distinct names"
    if old is None:
        return [f"built or copied: {built}", *describe_overlay(None, new)]
    changes: list[str] = []
    digests = [each.files[STORE_FILE].sha256 for each in (old, new)]
    if digests[0] != digests[1] or old.encoder.fingerprint != new.encoder.fingerprint:
        changes.append(f"built again: {built}")
    if old.index != new.index:
        settings = new.index.settings.items()
        differing = [f"{k} {v}" for k, v in settings if old.index.settings.get(k) != v]
        changes.append(f"index: {new.index.backend} {', '.join(differing)}".rstrip())
    if old.threshold != new.threshold:
        reason = "calibrated" if new.calibration else "threshold"
        changes.append(f"{reason}: {old.threshold} → {new.threshold}")
    if old.engines != new.engines:
        changes.append(f"engines: {', '.join(new.engines)}")
    changes += describe_overlay(old, new)
    return changes or ["nothing"]


def describe_overlay(old: Manifest | None, new: Manifest) -> list[str]:
    """Describe how the edits differ."""
    before = old.overlay if old else None
    after = new.overlay
    if after is None:
        return ["all edits discarded"] if before else []
    changes: list[str] = []
    for name, words in (
        ("concepts", "concepts changed or added"),
        ("removed", "concepts removed, or names of them"),
    ):
        was, now = getattr(before, name, 0), getattr(after, name)
        if was != now:
            changes.append(f"{words}: {was:,} → {now:,}")
    taught, earlier = after.taught, before.taught if before else None
    if taught != earlier:
        files = taught.files if taught else []
        documents = sum(file.documents for file in files)
        changes.append(
            f"taught: {documents:,} documents, {taught.mentions:,} mentions"
            if taught
            else "teaching discarded"
        )
    if not changes and old is not None and before is not None:
        names = [name for name in new.files if name.startswith("overlay/")]
        same = all(
            name in old.files and old.files[name].sha256 == new.files[name].sha256
            for name in names
        )
        changes += [] if same else ["names added"]
    return changes


def go_back(folder: Path, name: str) -> Version:
    """Use a version that was published before; all versions stay.

    Args:
        folder: The knowledge base.
        name: The version, e.g. "v2".

    Raises:
        SapbertError: If there is no such version, it is damaged, or the knowledge base
            is read-only or locked.
    """
    with lock_kb(folder):
        known = list_versions(folder)
        if name not in known:
            values = {"path": folder, "got": name, "known": ", ".join(known)}
            raise SapbertError(Errors.E348.format(**values))
        version = read_version(folder, name)
        verify_files(version)
        use_version(folder, name)
    return version
