"""meta.json: what a knowledge base holds, and the checksum of every other file."""

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import Errors, SapbertError
from ..system.reading import file_digest
from ..system.writing import fcntl, lock_handle, write_json

FILE = "meta.json"
FORMAT = 2
EXPORTED = "encoder/openvino"  # what another engine runs
# What an export leaves when it is killed; nothing opens it.
UNFINISHED = re.compile(r"encoder/(openvino/|\.openvino\.).*")
OVERLAY_FOLDER = re.compile(r"overlay-\d+")
LARGEST_META = 1 << 24  # bytes; a real one has a few thousand

# What a meta.json must say, and of which type.
FIELDS: dict[str, type] = {
    "format": int,
    "package_version": str,
    "encoder": dict,
    "index": dict,
    "counts": dict,
    "sources": list,
    "threshold": (float, int, type(None)),  # type: ignore[dict-item]
    "files": dict,
}
ENCODER_FIELDS: dict[str, type] = {
    "base": str,
    "fingerprint": str,
    "width": int,
    "pooling": str,
    "max_length": int,
    "lowercase": bool,
}
INDEX_FIELDS: dict[str, type] = {"backend": str, "settings": dict}
OVERLAY_FIELDS: dict[str, type] = {
    "folder": str,
    "concepts": int,
    "rows": int,
    "removed": int,
}
COUNT_FIELDS: dict[str, type] = {"concepts": int, "aliases": int, "rows": int}

# What `calibration` must say, if it is there.
CALIBRATION_FIELDS: dict[str, type] = {
    "criterion": str,
    "threshold": (float, int),  # type: ignore[dict-item]
    "mentions": int,
    "documents": int,
    "files": list,
    "precision": (float, int),  # type: ignore[dict-item]
    "recall": (float, int),  # type: ignore[dict-item]
    "f1": (float, int),  # type: ignore[dict-item]
    "logistic": dict,
    "date": str,
    "package_version": str,
}
LOGISTIC_FIELDS: dict[str, type] = {
    "slope": (float, int),  # type: ignore[dict-item]
    "intercept": (float, int),  # type: ignore[dict-item]
}


def describe_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Measure every file of a folder but meta.json.

    folder (Path): The folder.
    RETURNS (dict[str, dict[str, Any]]): By relative path, size and sha256.
    """
    return {
        path.relative_to(folder).as_posix(): {
            "size": path.stat().st_size,
            "sha256": file_digest(path),
        }
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / FILE
    }


def encoder_fingerprint(files: dict[str, dict[str, Any]]) -> str:
    """Name an encoder by all its files.

    files (dict[str, dict[str, Any]]): From `describe_files`, of its folder.
    RETURNS (str): Equal for equal files, 16 hexadecimal digits.
    """
    lines = (f"{name} {entry['sha256']}\n" for name, entry in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode("utf8")).hexdigest()[:16]


def write_meta(folder: Path, meta: dict[str, Any]) -> None:
    """Write meta.json, with the checksums of the files that are there.

    folder (Path): Of the knowledge base.
    meta (dict[str, Any]): Everything but `format` and `files`.
    """
    whole = {"format": FORMAT, **meta, "files": describe_files(folder)}
    text = json.dumps(whole, indent=2, ensure_ascii=False)
    (folder / FILE).write_text(text + "\n", "utf8")


def read_meta(folder: Path) -> dict[str, Any]:
    """Read meta.json and check that it says what it has to.

    folder (Path): Of the knowledge base.
    RETURNS (dict[str, Any]): The parsed file.
    RAISES (SapbertError): If it is missing, damaged or of another format.
    """
    path = folder / FILE
    if not path.is_file():
        raise SapbertError(Errors.E303.format(path=folder))
    try:
        if path.stat().st_size > LARGEST_META:
            raise ValueError("it is too large")
        meta = json.loads(path.read_text("utf8"))
        check_fields(meta, {"format": int}, "it")
        if meta["format"] != FORMAT:
            raise SapbertError(
                Errors.E305.format(
                    expected=FORMAT,
                    path=folder,
                    got=meta["format"],
                    package=meta.get("package_version", "that time"),
                )
            )
        check_fields(meta, FIELDS, "it")
        check_fields(meta["encoder"], ENCODER_FIELDS, "`encoder`")
        check_fields(meta["index"], INDEX_FIELDS, "`index`")
        check_fields(meta["counts"], COUNT_FIELDS, "`counts`")
        if meta.get("calibration") is not None:
            check_calibration(meta["calibration"])
        if meta.get("overlay") is not None:
            check_fields(meta["overlay"], OVERLAY_FIELDS, "`overlay`")
            if not OVERLAY_FOLDER.fullmatch(meta["overlay"]["folder"]):
                raise ValueError("`overlay` names another folder")
        for name, entry in meta["files"].items():
            check_fields(entry, {"size": int, "sha256": str}, "`files`")
            parts = PurePosixPath(name).parts
            if not parts or parts[0] == "/" or ".." in parts or "\\" in name:
                raise ValueError("`files` names a place outside of the folder")
    except SapbertError:
        raise
    except (ValueError, OSError, RecursionError) as error:
        raise SapbertError(Errors.E304.format(path=path, reason=error)) from None
    return dict(meta)


def check_fields(data: Any, fields: dict[str, type], place: str) -> None:
    """Check that a JSON object has some fields of some types.

    data (Any): The object.
    fields (dict[str, type]): The type of each.
    place (str): What the object is called, for the error.
    RAISES (ValueError): If one is missing or of another type.
    """
    if not isinstance(data, dict):
        raise ValueError(f"{place} is no JSON object")
    for key, kind in fields.items():
        if key not in data or not isinstance(data[key], kind):
            raise ValueError(f"{place} has no valid `{key}`")


def check_calibration(calibration: Any) -> None:
    """Check that a calibration says what those who use it need.

    calibration (Any): What meta.json has under `calibration`.
    RAISES (ValueError): If something is missing, of another type or not finite.
    """
    check_fields(calibration, CALIBRATION_FIELDS, "`calibration`")
    check_fields(calibration["logistic"], LOGISTIC_FIELDS, "`calibration.logistic`")
    for each in calibration["files"]:
        check_fields(each, {"file": str, "sha256": str}, "`calibration.files`")
    numbers = (calibration["threshold"], *calibration["logistic"].values())
    if not all(isinstance(n, (float, int)) and math.isfinite(n) for n in numbers):
        raise ValueError("`calibration` has a number that is not finite")


def check_writable(folder: Path) -> None:
    """Check that meta.json can be written anew, before anything takes long.

    folder (Path): Of the knowledge base.
    RAISES (SapbertError): If it is read-only.
    """
    if not os.access(folder, os.W_OK):
        raise SapbertError(Errors.E586.format(path=folder))


@contextmanager
def hold_kb(folder: Path) -> Iterator[None]:
    """Keep others from changing a knowledge base, where the system has locks.

    folder (Path): Of the knowledge base.
    RAISES (SapbertError): If somebody is changing it.
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


def write_calibration(folder: Path, calibration: dict[str, Any]) -> dict[str, Any]:
    """Put a threshold and its evidence into meta.json; other files stay as they are.

    folder (Path): Of the knowledge base.
    calibration (dict[str, Any]): With the fields of `CALIBRATION_FIELDS`.
    RETURNS (dict[str, Any]): What meta.json says now.
    RAISES (SapbertError): If the knowledge base is read-only or damaged, somebody else
        is changing it, or the system refuses. Then meta.json is as it was.
    """
    check_writable(folder)
    check_calibration(calibration)
    with hold_kb(folder):
        meta = read_meta(folder)
        files = meta.pop("files")  # long, and so the last
        meta.update(threshold=calibration["threshold"], calibration=calibration)
        write_json(folder / FILE, {**meta, "files": files})
        return read_meta(folder)


def verify_files(folder: Path, meta: dict[str, Any]) -> None:
    """Hold every file against meta.json, before anything else opens it.

    folder (Path): Of the knowledge base.
    meta (dict[str, Any]): From `read_meta`.
    RAISES (SapbertError): At the first file that is missing, unknown or different.
    """
    present = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if not path.is_dir() and path != folder / FILE
    }
    for name, entry in meta["files"].items():
        problem = find_damage(present.pop(name, None), entry)
        if problem:
            raise SapbertError(Errors.E306.format(path=folder / name, reason=problem))
    # A file that nobody knows would be opened with the encoder all the same.
    for name in sorted(present):
        if name.startswith("encoder/") and not UNFINISHED.fullmatch(name):
            reason = "it was not there then"
            raise SapbertError(Errors.E306.format(path=folder / name, reason=reason))


def find_damage(path: "Path | None", entry: dict[str, Any]) -> str:
    """Compare one file with its description.

    path (Path | None): The file; None if it is not there.
    entry (dict[str, Any]): Its size and sha256.
    RETURNS (str): What differs; empty if nothing does.
    """
    if path is None or not path.is_file():
        return "it is missing"
    size = path.stat().st_size
    if size != entry["size"]:
        return f"it has {size} bytes and not {entry['size']}"
    if file_digest(path) != entry["sha256"]:
        return "its sha256 is another"
    return ""


def list_engines(meta: dict[str, Any]) -> list[str]:
    """Tell what can run the encoder of a knowledge base.

    meta (dict[str, Any]): From `read_meta`.
    RETURNS (list[str]): Names of engines; PyTorch can in any case.
    """
    exported = any(name.startswith(f"{EXPORTED}/") for name in meta["files"])
    return ["torch", *(["openvino"] if exported else [])]


def describe_meta(meta: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return what people want to know of a knowledge base, line by line.

    meta (dict[str, Any]): From `read_meta`.
    RETURNS (list[tuple[str, Any]]): What, and its value.
    """
    counts, encoder, index = meta["counts"], meta["encoder"], meta["index"]
    size = sum(entry["size"] for entry in meta["files"].values())
    settings = ", ".join(f"{key} {value}" for key, value in index["settings"].items())
    overlay = meta.get("overlay") or {"concepts": 0, "removed": 0}
    return [
        ("Concepts", f"{counts['concepts']:,}"),
        ("Concepts added since", f"{overlay['concepts']:,}"),
        ("Concepts removed since, or names of them", f"{overlay['removed']:,}"),
        ("Names", f"{counts['aliases']:,}"),
        ("Distinct names in the index", f"{counts['rows']:,}"),
        ("Names that the encoder cannot read", f"{counts.get('unreadable', 0):,}"),
        ("Index", f"{index['backend']} ({settings})" if settings else index["backend"]),
        ("Character 3-grams", "yes" if meta.get("ngrams") else "no"),
        ("Encoder", f"{encoder['base']} ({encoder['fingerprint']})"),
        ("Engines", ", ".join(list_engines(meta))),
        ("Vectors", f"{encoder['width']} wide, {encoder['pooling']} pooling"),
        ("Threshold", "none" if meta["threshold"] is None else meta["threshold"]),
        *describe_calibration(meta.get("calibration")),
        ("Sources", "; ".join(meta["sources"]) or "not named"),
        ("Size", f"{size / 1e6:,.1f} MB"),
        ("Made with", f"spacy-sapbert {meta['package_version']}"),
    ]


def describe_calibration(
    calibration: "dict[str, Any] | None",
) -> list[tuple[str, Any]]:
    """Say how a threshold was found, in a line.

    calibration (dict[str, Any] | None): What meta.json has under `calibration`.
    RETURNS (list[tuple[str, Any]]): What, and its value; empty for None.
    """
    if calibration is None:
        return []
    found = (
        f"{calibration['criterion']} on {calibration['mentions']:,} mentions of "
        f"{', '.join(each['file'] for each in calibration['files'])}: precision "
        f"{calibration['precision']:.3f}, recall {calibration['recall']:.3f} "
        f"({calibration['date']})"
    )
    return [("Calibrated by", found)]
