"""Digests of everything that decides an output: only the same command resumes."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..formats.documents import list_inputs

if TYPE_CHECKING:
    from spacy.language import Language


def digest_json(data: Any) -> str:
    """Return the sha256 of plain JSON types, in hexadecimal."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def digest_inputs(paths: Iterable[Path]) -> str:
    """Return the sha256 of the names and sizes of all input files."""
    digest = hashlib.sha256()
    for path, name in list_inputs(paths):
        size = path.stat().st_size if path.is_file() else None
        digest.update(f"{name}\0{size}\0".encode("utf8", "surrogateescape"))
    return digest.hexdigest()


def digest_pipeline(nlp: "Language") -> str:
    """Return the sha256 of name, version and config of a pipeline, not its weights."""
    described = [nlp.meta.get("name"), nlp.meta.get("version"), nlp.config.to_str()]
    return digest_json(described)
