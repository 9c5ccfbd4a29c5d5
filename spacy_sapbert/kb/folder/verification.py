"""Checks that the files of a version are as they were, before any library opens them.

Large vectors are gigabytes that no native code parses, and each row is checked when it
is read. So their checksum is computed once on a machine, and again only if the file
changes. An empty file in the cache of the user stands for each file that was verified.
"""

import hashlib
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from .records import ENCODER, FileRecord
from .versions import Version, damaged_file

LARGE = 1 << 26  # bytes; smaller files are verified each time
SUFFIX = ".i16"  # of files with rows of vectors


def verify_files(
    version: Version, *, known: Version | None = None, whole: bool = False
) -> None:
    """Check size and sha256 of every file; the first that is different is an error.

    Args:
        known: A version whose files were verified; equal paths are not read again.
        whole: Read also large vectors that were verified before on this machine.
    """
    records = version.manifest.files
    for path in sorted(version.encoder.rglob("*")):
        # A file that nobody verified would be opened with the encoder.
        name = f"{ENCODER}/{path.relative_to(version.encoder).as_posix()}"
        if name not in records and not path.is_dir():
            raise damaged_file(path, "it was not there then")
    verified = (
        set() if known is None else {file_key(known, n) for n in known.manifest.files}
    )
    names = [name for name in records if file_key(version, name) not in verified]
    # Checksums are computed without Python's lock.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(
            lambda name: verify_file(version.path(name), records[name], whole=whole),
            names,
        ):
            pass


def file_key(version: Version, name: str) -> tuple[Path, int, str]:
    """Return path, size and sha256 of a file of a version."""
    record = version.manifest.files[name]
    return version.path(name), record.size, record.sha256


def verify_file(path: Path, record: FileRecord, *, whole: bool) -> None:
    """Check size and sha256 of a file; see `verify_files`. Links are followed."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # a pipe would block
            raise damaged_file(path, "it is not a plain file")
        if status.st_size != record.size:
            reason = f"it has {status.st_size} bytes and not {record.size}"
            raise damaged_file(path, reason)
        entry = cache_entry(path, status, record.sha256)
        if entry is not None and not whole and os.path.isfile(entry):
            return
        with open(path, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != record.sha256:
                raise damaged_file(path, "it has a different sha256")
    except FileNotFoundError:
        raise damaged_file(path, "it is missing") from None
    except OSError as error:
        raise damaged_file(path, f"it cannot be read ({error.strerror})") from None
    if entry is not None:
        with suppress(OSError):  # a user without a cache
            entry.parent.mkdir(parents=True, exist_ok=True)
            entry.touch()


def cache_entry(path: Path, status: os.stat_result, sha256: str) -> Path | None:
    """Return the file that stands for verified large vectors; None for other files."""
    if path.suffix != SUFFIX or status.st_size < LARGE:
        return None
    values = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, sha256)
    name = hashlib.sha256(" ".join(map(str, values)).encode("ascii")).hexdigest()
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # the user has no home
        return None
    return base / "spacy_sapbert" / "verified" / name
