"""A calibration to write into knowledge bases, and the bytes of a folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from spacy_sapbert.kb.folder.records import Calibration
from tests.building import make_calibration


@pytest.fixture(scope="session")
def calibration() -> Calibration:
    return make_calibration()


@pytest.fixture(scope="session")
def contents() -> Callable[[Path], dict[Path, bytes]]:
    """The bytes of every file of a folder, but the lock of writers."""

    def read(folder: Path) -> dict[Path, bytes]:
        files = (path for path in folder.rglob("*") if path.is_file())
        names = (path for path in files if path.name != ".lock")
        return {path.relative_to(folder): path.read_bytes() for path in names}

    return read
