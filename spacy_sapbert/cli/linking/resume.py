"""Digests of everything that decides an output: only the same command resumes."""

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...formats.inputs.files import InputFile

if TYPE_CHECKING:
    from spacy.language import Language


def digest_json(data: Any) -> str:
    """Return the sha256 of plain JSON types, in hexadecimal."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def digest_inputs(files: Iterable[InputFile]) -> str:
    """Return the sha256 of the names, formats and sizes of all input files."""
    digest = hashlib.sha256()
    for path, name, format in files:
        size = path.stat().st_size if path.is_file() else None
        described = f"{name}\0{format}\0{size}\0"
        digest.update(described.encode("utf8", "surrogateescape"))
    return digest.hexdigest()


def digest_pipeline(nlp: "Language") -> str:
    """Return the sha256 of name, version and config of a pipeline, not its weights."""
    described = [nlp.meta.get("name"), nlp.meta.get("version"), nlp.config.to_str()]
    return digest_json(described)


def describe_system(nlp: "Language", digest: str) -> str:
    """Return what linked in words, for people: pipeline, package, knowledge base."""
    pipeline = f"{nlp.lang}_{nlp.meta.get('name')} {nlp.meta.get('version')}"
    return f"{pipeline}, spacy-sapbert {__version__}, kb {digest[:16]}"
