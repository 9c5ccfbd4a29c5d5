"""meta.json: a description of a knowledge base, and the checksum of every file."""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
)

from ...errors import Errors, SapbertError
from ...system.reading import file_digest
from ...system.writing import fcntl, lock_handle, write_json

FILE = "meta.json"
FORMAT = 2
OVERLAY_FORMAT = 2
EXPORTED = "encoder/openvino"  # the encoder for another engine
# Left by an export that was killed; nothing opens it.
UNFINISHED = re.compile(r"encoder/(openvino/|\.openvino\.).*")
OVERLAY_FOLDER = re.compile(r"overlay-\d+")
MAX_BYTES = 1 << 24  # of meta.json; a real one has a few thousand

Count = Annotated[int, Field(ge=0)]


def check_relative(name: str) -> str:
    """Check that a file name is inside the folder of the knowledge base."""
    parts = PurePosixPath(name).parts
    if not parts or parts[0].startswith("/") or ".." in parts or "\\" in name:
        raise ValueError("the file is outside of the folder")
    return name


class Record(BaseModel):
    """A JSON object of meta.json; fields that are not known are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore")


class FileRecord(Record):
    """Size in bytes and sha256 of a file."""

    size: int
    sha256: str


class EncoderRecord(Record):
    """The encoder, and how the build ran it."""

    base: str
    fingerprint: str
    width: int
    engine: str = "torch"
    precision: str = "float32"
    pooling: str
    max_length: int
    lowercase: bool


class IndexRecord(Record):
    """The backend of the index, and all its settings."""

    backend: str
    settings: dict[str, int]


class Counts(Record):
    """Number of concepts, aliases, rows, and aliases that the encoder cannot read."""

    concepts: Count
    aliases: Count
    rows: Count
    unreadable: Count = 0


class OverlayRecord(Record):
    """The folder of the overlay, and its number of concepts, rows and removals."""

    folder: Annotated[str, Field(pattern=rf"^{OVERLAY_FOLDER.pattern}$")]
    format: int = 1
    concepts: Count
    rows: Count
    removed: Count


class Logistic(Record):
    """The logistic curve from score to probability."""

    slope: FiniteFloat
    intercept: FiniteFloat


class CalibrationFile(Record):
    """Name and sha256 of a file of annotated mentions."""

    file: str
    sha256: str


class Calibration(Record):
    """How the threshold was chosen."""

    criterion: str
    threshold: FiniteFloat
    mentions: Count
    documents: Count
    files: list[CalibrationFile]
    precision: float
    recall: float
    f1: float
    logistic: Logistic
    date: str
    package_version: str


class Manifest(Record):
    """Everything that meta.json holds."""

    format: int = FORMAT
    package_version: str
    encoder: EncoderRecord
    index: IndexRecord
    counts: Counts
    ngrams: bool = False
    sources: list[str]
    threshold: FiniteFloat | None
    calibration: Calibration | None = None
    overlay: OverlayRecord | None = None
    files: dict[Annotated[str, AfterValidator(check_relative)], FileRecord]

    @property
    def engines(self) -> list[str]:
        """The engines that can run the encoder."""
        exported = any(name.startswith(f"{EXPORTED}/") for name in self.files)
        return ["torch", *(["openvino"] if exported else [])]


def describe_files(folder: Path) -> dict[str, FileRecord]:
    """Measure every file of a folder but meta.json, by relative path."""
    return {
        path.relative_to(folder).as_posix(): FileRecord(
            size=path.stat().st_size, sha256=file_digest(path)
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / FILE
    }


def encoder_fingerprint(files: dict[str, FileRecord]) -> str:
    """Return 16 hexadecimal digits that are equal for equal files of an encoder."""
    lines = (f"{name} {record.sha256}\n" for name, record in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode("utf8")).hexdigest()[:16]


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write meta.json atomically."""
    data = manifest.model_dump()
    optional = ("calibration", "overlay")
    written = {k: v for k, v in data.items() if v is not None or k not in optional}
    write_json(folder / FILE, written)


def read_manifest(folder: Path, *, old_overlay: bool = False) -> Manifest:
    """Read and check meta.json.

    folder (Path): Folder of the knowledge base.
    old_overlay (bool): Accept an overlay of an older format, to write it again.
    RAISES (SapbertError): If it is missing, damaged or of another format.
    """
    path = folder / FILE
    if not path.is_file():
        raise SapbertError(Errors.E303.format(path=folder))
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError("the file is too large")
        data = json.loads(path.read_text("utf8"))
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
    return manifest


def check_format(folder: Path, data: Any) -> None:
    """Check the format number, which decides how the rest is read."""
    if isinstance(data, dict) and type(data.get("format")) is int:
        if data["format"] != FORMAT:
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
def lock_kb(folder: Path) -> Iterator[None]:
    """Lock a knowledge base against other writers, where the system has locks.

    RAISES (SapbertError): If another process holds the lock.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        if not lock_handle(handle):
            raise SapbertError(Errors.E550.format(path=folder))
        yield
    finally:
        os.close(handle)


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
        manifest.calibration = calibration
        write_manifest(folder, manifest)
        return manifest


def verify_files(folder: Path, manifest: Manifest) -> None:
    """Compare every file with meta.json, before any library opens it.

    RAISES (SapbertError): At the first file that is missing, unknown or different.
    """
    present = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if not path.is_dir() and path != folder / FILE
    }
    for name, record in manifest.files.items():
        problem = find_damage(present.pop(name, None), record)
        if problem:
            raise SapbertError(Errors.E306.format(path=folder / name, reason=problem))
    # An unknown file in the folder of the encoder would be opened with it.
    for name in sorted(present):
        if name.startswith("encoder/") and not UNFINISHED.fullmatch(name):
            reason = "it was not there then"
            raise SapbertError(Errors.E306.format(path=folder / name, reason=reason))


def find_damage(path: Path | None, record: FileRecord) -> str:
    """Return how a file differs from its record; empty if it does not."""
    if path is None or not path.is_file():
        return "it is missing"
    size = path.stat().st_size
    if size != record.size:
        return f"it has {size} bytes and not {record.size}"
    if file_digest(path) != record.sha256:
        return "its sha256 is another"
    return ""
