"""Small knowledge bases, built quickly."""

from pathlib import Path
from typing import Any

from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.folder.records import Calibration, Manifest
from spacy_sapbert.linking.chance import Chance
from spacy_sapbert.linking.trees import Trees


def build_small_kb(
    concepts: Path, folder: Path, encoder: Path | str, **options: Any
) -> Manifest:
    """Build with one thread, and without the export for ONNX Runtime."""
    build = {"threads": 1, "engine": "torch", **options}
    return build_kb(concepts, folder, str(encoder), **build)


def make_chance(slope: float = 10.0, middle: float = 0.5) -> Chance:
    """Return a probability that grows with the letters that are alike.

    It is a half if `middle` of them are.
    """
    step = slope / 40
    trees = [
        f"characters>{middle + number / 20:.9g}: {-step:.6g} {step:.6g}"
        for number in range(-20, 21)
    ]
    return Chance(trees=Trees(trees=trees), intercept=0.0, names=[5.0, 5.0])


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
        "thresholds": [{"threshold": 0.75, "precision": 0.9, "recall": 0.8}],
        "correction": {"slope": 2.0, "intercept": -1.0},
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
