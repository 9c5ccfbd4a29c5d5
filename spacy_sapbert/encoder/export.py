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

LEAST_COSINE = 0.995
TRIED_NAMES = 64
OPSET = 17  # the first with an operation for layer norms
BLOCK = 32  # weights that have one factor
LEAST_FACTOR = 1e-30  # of a block of zeros
ZERO = 128  # the byte that stands for 0
INTEGERS = 4  # level of accuracy: products of whole numbers


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

    All weights are in one file beside the graph, since a graph has at most 2 GB. They
    are a third to a half as large as the original's.
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
        model_proto = onnx.load(path)
    shrink_tables(model_proto.graph)
    shrink_matrices(model_proto)
    onnx.save(
        model_proto,
        target / GRAPH_FILE,
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=f"{GRAPH_FILE}.data",
    )


def shrink_tables(graph: Any) -> None:
    """Keep tables of embeddings, whose rows are gathered, in float16."""
    from onnx import TensorProto, helper, numpy_helper

    for tensor in graph.initializer:
        users = [node for node in graph.node if tensor.name in node.input]
        gathered = all(node.op_type == "Gather" for node in users)
        if tensor.data_type != TensorProto.FLOAT or not gathered:
            continue
        table = numpy_helper.to_array(tensor).astype(np.float16)
        tensor.CopyFrom(numpy_helper.from_array(table, tensor.name))
        for node in users:
            (output,) = node.output
            node.output[0] = f"{output}.half"
            cast = helper.make_node("Cast", node.output, [output], to=TensorProto.FLOAT)
            graph.node.insert([*graph.node].index(node) + 1, cast)


def shrink_matrices(model: Any) -> None:
    """Replace each product with a matrix of weights by one that reads bytes.

    `model` is an onnx.ModelProto. With it one name takes half the time, and its vector
    has a cosine of .9996 to that of PyTorch. Activations are rounded row by row, so
    other names in a pass change nothing. SOURCE: ONNX Runtime, `MatMulNBits`.
    """
    from onnx import TensorProto, helper, numpy_helper

    graph = model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    shrunk: dict[str, tuple[int, int]] = {}  # name of a matrix → its rows and columns
    for node in graph.node:
        tensor = weights.get(node.input[1]) if node.op_type == "MatMul" else None
        if tensor is None or tensor.data_type != TensorProto.FLOAT:
            continue
        if len(tensor.dims) != 2:
            continue
        name = tensor.name
        if name not in shrunk:
            matrix = numpy_helper.to_array(tensor)
            shrunk[name] = matrix.shape
            codes, factors = shrink_matrix(matrix)
            made = numpy_helper.from_array(codes, f"{name}.codes")
            graph.initializer.append(made)
            made = numpy_helper.from_array(factors, f"{name}.factors")
            graph.initializer.append(made)
        rows, columns = shrunk[name]
        node.CopyFrom(
            helper.make_node(
                "MatMulNBits",
                [node.input[0], f"{name}.codes", f"{name}.factors"],
                node.output,
                node.name,
                domain="com.microsoft",
                K=rows,
                N=columns,
                bits=8,
                block_size=BLOCK,
                accuracy_level=INTEGERS,
            )
        )
    used = {name for node in graph.node for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def shrink_matrix(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix as codes, and the factor of each block of a column.

    A weight is (code - ZERO) times its factor.

    Shape: (rows, columns) → (columns, blocks, BLOCK), (columns, blocks).
    """
    padded = np.pad(matrix.T, ((0, 0), (0, -len(matrix) % BLOCK)))
    blocks = padded.reshape(len(padded), -1, BLOCK)
    factors = np.maximum(np.abs(blocks).max(axis=2) / (ZERO - 1), LEAST_FACTOR)
    codes = np.rint(blocks / factors[:, :, None]) + ZERO
    return codes.astype(np.uint8), factors.astype(np.float32)


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
