"""Write files and folders all or nothing: to a temporary name, then rename."""

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

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of linux/fcntl.h and linux/fs.h


def sync_path(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def temporary_sibling(path: Path) -> Path:
    """Return the hidden name next to `path` that this process writes to first."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def lock_handle(handle: int) -> bool:
    """Lock an open file or folder until it is closed or the process ends.

    handle (int): Its file descriptor.
    RETURNS (bool): False if another process has locked it, or the system has no locks.
    """
    if not fcntl:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove_leftovers(path: Path) -> None:
    """Remove what killed writers of a file or folder left beside it.

    Writers lock their temporary file or folder, so those of living ones stay.
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
    """Remove a folder, if it exists, and what killed writers left beside it."""
    shutil.rmtree(path, ignore_errors=True)
    remove_leftovers(path)


@contextmanager
def write_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file; at the end flush it to the disk and rename it.

    path (Path): The final name; with `.gz` at its end the file is compressed.
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
        sync_path(path.parent)
    except OSError as error:
        raise SapbertError(
            Errors.E004.format(path=path, reason=error.strerror or error)
        ) from error
    finally:
        with suppress(OSError):
            part.unlink()


def write_json(path: Path, data: Any) -> None:
    """Write an indented JSON file atomically; lone surrogates become "?".

    RAISES (SapbertError): If the system refuses, e.g. a full disk.
    """
    text = json.dumps(data, indent=2, ensure_ascii=False)
    with write_atomically(path) as file:
        file.write(text.encode("utf8", "replace") + b"\n")


@contextmanager
def write_folder_atomically(path: Path) -> Iterator[Path]:
    """Fill a temporary folder; at the end flush it to the disk and rename it.

    path (Path): The final name; a folder of that name is replaced.
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
            sync_path(file)
        if path.exists():
            exchange_names(part, path)
        else:
            os.rename(part, path)
        sync_path(path.parent)
    except OSError as error:
        raise SapbertError(
            Errors.E004.format(path=path, reason=error.strerror or error)
        ) from error
    finally:
        if lock >= 0:
            os.close(lock)
        shutil.rmtree(part, ignore_errors=True)


def exchange_names(new: Path, old: Path) -> None:
    """Exchange the names of two folders on the same disk.

    `os.replace` cannot replace a folder that is not empty. With two renames, a process
    killed between them would leave no folder of the old name, so Linux's `renameat2`
    is called; other systems do the two renames.
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
