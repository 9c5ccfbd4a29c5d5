"""A copy of a knowledge base on the local disk of a machine, made once.

All workers of a machine open the same files, so that the system has their pages in
memory once.
"""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import Errors, SapbertError
from ..io.writing import write_folder_atomically
from ..kb.folder.installed import find_kb
from ..kb.folder.publication import lock_file, use_version
from ..kb.folder.records import CURRENT, FILE, KB_FOLDER, FileRecord, Manifest
from ..kb.folder.versions import (
    format_manifest,
    own_files,
    parse_current,
    parse_manifest,
)
from ..kb.packages.copies import ONLY

BLOCK_BYTES = 1 << 20  # copied at once
CURRENT_BYTES = 64  # read of CURRENT, at most
MAX_BYTES = 1 << 24  # read of meta.json, at most; a real one has a few thousand


def copy_kb(
    source: str | None, folder: str | Path, *, digest: str | None = None
) -> Path:
    """Copy a knowledge base to a folder on this machine, unless it is there.

    The copy is verified, and has its name only when it is complete. Other processes
    of the machine wait for it.

    Args:
        source: A folder, the name of an installed knowledge base, or a URL of fsspec,
            e.g. `s3://bucket/kb` or `zip://kb::/mnt/kb.zip`; None = the only one that
            is installed.
        folder: It may have copies of several knowledge bases.
        digest: The digest of the knowledge base; None = any. With it, the source is not
            read if the copy is there.

    Returns:
        The copy, which has the first digits of the digest in its name.

    Raises:
        SapbertError: If the source is missing, damaged or has another digest, or the
            disk has no room.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SapbertError(
            Errors.E004.format(path=folder, reason=error.strerror)
        ) from None
    if digest is not None and (copy_path(folder, digest) / CURRENT).is_file():
        return copy_path(folder, digest)
    files, root = open_source(source)
    current = f"{root}/{CURRENT}"
    version = parse_current(read_file(files, current, CURRENT_BYTES), current)
    meta = f"{root}/{version}/{FILE}"
    manifest = parse_manifest(read_file(files, meta, MAX_BYTES), meta)
    if digest not in (None, manifest.digest):
        raise SapbertError(
            Errors.E351.format(path=root, expected=digest, got=manifest.digest)
        )
    copy = copy_path(folder, manifest.digest)
    with lock_file(copy.with_name(f".{copy.name}.lock"), copy, wait=-1):
        # Its files are verified when it is opened.
        if not (copy / CURRENT).is_file():
            check_room(folder, manifest)
            with write_folder_atomically(copy, KB_FOLDER) as part:
                for name, record in manifest.files.items():
                    path = f"{root}/{record.version or version}/{name}"
                    copy_file(files, path, part / ONLY / name, record)
                content, _ = format_manifest(own_files(manifest))
                (part / ONLY / FILE).write_bytes(content)
                use_version(part, ONLY)
    return copy


def copy_path(folder: Path, digest: str) -> Path:
    """Return the place of the copy of a knowledge base."""
    return folder / f"kb-{digest[:16]}"


def check_room(folder: Path, manifest: Manifest) -> None:
    """Raise an error if a disk has less room than a knowledge base needs."""
    size = sum(record.size for record in manifest.files.values())
    free = shutil.disk_usage(folder).free
    if size > free:
        raise SapbertError(
            Errors.E377.format(path=folder, size=size / 1e6, free=free / 1e6)
        )


def open_source(source: str | None) -> tuple[Any, str]:
    """Return the file system of a knowledge base, and its folder there."""
    if source is None or "://" not in source:
        source = str(find_kb(source))
    from fsspec.core import url_to_fs

    with name_failure(source):
        files, root = url_to_fs(source)
    return files, root.rstrip("/")


@contextmanager
def name_failure(path: str) -> Iterator[None]:
    """Raise the error with a code for what a file system raises."""
    try:
        yield
    except SapbertError:
        raise
    except Exception as error:  # each file system has its own
        raise SapbertError(
            Errors.E376.format(path=path, kind=type(error).__name__)
        ) from None


def read_file(files: Any, path: str, most: int) -> bytes:
    """Return the first bytes of a file, at most `most`."""
    with name_failure(path), files.open(path, "rb") as file:
        content: bytes = file.read(most)
    return content


def copy_file(files: Any, path: str, target: Path, record: FileRecord) -> None:
    """Copy a file, and check its size and its digest on the way."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with name_failure(path), files.open(path, "rb") as file, open(target, "wb") as copy:
        # a packed file may unpack to far more
        while size <= record.size and (block := file.read(BLOCK_BYTES)):
            digest.update(block)
            size += len(block)
            copy.write(block)
    if size != record.size or digest.hexdigest() != record.sha256:
        reason = "it has a different size or sha256"
        raise SapbertError(Errors.E306.format(path=path, reason=reason))
