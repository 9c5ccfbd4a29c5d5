"""The files of a knowledge base: verified, and read as they were then.

Each file is opened once, when the knowledge base is opened. On Linux it stays open and
is opened again through its descriptor, so a folder that is replaced or removed later
changes nothing. On other systems, and for what is opened by its path, the file at the
path must still be the one that was verified.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple
from weakref import finalize

from ...errors import Errors, SapbertError
from .records import ENCODER, EXPORTED, FILE, FileRecord
from .verified import keep_verified, was_verified

DESCRIPTORS = Path("/proc/self/fd")
# A link must not lead elsewhere, and a pipe must not block.
SAFELY = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
# Left by an export that was killed; nothing opens it.
UNFINISHED = (f"{EXPORTED}/", f"{ENCODER}/.openvino.")


class Identity(NamedTuple):
    """What a file must have in common with the one that was verified."""

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def read(cls, status: os.stat_result) -> "Identity":
        """Return the identity in the result of `os.stat`."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def damaged_file(path: Path, reason: str) -> SapbertError:
    """Return the error for a file that is not as it was."""
    return SapbertError(Errors.E306.format(path=path, reason=reason))


class OpenFile:
    """A verified file; its descriptor, where it is kept, is closed with this object.

    path (Path): The file.
    record (FileRecord): Its size and digest.
    whole (bool): Compute the digest also of large vectors that were verified before.
    RAISES (SapbertError): If it is missing, no plain file, unreadable or different.
    """

    def __init__(self, path: Path, record: FileRecord, *, whole: bool = False) -> None:
        self.path = path
        self.record = record
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError:
            raise damaged_file(path, "it is missing") from None
        if stat.S_ISLNK(status.st_mode):
            raise damaged_file(path, "it is a symbolic link")
        if not stat.S_ISREG(status.st_mode):
            raise damaged_file(path, "it is not a plain file")
        self.at_path = Identity.read(status)
        try:
            self.handle = os.open(path, os.O_RDONLY | SAFELY)
        except OSError as error:
            raise damaged_file(path, f"it cannot be read ({error.strerror})") from None
        self.close = finalize(self, os.close, self.handle)
        status = os.fstat(self.handle)
        self.opened = Identity.read(status)
        self.check_path()  # not replaced in between
        if status.st_size != record.size:
            raise damaged_file(
                path, f"it has {status.st_size} bytes and not {record.size}"
            )
        sha256 = record.sha256
        if whole or not was_verified(path.name, self.opened, sha256):
            with open(self.handle, "rb", closefd=False) as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                    raise damaged_file(path, "its sha256 is another")
            keep_verified(path.name, self.opened, sha256)
        if not DESCRIPTORS.is_dir():
            self.close()

    def changed(self) -> SapbertError:
        """Return the error for a file that has changed since it was verified."""
        return SapbertError(Errors.E348.format(path=self.path))

    def check_path(self) -> None:
        """Raise an error if the path names another file now."""
        try:
            status = os.stat(self.path, follow_symlinks=False)
        except OSError:
            raise self.changed() from None
        if Identity.read(status) != self.at_path:
            raise self.changed()

    def present_path(self) -> Path:
        """Return a path that opens this file, also after it was replaced.

        RAISES (SapbertError): If its content has changed.
        """
        if not self.close.alive:
            self.check_path()
            return self.path
        if Identity.read(os.fstat(self.handle)) != self.opened:
            raise self.changed()
        return DESCRIPTORS / str(self.handle)


class KbFiles:
    """The verified files of a knowledge base, by name.

    folder (Path): The folder.
    files (dict[str, OpenFile]): From `open_files`.
    """

    def __init__(self, folder: Path, files: dict[str, OpenFile]) -> None:
        self.folder = folder
        self.files = files

    def path(self, name: str) -> Path:
        """Return a path that opens a file as it was verified.

        RAISES (SapbertError): If it has changed.
        """
        return self.files[name].present_path()

    @contextmanager
    def open_path(self, name: str) -> Iterator[Path]:
        """Yield a path that opens a file as it was verified; see `path`.

        Errors that are raised within have the name of the file instead.
        """
        path = self.path(name)
        try:
            yield path
        except SapbertError as error:
            text = str(error).replace(str(path), str(self.folder / name))
            raise SapbertError(text) from None

    def check(self, names: Iterable[str]) -> None:
        """Check that the paths of some files still name them.

        RAISES (SapbertError): If not.
        """
        for name in names:
            self.files[name].check_path()

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading bytes."""
        return open(self.path(name), "rb")

    def names_in(self, folder: str) -> list[str]:
        """Return the names of the files in a folder and below."""
        return [name for name in self.files if name.startswith(f"{folder}/")]


def open_files(
    folder: Path,
    records: Mapping[str, FileRecord],
    known: KbFiles | None = None,
    *,
    whole: bool = False,
) -> KbFiles:
    """Open and verify the files of a knowledge base, before any library opens them.

    folder (Path): The folder.
    records (Mapping[str, FileRecord]): The files in its meta.json.
    known (KbFiles | None): Files of a version before; those that are the same are not
        read again.
    whole (bool): Read also large vectors that were verified before on this machine.
    RAISES (SapbertError): At the first file that is missing, different, a symbolic
        link, or in the folder of the encoder and not in meta.json.
    """
    # Other processes may create and remove temporary folders meanwhile.
    for place, folders, names in os.walk(folder):
        for path in (Path(place, name) for name in sorted([*folders, *names])):
            name = path.relative_to(folder).as_posix()
            if path.is_symlink():
                raise damaged_file(path, "it is a symbolic link")
            # A file that nobody verified would be opened with the encoder.
            unknown = name not in records and not name.startswith(UNFINISHED)
            if unknown and name.startswith(f"{ENCODER}/") and path.name in names:
                raise damaged_file(path, "it was not there then")

    def verify(name: str) -> OpenFile:
        old = known.files.get(name) if known is not None else None
        if old is not None and old.record == records[name] and is_present(old):
            return old
        return OpenFile(folder / name, records[name], whole=whole)

    # Checksums are computed without Python's lock.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return KbFiles(
            folder, dict(zip(records, pool.map(verify, records), strict=True))
        )


def is_present(file: OpenFile) -> bool:
    """Return whether the path of a file still names it."""
    try:
        file.check_path()
    except SapbertError:
        return False
    return True


def describe_files(folder: Path) -> dict[str, FileRecord]:
    """Measure every file of a folder but meta.json, by relative path."""
    found: dict[str, FileRecord] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path != folder / FILE:
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                size = os.fstat(file.fileno()).st_size
            name = path.relative_to(folder).as_posix()
            found[name] = FileRecord(size=size, sha256=digest)
    return found
