import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.folder.records import Calibration
from spacy_sapbert.kb.folder.versions import read_version
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.settings import write_calibration

Contents = Callable[[Path], dict[Path, bytes]]


def test_write_calibration_publishes_a_version_with_another_meta_json(
    own_kb: Path, calibration: Calibration, contents: Contents
) -> None:
    before, version = contents(own_kb), read_version(own_kb)
    meta = version.manifest
    assert write_calibration(version, calibration) == read_version(own_kb).manifest
    after = contents(own_kb)
    new = {path for path in after if after[path] != before.get(path)}
    assert new == {Path("CURRENT"), Path("v2/meta.json")}
    manifest = load_kb(own_kb).manifest
    update = {"threshold": 0.75, "calibration": calibration, "digest": manifest.digest}
    expected = meta.model_copy(update=update).model_dump(exclude={"files"})
    assert manifest.model_dump(exclude={"files"}) == expected
    assert manifest.digest != meta.digest


def test_write_calibration_sets_the_threshold_in_use(
    own_kb: Path, calibration: Calibration
) -> None:
    strict = calibration.model_copy(update={"threshold": 1.0})
    write_calibration(read_version(own_kb), strict)
    known, unknown = load_kb(own_kb).link(["aspirin", "xyz of the q"])
    assert known.note is None
    assert unknown.note is not None


def test_write_calibration_replaces_the_old_one(
    own_kb: Path, calibration: Calibration
) -> None:
    write_calibration(read_version(own_kb), calibration)
    update = {"threshold": 0.5, "criterion": "accuracy"}
    again = calibration.model_copy(update=update)
    assert write_calibration(read_version(own_kb), again).calibration == again
    assert read_version(own_kb).manifest.threshold == 0.5


def test_write_calibration_of_a_read_only_kb_is_an_error(
    own_kb: Path,
    calibration: Calibration,
    contents: Contents,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = contents(own_kb)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(SapbertError, match=r"E586.*cp -r"):
        write_calibration(read_version(own_kb), calibration)
    assert contents(own_kb) == before
