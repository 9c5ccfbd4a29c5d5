"""Encoder folder → the encoder as ONNX Runtime runs it, compared with the original."""

import warnings
from dataclasses import replace
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..errors import SapbertError
from .encoder import GRAPH_FILE, Encoder, EncoderConfig
from .huggingface import EncoderSettings, load_model, quiet_transformers
from .onnx_engine import not_for_onnx, open_exported
from .safety import check_contained

LEAST_COSINE = 0.999
TRIED_NAMES = 64
OPSET = 17  # the first with an operation for layer norms


def export_encoder(source: Path, target: Path, settings: EncoderSettings) -> float:
    """Write an encoder as ONNX Runtime runs it; an adapter becomes part of the graph.

    Returns the smallest cosine between the vectors of both engines; a low one is an
    error.
    """
    check_contained(source)
    target.mkdir(exist_ok=True)
    write_graph(load_model(source), source, target)
    cosine = compare_engines(source, target, settings)
    if not cosine > LEAST_COSINE:  # also if it is NaN
        raise SapbertError(
            "E223",
            "Expected vectors like the encoder's own from ONNX Runtime (cosine above "
            f"{LEAST_COSINE}), but the least cosine is {cosine:.4f}. Use the engine "
            '"torch" for this encoder.',
        )
    return cosine


def write_graph(model: Any, source: Path, target: Path) -> None:
    """Write an encoder as a graph: token ids and mask → token states, of any shape.

    All weights are in one file beside the graph, since a graph has at most 2 GB.
    """
    import torch

    try:
        import onnx
    except ImportError:
        raise SapbertError(
            "E521",
            "Expected the package onnx to export an encoder, but it is not installed. "
            'Run `pip install onnx`, or choose the engine "torch".',
        ) from None

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
    names = ["ids", "mask", "states"]
    with TemporaryDirectory(dir=target) as folder:
        path = Path(folder) / GRAPH_FILE
        try:
            with quiet_transformers(), torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.onnx.export(
                    States().eval(),
                    (ids, mask),
                    str(path),
                    input_names=names[:2],
                    output_names=names[2:],
                    dynamic_axes={name: {0: "names", 1: "length"} for name in names},
                    opset_version=OPSET,
                    dynamo=False,
                )
        except RuntimeError as error:
            reason = str(error).strip().partition("\n")[0]
            raise not_for_onnx(path=source, reason=reason) from error
        graph = onnx.load(path)
    onnx.save(
        graph,
        target / GRAPH_FILE,
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=f"{GRAPH_FILE}.data",
    )


def compare_engines(source: Path, target: Path, settings: EncoderSettings) -> float:
    """Return the smallest cosine between both engines for random token ids."""
    original = Encoder.open(source, EncoderConfig("torch"), settings=settings)
    engine = open_exported(target, source, settings)
    exported = replace(original, engine=engine)
    random = np.random.default_rng(0)
    lengths = random.integers(1, settings.max_length + 1, TRIED_NAMES)
    most = original.engine.vocabulary
    token_ids = [tuple(random.integers(0, most, n).tolist()) for n in lengths]
    vectors = [encoder.encode(token_ids) for encoder in (original, exported)]
    return float(np.einsum("nd,nd->n", *vectors).min())
