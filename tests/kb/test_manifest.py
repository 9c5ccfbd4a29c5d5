import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.cli.kb import describe_manifest
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.manifest import (
    Calibration,
    read_manifest,
    write_calibration,
)

DATA: dict[str, Any] = {
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
CALIBRATION = Calibration(**DATA)

WRITE = """
import json, sys
from pathlib import Path
from spacy_sapbert.kb.manifest import Calibration, write_calibration
data = json.loads(sys.argv[2])
data["criterion"] = "f1" * 100_000  # long enough to be cut
calibration = Calibration(**data)
print("ready", flush=True)
while True:
    write_calibration(Path(sys.argv[1]), calibration)
"""


def contents(folder: Path) -> dict[Path, bytes]:
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_write_calibration_changes_only_meta_json(own_kb: Path) -> None:
    before, meta = contents(own_kb), read_manifest(own_kb)
    assert write_calibration(own_kb, CALIBRATION) == read_manifest(own_kb)
    after = contents(own_kb)
    assert before.keys() == after.keys()
    assert {p for p in after if after[p] != before[p]} == {Path("meta.json")}
    update = {"threshold": 0.75, "calibration": CALIBRATION}
    assert load_kb(own_kb).manifest == meta.model_copy(update=update)


def test_write_calibration_sets_the_threshold_in_use(own_kb: Path) -> None:
    write_calibration(own_kb, CALIBRATION.model_copy(update={"threshold": 1.0}))
    known, unknown = load_kb(own_kb).link(["aspirin", "xyz of the q"])
    assert known.note is None
    assert unknown.note is not None


def test_write_calibration_replaces_the_old_one(own_kb: Path) -> None:
    write_calibration(own_kb, CALIBRATION)
    again = Calibration(**{**DATA, "threshold": 0.5, "criterion": "accuracy"})
    assert write_calibration(own_kb, again).calibration == again
    assert read_manifest(own_kb).threshold == 0.5


def test_load_kb_without_a_calibration_has_none(
    sample_kb: Path,
) -> None:
    meta = read_manifest(sample_kb)
    assert meta.calibration is None
    assert "Calibrated by" not in dict(describe_manifest(meta))


def test_kb_info_shows_the_calibration(own_kb: Path) -> None:
    lines = dict(describe_manifest(write_calibration(own_kb, CALIBRATION)))
    assert lines["Threshold"] == 0.75
    assert lines["Calibrated by"] == (
        "f1 on 1,234 mentions of train.tsv: precision 0.900, recall 0.800 (2026-01-02)"
    )


@pytest.mark.parametrize(
    "damage",
    [
        {"threshold": None},
        {"threshold": float("nan")},
        {"logistic": {"slope": 1.0}},
        {"logistic": {"slope": 1.0, "intercept": float("inf")}},
        {"files": [{"file": "train.tsv"}]},
        {"files": ["train.tsv"]},
        {"date": 20260102},
    ],
)
def test_load_kb_damaged_calibration_is_an_error(
    own_kb: Path, damage: dict[str, Any]
) -> None:
    meta = read_manifest(own_kb).model_dump()
    meta["calibration"] = {**DATA, **damage}
    (own_kb / "meta.json").write_text(json.dumps(meta), "utf8")
    with pytest.raises(SapbertError, match=r"E304.*`calibration"):
        load_kb(own_kb)


def test_write_calibration_of_a_read_only_kb_is_an_error(
    own_kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(own_kb)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(SapbertError, match=r"E586.*--dry-run"):
        write_calibration(own_kb, CALIBRATION)
    assert contents(own_kb) == before


@pytest.mark.parametrize("delay", [0.0, 0.002, 0.01])
def test_write_calibration_killed_leaves_a_complete_kb(
    own_kb: Path, delay: float
) -> None:
    data = json.dumps(DATA)
    command = [sys.executable, "-c", WRITE, str(own_kb), data]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert load_kb(own_kb).manifest.threshold in (None, 0.75)
    # the next one takes away what the first left
    write_calibration(own_kb, CALIBRATION)
    assert not list(own_kb.glob(".*"))
