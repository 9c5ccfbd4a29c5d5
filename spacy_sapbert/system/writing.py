"""Files and folders written all or nothing."""

import ctypes
import glob
import gzip
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from ..errors import Errors, SapbertError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

AT_FDCWD = -100
RENAME_EXCHANGE = 2


def sync_folder(path: Path) -> None:
    """Make the names in a folder survive a power cut.

    path (Path): The folder.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def temporary_sibling(path: Path) -> Path:
    """Name the place next to `path` where it is written before it takes its name.

    path (Path): The final place.
    RETURNS (Path): A hidden name in the same folder, of this process.
    """
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def lock_handle(handle: int) -> bool:
    """Lock an open file or folder; the system lets go when the process ends.

    handle (int): Its descriptor.
    RETURNS (bool): False if somebody else holds it, or there are no locks here.
    """
    if not fcntl:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove_leftovers(path: Path) -> None:
    """Remove what writers of a file or folder left beside it when they were killed.

    What somebody is writing at the moment is locked, and stays.

    path (Path): The final place.
    """
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with suppress(OSError):
            handle = os.open(part, os.O_RDONLY)
            try:
                if lock_handle(handle):
                    shutil.rmtree(part) if part.is_dir() else part.unlink()
            finally:
                os.close(handle)


def remove_folder(path: Path) -> None:
    """Remove a folder, if it is there, and what is left of writing it.

    path (Path): The folder.
    """
    shutil.rmtree(path, ignore_errors=True)
    remove_leftovers(path)


@contextmanager
def write_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes its name only when it is whole and on the disk.

    path (Path): The final place; with `.gz` at the end it is compressed.
    YIELDS (IO[bytes]): The file to write to.
    RAISES (SapbertError): If the system refuses, e.g. a full disk.
    """
    part = temporary_sibling(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path)
        with open(part, "wb") as raw:
            lock_handle(raw.fileno())
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
                    yield cast(BinaryIO, packed)
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(part, path)
        sync_folder(path.parent)
    except OSError as error:
        raise SapbertError(
            Errors.E004.format(path=path, reason=error.strerror or error)
        ) from error
    finally:
        with suppress(OSError):
            part.unlink()


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file for people and programs; it takes its name when it is whole.

    path (Path): The file.
    data (Any): Plain JSON types. Half characters, which no file can hold, become "?".
    RAISES (SapbertError): If the system refuses, e.g. a full disk.
    """
    text = json.dumps(data, indent=2, ensure_ascii=False)
    with write_atomically(path) as file:
        file.write(text.encode("utf8", "replace") + b"\n")


@contextmanager
def write_folder_atomically(path: Path) -> Iterator[Path]:
    """Fill a folder that takes its name only when it is whole and on the disk.

    A folder that had the name before is replaced in one step where the system can
    exchange two names, so that a whole folder has the name at every moment.

    path (Path): The final place.
    YIELDS (Path): An empty folder next to it, to write into.
    RAISES (SapbertError): If the system refuses, e.g. a full disk.
    """
    part, lock = temporary_sibling(path), -1
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(part, ignore_errors=True)
        remove_leftovers(path)
        part.mkdir()
        lock = os.open(part, os.O_RDONLY)
        lock_handle(lock)
        yield part
        for file in (*sorted(part.rglob("*")), part):
            handle = os.open(file, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        if path.exists():
            exchange_names(part, path)
        else:
            os.rename(part, path)
        sync_folder(path.parent)
    except OSError as error:
        raise SapbertError(
            Errors.E004.format(path=path, reason=error.strerror or error)
        ) from error
    finally:
        if lock >= 0:
            os.close(lock)
        shutil.rmtree(part, ignore_errors=True)


def exchange_names(new: Path, old: Path) -> None:
    """Let two folders swap their names.

    new (Path): One folder.
    old (Path): The other folder, on the same disk.
    SOURCE: renameat2(2) of Linux; elsewhere two renames, with a moment between them.
    """
    with suppress(OSError, AttributeError):
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        arguments = (AT_FDCWD, os.fsencode(new), AT_FDCWD, os.fsencode(old))
        if rename(*arguments, RENAME_EXCHANGE) == 0:
            return
    aside = old.with_name(f".{old.name}.{os.getpid()}.old")
    os.rename(old, aside)
    os.rename(new, old)
    os.rename(aside, new)
