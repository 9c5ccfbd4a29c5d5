"""The versions of a knowledge base: what each has, and going back to one."""

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ..errors import SapbertError
from .folder.publication import lock_kb, use_version
from .folder.records import FILE, OverlayRecord
from .folder.verification import verify_files
from .folder.versions import Version, list_versions, read_current, read_version

NO_EDITS = OverlayRecord(concepts=0, rows=0, removed=0)


class HistoryEntry(NamedTuple):
    """A version of a knowledge base.

    Attributes:
        name: For example "v3".
        used: Whether it is the one that is used.
        date: When it was written.
        size: Bytes of the files that no earlier version has.
        concepts: As they were built; `names` too.
        changed: Concepts that were changed or added since they were built.
        removed: Concepts that were removed since, or names of them.
        taught: Annotated mentions that it learned from.
        right: Share of right first answers after teaching, by cross-validation.
        threshold: Below which a mention has no concept: a cosine, or a probability of
            the learned order; None = there is none.
    """

    name: str
    used: bool
    date: datetime
    size: int
    concepts: int
    names: int
    changed: int
    removed: int
    taught: int
    right: float | None
    threshold: float | None


def list_history(folder: Path) -> list[HistoryEntry]:
    """Describe the versions of a knowledge base, the oldest first."""
    current = read_current(folder)
    entries: list[HistoryEntry] = []
    for name in list_versions(folder):
        manifest = read_version(folder, name).manifest
        written = (folder / name / FILE).stat().st_mtime
        files = manifest.files.values()
        edits = manifest.overlay or NO_EDITS
        ranker = manifest.ranker
        threshold = manifest.threshold
        if threshold is None and ranker is not None:
            threshold = ranker.threshold
        entries.append(
            HistoryEntry(
                name,
                used=name == current,
                date=datetime.fromtimestamp(written).astimezone(),
                size=sum(record.size for record in files if record.version is None),
                concepts=manifest.counts.concepts,
                names=manifest.counts.aliases,
                changed=edits.concepts,
                removed=edits.removed,
                taught=edits.taught.mentions if edits.taught else 0,
                right=edits.taught.best if edits.taught else None,
                threshold=threshold,
            )
        )
    return entries


def go_back(folder: Path, name: str) -> Version:
    """Use a version that was published before, e.g. "v2"; all versions stay."""
    with lock_kb(folder):
        known = list_versions(folder)
        if name not in known:
            values = {"path": folder, "got": name, "known": ", ".join(known)}
            raise SapbertError(
                "E348",
                (
                    "Expected a version of {path}, but it has no {got!r}. It has: "
                    "{known}. See `spacy sapbert kb versions {path}`."
                ).format(**values),
            )
        version = read_version(folder, name)
        verify_files(version)
        use_version(folder, name)
    return version
