"""The versions of a knowledge base: folders that never change once they are published.

    kb/
      CURRENT     the name of the version that is used: "v3"
      v1/         meta.json, concepts.db, index.*, encoder/, ngrams/
      v3/         meta.json, which names the files of v1 that it uses, and overlay/

A new version is filled in a temporary folder, flushed to the disk and renamed; then
CURRENT is replaced. A process goes on with the version that it has opened.
"""

import errno
import hashlib
import json
import os
import shutil
import stat
import warnings
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...errors import Errors, SapbertError, Warnings
from ...system.writing import (
    link_file,
    make_part,
    name_refusal,
    remove_leftovers,
    remove_path,
    share_path,
    sync_path,
    write_atomically,
    write_folder_atomically,
)
from .records import (
    CURRENT,
    ENCODER,
    FILE,
    FORMAT,
    KB_FOLDER,
    LOCK,
    OVERLAY,
    VERSION,
    FileRecord,
    Manifest,
)
from .verified import keep_verified, was_verified

MAX_BYTES = 1 << 24  # of meta.json; a real one has a few thousand
CURRENT_BYTES = 64  # of CURRENT, at most
LOCK_WAIT = 60.0  # seconds that a finished build waits for an edit
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EFBIG)


@dataclass(frozen=True)
class Version:
    """A version of a knowledge base on the disk.

    Attributes:
        folder: The knowledge base, an absolute path.
        name: The folder of the version in it.
        manifest: Its meta.json.
        place: The same folder without symbolic links, which may lead elsewhere later.
    """

    folder: Path
    name: str
    manifest: Manifest
    place: Path

    def path(self, file: str) -> Path:
        """Return the path of a file of meta.json."""
        return self.place / (self.manifest.files[file].version or self.name) / file

    @property
    def encoder(self) -> Path:
        """The folder of the encoder."""
        return self.path(f"{ENCODER}/config.json").parent

    def check(self) -> None:
        """Raise an error if the whole folder was replaced since it was read.

        A published version never changes, but somebody may remove its folder, and give
        the name to another one.
        """
        if read_version(self.place, self.name).manifest.digest != self.manifest.digest:
            raise damaged_file(self.place / self.name, "it was replaced since")

    def keep(self, *, overlay: bool) -> dict[str, FileRecord]:
        """Return the files as a later version of the folder names them.

        Args:
            overlay: With those of the overlay.
        """
        return {
            name: record.model_copy(update={"version": record.version or self.name})
            for name, record in self.manifest.files.items()
            if overlay or not name.startswith(f"{OVERLAY}/")
        }


def compute_digest(data: Mapping[str, Any]) -> str:
    """Return the sha256 of the content of meta.json.

    Its digest, and where its files are, do not count.
    """
    rest = {key: value for key, value in data.items() if key != "digest"}
    rest["files"] = {
        name: {"size": record["size"], "sha256": record["sha256"]}
        for name, record in data["files"].items()
    }
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf8", "replace")).hexdigest()


def format_manifest(manifest: Manifest) -> tuple[bytes, str]:
    """Return the content of meta.json, and its digest."""
    data = manifest.model_dump()
    optional = ("vocabularies", "recall", "estimate", "calibration", "overlay")
    written = {k: v for k, v in data.items() if v is not None or k not in optional}
    for record in written["files"].values():
        if record["version"] is None:
            del record["version"]
    written["digest"] = compute_digest(written)
    text = json.dumps(written, indent=2, ensure_ascii=False)
    return text.encode("utf8", "replace") + b"\n", written["digest"]


def read_current(folder: Path) -> str:
    """Return the name of the version of a knowledge base that is used.

    Raises:
        SapbertError: If the folder is not a knowledge base, or has an older format.
    """
    try:
        with open(folder / CURRENT, "rb") as file:
            content = file.read(CURRENT_BYTES)
    except OSError:
        if (folder / FILE).is_file() and (folder / "concepts.db").is_file():
            raise SapbertError(
                Errors.E305.format(expected=FORMAT, path=folder, got="an older one")
            ) from None
        raise SapbertError(Errors.E303.format(path=folder)) from None
    return parse_current(content, folder / CURRENT)


def parse_current(content: bytes, path: Path | str) -> str:
    """Return the name of the version in the content of CURRENT.

    Raises:
        SapbertError: If it is not a name; `path` is that of the file, for the error.
    """
    name = content.decode("ascii", "replace").strip()
    if not VERSION.fullmatch(name):
        reason = "it does not name a version"
        raise SapbertError(Errors.E304.format(path=path, reason=reason))
    return name


def read_version(folder: Path, name: str | None = None) -> Version:
    """Read and check the meta.json of a version.

    Args:
        folder: The knowledge base.
        name: The version; None = the one that is used.

    Raises:
        SapbertError: If there is none, or it is damaged or of another format.
    """
    folder, place = Path(os.path.abspath(folder)), Path(os.path.realpath(folder))
    name = name or read_current(place)
    path = place / name / FILE
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = f"it cannot be read ({error.strerror})"
        raise SapbertError(Errors.E304.format(path=path, reason=reason)) from None
    return Version(folder, name, parse_manifest(content, path), place)


def parse_manifest(content: bytes, path: Path | str) -> Manifest:
    """Read and check the content of meta.json.

    Args:
        path: The file, for the error.

    Raises:
        SapbertError: If it is damaged or of another format.
    """
    try:
        if len(content) > MAX_BYTES:
            raise ValueError("the file is too large")
        data = json.loads(content)
        if not isinstance(data, dict) or type(data.get("format")) is not int:
            raise ValueError("it has no `format`")
        if data["format"] != FORMAT:
            raise SapbertError(
                Errors.E305.format(
                    expected=FORMAT, path=path, got=f"format {data['format']}"
                )
            )
        manifest = Manifest.model_validate(data)
        if manifest.digest != compute_digest(data):
            raise ValueError("it has a different digest: it was changed or damaged")
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        reason = f"`{place}`: {first['msg']}" if place else first["msg"]
        raise SapbertError(Errors.E304.format(path=path, reason=reason)) from None
    except SapbertError:
        raise
    except (ValueError, RecursionError) as error:
        raise SapbertError(Errors.E304.format(path=path, reason=error)) from None
    return manifest


def own_files(manifest: Manifest) -> Manifest:
    """Return a meta.json of which all files are in the folder of its version."""
    files = {
        name: record.model_copy(update={"version": None})
        for name, record in manifest.files.items()
    }
    return manifest.model_copy(update={"files": files})


def list_versions(folder: Path) -> list[str]:
    """Return the names of the published versions, the oldest first."""
    names = (path.name for path in folder.iterdir() if VERSION.fullmatch(path.name))
    return sorted(names, key=lambda name: int(name[1:]))


def verify_files(
    version: Version, *, known: Version | None = None, whole: bool = False
) -> None:
    """Check size and sha256 of every file, before any library opens them.

    Args:
        version: The version.
        known: A version whose files were verified; equal paths are not read again.
        whole: Read also large vectors that were verified before on this machine.

    Raises:
        SapbertError: At the first file that is missing or different, or is in the
            folder of the encoder and not in meta.json.
    """
    records = version.manifest.files
    for path in sorted(version.encoder.rglob("*")):
        # A file that nobody verified would be opened with the encoder.
        name = f"{ENCODER}/{path.relative_to(version.encoder).as_posix()}"
        if name not in records and not path.is_dir():
            raise damaged_file(path, "it was not there then")
    done = {} if known is None else {known.path(n): n for n in known.manifest.files}

    def verify(name: str) -> None:
        path, record = version.path(name), records[name]
        if known is not None and path in done:
            old = known.manifest.files[done[path]]
            if (old.size, old.sha256) == (record.size, record.sha256):
                return
        verify_file(path, record, whole=whole)

    # Checksums are computed without Python's lock.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(verify, records):
            pass


def damaged_file(path: Path, reason: str) -> SapbertError:
    """Return the error for a file that is not as it was."""
    return SapbertError(Errors.E306.format(path=path, reason=reason))


def verify_file(path: Path, record: FileRecord, *, whole: bool) -> None:
    """Check size and sha256 of a file; see `verify_files`. Links are followed."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # a pipe would block
            raise damaged_file(path, "it is not a plain file")
        if status.st_size != record.size:
            reason = f"it has {status.st_size} bytes and not {record.size}"
            raise damaged_file(path, reason)
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if not whole and was_verified(path.name, identity, record.sha256):
            return
        with open(path, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != record.sha256:
                raise damaged_file(path, "it has a different sha256")
    except FileNotFoundError:
        raise damaged_file(path, "it is missing") from None
    except OSError as error:
        raise damaged_file(path, f"it cannot be read ({error.strerror})") from None
    keep_verified(path.name, identity, record.sha256)


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


class Draft:
    """A version that is being written; nobody uses it until it is published.

    Attributes:
        root: The knowledge base.
        path: A temporary folder in it, to write into.
    """

    def __init__(self, root: Path, path: Path) -> None:
        self.root = root
        self.path = path

    def describe(
        self, manifest: Manifest, kept: Mapping[str, FileRecord] | None = None
    ) -> Version:
        """Write meta.json for the files in the folder and those of older versions.

        Args:
            manifest: Its content without the files.
            kept: From `Version.keep`; None = no files of older versions.
        """
        files = {**(kept or {}), **describe_files(self.path)}
        return self.write(manifest.model_copy(update={"files": files}))

    def write(self, manifest: Manifest) -> Version:
        """Write meta.json again, for the same files."""
        content, digest = format_manifest(manifest)
        (self.path / FILE).write_bytes(content)
        manifest = manifest.model_copy(update={"digest": digest})
        return Version(self.root, self.path.name, manifest, self.root)

    def publish(self, *, current: bool = True) -> Version:
        """Publish the version under the next name, and use it.

        Args:
            current: False = the version that is used does not change yet.

        Raises:
            SapbertError: If the system refuses.
        """
        for path in (*sorted(self.path.rglob("*")), self.path):
            share_path(path)
            sync_path(path)
        number = 1 + max(
            (int(name[1:]) for name in list_versions(self.root)), default=0
        )
        name = f"v{number}"
        os.rename(self.path, self.root / name)
        sync_path(self.root)
        if current:
            use_version(self.root, name)
        return read_version(self.root, name)


def use_version(folder: Path, name: str) -> None:
    """Make a published version the one that is used."""
    with write_atomically(folder / CURRENT) as file:
        file.write(f"{name}\n".encode("ascii"))


@contextmanager
def draft_version(root: Path) -> Iterator[Draft]:
    """Make a draft, which is removed at the end unless it was published.

    Raises:
        SapbertError: If the system refuses, e.g. because the disk is full.
    """
    part, lock = None, -1
    try:
        remove_leftovers(root / "version")
        part, lock = make_part(root / "version", folder=True)
        yield Draft(root, part)
    except OSError as error:
        raise name_refusal(error, root) from error
    finally:
        if lock >= 0:
            os.close(lock)
        if part is not None:
            remove_path(part)


@contextmanager
def open_target(folder: Path) -> Iterator[Path]:
    """Yield where to publish a version: a knowledge base, or a new folder.

    A new folder gets its name at the end, so that it is there whole or not at all.

    Raises:
        SapbertError: If the folder has anything else, or another process changes it.
    """
    if (folder / CURRENT).is_file():
        check_writable(folder)
        remove_leftovers(folder)  # of builds that were killed
        yield Path(os.path.abspath(folder))
    else:
        with write_folder_atomically(folder, KB_FOLDER) as part:
            yield part


def check_writable(folder: Path) -> None:
    """Raise an error if the folder of a knowledge base is read-only."""
    if not os.access(folder, os.W_OK):
        raise SapbertError(Errors.E586.format(path=folder))


@contextmanager
def lock_kb(folder: Path, *, wait: float = 0) -> Iterator[None]:
    """Lock a knowledge base against other writers, where the disk has locks.

    Args:
        folder: The knowledge base.
        wait: Seconds to wait for the lock.

    Raises:
        SapbertError: If another process holds the lock.
    """
    check_writable(folder)
    with lock_file(folder / LOCK, folder, wait=wait):
        yield


@contextmanager
def lock_file(path: Path, folder: Path, *, wait: float) -> Iterator[None]:
    """Lock a file until the end, or until the process is killed.

    Args:
        path: The file, which is created.
        folder: What it locks, for messages. A disk without locks is a warning.
        wait: Seconds to wait for the lock; −1 = without end.

    Raises:
        SapbertError: If another process holds the lock, or the file cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=wait)
    try:
        lock.acquire()
    except Timeout:
        raise SapbertError(Errors.E550.format(path=folder)) from None
    except (NotImplementedError, OSError) as error:
        if getattr(error, "errno", None) in FULL:
            raise name_refusal(error, folder) from error  # type: ignore[arg-type]
        warnings.warn(
            Warnings.W557.format(path=folder, reason=error), UserWarning, stacklevel=4
        )
    try:
        yield
    finally:
        lock.release()


@contextmanager
def lock_version(version: Version) -> Iterator[None]:
    """Lock a knowledge base whose version in use must still be this one.

    Raises:
        SapbertError: If another process has changed or locked it, or it is read-only.
    """
    with lock_kb(version.folder):
        if read_version(version.folder).manifest.digest != version.manifest.digest:
            raise SapbertError(Errors.E338.format(path=version.folder))
        yield


def change_manifest(version: Version, **changes: Any) -> Version:
    """Publish a version with other values in meta.json and the same files.

    Args:
        version: The one that is used; the folder is locked.
    """
    with draft_version(version.folder) as draft:
        manifest = version.manifest.model_copy(update=changes)
        draft.describe(manifest, version.keep(overlay=True))
        return draft.publish()


def copy_version(version: Version, root: Path, *, current: bool = True) -> Version:
    """Publish a copy of a version in a folder of `open_target`.

    Files that the knowledge base there already has are not copied.

    Args:
        version: The version.
        root: From `open_target`.
        current: See `Draft.publish`.
    """
    there: dict[str, FileRecord] = {}
    if (root / CURRENT).is_file():
        old = read_version(root)
        if old.manifest.digest == version.manifest.digest:
            return old
        there = old.keep(overlay=True)
    records = version.manifest.files

    def is_there(name: str) -> bool:
        return name in there and there[name].sha256 == records[name].sha256

    # The folder of the encoder is opened as a whole.
    of_encoder = [name for name in (*there, *records) if name.startswith(f"{ENCODER}/")]
    same_encoder = all(name in records and is_there(name) for name in of_encoder)
    kept = {
        name: there[name]
        for name in records
        if is_there(name) and (same_encoder or name not in of_encoder)
    }
    with draft_version(root) as draft:
        for name in records.keys() - kept.keys():
            target = draft.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            # An error of `shutil.copyfile` would name the file that is read.
            with open(version.path(name), "rb") as source, open(target, "wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
        draft.describe(version.manifest, kept)
        return draft.publish(current=current)


def link_files(version: Version, names: Iterable[str], folder: Path) -> None:
    """Link files of a version into another folder, or copy them."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        link_file(version.path(name), folder / name)


def remove_versions(folder: Path) -> list[str]:
    """Remove the versions before the last one.

    The version in use, the last one before it, and those whose files they use stay.

    Returns:
        The names of the versions that were removed.

    Raises:
        SapbertError: If the knowledge base is damaged, read-only or locked.
    """
    with lock_kb(folder):
        current = read_version(folder)
        names = list_versions(folder)
        older = names[: names.index(current.name)]
        kept = {current.name, *older[-1:]}
        for name in [*kept]:
            files = read_version(folder, name).manifest.files.values()
            kept |= {record.version for record in files if record.version}
        removed = [name for name in names if name not in kept]
        for name in removed:
            remove_path(folder / name)
    return removed
