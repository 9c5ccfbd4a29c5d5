"""The versions of a knowledge base: folders that never change once they are published.

    kb/
      CURRENT     the name of the version that is used: "v3"
      v1/         meta.json, concepts.db, index.*, encoder/, ngrams/
      v3/         meta.json, which names the files of v1 that it uses, and overlay/

This module reads them; `publication` writes them.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...errors import SapbertError
from .records import (
    CURRENT,
    ENCODER,
    FILE,
    FORMAT,
    OVERLAY,
    STORE_FILE,
    VERSION,
    FileRecord,
    Manifest,
)

# Fields that meta.json lacks if they are None.
OPTIONAL = ("vocabularies", "recall", "calibration", "order", "overlay")


@dataclass(frozen=True)
class Version:
    """A version of a knowledge base on the disk.

    Attributes:
        folder: The knowledge base, an absolute path.
        name: The folder of the version in it.
        manifest: Its meta.json.
        real_folder: The same without symbolic links, which may lead elsewhere later.
    """

    folder: Path
    name: str
    manifest: Manifest
    real_folder: Path

    def path(self, file: str) -> Path:
        """Return the path of a file of meta.json."""
        return (
            self.real_folder / (self.manifest.files[file].version or self.name) / file
        )

    @property
    def encoder(self) -> Path:
        """The folder of the encoder."""
        return self.path(f"{ENCODER}/config.json").parent

    def check(self) -> None:
        """Raise an error if the whole folder was replaced since it was read.

        A published version never changes, but somebody may remove its folder, and give
        the name to a different one.
        """
        if (
            read_version(self.real_folder, self.name).manifest.digest
            != self.manifest.digest
        ):
            raise damaged_file(self.real_folder / self.name, "it was replaced since")

    def keep(self, *, overlay: bool) -> dict[str, FileRecord]:
        """Return the files, with those of the overlay or not, for a later version."""
        return {
            name: record.model_copy(update={"version": record.version or self.name})
            for name, record in self.manifest.files.items()
            if overlay or not name.startswith(f"{OVERLAY}/")
        }


def damaged_file(path: Path, reason: str) -> SapbertError:
    """Return the error for a file that is not as it was."""
    return SapbertError(
        "E306",
        f"Expected {path} as it was when the knowledge base was built, but {reason}. "
        "Copy or build the knowledge base again.",
    )


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
    written = {k: v for k, v in data.items() if v is not None or k not in OPTIONAL}
    for record in written["files"].values():
        if record["version"] is None:
            del record["version"]
    written["digest"] = compute_digest(written)
    text = json.dumps(written, indent=2, ensure_ascii=False)
    return text.encode("utf8", "replace") + b"\n", written["digest"]


def parse_manifest(content: bytes, path: Path | str) -> Manifest:
    """Read and check the content of meta.json; `path` is for the error."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged_manifest(path, error) from None
    if not isinstance(data, dict) or type(data.get("format")) is not int:
        raise damaged_manifest(path, "it has no `format`")
    if data["format"] != FORMAT:
        got = f"format {data['format']}"
        raise other_format(expected=FORMAT, path=path, got=got)
    try:
        manifest = Manifest.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        reason = f"`{field}`: {first['msg']}" if field else first["msg"]
        raise damaged_manifest(path, reason) from None
    if manifest.digest != compute_digest(data):
        reason = "it has a different digest: it was changed or damaged"
        raise damaged_manifest(path, reason)
    return manifest


def damaged_manifest(path: Path | str, reason: object) -> SapbertError:
    """Return the error for a meta.json or CURRENT that cannot be used."""
    return SapbertError(
        "E304",
        f"{path}: Expected the description of a knowledge base, but {reason}. Build "
        "or copy the knowledge base again.",
    )


def own_files(manifest: Manifest) -> Manifest:
    """Return a meta.json of which all files are in the folder of its version."""
    files = {
        name: record.model_copy(update={"version": None})
        for name, record in manifest.files.items()
    }
    return manifest.model_copy(update={"files": files})


def read_current(folder: Path) -> str:
    """Return the name of the version of a knowledge base that is used."""
    path = folder / CURRENT
    try:
        content = path.read_bytes()
    except OSError:
        if VERSION.fullmatch(folder.name) and (folder.parent / CURRENT).is_file():
            raise SapbertError(
                "E368",
                f"Expected a knowledge base, but {folder} is a version of "
                f"{folder.parent}. Pass {folder.parent}; `spacy sapbert kb use` "
                "chooses the version.",
            ) from None
        if (folder / FILE).is_file() and (folder / STORE_FILE).is_file():
            values = {"expected": FORMAT, "path": folder, "got": "an older one"}
            raise other_format(**values) from None
        raise SapbertError(
            "E303",
            f"Expected a knowledge base in {folder}, but found no CURRENT. Build one "
            f"with `spacy sapbert kb build concepts.jsonl {folder} --encoder …`.",
        ) from None
    return parse_current(content, path)


def parse_current(content: bytes, path: Path | str) -> str:
    """Return the version that the content of CURRENT names; `path` is for the error."""
    name = content.decode("ascii", "replace").strip()
    if not VERSION.fullmatch(name):
        raise damaged_manifest(path, "it does not name a version")
    return name


def read_version(folder: Path, name: str | None = None) -> Version:
    """Read and check the meta.json of a version; None = the one that is used.

    Raises:
        SapbertError: If there is none, or it is damaged or of a different format.
    """
    real_folder = Path(os.path.realpath(folder))
    name = name or read_current(real_folder)
    path = real_folder / name / FILE
    try:
        content = path.read_bytes()
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
    """Return the names of the published versions, the oldest first.

    A folder without meta.json is what somebody left of one.
    """
    return [n for n in list_folders(folder) if (folder / n / FILE).is_file()]


def other_format(*, expected: object, path: object, got: object) -> SapbertError:
    return SapbertError(
        "E305",
        f"Expected a knowledge base of format {expected}, but {path} has {got}. Build "
        "a new folder, `spacy sapbert kb build concepts.jsonl NEW --encoder …`, and "
        "remove the old one.",
    )
