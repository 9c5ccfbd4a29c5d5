"""A check of an exported graph, before OpenVINO reads it."""

from math import prod
from pathlib import Path
from xml.parsers import expat

from ...errors import Errors, SapbertError

MAX_BYTES = 1 << 26  # of the XML; that of a BERT-BASE has less than a million
MAX_LAYERS = 1 << 16
BYTES = {"boolean": 1, "i8": 1, "u8": 1, "f16": 2, "bf16": 2, "i16": 2, "u16": 2}
BYTES |= {"f32": 4, "i32": 4, "u32": 4, "f64": 8, "i64": 8, "u64": 8}


def check_graph(path: Path) -> None:
    """Check that the constants of a graph are inside of its weights.

    It also must have no loops or other inner graphs, no operations of extensions and
    no XML entities.

    path (Path): encoder.xml; its weights are in encoder.bin.
    RAISES (SapbertError): If it is damaged or refused.
    """
    layers = 0
    constant = False  # in a layer of that type

    def start(element: str, given: dict[str, str]) -> None:
        nonlocal layers, constant
        if element == "layer":
            layers += 1
            constant = given.get("type") == "Const"
            version = given.get("version", "")
            if layers > MAX_LAYERS or not version.startswith("opset"):
                raise ValueError("it has too many or unknown operations")
        elif element in ("body", "then_body", "else_body"):
            raise ValueError("it has an inner graph")
        elif element == "data" and constant:
            shape = [int(size) for size in given["shape"].split(",") if size.strip()]
            begin, size = int(given["offset"]), int(given["size"])
            expected = prod(shape) * BYTES[given["element_type"]]
            if min([begin, *shape]) < 0 or size != expected or begin + size > weights:
                raise ValueError("a constant is not inside of encoder.bin")

    def refuse(*_: object) -> None:
        raise ValueError("it declares a document type")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = refuse
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        weights = path.with_suffix(".bin").stat().st_size
        parser.Parse(path.read_bytes(), True)
        if not layers:
            raise ValueError("it has no operations")
    except (OSError, ValueError, KeyError, expat.ExpatError) as error:
        reason = f"it has no {error}." if isinstance(error, KeyError) else f"{error}."
        raise SapbertError(Errors.E223.format(path=path, reason=reason)) from None
