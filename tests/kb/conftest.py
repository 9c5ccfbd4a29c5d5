"""A calibration to write into knowledge bases, and the bytes of a folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from spacy_sapbert.kb.folder.records import Calibration

STOP_AT_WRITE = """
import errno, os, signal, sys
WRITES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link"}
left, how = -1, ""

def is_write(event, arguments):
    if event == "open":
        _, mode, flags = arguments
        return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    if event == "sqlite3.connect":
        return "mode=ro" not in str(arguments)
    return event in WRITES

def watch(event, arguments):
    global left
    if left > 0 and is_write(event, arguments):
        left -= 1
        if left == 0 and how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")

sys.addaudithook(watch)
"""


@pytest.fixture(scope="session")
def stop_at_write() -> str:
    """Code that stops its process at write number `left`: `how` "kill" or "full"."""
    return STOP_AT_WRITE


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
