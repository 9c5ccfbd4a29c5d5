import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertModel,
)

from spacy_sapbert.encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    read_settings,
    save_encoder,
)
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.knowledge_base import load_kb
from tests.building import build_small_kb
from training.encoders.new_adapter import (
    add_adapter,
    trainable_parameters,
)
from training.encoders.open import open_encoder

NAMES = ["heart attack", "fever", "acute pain of the heart", "diabetes"]


def encode(tokenizer: Any, model: Any) -> torch.Tensor:
    batch = tokenizer(NAMES, padding=True, return_tensors="pt")
    states = model(**batch).last_hidden_state
    mask = batch["attention_mask"][:, :, None]
    pooled = (states * mask).sum(1) / mask.sum(1)
    return torch.nn.functional.normalize(pooled, dim=1)


def vectors_of(name: Path) -> np.ndarray:
    with torch.no_grad():
        return encode(*load_encoder(str(name))).numpy()


def adapted(base: Path, *, deviation: float = 0.3) -> tuple[Any, Any, np.ndarray]:
    """An adapter that has learnt something: it moves every vector."""
    tokenizer, model = load_encoder(str(base))
    torch.manual_seed(1)
    adapter = add_adapter(model, 4)
    with torch.no_grad():
        for weights in adapter.parameters():
            weights.normal_(std=deviation)
        vectors = encode(tokenizer, model).numpy()
    assert (vectors * vectors_of(base)).sum(1).max() < 0.9
    return tokenizer, model, vectors


@pytest.mark.parametrize(
    ("reduction", "parameters"), [(1, 14_470_272), (16, 1_190_592)]
)
def test_adapter_parameters_equal_those_of_the_paper(reduction, parameters):
    with torch.device("meta"):
        model = BertModel(BertConfig())
    add_adapter(model, reduction)
    trained = sum(weights.numel() for weights in trainable_parameters(model))
    assert trained == parameters


@torch.no_grad()
def test_adapter_forward_equals_pfeiffer(tiny_encoder):
    _, model, _ = adapted(tiny_encoder)
    _, base = load_encoder(str(tiny_encoder))
    ids = torch.arange(5, 15).view(2, 5)
    adapter = model.sapbert_adapter

    def bottleneck(net: Any, states: torch.Tensor) -> torch.Tensor:
        return net[2](net[0](states).clamp(min=0))

    first, second = base.embeddings(ids).split(16, dim=-1)
    first = first + bottleneck(adapter["coupling"][0], second)
    second = second + bottleneck(adapter["coupling"][1], first)
    states = torch.cat([first, second], dim=-1)
    for layer, net in zip(base.encoder.layer, adapter["layers"], strict=True):
        attended = layer.attention(states)[0]
        block = layer.output.dense(layer.intermediate(attended))
        norm = layer.output.LayerNorm
        states = bottleneck(net, norm(block + attended)) + block
        states = norm(states + attended)
    assert torch.allclose(model(ids).last_hidden_state, states, atol=1e-5)


def save_adapted(base: Path, folder: Path) -> np.ndarray:
    tokenizer, model, vectors = adapted(base)
    folder.mkdir()
    save_encoder(folder, tokenizer, model, EncoderSettings("mean"))
    return vectors


def test_save_encoder_writes_an_adapter_beside_whole_weights(tiny_encoder, tmp_path):
    vectors = save_adapted(tiny_encoder, tmp_path / "encoder")
    written = {path.name for path in (tmp_path / "encoder").iterdir()}
    assert {"adapter.safetensors", "model.safetensors"} < written
    assert read_settings(tmp_path / "encoder") == EncoderSettings("mean")
    assert np.allclose(vectors_of(tmp_path / "encoder"), vectors, atol=1e-6)
    embedded = open_encoder(tmp_path / "encoder").embed(NAMES)
    assert np.allclose(embedded, vectors, atol=1e-6)
    base = load_file(tiny_encoder / "model.safetensors")
    weights = load_file(tmp_path / "encoder" / "model.safetensors")
    assert all(torch.equal(base[name], weights[name]) for name in weights)


def test_build_kb_with_an_adapter_links_and_can_be_moved(
    concepts_file, sample_kb, tiny_encoder, tmp_path
):
    folder = tmp_path / "encoder"
    vectors = save_adapted(tiny_encoder, folder)
    build_small_kb(concepts_file, tmp_path / "kb", folder)
    (tmp_path / "kb").rename(tmp_path / "moved")
    shutil.rmtree(folder)
    kb = load_kb(tmp_path / "moved")
    assert "encoder/adapter.safetensors" in kb.manifest.files
    plain = load_kb(sample_kb)
    assert kb.manifest.encoder.fingerprint != plain.manifest.encoder.fingerprint
    assert np.allclose(kb.embed(NAMES).vectors, vectors, atol=1e-6)
    for mention in ("fever", "aspirin"):
        best: Any = kb.link([mention])[0].candidates[0]
        assert best["alias"].lower() == mention
        assert best["score"] > 0.999


def test_load_unusable_adapter_is_an_error(tiny_encoder, tmp_path):
    folder = tmp_path / "encoder"
    save_adapted(tiny_encoder, folder)
    path = folder / "adapter.safetensors"
    weights = load_file(path)
    for changed in (
        {},
        {**weights, "layers.0.0.weight": torch.tensor(4.0)},
        {**weights, "layers.0.0.weight": torch.zeros(4, 2)},
        {name: weights[name] for name in [*weights][1:]},
    ):
        save_file(changed, path)
        with pytest.raises(SapbertError, match=f"E203.*{path}.*other names or shapes"):
            load_encoder(str(folder))
    path.write_bytes(path.read_bytes()[:7])
    with pytest.raises(SapbertError, match=f"E203.*{path}"):
        load_encoder(str(folder))
    (folder / "model.safetensors").unlink()
    with pytest.raises(SapbertError, match="E203.*found none"):
        load_encoder(str(folder))
