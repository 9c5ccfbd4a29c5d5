"""meta.json: a description of a knowledge base, and the checksum of every file."""

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...errors import Errors, SapbertError
from ...system.writing import (
    fcntl,
    lock_handle,
    write_atomically,
    write_folder_atomically,
)
from .records import (
    FILE,
    FORMAT,
    FORMATS,
    KB_FOLDER,
    OVERLAY_FORMAT,
    Calibration,
    Manifest,
)

MAX_BYTES = 1 << 24  # of meta.json; a real one has a few thousand
LOCK_WAIT = 60.0  # seconds that a finished build waits for an edit


def compute_digest(data: dict[str, Any]) -> str:
    """Return the sha256 of the content of meta.json without its digest."""
    rest = {key: value for key, value in data.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf8", "replace")).hexdigest()


def format_manifest(manifest: Manifest) -> bytes:
    """Return the content of meta.json."""
    data = manifest.model_dump()
    optional = ("vocabularies", "recall", "estimate", "calibration", "overlay")
    written = {k: v for k, v in data.items() if v is not None or k not in optional}
    written["digest"] = compute_digest(written)
    text = json.dumps(written, indent=2, ensure_ascii=False)
    return text.encode("utf8", "replace") + b"\n"


def write_manifest(folder: Path, manifest: Manifest) -> Manifest:
    """Write meta.json atomically, and return it with its digest."""
    content = format_manifest(manifest)
    with write_atomically(folder / FILE) as file:
        file.write(content)
    return manifest.model_copy(update={"digest": json.loads(content)["digest"]})


def read_manifest(folder: Path, *, old_overlay: bool = False) -> Manifest:
    """Read and check meta.json.

    folder (Path): Folder of the knowledge base.
    old_overlay (bool): Accept an overlay of an older format, to write it again.
    RAISES (SapbertError): If it is missing, damaged or of another format.
    """
    path = folder / FILE
    if not path.is_file() or path.is_symlink():
        raise SapbertError(Errors.E303.format(path=folder))
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError("the file is too large")
        data = json.loads(content)
        check_format(folder, data)
        manifest = Manifest.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        reason = f"`{place}`: {first['msg']}" if place else first["msg"]
        raise SapbertError(Errors.E304.format(path=path, reason=reason)) from None
    except SapbertError:
        raise
    except (ValueError, OSError, RecursionError) as error:
        raise SapbertError(Errors.E304.format(path=path, reason=error)) from None
    digest = compute_digest(data)
    # Those that were written before have no digest.
    if manifest.digest not in ("", digest):
        reason = "its digest is another: the file was changed or damaged"
        raise SapbertError(Errors.E304.format(path=path, reason=reason))
    overlay = manifest.overlay
    if overlay and overlay.format != OVERLAY_FORMAT and not old_overlay:
        raise SapbertError(
            Errors.E342.format(
                expected=OVERLAY_FORMAT,
                got=overlay.format,
                path=folder,
                concepts=folder / overlay.folder / "concepts.jsonl",
            )
        )
    return manifest.model_copy(update={"digest": digest})


def check_format(folder: Path, data: Any) -> None:
    """Check the format number, which decides how the rest is read."""
    if isinstance(data, dict) and type(data.get("format")) is int:
        if data["format"] not in FORMATS:
            raise SapbertError(
                Errors.E305.format(
                    expected=FORMAT,
                    path=folder,
                    got=data["format"],
                    package=data.get("package_version", "that time"),
                )
            )
    else:
        raise ValueError("it has no `format`")


def check_writable(folder: Path) -> None:
    """Raise an error if the folder of a knowledge base is read-only."""
    if not os.access(folder, os.W_OK):
        raise SapbertError(Errors.E586.format(path=folder))


@contextmanager
def lock_kb(folder: Path, *, wait: float = 0) -> Iterator[None]:
    """Lock a knowledge base against other writers, where the system has locks.

    folder (Path): Its folder.
    wait (float): Seconds to wait for the lock.
    RAISES (SapbertError): If another process holds the lock.
    """
    if fcntl is None:
        yield
        return
    until = time.monotonic() + wait
    while (handle := try_lock(folder)) is None:
        if time.monotonic() >= until:
            raise SapbertError(Errors.E550.format(path=folder))
        time.sleep(0.1)
    try:
        yield
    finally:
        os.close(handle)


def try_lock(folder: Path) -> int | None:
    """Lock a folder and return its descriptor; None if another process has the lock."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        # The folder may have been replaced before the lock was there.
        if lock_handle(handle) and os.path.samestat(os.fstat(handle), os.stat(folder)):
            return handle
    except OSError:
        pass
    os.close(handle)
    return None


@contextmanager
def replace_kb(folder: Path) -> Iterator[Path]:
    """Fill a temporary folder, then exchange it for a knowledge base; see `lock_kb`.

    folder (Path): The knowledge base; it need not exist.
    YIELDS (Path): See `write_folder_atomically`.
    RAISES (SapbertError): If the system refuses, the folder has other files, or another
        process edits the old one for a minute.
    """
    with ExitStack() as stack, write_folder_atomically(folder, KB_FOLDER) as part:
        yield part
        if folder.is_dir():
            stack.enter_context(lock_kb(folder, wait=LOCK_WAIT))


def write_calibration(folder: Path, calibration: Calibration) -> Manifest:
    """Write a threshold and its calibration into meta.json.

    folder (Path): Folder of the knowledge base; its other files do not change.
    calibration (Calibration): The calibration.
    RETURNS (Manifest): The new manifest.
    RAISES (SapbertError): If the knowledge base is read-only, damaged or locked, or the
        system refuses. Then meta.json does not change.
    """
    check_writable(folder)
    with lock_kb(folder):
        manifest = read_manifest(folder)
        manifest.threshold = calibration.threshold
        manifest.estimate = None
        manifest.calibration = calibration
        return write_manifest(folder, manifest)
