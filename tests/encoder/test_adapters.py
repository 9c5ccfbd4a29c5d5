import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    BertConfig,
    BertModel,
)

from spacy_sapbert.encoder.adapters import (
    save_adapter,
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


def save_apart(base: Path, folder: Path) -> np.ndarray:
    tokenizer, model, vectors = adapted(base)
    folder.mkdir()
    settings = EncoderSettings("mean")
    save_encoder(folder, tokenizer, model, settings, adapter_base=str(base))
    return vectors


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


def test_load_adapter_uses_tokenizer_and_settings_of_its_base(tiny_encoder, tmp_path):
    _, model, vectors = adapted(tiny_encoder)
    save_adapter(tmp_path, model, base=str(tiny_encoder))
    assert {path.name for path in tmp_path.iterdir()} == {
        "adapter.json",
        "adapter.safetensors",
    }
    assert read_settings(tmp_path) == EncoderSettings("mean")
    assert np.allclose(vectors_of(tmp_path), vectors, atol=1e-6)
    assert np.allclose(open_encoder(tmp_path).embed(NAMES), vectors, atol=1e-6)


def test_build_kb_with_an_adapter_links_and_can_be_moved(
    concepts_file, sample_kb, tiny_encoder, tmp_path
):
    base, folder = tmp_path / "base", tmp_path / "encoder"
    shutil.copytree(tiny_encoder, base)
    vectors = save_apart(base, folder)
    build_small_kb(concepts_file, tmp_path / "kb", folder)
    (tmp_path / "kb").rename(tmp_path / "moved")
    shutil.rmtree(base)
    shutil.rmtree(folder)
    kb = load_kb(tmp_path / "moved")
    files = {"encoder/adapter.json", "encoder/adapter.safetensors"}
    assert files < kb.manifest.files.keys()
    plain = load_kb(sample_kb)
    assert kb.manifest.encoder.fingerprint != plain.manifest.encoder.fingerprint
    assert np.allclose(kb.embed(NAMES).vectors, vectors, atol=1e-6)
    for mention in ("fever", "aspirin"):
        best: Any = kb.link([mention])[0].candidates[0]
        assert best["alias"].lower() == mention
        assert best["score"] > 0.999


def test_load_adapter_unusable_base_is_an_error(tiny_encoder, tmp_path):
    base = Path(shutil.copytree(tiny_encoder, tmp_path / "base"))
    save_apart(base, tmp_path / "apart")
    folder = str(tmp_path / "apart")
    (base / "model.safetensors").unlink()
    with pytest.raises(SapbertError, match=r"adapter.json: .*E203"):
        load_encoder(folder)
    shutil.rmtree(base)
    with pytest.raises(SapbertError, match=r"adapter.json: .*found none"):
        open_encoder(folder)
    tokenizer, model, _ = adapted(tiny_encoder)
    base.mkdir()
    save_encoder(base, tokenizer, model, EncoderSettings("mean"))
    with pytest.raises(SapbertError, match="has an adapter itself"):
        load_encoder(folder)
    save_adapter(tmp_path / "apart", model, base=None)
    with pytest.raises(SapbertError, match="names none"):
        load_encoder(folder)
