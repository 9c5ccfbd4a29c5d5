"""Encoder folder → the encoder as OpenVINO runs it, compared with the original."""

import errno
import warnings
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SapbertError
from .encoder import GRAPH_FILE, Encoder, EncoderConfig
from .huggingface import EncoderSettings, load_model, quiet_transformers
from .openvino_engine import import_openvino, not_for_openvino, open_exported
from .safety import check_contained

LEAST_COSINE = 0.999
TRIED_NAMES = 64


def export_encoder(source: Path, target: Path, settings: EncoderSettings) -> float:
    """Write an encoder as OpenVINO runs it; an adapter becomes part of the graph.

    Returns the smallest cosine between the vectors of both engines; a low one is an
    error. A full disk is an OSError, as for other files.
    """
    openvino = import_openvino()
    check_contained(source)
    graph = convert_graph(load_model(source), source)
    target.mkdir(exist_ok=True)
    try:
        openvino.save_model(graph, target / GRAPH_FILE, compress_to_fp16=False)
    except RuntimeError as error:  # of a stream in C++, without the reason
        reason = f"no space left on device, or OpenVINO failed ({error})"
        raise OSError(errno.ENOSPC, reason) from error
    cosine = compare_engines(source, target, settings)
    if not cosine > LEAST_COSINE:  # also if it is NaN
        raise SapbertError(
            "E223",
            "Expected vectors like the encoder's own from OpenVINO (cosine above "
            f"{LEAST_COSINE}), but the least cosine is {cosine:.4f}. Use the engine "
            '"torch" for this encoder.',
        )
    return cosine


def convert_graph(model: Any, folder: Path) -> Any:
    """Convert an encoder to a graph: token ids and mask → token states, of any shape.

    SOURCE: openvino.convert_model, which also sends telemetry over the network.
    """
    import torch
    from openvino import PartialShape
    from openvino.frontend import FrontEndManager
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

    takes_types = "token_type_ids" in signature(model.forward).parameters

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            # of its own, transformers 5 gathers them, by indices that none checks
            types = {"token_type_ids": torch.zeros_like(ids)} if takes_types else {}
            output = self.model(input_ids=ids, attention_mask=mask, **types)
            states: torch.Tensor = output.last_hidden_state
            return states

    # Two lengths, so that masking of padding is traced too.
    ids = torch.ones((2, 6), dtype=torch.int64)
    mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2])
    try:
        with quiet_transformers(), torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(States(), (ids, mask), check_trace=False)
        reader = FrontEndManager().load_by_framework("pytorch")
        decoder = TorchScriptPythonDecoder(traced)  # used until the conversion ends
        graph = reader.convert(reader.load(decoder))
        graph.reshape({port: PartialShape([-1, -1]) for port in graph.inputs})
        # OpenVINO numbers all graphs of a process; equal input is to give equal bytes.
        graph.set_friendly_name("encoder")
        for number, operation in enumerate(graph.get_ordered_ops()):
            operation.set_friendly_name(f"{operation.get_type_name()}_{number}")
    except RuntimeError as error:
        reason = str(error).strip().partition("\n")[0]
        raise not_for_openvino(path=folder, reason=reason) from error
    return graph


def compare_engines(source: Path, target: Path, settings: EncoderSettings) -> float:
    """Return the smallest cosine between both engines for random token ids."""
    original = Encoder.open(source, EncoderConfig("torch"), settings=settings)
    engine = open_exported(target, source, settings, "float32")
    exported = replace(original, engine=engine)
    random = np.random.default_rng(0)
    lengths = random.integers(1, settings.max_length + 1, TRIED_NAMES)
    most = original.engine.vocabulary
    token_ids = [tuple(random.integers(0, most, n).tolist()) for n in lengths]
    vectors = [encoder.encode(token_ids) for encoder in (original, exported)]
    return float(np.einsum("nd,nd->n", *vectors).min())
