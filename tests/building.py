"""Small knowledge bases, built quickly."""

from pathlib import Path
from typing import Any

from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.folder.records import Manifest


def build_small_kb(
    concepts: Path, folder: Path, encoder: Path | str, **options: Any
) -> Manifest:
    """Build with one thread, and without the export of half a second for OpenVINO."""
    build = {"threads": 1, "engine": "torch", **options}
    return build_kb(concepts, folder, str(encoder), **build)
