"""Write files and folders all or nothing: to a temporary name, then rename.

What is half written can only be read by its owner, since it may hold texts of
documents. A complete file or folder gets the permissions that the umask gives.

A folder is replaced only if all that is in it is of the kind that is written.
"""

import ctypes
import glob
import gzip
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp, mkstemp
from typing import IO, Any, BinaryIO, NamedTuple, cast

from ..errors import SapbertError, is_folder, not_written, refused_by_system
from .system import STREAM, lock_handle, open_folder, remove_open, sync_path

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of headers of Linux
# A planted pipe must not block, and a planted link must not lead elsewhere.
SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
UMASK = os.umask(0o077)  # no function only reads it
os.umask(UMASK)
LEFTOVER = re.compile(r"\..+\.tmp")  # of a writer that was killed, see `make_part`
# What a knowledge base has: the name of its version in use, and versions.
CURRENT, VERSION = "CURRENT", re.compile(r"v[1-9]\d{0,8}")


class FolderKind(NamedTuple):
    """Which folders are of one kind, so that no other folder is replaced.

    Attributes:
        name: The kind with its article, for messages.
        mark: A file that every folder of this kind has, even one that is damaged.
        has: Whether a folder of this kind may have a file, by its path in the folder
            with "/".
        nested: Whether a folder of this kind may be inside of another one.
    """

    name: str
    mark: str
    has: Callable[[str], object]
    nested: bool = True


def share_path(path: Path) -> None:
    """Set the permissions of a file or folder to those of a new one by the umask."""
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        # the group of files in it may be inherited
        path.chmod((0o777 & ~UMASK) | (mode & stat.S_ISGID))
    elif stat.S_ISREG(mode) and not has_shared_permissions(path):
        path.chmod(0o666 & ~UMASK)


def has_shared_permissions(path: Path) -> bool:
    """Return whether a file has the permissions of a new one by the umask."""
    return stat.S_IMODE(path.stat().st_mode) == 0o666 & ~UMASK


def make_part(path: Path, *, folder: bool = False) -> tuple[Path, int]:
    """Create a temporary file or folder beside a path, for its owner only; lock it.

    The lock is held by the file descriptor that is returned.
    """
    names: dict[str, Any] = {
        "prefix": f".{path.name}.",
        "suffix": ".tmp",
        "dir": path.parent,
    }
    while True:
        if folder:
            part = Path(mkdtemp(**names))
            try:
                handle = open_folder(part)
            except FileNotFoundError:
                continue
        else:
            handle, name = mkstemp(**names)
            part = Path(name)
        lock_handle(handle, wait=True)
        # Before the lock, another writer may have removed it as a leftover.
        if part.exists():
            return part, handle
        os.close(handle)


def check_replaceable(path: Path) -> None:
    """Raise an error if a path may not be written, whatever is written.

    It is a device, a pipe or a socket, or a link to one: that of the standard output
    links to whatever this is, maybe to a file. Or it is in a version of a knowledge
    base. Or it is `-`, the standard output.
    """
    if path == STREAM:
        raise SapbertError(
            "E003",
            "Expected a file or folder to write, but - is the standard output. Name a "
            "file.",
        )
    with suppress(OSError):
        mode = path.stat().st_mode
        linked = path.is_symlink() and Path("/dev") in path.absolute().parents
        if linked or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise SapbertError(
                "E003",
                f"Expected to write a file or folder at {path}, but it is a device, a "
                "pipe or a socket, which cannot be replaced. Name another place; a "
                "command without `--output` writes to the standard output.",
            )
    place = real_place(path)
    for folder in (place, *place.parents):
        if VERSION.fullmatch(folder.name) and (folder.parent / CURRENT).is_file():
            raise inside_of(path=path, folder=folder)


def real_place(path: Path) -> Path:
    """Return an absolute path without links, but with its own name."""
    return Path(os.path.realpath(path.parent)) / path.name


def check_outputs(*paths: Path | None, force: bool) -> None:
    """Check the files that a command will write, before anything takes long.

    Args:
        paths: The files; None = not wanted.
        force: Existing ones may be replaced.

    Raises:
        SapbertError: If two have one path, one exists and may not be replaced, or the
            system would refuse one.
    """
    files = [path for path in paths if path is not None]
    check_apart(*files)
    for path in files:
        check_existing(path, force=force)
        if os.path.isdir(path) and not path.is_symlink():
            raise is_folder(path=path)
        check_replaceable(path)
        try:
            with suppress(FileNotFoundError):  # its folder is made
                os.lstat(path.with_name(f".{path.name}.12345678.tmp"))
            parents = path.absolute().parents
            with TemporaryFile(dir=next(filter(Path.exists, parents))):
                pass
        except OSError as error:
            reason = error.strerror or error
            raise not_written(path=path, reason=reason) from error


def check_apart(*paths: Path | None) -> None:
    """Raise an error if two outputs have one path, or one is inside of another."""
    places: list[tuple[Path, Path]] = []
    for path in filter(None, paths):
        place = real_place(path)
        for other, other_place in places:
            if place.is_relative_to(other_place) or other_place.is_relative_to(place):
                raise SapbertError(
                    "E003",
                    f"Expected outputs in different places, but {path} and {other} "
                    "are one place, or one is inside of the other. Name another "
                    "place for one of them.",
                )
        places.append((path, place))


def check_existing(path: Path, *, force: bool) -> None:
    """Raise an error if an output exists and may not be replaced."""
    if not force and os.path.lexists(path):
        raise SapbertError(
            "E003",
            f"Expected to write {path}, but it exists already. Remove it, name "
            "another place, or pass `--force` (in Python `force=True`).",
        )


def check_folder_output(path: Path, kind: FolderKind, *, force: bool) -> None:
    """Check that a folder can be written, before anything takes long.

    Args:
        force: An existing one of this kind may be replaced.

    Raises:
        SapbertError: If it exists and may not be replaced, or has no name of its own,
            such as ".".
    """
    check_existing(path, force=force)
    check_kind(path, kind)


def check_name(path: Path) -> None:
    """Check that a path has a name, unlike "." and "..", beside which others can be."""
    if path.name in ("", ".."):
        raise SapbertError(
            "E003",
            f"Expected a path with a name of its own, but got '{path}'. Write the "
            "name, for example `../models/kb`.",
        )


def check_kind(path: Path, kind: FolderKind) -> None:
    """Check that a folder may be replaced: it is missing, empty, or of a kind.

    A link may be replaced too, since what it leads to stays.
    """
    check_name(path)
    for parent in real_place(path).parents:
        if not kind.nested and (parent / kind.mark).is_file():
            raise inside_of(path=path, folder=parent)
    if path.is_symlink() or not path.exists():
        return
    foreign = find_foreign(path, kind)
    if foreign is not None:
        raise SapbertError(
            "E003",
            f"Expected {path} to be {kind.name} or an empty folder, but {foreign}, "
            "which would be lost. Name another folder, or remove this one yourself.",
        )


def find_foreign(path: Path, kind: FolderKind) -> str | None:
    """Return what is in a path that is not of a kind; None = nothing."""
    if not path.is_dir():
        return "it is a file"
    first = None
    # Unlike `rglob`, `walk` goes on if another writer removes a folder meanwhile.
    for parent, folders, files in os.walk(path):
        links = [name for name in folders if Path(parent, name).is_symlink()]
        for file in (*files, *links):
            name = Path(parent, file).relative_to(path).as_posix()
            if not kind.has(name) and not LEFTOVER.fullmatch(file):
                return f"it has {name}"
            first = first or name
    if first is not None and not (path / kind.mark).is_file():
        return f"it has {first} and no {kind.mark}"
    return None


def name_refusal(error: OSError, path: Path) -> SapbertError:
    """Return the error of a path that could not be written.

    If the system refused another file, e.g. one that is read meanwhile, that is named.
    """
    reason = error.strerror or error
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):
        reason = error.args[0][0][-1]  # of the first file of a folder
    if isinstance(error.filename, str):
        path = path.absolute()
        place = Path(error.filename).absolute()
        inner = place.parts[len(path.parent.parts) :]
        beside = place.is_relative_to(path.parent) and inner
        own = beside and inner[0].startswith((f".{path.name}.", path.name))
        if not own and place not in path.parents:
            return refused_by_system(path=place, reason=reason)
    return not_written(path=path, reason=reason)


def remove_path(path: Path) -> None:
    """Remove a folder, a file or a link, if it exists and the system allows it.

    Ctrl-C stops after that.
    """
    if path.is_dir() and not path.is_symlink():
        try:
            shutil.rmtree(path, ignore_errors=True)
        except KeyboardInterrupt:
            shutil.rmtree(path, ignore_errors=True)
            raise
    else:
        with suppress(OSError):
            path.unlink()


def remove_leftovers(path: Path) -> None:
    """Remove what killed writers of a file or folder left beside it.

    Writers lock their temporary file or folder, so those of living ones stay. Links,
    pipes and the like of such names are not of writers, and stay too.
    """
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with suppress(OSError):
            handle = os.open(part, os.O_RDONLY | SAFELY)
            try:
                mode = os.fstat(handle).st_mode
                ours = stat.S_ISREG(mode) or stat.S_ISDIR(mode)
                if ours and lock_handle(handle):
                    remove_path(part)
            finally:
                os.close(handle)


def remove_folder(path: Path) -> None:
    """Remove a folder, if it exists, and what killed writers left beside it."""
    shutil.rmtree(path, ignore_errors=True)
    remove_leftovers(path)


def list_missing(path: Path) -> list[Path]:
    """Return the folders that a path needs and that do not exist, the inner first."""
    return [folder for folder in path.parents if not folder.exists()]


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove the folders in which nothing was written, the inner first."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


@contextmanager
def write_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file; at the end flush it to the disk and rename it.

    Args:
        path: The final name; with `.gz` at its end the file is compressed. A link of
            that name is replaced, not followed.

    Yields:
        The file to write to.

    Raises:
        SapbertError: If the system refuses, e.g. a full disk, or the path is a device
            or a pipe.
    """
    check_replaceable(path)
    part: Path | None = None
    missing = list_missing(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path)
        part, handle = make_part(path)
        with open(handle, "wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
                    yield cast(BinaryIO, packed)
            else:
                yield raw
            raw.flush()
            os.fsync(handle)
        share_path(part)
        os.replace(part, path)
        sync_path(path.parent)
    except OSError as error:
        raise name_refusal(error, path) from error
    finally:
        if part is not None:
            remove_path(part)
        remove_empty(missing)


@contextmanager
def open_resumed(path: Path) -> Iterator[None]:
    """Make or lock the file of what a run has done, which the next run goes on with.

    It is for its owner only. A link of that name is replaced, not followed. At the end
    the file is removed, but after an error only if it is empty.

    Raises:
        SapbertError: If another run has locked it, or the system refuses.
    """
    check_replaceable(path)
    flags = os.O_RDWR | os.O_CREAT | SAFELY
    while True:
        try:
            if path.is_symlink():
                path.unlink()
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, flags, 0o600)
        except OSError as error:
            raise name_refusal(error, path) from error
        if lock_handle(handle) is False:
            os.close(handle)
            raise locked(path=path)
        # Before the lock, another run may have finished and removed it.
        if path.exists() and os.path.samestat(os.fstat(handle), os.lstat(path)):
            break
        os.close(handle)
    done = False
    try:
        path.chmod(0o600)
        yield
        done = True
    finally:
        if done or not os.fstat(handle).st_size:
            remove_open(handle, path)
        else:
            os.close(handle)


def locked(*, path: object) -> SapbertError:
    return SapbertError(
        "E550",
        f"Expected no other run that writes to {path}, but there is one. Wait until it "
        "has finished, or pass another `--output`.",
    )


def link_file(source: Path, target: Path) -> None:
    """Link a file to a second name, or copy it where the disk has no hard links.

    Args:
        source: The file, which must not be changed in its place any more. A symbolic
            link is followed.
    """
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        copy_file(source, target)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file; the error of a full disk names the copy."""
    # An error of `shutil.copyfile` would name the file that is read.
    with open(source, "rb") as file, open(target, "wb") as copy:
        shutil.copyfileobj(file, copy, 1 << 20)


def write_json(path: Path, data: Any) -> None:
    """Write an indented JSON file atomically; lone surrogates become "?"."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    with write_atomically(path) as file:
        file.write(text.encode("utf8", "replace") + b"\n")


@contextmanager
def write_folder_atomically(path: Path, kind: FolderKind | None) -> Iterator[Path]:
    """Fill a temporary folder; at the end flush it to the disk and rename it.

    Args:
        path: The final name; a folder of that name and this kind is replaced, and a
            link to any folder.
        kind: What is written; None = it is a part of a folder of ours, and replaces
            what has its name there.

    Yields:
        An empty folder next to it, to write into. All that is in it gets the same
        permissions, whatever wrote it: safetensors makes files for their owner.

    Raises:
        SapbertError: If the system refuses, e.g. a full disk, or the path is a device,
            a pipe, or a folder that is not of this kind.
    """
    check_replaceable(path)
    if kind is not None:
        check_kind(path, kind)
    part: Path | None = None
    missing, lock = list_missing(path), -1
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path)
        part, lock = make_part(path, folder=True)
        yield part
        for file in (*sorted(part.rglob("*")), part):
            share_path(file)
            sync_path(file)
        if kind is not None:  # filling it may have taken hours
            check_kind(path, kind)
        if os.path.lexists(path):
            exchange_names(part, path)
        else:
            os.rename(part, path)
        sync_path(path.parent)
    except OSError as error:
        raise name_refusal(error, path) from error
    finally:
        if lock >= 0:
            os.close(lock)
        if part is not None:
            remove_path(part)
        remove_empty(missing)


def exchange_names(new: Path, old: Path) -> None:
    """Exchange the names of two folders on the same disk.

    `os.replace` cannot replace a folder that is not empty. With two renames, a process
    killed between them would leave no folder of the old name, so Linux's `renameat2`
    is called; other systems do the two renames.
    """
    with suppress(OSError, AttributeError, TypeError):
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        arguments = (AT_FDCWD, os.fsencode(new), AT_FDCWD, os.fsencode(old))
        if rename(*arguments, RENAME_EXCHANGE) == 0:
            return
    aside = old.with_name(f".{old.name}.{os.getpid()}.old")
    os.rename(old, aside)
    os.rename(new, old)
    os.rename(aside, new)


def inside_of(*, path: object, folder: object) -> SapbertError:
    return SapbertError(
        "E003",
        f"Expected to write outside of {folder}, whose files must not change, but got "
        f"{path}. Name another place.",
    )
