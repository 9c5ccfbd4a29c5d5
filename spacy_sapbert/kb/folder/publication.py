"""Publishes versions of a knowledge base.

A version is filled in a temporary folder, flushed and renamed; CURRENT is replaced.
"""

import errno
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import SapbertError
from ...io.forks import TemporaryFolder
from ...io.reading import file_digest
from ...io.writing import (
    CURRENT,
    copy_file,
    has_shared_permissions,
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
from .layout import DRAFT_NAME, FILE, KB_FOLDER, LOCK, is_of_encoder
from .records import FileRecord, Manifest
from .versions import (
    Version,
    format_manifest,
    list_folders,
    list_versions,
    parse_manifest,
    read_version,
    verify_files,
)

ONLY = "v1"  # the version of a copy
LOCK_WAIT = 60.0  # seconds that a finished build waits for an edit
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EFBIG)


def describe_files(folder: Path) -> dict[str, FileRecord]:
    """Measure every file of a folder but meta.json, by relative path."""
    return {
        path.relative_to(folder).as_posix(): FileRecord(
            size=path.stat().st_size, sha256=file_digest(path)
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / FILE
    }


@dataclass(frozen=True)
class Draft:
    """A version that is being written, in a temporary folder of the knowledge base."""

    root: Path
    path: Path

    def describe(self, manifest: Manifest, kept: Mapping[str, FileRecord]) -> Version:
        """Write meta.json for the files in the folder, and `kept` of older versions."""
        files = {**kept, **describe_files(self.path)}
        return self.write(manifest.model_copy(update={"files": files}))

    def write(self, manifest: Manifest) -> Version:
        """Write meta.json again, for the same files."""
        content, digest = format_manifest(manifest)
        (self.path / FILE).write_bytes(content)
        manifest = manifest.model_copy(update={"digest": digest})
        return Version(self.root, self.path.name, manifest, self.root)

    def keep_or_copy(
        self, version: Version, names: Iterable[str], *, link: bool = False
    ) -> dict[str, FileRecord]:
        """Copy files of a version, and return those that the folder already has.

        `link` = make hard links: no published file changes in its place. Files with own
        permissions are copied, since both names would get them.
        """
        files = {name: version.manifest.files[name] for name in names}
        there: dict[str, FileRecord] = {}
        if (self.root / CURRENT).is_file():
            there = read_version(self.root).keep(overlay=True)
        kept = {
            name: there[name]
            for name, record in files.items()
            if name in there and there[name].sha256 == record.sha256
        }
        # The encoder is opened as one folder.
        encoder = {name for name in {*there, *files} if is_of_encoder(name)}
        if not encoder <= kept.keys():
            kept = {name: kept[name] for name in kept.keys() - encoder}
        for name in files.keys() - kept.keys():
            source, target = version.path(name), self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            may_link = link and has_shared_permissions(source)
            (link_file if may_link else copy_file)(source, target)
        return kept

    def publish(self) -> Version:
        """Publish the version under the next name, and use it."""
        for path in (*sorted(self.path.rglob("*")), self.path):
            share_path(path)
            sync_path(path)
        last = ["v0", *list_folders(self.root)][-1]
        name = f"v{int(last[1:]) + 1}"
        with write_current(self.root, name):
            os.rename(self.path, self.root / name)
            sync_path(self.root)
        return read_version(self.root, name)


@contextmanager
def write_current(folder: Path, name: str) -> Iterator[None]:
    """Use a version when the context ends; on a full disk it fails before."""
    with write_atomically(folder / CURRENT) as file:
        file.write(f"{name}\n".encode("ascii"))
        file.flush()
        yield


def use_version(folder: Path, name: str) -> None:
    with write_current(folder, name):
        pass


@contextmanager
def draft_version(root: Path) -> Iterator[Draft]:
    """Make a draft, removed at the end unless published; a full disk is an error."""
    part, lock = None, -1
    try:
        remove_leftovers(root / DRAFT_NAME)
        part, lock = make_part(root / DRAFT_NAME, folder=True)
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
    """Yield where to publish: a knowledge base, or a new folder, named at the end."""
    if (folder / CURRENT).is_file():
        check_writable(folder)
        remove_leftovers(folder)  # of builds that were killed
        yield Path(os.path.abspath(folder))
    else:
        with write_folder_atomically(folder, KB_FOLDER) as part:
            yield part


def check_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK):
        raise read_only_kb(path=folder)


@contextmanager
def lock_kb(folder: Path, *, wait: float = 0) -> Iterator[None]:
    check_writable(folder)
    with lock_file(folder / LOCK, folder, wait=wait):
        yield


@contextmanager
def lock_version(version: Version) -> Iterator[None]:
    """Lock a knowledge base whose version in use must still be this one."""
    with lock_kb(version.folder):
        if read_version(version.folder).manifest.digest != version.manifest.digest:
            raise SapbertError(
                "E550",
                f"Expected {version.folder} as it was when it was opened, but another "
                "process has changed it. Open it again and repeat the change.",
            )
        yield


@contextmanager
def lock_file(path: Path, folder: Path, *, wait: float) -> Iterator[None]:
    """Lock a file until the end, or until the process is killed; `wait` is in seconds.

    A disk without locks is a warning, which names `folder`.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=wait)
    try:
        lock.acquire()
    except Timeout:
        raise SapbertError(
            "E550",
            f"Expected no other process that changes {folder}, but there is one. "
            "Repeat the command when it has finished.",
        ) from None
    except (NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise name_refusal(error, folder) from error
        message = (
            f"[W557] Expected a disk with locks for {folder}, but got: {error}. Do not "
            "change this knowledge base by two processes at once."
        )
        warnings.warn(message, UserWarning, stacklevel=4)
    try:
        yield
    finally:
        lock.release()


def change_manifest(version: Version, **changes: Any) -> Version:
    """Publish a version, of a locked folder, with other values in meta.json."""
    with draft_version(version.folder) as draft:
        manifest = version.manifest.model_copy(update=changes)
        draft.describe(manifest, version.keep(overlay=True))
        return draft.publish()


def go_back(folder: Path, name: str) -> Version:
    """Use a version that was published before, e.g. "v2"; all versions stay."""
    with lock_kb(folder):
        known = list_versions(folder)
        if name not in known:
            raise SapbertError(
                "E348",
                f"Expected a version of {folder}, but it has no {name!r}. It has: "
                f"{', '.join(known)}. See `spacy sapbert kb versions {folder}`.",
            )
        version = read_version(folder, name)
        verify_files(version)
        use_version(folder, name)
    return version


def remove_versions(folder: Path) -> list[str]:
    """Remove old versions, and return their names.

    The one in use, the one before, newer ones, and those whose files they use stay.
    """
    with lock_kb(folder):
        current = read_version(folder)
        names = list_versions(folder)
        kept = {*names[max(names.index(current.name) - 1, 0) :]}
        for name in [*kept]:
            files = read_version(folder, name).manifest.files.values()
            kept |= {record.version for record in files if record.version}
        removed = [name for name in list_folders(folder) if name not in kept]
        remove_leftovers(folder / DRAFT_NAME)
        try:
            for name in removed:
                # Nobody may find a version of which some files are gone.
                aside = folder / f".{DRAFT_NAME}.{name}.tmp"
                try:
                    os.rename(folder / name, aside)
                finally:
                    remove_path(aside)
        except OSError as error:
            raise name_refusal(error, folder) from error
    return removed


def save_copy(version: Version, folder: Path) -> None:
    """Copy a version to a folder, which uses it then.

    If it is another knowledge base, it gets a version, with the files that it lacks.
    """
    digest = version.manifest.digest
    if version.folder.resolve() == folder.resolve():
        if read_version(folder).manifest.digest != digest:
            with lock_kb(folder, wait=LOCK_WAIT):
                version.check()
                use_version(folder, version.name)
        return
    with ExitStack() as stack:
        root = stack.enter_context(open_target(folder))
        if (root / CURRENT).is_file():
            stack.enter_context(lock_kb(root, wait=LOCK_WAIT))
            if read_version(root).manifest.digest == digest:
                return
        draft = stack.enter_context(draft_version(root))
        kept = draft.keep_or_copy(version, version.manifest.files)
        draft.describe(version.manifest, kept)
        draft.publish()


def version_to_files(version: Version) -> dict[str, bytes]:
    manifest = version.manifest
    files = {name: version.path(name).read_bytes() for name in manifest.files}
    return {FILE: format_manifest(manifest)[0], **files}


def unpack_files(contents: dict[str, bytes]) -> TemporaryFolder:
    """Write those files that meta.json names into a temporary folder."""
    temporary = TemporaryFolder(prefix="sapbert-kb-")
    root = temporary.path.resolve()
    manifest = parse_manifest(contents.get(FILE, b""), FILE)
    contents = {**contents, FILE: format_copy(manifest)}
    for name in (*manifest.files, FILE):
        path = root / ONLY / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents.get(name, b""))
    use_version(root, ONLY)
    return temporary


def format_copy(manifest: Manifest) -> bytes:
    """Return the meta.json of a copy, which has all files itself."""
    files = manifest.files.items()
    own = {name: record.model_copy(update={"version": None}) for name, record in files}
    return format_manifest(manifest.model_copy(update={"files": own}))[0]


def read_only_kb(*, path: object) -> SapbertError:
    return SapbertError(
        "E586",
        f"Expected a knowledge base that may be changed, but {path} is installed or "
        f"read-only. Copy it, like `cp -r {path} models/kb`, and name the copy.",
    )
