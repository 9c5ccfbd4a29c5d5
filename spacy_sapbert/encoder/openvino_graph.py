"""A check of an exported graph for what OpenVINO does not check when it reads it."""

from math import prod
from pathlib import Path
from xml.etree import ElementTree

from ..errors import Errors, SapbertError

BYTES = {"boolean": 1, "i8": 1, "u8": 1, "f16": 2, "bf16": 2, "i16": 2, "u16": 2}
BYTES |= {"f32": 4, "i32": 4, "u32": 4, "f64": 8, "i64": 8, "u64": 8}
# Operations of exported encoders, by their number of inputs.
OPERATIONS = {
    0: "Const Parameter",
    1: "Abs BitwiseNot Ceiling Convert Cos Erf Exp Floor Gelu HSwish Log LogicalNot "
    "Mish Negative ReLU Result ShapeOf Sigmoid Sin SoftMax SoftPlus Sqrt Swish Tanh",
    2: "Add Broadcast Convolution CumSum Divide Equal Greater GreaterEqual "
    "GroupConvolution Less LessEqual LogicalAnd LogicalOr MVN MatMul Maximum Minimum "
    "Mod Multiply NotEqual Power ReduceMax ReduceMean ReduceSum Reshape Split Squeeze "
    "Subtract Transpose Unsqueeze",
    3: "Gather Range Select VariadicSplit",
    4: "Pad ScaledDotProductAttention",
    5: "Slice",
}
INPUTS = {name: n for n, names in OPERATIONS.items() for name in names.split()}
SEVERAL = "Concat"  # has any number of inputs


def check_graph(path: Path) -> None:
    """Check that OpenVINO does not read outside of its memory for a graph.

    It does so for operations with too few inputs or with a state, and the size of a
    constant can overflow in it.

    Raises:
        SapbertError: The graph is damaged, or has other operations than an export.
    """
    try:
        weights = path.with_suffix(".bin").stat().st_size
        text = path.read_text("utf8")
        if "<!DOCTYPE" in text:  # OpenVINO would read another graph
            raise ValueError("it declares a document type")
        for layer in ElementTree.fromstring(text).iter("layer"):
            check_layer(layer, weights)
    except (OSError, ValueError, KeyError, ElementTree.ParseError) as error:
        reason = f"it has no {error}." if isinstance(error, KeyError) else f"{error}."
        raise SapbertError(Errors.E223.format(path=path, reason=reason)) from None


def check_layer(layer: ElementTree.Element, weights: int) -> None:
    """Raise an error if a layer is not as in an export with `weights` bytes."""
    name = layer.attrib["type"]
    ports = layer.find("input")
    inputs = 0 if ports is None else len(ports.findall("port"))
    if INPUTS.get(name) != inputs and name != SEVERAL:
        raise ValueError(f"it has the operation {name!r} with {inputs} inputs")
    if not layer.attrib["version"].startswith("opset"):
        raise ValueError("it has an operation of an extension")
    if name == "Const":
        data = {} if (element := layer.find("data")) is None else element.attrib
        shape = [int(size) for size in data["shape"].split(",") if size.strip()]
        begin, size = int(data["offset"]), int(data["size"])
        whole = size == prod(shape) * BYTES[data["element_type"]]
        if min([begin, *shape]) < 0 or not whole or begin + size > weights:
            raise ValueError("a constant is not inside of encoder.bin")
