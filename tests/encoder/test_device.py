"""Where an encoder runs; GPUs are made up, since torch without CUDA has none."""

import sys
from typing import Any

import pytest
import torch

from spacy_sapbert.encoder.device import choose_device
from spacy_sapbert.encoder.encoder import Encoder, EncoderConfig
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.knowledge_base import load_kb

NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


@pytest.mark.usefixtures("two_gpus")
def test_choose_device_takes_a_gpu_that_torch_has():
    assert choose_device("auto") == "cuda"
    for device in ("cpu", "cuda", "cuda:0", "cuda:1"):
        assert choose_device(device) == device
    for device in ("cuda:2", "gpu", "cuda:", "0", ""):
        with pytest.raises(SapbertError, match=r"E357.*cpu, cuda, cuda:0, cuda:1"):
            choose_device(device)


@NO_GPU
def test_choose_device_without_a_gpu():
    assert choose_device("auto") == "cpu"
    with pytest.raises(SapbertError, match=r"E357.*of auto, cpu, but got 'cuda'.*CUDA"):
        choose_device("cuda")
    with pytest.raises(SapbertError, match="E357"):
        EncoderConfig(device="cuda:0")


@pytest.mark.usefixtures("two_gpus")
def test_choose_device_without_torch_is_the_cpu(monkeypatch):
    """A light installation has ONNX Runtime; that of torch may lack transformers."""
    for missing in ("transformers", "torch"):
        monkeypatch.setitem(sys.modules, missing, None)
        assert choose_device("auto") == "cpu"
        with pytest.raises(SapbertError, match="E357"):
            choose_device("cuda")
    assert choose_device(None) == "cpu"


@pytest.mark.usefixtures("two_gpus")
def test_choose_device_follows_spacy_if_nothing_was_asked_for(monkeypatch):
    assert choose_device(None) == "cpu"
    device = torch.device("cuda:1")
    monkeypatch.setattr("thinc.api.get_torch_default_device", lambda: device)
    assert choose_device(None) == "cuda:1"
    monkeypatch.setitem(sys.modules, "thinc", None)  # of a machine that only trains
    monkeypatch.setitem(sys.modules, "thinc.api", None)
    assert choose_device(None) == "cuda"


def test_an_encoder_runs_on_the_device_of_its_config(tiny_encoder, two_gpus):
    Encoder.open(tiny_encoder, EncoderConfig(device="cuda:1")).embed(["fever"])
    Encoder.open(tiny_encoder, EncoderConfig(device="auto"))
    Encoder.open(tiny_encoder)
    assert two_gpus == ["cuda:1", "cuda", "cpu"]


def test_a_gpu_runs_torch_though_the_encoder_was_exported(exported_kb, two_gpus):
    def engine(**config: Any) -> str:
        kb = load_kb(exported_kb, encoder=EncoderConfig(**config))
        return type(kb.encoder.engine).__name__

    assert engine(device="auto") == "TorchEngine"
    assert two_gpus == ["cuda"]
    assert engine(device="cpu") == engine() == "OnnxEngine"


def test_a_gpu_is_not_taken_for_names_of_onnx_unless_it_was_named(
    concepts_file, tiny_encoder, tmp_path, two_gpus
):
    """A mention has the same scores on each machine: weights of 8 bits have others."""
    build_kb(concepts_file, tmp_path / "kb", str(tiny_encoder), device="cpu")
    two_gpus.clear()

    def engine(**config: Any) -> str:
        kb = load_kb(tmp_path / "kb", encoder=EncoderConfig(**config))
        assert kb.manifest.encoder.engine == "onnx"
        return type(kb.encoder.engine).__name__

    assert engine(device="auto") == "OnnxEngine"
    assert engine(device="cuda") == "TorchEngine"
    assert engine(engine="torch", device="auto") == "TorchEngine"
    assert two_gpus == ["cuda", "cuda"]


@pytest.mark.usefixtures("two_gpus")
def test_onnx_and_a_layer_of_spacy_cannot_be_given_a_gpu():
    for engine in ("onnx", "spacy_transformers"):
        assert EncoderConfig(engine, device="auto").device == "auto"
        with pytest.raises(SapbertError, match='E331.*"torch" for cuda'):
            EncoderConfig(engine, device="cuda")


def test_a_gpu_without_memory_is_an_error_with_its_fix(sample_kb, monkeypatch):
    def fail(*_: object) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate …")

    kb = load_kb(sample_kb)
    hook = kb.encoder.engine.model.register_forward_pre_hook(fail)
    with pytest.raises(SapbertError, match=r"E004.*names-per-pass.*names_per_pass"):
        kb.link(["hart atack"])
    hook.remove()
    assert kb.link(["hart atack"])[0].candidates
    monkeypatch.setattr(torch.nn.Module, "to", fail)  # the weights alone are too many
    with pytest.raises(SapbertError, match=r"E004.*--device cpu"):
        load_kb(sample_kb).link(["hart atack"])
