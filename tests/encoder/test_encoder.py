import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModel, AutoTokenizer

from spacy_sapbert.encoder.encoder import (
    LEAST_NAMES,
    MOST_PADDED,
    Encoder,
    EncoderConfig,
    split_passes,
)
from spacy_sapbert.encoder.huggingface import (
    EncoderSettings,
    check_settings,
    load_encoder,
)
from spacy_sapbert.encoder.pooling import POOLINGS
from spacy_sapbert.errors import SapbertError

NAMES = ["heart attack", "Fever", "a", "pain of the lung, acute", "x y z " * 20, "ä"]


@pytest.fixture(scope="module")
def encoder(tiny_encoder: Path) -> Encoder:
    return Encoder.open(tiny_encoder)


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
    config, settings = EncoderConfig(names_per_pass=4), EncoderSettings(pooling)
    encoder = Encoder.open(tiny_encoder, config, settings=settings)
    assert Encoder.open(tiny_encoder).settings == EncoderSettings("mean", 25, True)
    vectors = encoder.embed(NAMES)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, plain_vectors(tiny_encoder, pooling, 25), atol=1e-5)


@pytest.mark.parametrize("names_per_pass", [1, 3, 64])
def test_encoder_does_not_depend_on_the_batch(
    tiny_encoder: Path, names_per_pass: int
) -> None:
    config = EncoderConfig(names_per_pass=names_per_pass)
    encoder = Encoder.open(tiny_encoder, config)
    alone = np.concatenate([encoder.embed([name]) for name in NAMES])
    assert np.allclose(encoder.embed(NAMES), alone, atol=1e-6)


@given(st.lists(st.integers(1, 25), max_size=300).map(sorted), st.integers(1, 64))
def test_passes_have_all_names_and_little_padding(
    lengths: list[int], most: int
) -> None:
    passes = [*split_passes(lengths, most)]
    covered = [n for start, end in passes for n in range(start, end)]
    assert covered == [*range(len(lengths))]
    for start, end in passes:
        assert 0 < end - start <= most
        padded = (end - start) * lengths[end - 1]
        if end - start > LEAST_NAMES:
            assert padded <= MOST_PADDED * sum(lengths[start:end])


def test_names_of_one_length_share_a_pass() -> None:
    assert [*split_passes([7] * 128, 64)] == [(0, 64), (64, 128)]
    assert [*split_passes([], 64)] == []
    assert [*split_passes([3] * 8 + [20] * 8, 64)] == [(0, 8), (8, 16)]


def test_encoder_bfloat16_is_close_to_float32(
    encoder: Encoder, tiny_encoder: Path
) -> None:
    fast = Encoder.open(tiny_encoder, EncoderConfig(precision="bf16"))
    cosines = (encoder.embed(NAMES) * fast.embed(NAMES)).sum(axis=1)
    assert cosines.min() > 0.99


def test_encoder_unreadable_names_have_the_zero_vector(encoder: Encoder) -> None:
    pieces, cut = encoder.tokenize(["頭痛", "", "\ud800", "fever"])
    assert pieces[:2] == [(), ()]
    assert pieces[3] != ()
    assert cut == [False] * 4
    assert not encoder.embed(["頭痛"]).any()
    assert encoder.embed([]).shape == (0, 32)


def test_encoder_truncates_and_flags_long_names(encoder: Encoder) -> None:
    names = ["a " * 30, "a " * 23, "fever" + " " * 5000, "a" * 10_000]
    pieces, cut = encoder.tokenize(names)
    assert cut == [True, False, True, True]
    separator = encoder.engine.tokenizer.backend.token_to_id("[SEP]")
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
        Encoder.open(folder)


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


@pytest.mark.parametrize(
    ("values", "code"),
    [({"engine": "onnx"}, "E331"), ({"precision": "fp8"}, "E331")]
    + [({"names_per_pass": 0}, "E331")],
)
def test_encoder_config_with_an_impossible_value_is_an_error(
    values: dict[str, Any], code: str
) -> None:
    with pytest.raises(SapbertError, match=code):
        EncoderConfig(**values)
