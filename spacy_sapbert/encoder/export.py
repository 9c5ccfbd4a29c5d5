"""Encoder folder → the encoder as ONNX Runtime runs it, compared with the original.

Products with matrices of weights are of whole numbers. Each token has a factor of its
own, so that a name has the same vector in every batch. SOURCE: SmoothQuant (Xiao et
al., 2023), with half of the difficulty in the weights.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..errors import SapbertError
from .encoder import GRAPH_FILE, Encoder, EncoderConfig
from .huggingface import EncoderSettings, load_model, quiet_transformers
from .onnx_engine import not_for_onnx, open_exported, open_session
from .safety import check_contained

LEAST_COSINE = 0.995
LEAST_ROUNDED = 0.98  # of whole numbers; below, the weights stay as they are
TRIED_NAMES = 64
TRIED_LENGTH = 25  # tokens of those whose values are measured
OPSET = 17  # the first with an operation for layer norms
# Bytes of a token, and of a weight: processors without VNNI add two products of them in
# 16 bits, which holds 2 × 255 × 64.
LEVELS, WEIGHT_LEVELS = 127, 64
ZERO = 128  # the byte that stands for 0, of a token
LEAST_FACTOR = 1e-30  # of zeros


def export_encoder(source: Path, target: Path, settings: EncoderSettings) -> float:
    """Write an encoder as ONNX Runtime runs it; an adapter becomes part of the graph.

    Returns the smallest cosine between the vectors of both engines; a low one is an
    error.
    """
    check_contained(source)
    target.mkdir(exist_ok=True)
    model = load_model(source)
    for rounded, least in ((True, LEAST_ROUNDED), (False, LEAST_COSINE)):
        write_graph(model, source, target, settings, rounded=rounded)
        cosine = compare_engines(source, target, settings)
        if cosine > least:
            break
    else:  # also if it is NaN
        raise SapbertError(
            "E223",
            "Expected vectors like the encoder's own from ONNX Runtime (cosine above "
            f"{LEAST_COSINE}), but the least cosine is {cosine:.4f}. Use the engine "
            '"torch" for this encoder.',
        )
    return cosine


def write_graph(
    model: Any, source: Path, target: Path, settings: EncoderSettings, *, rounded: bool
) -> None:
    """Write an encoder as a graph: token ids and mask → token states, of any shape.

    All weights are in one file beside the graph, since a graph has at most 2 GB. If
    `rounded`, it computes in whole numbers, and they are a quarter of the original's.
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
        if rounded:
            shrink_tables(model_proto.graph)
            products = find_products(model_proto.graph)
            inputs = [*dict.fromkeys(product.input[0] for product in products)]
            vocabulary = model.get_input_embeddings().num_embeddings
            longest = min(settings.max_length, TRIED_LENGTH)
            tried = make_names(vocabulary, most=longest, seed=1)
            shrink_matrices(model_proto.graph, measure_inputs(path, inputs, tried))
    weights = target / f"{GRAPH_FILE}.data"
    weights.unlink(missing_ok=True)  # else it grows
    onnx.save(
        model_proto,
        target / GRAPH_FILE,
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=weights.name,
    )


def shrink_tables(graph: Any) -> None:
    """Keep tables of embeddings, whose rows are gathered, in bytes."""
    from onnx import TensorProto, helper, numpy_helper

    for tensor in [*graph.initializer]:
        users = [node for node in graph.node if tensor.name in node.input]
        gathered = all(node.op_type == "Gather" for node in users)
        if tensor.data_type != TensorProto.FLOAT or not gathered:
            continue
        name, factors_name = tensor.name, f"factors {tensor.name}"
        codes, factors = shrink_matrix(numpy_helper.to_array(tensor).T, LEVELS)
        tensor.CopyFrom(numpy_helper.from_array(codes.T, name))
        made = numpy_helper.from_array(factors[:, None], factors_name)
        graph.initializer.append(made)
        for node in users:
            (output,), rows = node.output, node.input[1]
            node.output[0] = codes_of = f"codes {output}"
            cast, of_rows = f"cast {output}", f"factors {output}"
            after = [*graph.node].index(node) + 1
            for made in (
                helper.make_node("Mul", [cast, of_rows], [output]),
                helper.make_node("Gather", [factors_name, rows], [of_rows]),
                helper.make_node("Cast", [codes_of], [cast], to=TensorProto.FLOAT),
            ):
                graph.node.insert(after, made)


def find_products(graph: Any) -> list[Any]:
    """Return the nodes that multiply with a matrix of weights."""
    from onnx import TensorProto

    matrices = {
        tensor.name
        for tensor in graph.initializer
        if tensor.data_type == TensorProto.FLOAT and len(tensor.dims) == 2
    }
    return [
        node
        for node in graph.node
        if node.op_type == "MatMul" and node.input[1] in matrices
    ]


def measure_inputs(
    path: Path, inputs: Sequence[str], names: Sequence[Sequence[int]]
) -> dict[str, np.ndarray]:
    """Return the largest absolute value of each column of some values in a graph.

    `names` are token ids. The graph with further outputs is written beside it.
    Shape of each: (columns,).
    """
    import onnx

    model = onnx.load(path, load_external_data=False)
    for name in inputs:
        output = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        model.graph.output.append(output)
    changed = path.with_name(f"measured.{GRAPH_FILE}")
    onnx.save(model, changed)
    session = open_session(changed)
    most: dict[str, Any] = dict.fromkeys(inputs, 0.0)
    for ids in names:
        tokens = np.array([ids])
        given = {"ids": tokens, "mask": np.ones_like(tokens)}
        try:
            values = session.run([*inputs], given)
        except Exception as error:  # the library has no narrower one
            raise not_for_onnx(path=path.name, reason=error) from None
        for name, value in zip(inputs, values, strict=True):
            columns = np.abs(value).reshape(-1, value.shape[-1]).max(axis=0)
            most[name] = np.maximum(most[name], columns)
    return most


def shrink_matrices(graph: Any, most: Mapping[str, np.ndarray]) -> None:
    """Replace each product with a matrix of weights by one of whole numbers.

    `most` is from `measure_inputs`. Nodes for an input: `Mul` by its scales,
    its largest value for each token, `QuantizeLinear`; for a matrix: `MatMulInteger`,
    and `Mul` by the values of the tokens and by the factors of the columns.
    """
    from onnx import TensorProto, helper, numpy_helper

    tensors = {tensor.name: tensor for tensor in graph.initializer}
    products = {node.output[0]: node for node in find_products(graph)}
    met: dict[str, tuple[str, ...]] = {}  # input → the matrices that it meets
    for node in products.values():
        met[node.input[0]] = (*met.get(node.input[0], ()), node.input[1])
    largest: dict[tuple[str, ...], Any] = {}  # layers may have the same matrices
    for name, matrices in met.items():
        largest[matrices] = np.maximum(largest.get(matrices, 0), most[name])
    added = {
        "level": np.array(1 / LEVELS, np.float32),
        "zero": np.array(ZERO, np.uint8),
        "least": np.array(LEAST_FACTOR, np.float32),
    }
    for number, (names, of_inputs) in enumerate(largest.items()):
        arrays = [numpy_helper.to_array(tensors[name]) for name in names]
        of_rows = np.max([np.abs(array).max(axis=1) for array in arrays], axis=0)
        scales = balance(of_inputs, of_rows)
        added[f"scales {number}"] = 1 / scales
        for name, array in zip(names, arrays, strict=True):
            whole, steps = shrink_matrix(array * scales[:, None], WEIGHT_LEVELS)
            added[f"codes {number} {name}"] = whole
            added[f"factors {number} {name}"] = steps / np.float32(LEVELS)
    numbers = {names: number for number, names in enumerate(largest)}
    nodes: list[Any] = []

    def add(operation: str, *inputs: str, **attributes: Any) -> str:
        output = f"{operation} {len(nodes)}"
        nodes.append(helper.make_node(operation, inputs, [output], **attributes))
        return output

    rounded: dict[str, tuple[str, str]] = {}  # input → its codes and factors
    for node in graph.node:
        if node.output[0] not in products:
            nodes.append(node)
            continue
        name, matrix = node.input
        number = numbers[met[name]]
        if name not in rounded:
            scaled = add("Mul", name, f"scales {number}")
            size = add("ReduceMax", add("Abs", scaled), axes=[-1], keepdims=1)
            size = add("Max", size, "least")
            unit = add("Div", scaled, size)
            rounded[name] = add("QuantizeLinear", unit, "level", "zero"), size
        codes, size = rounded[name]
        product = add("MatMulInteger", codes, f"codes {number} {matrix}", "zero")
        product = add("Mul", add("Cast", product, to=TensorProto.FLOAT), size)
        # Last and alone: of a product of both factors, ONNX Runtime makes an operation
        # that has one factor for all tokens.
        factors = f"factors {number} {matrix}"
        nodes.append(helper.make_node("Mul", [product, factors], node.output))
    del graph.node[:]
    graph.node.extend(nodes)
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    kept += [numpy_helper.from_array(array, name) for name, array in added.items()]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def balance(inputs: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return factors of the rows of a matrix, by which its inputs are divided.

    From the largest absolute value of each column of the inputs, and of each row: both
    are as large then, so that small values are not lost beside large ones.
    Shape: (rows,).
    """
    sizes = np.maximum(inputs, LEAST_FACTOR), np.maximum(rows, LEAST_FACTOR)
    factors: np.ndarray = np.sqrt(sizes[0] / sizes[1])
    return factors


def shrink_matrix(matrix: np.ndarray, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix as whole numbers up to a level, and the factor of each column.

    Shape: (rows, columns) → the same, (columns,).
    """
    factors = np.maximum(np.abs(matrix).max(axis=0) / levels, LEAST_FACTOR)
    return np.rint(matrix / factors).astype(np.int8), factors.astype(np.float32)


def compare_engines(source: Path, target: Path, settings: EncoderSettings) -> float:
    """Return the smallest cosine between both engines for random token ids."""
    original = Encoder.open(source, EncoderConfig("torch"), settings=settings)
    engine = open_exported(target, source, settings)
    exported = replace(original, engine=engine)
    vocabulary = original.engine.vocabulary
    token_ids = make_names(vocabulary, most=settings.max_length, seed=0)
    vectors = [encoder.encode(token_ids) for encoder in (original, exported)]
    return float(np.einsum("nd,nd->n", *vectors).min())


def make_names(vocabulary: int, *, most: int, seed: int) -> list[tuple[int, ...]]:
    """Return random token ids, at most so many for a name."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, most + 1, TRIED_NAMES)
    return [tuple(random.integers(0, vocabulary, n).tolist()) for n in lengths]
