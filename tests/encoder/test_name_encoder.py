import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from spacy_sapbert.encoder.huggingface import (
    EncoderSettings,
    check_settings,
    load_encoder,
)
from spacy_sapbert.encoder.name_encoder import (
    create_transformer_encoder,
    open_encoder,
    tokenize_names,
)
from spacy_sapbert.encoder.pooling import POOLINGS
from spacy_sapbert.errors import SapbertError

NAMES = ["heart attack", "Fever", "a", "pain of the lung, acute", "x y z " * 20, "ä"]


@pytest.fixture(scope="module")
def model(tiny_encoder: Path) -> Any:
    model = create_transformer_encoder()
    open_encoder(model, tiny_encoder)
    return model


def plain_vectors(folder: Path, pooling: str, max_length: int) -> np.ndarray:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    batch = tokenizer(
        [name.lower() for name in NAMES],
        truncation=True,
        max_length=max_length,
        padding=True,
        return_tensors="pt",
    )
    with torch.no_grad():
        states = model(**batch).last_hidden_state
    if pooling == "cls":
        pooled = states[:, 0]
    else:
        mask = batch["attention_mask"][:, :, None]
        pooled = (states * mask).sum(1) / mask.sum(1)
    return torch.nn.functional.normalize(pooled, dim=1).numpy()


@pytest.mark.parametrize("pooling", sorted(POOLINGS))
def test_encoder_equals_transformers(tiny_encoder: Path, pooling: str) -> None:
    model = create_transformer_encoder(names_per_pass=4)
    open_encoder(model, tiny_encoder, settings=EncoderSettings(pooling, 25, True))
    vectors = model.predict(NAMES)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, plain_vectors(tiny_encoder, pooling, 25), atol=1e-5)


def test_encoder_reads_settings_from_the_folder(model: Any) -> None:
    assert model.attrs["settings"] == EncoderSettings("mean", 25, True)


@pytest.mark.parametrize("names_per_pass", [1, 3, 64])
def test_encoder_does_not_depend_on_the_batch(
    tiny_encoder: Path, names_per_pass: int
) -> None:
    model = create_transformer_encoder(names_per_pass)
    open_encoder(model, tiny_encoder)
    alone = np.concatenate([model.predict([name]) for name in NAMES])
    assert np.allclose(model.predict(NAMES), alone, atol=1e-6)


def test_encoder_bfloat16_is_close_to_float32(model: Any, tiny_encoder: Path) -> None:
    fast = create_transformer_encoder(64, "bf16")
    open_encoder(fast, tiny_encoder)
    cosines = (model.predict(NAMES) * fast.predict(NAMES)).sum(axis=1)
    assert cosines.min() > 0.99


def test_encoder_without_names_is_empty(model: Any) -> None:
    assert model.predict([]).shape == (0, 32)


def test_encoder_unreadable_names_have_the_zero_vector(model: Any) -> None:
    pieces, cut = tokenize_names(model, ["頭痛", "", "\ud800", "fever"])
    assert pieces[:2] == [(), ()]
    assert pieces[3] != ()
    assert cut == [False] * 4
    assert not model.predict(["頭痛"]).any()


def test_encoder_truncates_and_flags_long_names(model: Any) -> None:
    names = ["a " * 30, "a " * 23, "fever" + " " * 5000, "a" * 10_000]
    pieces, cut = tokenize_names(model, names)
    assert cut == [True, False, True, True]
    separator = model.attrs["engine"].tokenizer.backend.token_to_id("[SEP]")
    assert len(pieces[0]) == len(pieces[1]) == 25
    assert pieces[0][-1] == pieces[1][-1] == separator


def test_load_encoder_with_custom_code_is_an_error(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "foreign"))
    config = folder / "config.json"
    text = config.read_text("utf8")
    config.write_text(
        text.replace("{", '{"auto_map": {"AutoModel": "x.Y"},', 1), "utf8"
    )
    with pytest.raises(SapbertError, match="auto_map"):
        open_encoder(create_transformer_encoder(), folder)


def test_load_encoder_missing_folder_is_an_error_without_network(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.chdir(tiny_encoder.parent.parent)
    typo = f"{tiny_encoder.parent.name}/encodr"
    for name in (str(tmp_path / "none"), "./none", typo):
        with pytest.raises(SapbertError, match="encoder folder at"):
            load_encoder(name)


def test_load_encoder_folder_without_weights_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match="safetensors"):
        open_encoder(create_transformer_encoder(), tmp_path)


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"pooling": "cls", "max_length": 25},
        {"pooling": "max", "max_length": 25, "lowercase": True},
        {"pooling": "cls", "max_length": 2, "lowercase": True},
        {"pooling": "cls", "max_length": True, "lowercase": True},
    ],
)
def test_read_settings_invalid_values_are_an_error(data: object) -> None:
    with pytest.raises(SapbertError, match="pooling"):
        check_settings(data)
