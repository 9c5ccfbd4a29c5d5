"""A calibration to write into knowledge bases, and the bytes of a folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from spacy_sapbert.kb.folder.records import Calibration


@pytest.fixture(scope="session")
def calibration() -> Calibration:
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


@pytest.fixture(scope="session")
def contents() -> Callable[[Path], dict[Path, bytes]]:
    """The bytes of every file of a folder, but the lock of writers."""

    def read(folder: Path) -> dict[Path, bytes]:
        files = (path for path in folder.rglob("*") if path.is_file())
        names = (path for path in files if path.name != ".lock")
        return {path.relative_to(folder): path.read_bytes() for path in names}

    return read
