"""The versions of a knowledge base: folders that never change once they are published.

CURRENT names the version in use, "v3"; v3/meta.json names the files of v1 that v3 uses.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from ...errors import SapbertError
from ...io.writing import CURRENT, VERSION
from .layout import FILE, OVERLAY, check_files
from .records import ENCODER, FORMAT, FileRecord, Manifest

# Numbers of at least so many bytes, in files that end so, are compared once on a
# machine, and again only if the file changes: native code follows none of them that is
# not checked when it is read. An empty file in the user's cache stands for each.
LARGE = 1 << 26
LARGE_SUFFIXES = (".i16", ".f32", ".hnsw", ".safetensors", ".data")
ENTRY_POINTS = "spacy_sapbert_kbs"  # of installed knowledge bases
PIPELINE_FILE = "config.cfg"
MOST_NAMED = 3  # knowledge bases in a folder, in an error


@dataclass(frozen=True)
class Version:
    """A version of a knowledge base on the disk."""

    folder: Path  # the knowledge base, an absolute path
    name: str
    manifest: Manifest
    real_folder: Path  # without symbolic links, which may lead elsewhere later

    def path(self, file: str) -> Path:
        """Return the path of a file of meta.json."""
        version = self.manifest.files[file].version or self.name
        return self.real_folder / version / file

    @property
    def encoder(self) -> Path:
        return self.path(f"{ENCODER}/config.json").parent

    def list_files(self) -> dict[Path, tuple[int, str]]:
        files = self.manifest.files.items()
        return {self.path(name): (file.size, file.sha256) for name, file in files}

    def check(self) -> None:
        """Raise an error if somebody has given the name to a different folder."""
        now = read_version(self.real_folder, self.name).manifest
        if now.digest != self.manifest.digest:
            raise damaged_file(self.real_folder / self.name, "it was replaced since")

    def keep(self, *, overlay: bool) -> dict[str, FileRecord]:
        """Return the files, with those of the overlay or not, for a later version."""
        return {
            name: record.model_copy(update={"version": record.version or self.name})
            for name, record in self.manifest.files.items()
            if overlay or not name.startswith(f"{OVERLAY}/")
        }


def damaged_file(path: Path, reason: str) -> SapbertError:
    return SapbertError(
        "E306",
        f"Expected {path} as it was when the knowledge base was built, but {reason}. "
        "Copy or build the knowledge base again.",
    )


def compute_digest(data: Mapping[str, Any]) -> str:
    """Return the sha256 of meta.json without its digest and the places of its files."""
    rest = {key: value for key, value in data.items() if key != "digest"}
    rest["files"] = {
        name: {"size": record["size"], "sha256": record["sha256"]}
        for name, record in data["files"].items()
    }
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf8", "replace")).hexdigest()


def format_manifest(manifest: Manifest) -> tuple[bytes, str]:
    data = manifest.model_dump(exclude_none=True)
    data["digest"] = compute_digest(data)
    text = json.dumps(data, indent=2, ensure_ascii=False)
    return text.encode("utf8", "replace") + b"\n", data["digest"]


def parse_manifest(content: bytes, path: Path | str) -> Manifest:
    """Read and check the content of meta.json; `path` is for the error."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged_manifest(path, error) from None
    if not isinstance(data, dict) or type(data.get("format")) is not int:
        raise damaged_manifest(path, "it has no `format`")
    if data["format"] != FORMAT:
        raise SapbertError(
            "E305",
            f"Expected a knowledge base of format {FORMAT}, but {path} has format "
            f"{data['format']}. Build a new folder, `spacy sapbert kb build "
            "concepts.jsonl NEW --encoder …`, and remove the old one.",
        )
    try:
        manifest = Manifest.model_validate(data)
        check_files(manifest)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        reason = f"`{field}`: {first['msg']}" if field else first["msg"]
        raise damaged_manifest(path, reason) from None
    except ValueError as error:
        raise damaged_manifest(path, error) from None
    if manifest.digest != compute_digest(data):
        reason = "it has a different digest: it was changed or damaged"
        raise damaged_manifest(path, reason)
    return manifest


def damaged_manifest(path: Path | str, reason: object) -> SapbertError:
    return SapbertError(
        "E304",
        f"{path}: Expected the description of a knowledge base, but {reason}. Build "
        "or copy the knowledge base again.",
    )


def no_kb(folder: Path, reason: str) -> SapbertError:
    return SapbertError("E303", f"Expected a knowledge base in {folder}, but {reason}.")


def installed_kbs() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def find_kb(name: str | Path | None = None) -> Path:
    """Return a folder, or that of an installed knowledge base; None = the only one."""
    if name is not None and (folder := Path(name)).is_dir():
        check_no_pipeline(folder)
        return folder
    installed = installed_kbs()  # which reads the metadata of all packages
    names = ", ".join(sorted(installed)) or "none"
    if name is None:
        if len(installed) != 1:
            raise SapbertError(
                "E310",
                "Expected the name of a knowledge base, or one that is installed, but "
                f"found {names}. Name a folder or one of them, "
                "install one with `pip install`, or build one with `spacy sapbert kb "
                "build`.",
            )
        name = next(iter(installed))
    point = installed.get(str(name))
    if point is None:
        beside = Path(name).parent.glob(f"*/{CURRENT}")
        known = {n: n for n in installed} | {p.parent.name: p.parent for p in beside}
        similar = get_close_matches(Path(name).name, known, 1)
        fix = f"Did you mean {known[similar[0]]}? " if similar else ""
        reason = f"found neither; installed are: {names}"
        raise not_found(name, reason, f"{fix}Correct it")
    try:
        return Path(point.load())
    except (Exception, SystemExit) as error:  # of its package
        reason = f"{point.value} failed with {type(error).__name__}: {error}"
        raise not_found(name, reason, "Install its package again") from error


def not_found(name: object, reason: str, fix: str) -> SapbertError:
    return SapbertError(
        "E310",
        f"Expected a folder or an installed knowledge base under {str(name)!r}, but "
        f"{reason}. {fix}, or name a folder.",
    )


def check_no_pipeline(folder: Path) -> None:
    """Raise an error if a folder is a pipeline, with the knowledge base inside."""
    if (folder / PIPELINE_FILE).is_file() and not (folder / CURRENT).exists():
        folders = sorted(path.parent for path in folder.glob(f"*/*/{CURRENT}"))
        inside = f"in {folders[0]}" if folders else "the `kb` of a linker in config.cfg"
        raise no_kb(folder, f"it is a pipeline. Its knowledge base is {inside}")


def installed_name(source: str | Path | None) -> str | None:
    """Return the installed knowledge base that `find_kb` finds; None = a folder."""
    if source is not None and Path(source).is_dir():
        return None
    installed = installed_kbs()
    if source is None:
        return next(iter(installed)) if len(installed) == 1 else None
    return str(source) if str(source) in installed else None


def read_plain(path: Path) -> bytes:
    """Read a file; a pipe, which would block, is an error."""
    if path.exists() and not path.is_file():
        raise damaged_manifest(path, "it is not a plain file")
    return path.read_bytes()


def read_current(folder: Path) -> str:
    """Return the name of the version of a knowledge base that is used."""
    path = folder / CURRENT
    try:
        content = read_plain(path)
    except OSError:
        if VERSION.fullmatch(folder.name) and (folder.parent / CURRENT).is_file():
            reason = f"it is a version of {folder.parent}. Pass {folder.parent}; "
            use = "`spacy sapbert kb use` chooses the version"
            raise no_kb(folder, reason + use) from None
        if inside := sorted(folder.glob(f"*/{CURRENT}")):
            names = ", ".join(str(path.parent) for path in inside[:MOST_NAMED])
            reason = f"it is a folder with one. Name {names}"
            if len(inside) > 1:
                more = ", …" * (len(inside) > MOST_NAMED)
                reason = f"it is a folder with {len(inside)}. Name one: {names}{more}"
            raise no_kb(folder, reason) from None
        reason = "found no CURRENT. Build one with `spacy sapbert kb build "
        raise no_kb(folder, f"{reason}concepts.jsonl {folder} --encoder …`") from None
    name = content.decode("ascii", "replace").strip()
    if not VERSION.fullmatch(name):
        raise damaged_manifest(path, "it does not name a version")
    return name


def read_version(folder: Path, name: str | None = None) -> Version:
    """Read and check the meta.json of a version; None = the one that is used."""
    real_folder = Path(os.path.realpath(folder))
    name = name or read_current(real_folder)
    path = real_folder / name / FILE
    try:
        content = read_plain(path)
    except OSError as error:
        reason = f"it cannot be read ({error.strerror})"
        raise damaged_manifest(path, reason) from None
    manifest = parse_manifest(content, path)
    return Version(Path(os.path.abspath(folder)), name, manifest, real_folder)


def list_folders(folder: Path) -> list[str]:
    """Return the names of the folders of versions, the oldest first."""
    names = (path.name for path in folder.iterdir() if VERSION.fullmatch(path.name))
    return sorted(names, key=lambda name: int(name[1:]))


def list_versions(folder: Path) -> list[str]:
    """Return the names of published versions, which have a meta.json, oldest first."""
    return [n for n in list_folders(folder) if (folder / n / FILE).is_file()]


class HistoryEntry(NamedTuple):
    """A version of a knowledge base."""

    name: str
    used: bool
    date: datetime
    size: int  # bytes of the files that no earlier version has
    concepts: int  # as they were built; so are `names`
    names: int
    changed: int  # concepts, or added, since the build; so is `removed`
    removed: int
    taught: int  # annotated mentions
    right: float | None  # share of right first answers, by cross-validation
    threshold: float  # least probability of a link


def list_history(folder: Path) -> list[HistoryEntry]:
    """Describe the versions of a knowledge base, the oldest first."""
    current = read_current(folder)
    entries: list[HistoryEntry] = []
    for name in list_versions(folder):
        manifest = read_version(folder, name).manifest
        written = (folder / name / FILE).stat().st_mtime
        overlay, taught = manifest.overlay, manifest.taught
        entries.append(
            HistoryEntry(
                name,
                used=name == current,
                date=datetime.fromtimestamp(written).astimezone(),
                size=sum(f.size for f in manifest.files.values() if f.version is None),
                concepts=manifest.counts.concepts,
                names=manifest.counts.aliases,
                changed=overlay.concepts if overlay else 0,
                removed=overlay.removed if overlay else 0,
                taught=taught.mentions if taught else 0,
                right=taught.best if taught else None,
                threshold=manifest.threshold,
            )
        )
    return entries


def verify_files(
    version: Version, *, known: Version | None = None, whole: bool = False
) -> None:
    """Check size and sha256 of every file; the first that is different is an error.

    Equal paths of `known` are not read again; large files of numbers that were verified
    before on this machine, only if `whole`.
    """
    for path in sorted(version.encoder.rglob("*")):
        # It would be opened with the encoder.
        name = f"{ENCODER}/{path.relative_to(version.encoder).as_posix()}"
        if name not in version.manifest.files and not path.is_dir():
            raise damaged_file(path, "it was not there then")
    files = version.list_files()
    if known is not None:
        verified = known.list_files()
        files = {path: f for path, f in files.items() if verified.get(path) != f}
    # Checksums are computed without Python's lock.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verify = partial(verify_file, whole=whole)
        for _ in pool.map(verify, files.keys(), files.values()):
            pass


def verify_file(path: Path, expected: tuple[int, str], *, whole: bool) -> None:
    """Check size and sha256 of a file; see `verify_files`. Links are followed."""
    size, sha256 = expected
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # a pipe would block
            raise damaged_file(path, "it is not a plain file")
        if status.st_size != size:
            raise damaged_file(path, f"it has {status.st_size} bytes and not {size}")
        entry = find_verified(path, status, sha256)
        if entry is not None and not whole and os.path.isfile(entry):
            return
        with open(path, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                raise damaged_file(path, "it has a different sha256")
    except FileNotFoundError:
        raise damaged_file(path, "it is missing") from None
    except OSError as error:
        raise damaged_file(path, f"it cannot be read ({error.strerror})") from None
    if entry is not None:
        with suppress(OSError):  # a user without a cache
            entry.parent.mkdir(parents=True, exist_ok=True)
            entry.touch()


def find_verified(path: Path, status: os.stat_result, sha256: str) -> Path | None:
    """Return the file in the cache that stands for a large one; None = not cached."""
    if path.suffix not in LARGE_SUFFIXES or status.st_size < LARGE:
        return None
    values = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, sha256)
    name = hashlib.sha256(" ".join(map(str, values)).encode("ascii")).hexdigest()
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # the user has no home
        return None
    return base / "spacy_sapbert" / "verified" / name
