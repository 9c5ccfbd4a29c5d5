"""A check of an exported graph, before OpenVINO reads it.

OpenVINO ends the process for a graph that its own exporter would not write, e.g. an
operation with too few inputs.
"""

from collections import Counter
from math import prod
from pathlib import Path
from xml.parsers import expat

from ..errors import Errors, SapbertError

MAX_BYTES = 1 << 26  # of the XML; that of a BERT-BASE has less than a million
MAX_LAYERS = 1 << 16
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
SEVERAL = "Concat"  # has one or more inputs


class GraphCheck:
    """Reads a graph and raises a ValueError at what is not as in an export.

    weights (int): Bytes of encoder.bin.
    """

    def __init__(self, weights: int) -> None:
        self.weights = weights
        self.layers: dict[str, int] = {}  # id → place
        self.inputs: Counter[str] = Counter()  # ports by layer
        self.edges: Counter[str] = Counter()
        self.ids: set[tuple[str, str]] = set()  # layer and port of each edge
        self.layer = self.type = ""
        self.in_input = False

    def start(self, element: str, given: dict[str, str]) -> None:
        """Check the start of an element; `given` has its attributes."""
        if element == "layer":
            self.layer, self.type = given["id"], given["type"]
            if self.layer in self.layers or len(self.layers) > MAX_LAYERS:
                raise ValueError("it has too many or equal operations")
            self.layers[self.layer] = len(self.layers)
            if self.type not in INPUTS and self.type != SEVERAL:
                raise ValueError(f"it has the operation {self.type!r}")
            if not given["version"].startswith("opset"):
                raise ValueError("it has an operation of an extension")
        elif element == "input":
            self.in_input = True
        elif element == "port" and self.in_input:
            self.inputs[self.layer] += 1
        elif element == "data" and self.type == "Const":
            shape = [int(size) for size in given["shape"].split(",") if size.strip()]
            begin, size = int(given["offset"]), int(given["size"])
            whole = size == prod(shape) * BYTES[given["element_type"]]
            if min([begin, *shape]) < 0 or not whole or begin + size > self.weights:
                raise ValueError("a constant is not inside of encoder.bin")
        elif element == "edge":
            source, target = given["from-layer"], given["to-layer"]
            # Layers are in the order of the computation, so there is no cycle.
            if self.layers[source] >= self.layers[target]:
                raise ValueError("its operations have no order")
            if (target, given["to-port"]) in self.ids:
                raise ValueError("two edges lead to the same input")
            self.ids.add((target, given["to-port"]))
            self.edges[target] += 1

    def end(self, element: str) -> None:
        """Check the end of an element."""
        if element == "input":
            self.in_input = False
        elif element == "layer":
            number = self.inputs[self.layer]
            if self.type == SEVERAL and number or number == INPUTS.get(self.type):
                return
            raise ValueError(f"an operation {self.type!r} has {number} inputs")
        elif element == "net" and (not self.layers or self.edges != self.inputs):
            raise ValueError("its edges are not those of its inputs")

    def refuse(self, *_: object) -> None:
        """Refuse a document type, which could define entities."""
        raise ValueError("it declares a document type")


def check_graph(path: Path) -> None:
    """Check that a graph is like an exported one, and its constants in its weights.

    path (Path): encoder.xml; its weights are in encoder.bin.
    RAISES (SapbertError): If it is damaged, or has another structure.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        check = GraphCheck(path.with_suffix(".bin").stat().st_size)
        parser = expat.ParserCreate()
        parser.StartElementHandler = check.start
        parser.EndElementHandler = check.end
        parser.StartDoctypeDeclHandler = check.refuse
        parser.Parse(path.read_bytes(), True)
    except (OSError, ValueError, KeyError, expat.ExpatError) as error:
        reason = f"it has no {error}." if isinstance(error, KeyError) else f"{error}."
        raise SapbertError(Errors.E223.format(path=path, reason=reason)) from None
