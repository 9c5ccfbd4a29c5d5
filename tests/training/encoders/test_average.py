from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel

from spacy_sapbert.encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    read_settings,
    save_encoder,
)
from training.encoders.average import average_command


@pytest.fixture(scope="module")
def trained_encoder(
    tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The tiny encoder, with each weight changed at random."""
    folder = tmp_path_factory.mktemp("average") / "trained"
    folder.mkdir()
    tokenizer, model = load_encoder(str(tiny_encoder))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight += torch.randn(weight.shape, generator=generator)
    save_encoder(folder, tokenizer, model, EncoderSettings("mean", 12, True))
    (folder / "README.md").write_text("---\ntags: []\n---\n\n# How it was made\n")
    return folder


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    weights: dict[str, torch.Tensor] = load_encoder(str(folder))[1].state_dict()
    return weights


@pytest.mark.parametrize("ratio", [0.25, 0.5, 1.0])
def test_average_is_between_the_two(
    ratio: float, tiny_encoder: Path, trained_encoder: Path, tmp_path: Path
) -> None:
    output = tmp_path / "averaged"
    average_command(str(tiny_encoder), trained_encoder, output, ratio, quiet=True)
    base, trained = read_weights(tiny_encoder), read_weights(trained_encoder)
    for name, weight in read_weights(output).items():
        expected = (1 - ratio) * base[name] + ratio * trained[name]
        torch.testing.assert_close(weight, expected)


def test_average_has_settings_and_card_of_the_trained_encoder(
    tiny_encoder: Path,
    trained_encoder: Path,
    tmp_path: Path,
    invoke: Callable[..., Any],
) -> None:
    output = tmp_path / "averaged"
    invoke("average", tiny_encoder, trained_encoder, output, "--ratio", 0.25)
    assert read_settings(output) == EncoderSettings("mean", 12, True)
    card = (output / "README.md").read_text("utf8")
    assert f"0.75 of `{tiny_encoder}` plus 0.25 of\n`{trained_encoder}`" in card
    assert "> # How it was made" in card


def test_average_of_other_shapes_is_an_error(
    tiny_encoder: Path,
    trained_encoder: Path,
    tmp_path: Path,
    invoke: Callable[..., Any],
) -> None:
    tokenizer, model = load_encoder(str(tiny_encoder))
    model.config.num_hidden_layers += 1
    model = AutoModel.from_config(model.config)
    other = tmp_path / "other"
    other.mkdir()
    save_encoder(other, tokenizer, model, EncoderSettings())
    shown = invoke("average", tiny_encoder, other, tmp_path / "averaged", code=1)
    assert "E668" in shown.output
    assert "shape of the weight" in shown.output
    assert not (tmp_path / "averaged").exists()


def test_average_of_other_tokenizers_is_an_error(
    tiny_encoder: Path,
    trained_encoder: Path,
    tmp_path: Path,
    invoke: Callable[..., Any],
) -> None:
    tokenizer, model = load_encoder(str(trained_encoder))
    tokenizer.add_tokens(["syndrome"])
    other = tmp_path / "other"
    other.mkdir()
    save_encoder(other, tokenizer, model, EncoderSettings())
    shown = invoke("average", tiny_encoder, other, tmp_path / "averaged", code=1)
    assert "E668" in shown.output
    assert "the tokenizer" in shown.output
