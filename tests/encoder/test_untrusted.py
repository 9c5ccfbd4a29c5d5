"""Encoders that are damaged, or that could run code or open other files."""

import json
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, BertTokenizerFast

from spacy_sapbert.encoder.adapters import attach_adapter, save_adapter
from spacy_sapbert.encoder.encoder import Encoder
from spacy_sapbert.encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    save_encoder,
)
from spacy_sapbert.encoder.safety import is_encoder_file
from spacy_sapbert.errors import SapbertError
from training.encoders.new_adapter import ARCHITECTURES, add_adapter
from training.encoders.open import open_encoder

NAMES = ["heart attack", "fever", "a b c", "qqq"]
MATRIX = "encoder.layer.0.output.dense.weight"


@pytest.fixture
def folder(tiny_encoder, tmp_path) -> Path:
    """A copy of the tiny encoder that a test may change."""
    return Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))


def open_with_mean(folder: Path, **settings: Any) -> Encoder:
    return Encoder.open(folder, settings=EncoderSettings("mean", **settings))


def change_json(path: Path, **values: Any) -> None:
    data = json.loads(path.read_text("utf8"))
    path.write_text(json.dumps({**data, **values}), "utf8")


@pytest.mark.parametrize(
    "name",
    ["pytorch_model.bin", "../config.json", "/config.json", "renamed.safetensors"]
    + ["x/config.json", "", "modeling.py", "adapter_config.json", "encoder.bin"]
    + ["model-00001-of-00002.safetensors\n", "onnx/../config.json"],
)
def test_is_encoder_file_accepts_only_what_is_saved(name):
    assert not is_encoder_file(name)
    assert is_encoder_file("model-00001-of-00002.safetensors")
    assert is_encoder_file("onnx/encoder.onnx.data")


def test_open_encoder_never_unpickles(folder):
    """Not even weights that are plain, and are read outside a knowledge base."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    open_encoder(folder)
    with pytest.raises(SapbertError, match=r"E225.*pytorch_model\.bin"):
        Encoder.open(folder)


@pytest.mark.parametrize("load", [Encoder.open, open_encoder])
@pytest.mark.parametrize("place", ["../other.safetensors", "/other.safetensors", 3])
def test_open_encoder_with_a_shard_outside_is_an_error(folder, place, load):
    weights = folder / "model.safetensors"
    names = list(load_file(weights))
    shutil.copyfile(weights, folder.with_name("other.safetensors"))
    weights.rename(folder / "model-00001-of-00001.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, weights.name)}
    path = folder / "model.safetensors.index.json"
    index["weight_map"] = dict.fromkeys(names, "model-00001-of-00001.safetensors")
    path.write_text(json.dumps(index))
    load(folder)
    index["weight_map"][names[0]] = place
    path.write_text(json.dumps(index))
    with pytest.raises(SapbertError, match="E225"):
        load(folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [("quantization_config", {"quant_method": "gptq"}), ("model_type", "timm_wrapper")]
    + [("model_type", None), ("auto_map", {"AutoModel": "x.Y"})]
    + [("transformers_weights", "../x.safetensors"), ("attn_implementation", "a/b")],
)
def test_open_encoder_that_needs_something_outside_is_an_error(folder, key, value):
    change_json(folder / "config.json", **{key: value})
    with pytest.raises(SapbertError, match=r"E225.*config\.json"):
        open_with_mean(folder)


@pytest.mark.parametrize("load", [Encoder.open, open_encoder])
@pytest.mark.parametrize(
    ("key", "value"),
    [("hidden_size", 64), ("hidden_size", "x"), ("vocab_size", 200)]
    + [("max_position_embeddings", 32), ("num_hidden_layers", 3)]
    + [("hidden_act", "none"), ("chunk_size_feed_forward", 2)]
    + ([("return_dict", 0)] if version("transformers") < "5" else []),
)
def test_open_encoder_with_another_config_is_an_error(folder, key, value, load):
    change_json(folder / "config.json", **{key: value})
    with pytest.raises(SapbertError, match=r"E203"):
        load(folder)


@pytest.mark.parametrize("load", [Encoder.open, open_encoder])
@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[]", "{"])
def test_open_encoder_damaged_json_is_an_error(folder, file, text, load):
    (folder / file).write_text(text)
    with pytest.raises(SapbertError, match=f"{file}: Expected the settings"):
        load(folder)


@pytest.mark.parametrize("load", [Encoder.open, open_encoder])
def test_open_encoder_with_bad_weights_is_an_error(folder, load):
    path = folder / "model.safetensors"
    data = path.read_bytes()
    weights = {key: value.clone() for key, value in load_file(path).items()}
    deep = b"[" * 100_000
    for damaged in (
        data[:-50],
        b"\xff" * 500,
        b"",
        len(deep).to_bytes(8, "little") + deep,
    ):
        path.write_bytes(damaged)
        with pytest.raises(SapbertError, match="E203"):
            load(folder)
    less = {key: value for key, value in weights.items() if key != MATRIX}
    renamed = {f"module.{key}": value for key, value in weights.items()}
    zero = {**weights, MATRIX: weights[MATRIX] * 0}
    two_rows = "embeddings.token_type_embeddings.weight"
    few = {**weights, two_rows: weights[two_rows] * 0}
    infinite, nan = ({**weights, MATRIX: weights[MATRIX].clone()} for _ in range(2))
    infinite[MATRIX][3], nan[MATRIX][0, 0] = float("inf"), float("nan")
    for changed, message in (
        (less, rf"1 are missing, e\.g\. {MATRIX}"),
        (renamed, r"are missing, e\.g\. "),
        (zero, f"{MATRIX} is all zero"),
        (few, f"{two_rows} is all zero"),
        (infinite, f"{MATRIX} is not finite"),
        (nan, f"{MATRIX} is not finite"),
    ):
        save_file(changed, path, {"format": "pt"})
        with pytest.raises(SapbertError, match=f"E203.*{message}"):
            load(folder)


def test_load_encoder_without_pooler_is_the_same_each_time(folder, tmp_path):
    whole, path = Encoder.open(folder), folder / "model.safetensors"
    kept = {k: v for k, v in load_file(path).items() if not k.startswith("pooler.")}
    save_file(kept, path, {"format": "pt"})
    model = Encoder.open(folder)
    assert np.allclose(model.embed(NAMES), whole.embed(NAMES), atol=1e-6)
    contents = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        save_encoder(tmp_path / name, *load_encoder(str(folder)), EncoderSettings())
        contents.append((tmp_path / name / "model.safetensors").read_bytes())
        open_with_mean(tmp_path / name)
    assert contents[0] == contents[1]


def test_open_encoder_names_longer_than_its_positions_are_an_error(folder):
    open_with_mean(folder, max_length=64)
    with pytest.raises(SapbertError, match=r"E230.* at most 64, .* got 65"):
        open_with_mean(folder, max_length=65)


@pytest.mark.parametrize(
    "architecture",
    ["albert", "bert", "camembert", "deberta-v2", "distilbert", "electra", "ernie"]
    + ["mpnet", "rembert", "roberta", "xlm-roberta"],
)
def test_open_encoder_accepts_other_architectures(architecture, tiny_encoder, tmp_path):
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    if architecture == "distilbert":
        sizes = {"n_layers": 2, "n_heads": 2, "hidden_dim": 32}
    config = AutoConfig.for_model(
        architecture,
        vocab_size=160,
        hidden_size=16,
        max_position_embeddings=64,
        pad_token_id=0,
        **sizes,
    )
    if architecture == "distilbert":
        config.dim = 16
    model = AutoModel.from_config(config).eval()
    tokenizer = BertTokenizerFast.from_pretrained(tiny_encoder)
    save_encoder(tmp_path, tokenizer, model, EncoderSettings("mean"))
    plain = open_encoder(tmp_path)
    meant = open_with_mean(tmp_path).embed(NAMES)
    assert np.allclose(plain.embed(NAMES), meant, atol=1e-6)
    if architecture not in ARCHITECTURES:
        return
    _, copy = load_encoder(str(tmp_path))
    adapter = add_adapter(model, 2)
    ids = torch.arange(5, 15).view(2, 5)
    states = model(ids).last_hidden_state
    states[:, :, 0].sum().backward()
    assert all(weights.grad.any() for weights in adapter.parameters())
    save_adapter(tmp_path, model)
    attach_adapter(copy, tmp_path)
    assert torch.allclose(copy(ids).last_hidden_state, states, atol=1e-6)


@pytest.mark.parametrize("text", ["{", "[]", "[" * 10_000])
def test_open_encoder_with_a_damaged_tokenizer_is_an_error(folder, text):
    (folder / "tokenizer.json").write_text(text)
    with pytest.raises(SapbertError, match="E203.*tokenizer.json"):
        open_with_mean(folder)
    for path in (*folder.glob("*token*"), *folder.glob("vocab.txt")):
        path.unlink()
    for load in (Encoder.open, load_encoder):
        with pytest.raises(SapbertError, match="E203"):
            load(folder)


def test_open_encoder_whose_tokenizer_fails_in_rust_is_an_error(folder):
    path = folder / "tokenizer.json"
    data = json.loads(path.read_text("utf8"))
    data["post_processor"]["single"][0]["SpecialToken"]["id"] = "x"
    path.write_text(json.dumps(data))
    with pytest.raises(SapbertError, match=r"E203.*tokenizer\.json.*no entry"):
        open_with_mean(folder)


def test_load_encoder_opens_no_other_tokenizer(folder):
    change_json(
        folder / "tokenizer_config.json",
        tokenizer_file="/nowhere/tokenizer.json",
        vocab_file="/nowhere/vocab.txt",
        tokenizer_class="BertJapaneseTokenizer",
        from_slow=True,
    )
    assert len(open_with_mean(folder).tokenize(["fever"])[0][0]) == 3
    for token in ("[OTHER]", "\ud800", 7):
        change_json(folder / "tokenizer_config.json", mask_token=token)
        with pytest.raises(SapbertError, match="E203.*special token"):
            open_with_mean(folder)


def test_encode_of_another_tokenizer_are_an_error(folder):
    path = folder / "tokenizer.json"
    model = json.loads(path.read_text("utf8"))["model"]
    change_json(path, model={**model, "vocab": {**model["vocab"], "fever": 155}})
    changed = open_with_mean(folder)
    with pytest.raises(SapbertError, match=r"E203.* below 155, .* made 155"):
        changed.embed(["fever"])
