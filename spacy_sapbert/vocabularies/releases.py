"""Releases and licences of vocabularies, in a file beside concepts.jsonl."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ..io.reading import file_digest
from ..io.writing import write_json
from .report import Report

ENDING = ".sources.json"


class SourceRelease(BaseModel):
    """What a file says of a vocabulary.

    Attributes:
        release: E.g. "2026-06-23"; "" = unknown.
        licence: As the file words it; "" = unknown.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    release: str = ""
    licence: str = ""


class Releases(BaseModel):
    """The file: of which concepts.jsonl it is, and its vocabularies by their name."""

    model_config = ConfigDict(strict=True, extra="forbid")

    concepts_sha256: str
    sources: dict[str, SourceRelease]


def releases_path(concepts: Path) -> Path:
    """Return the path of the file beside a concepts.jsonl."""
    return concepts.with_name(f"{concepts.name}{ENDING}")


def unite_releases(reports: Iterable[Report]) -> dict[str, SourceRelease]:
    """Return the releases that readers found, by source."""
    releases: dict[str, SourceRelease] = {}
    for report in reports:
        for source, (release, licence) in report.releases.items():
            found = SourceRelease(release=release, licence=licence)
            releases.setdefault(source, found)
    return releases


def write_releases(concepts: Path, reports: Iterable[Report]) -> None:
    """Write the releases that readers found; remove an older file if there are none."""
    path = releases_path(concepts)
    if releases := unite_releases(reports):
        digest = file_digest(concepts)
        data = Releases(concepts_sha256=digest, sources=releases)
        write_json(path, data.model_dump())
    else:
        path.unlink(missing_ok=True)


def read_releases(concepts: Path) -> Mapping[str, SourceRelease]:
    """Return the releases of a concepts.jsonl by source; a file of another is empty."""
    try:
        data = releases_path(concepts).read_bytes()
        releases = Releases.model_validate_json(data)
    except (OSError, ValidationError):
        return {}
    same = releases.concepts_sha256 == file_digest(concepts)
    return releases.sources if same else {}
