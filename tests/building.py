"""Small knowledge bases, built quickly."""

from pathlib import Path
from typing import Any

from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.folder.records import Calibration, Manifest


def build_small_kb(
    concepts: Path, folder: Path, encoder: Path | str, **options: Any
) -> Manifest:
    """Build with one thread, and without the export for ONNX Runtime."""
    build = {"threads": 1, "engine": "torch", **options}
    return build_kb(concepts, folder, str(encoder), **build)


def make_calibration() -> Calibration:
    """Return a calibration to write into knowledge bases."""
    data = {
        "criterion": "f1",
        "threshold": 0.75,
        "mentions": 1234,
        "documents": 100,
        "files": [{"file": "train.tsv", "sha256": "0" * 64}],
        "precision": 0.9,
        "recall": 0.8,
        "f1": 0.847059,
        "logistic": {"slope": 10.0, "intercept": -7.0},
        "date": "2026-01-02",
        "package_version": "0.1.0",
    }
    return Calibration.model_validate(data)


def annotated_mention(text: str, parts: list[list[str]]) -> GoldMention:
    """Return a mention without a place."""
    return GoldMention(-1, -1, "", text, parts, 0)


def annotated_document(
    source: str, text: str, mentions: list[GoldMention]
) -> GoldDocument:
    return GoldDocument("", text, mentions, source)
