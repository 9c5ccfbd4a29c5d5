"""Releases and licences of vocabularies, in a file beside concepts.jsonl."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..io.reading import file_digest
from ..io.writing import write_json
from .report import LICENCE, MOST_SOURCES, RELEASE, Report

ENDING = ".sources.json"
MAX_BYTES = 1 << 22


class SourceRelease(BaseModel):
    """What a file says of a vocabulary.

    Attributes:
        release: E.g. "2026-06-23"; "" = unknown.
        licence: As the file words it; "" = unknown.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    release: Annotated[str, Field(max_length=RELEASE)] = ""
    licence: Annotated[str, Field(max_length=LICENCE)] = ""


class Releases(BaseModel):
    """The file: of which concepts.jsonl it is, and its vocabularies by their name."""

    model_config = ConfigDict(strict=True, extra="forbid")

    concepts_sha256: str
    sources: dict[str, SourceRelease] = Field(max_length=MOST_SOURCES)


def releases_path(concepts: Path) -> Path:
    """Return the path of the file beside a concepts.jsonl."""
    return concepts.with_name(f"{concepts.name}{ENDING}")


def write_releases(concepts: Path, reports: Iterable[Report]) -> None:
    """Write the releases that readers found; remove an older file if there are none."""
    releases: dict[str, dict[str, str]] = {}
    for report in reports:
        for source, (release, licence) in report.releases.items():
            if len(releases) < MOST_SOURCES:
                releases.setdefault(source, {"release": release, "licence": licence})
    path = releases_path(concepts)
    if releases:
        data = {"concepts_sha256": file_digest(concepts), "sources": releases}
        write_json(path, data)
    else:
        path.unlink(missing_ok=True)


def read_releases(concepts: Path) -> Mapping[str, SourceRelease]:
    """Read the releases of a concepts.jsonl; those of another one do not count.

    Returns:
        By source; empty if nothing is known.
    """
    path = releases_path(concepts)
    try:
        with path.open("rb") as file:
            data: Any = file.read(MAX_BYTES)
        releases = Releases.model_validate_json(data)
    except (OSError, ValidationError):
        return {}
    same = releases.concepts_sha256 == file_digest(concepts)
    return releases.sources if same else {}
