"""Runs an exported encoder in OpenVINO, which is made for CPUs.

It needs neither torch nor transformers, so it opens sooner.
"""

import os
import sys
from math import prod
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from ..errors import SapbertError
from ..io import forks
from ..io.system import keep_signal_stack
from .encoder import EXPORTED, GRAPH_FILE
from .huggingface import EncoderSettings
from .safety import CONFIG_FILE, read_json
from .tokenizer import NameTokenizer, load_tokenizer

CONVERTER = "openvino.tools.ovc"
SHAPE_TOKENS = 8  # see `OpenVinoEngine.states`
# Keeps what a forked process inherited: deleting it would wait for threads that the
# fork did not copy.
FORKED: list[Any] = []
BYTES = {"boolean": 1, "i8": 1, "u8": 1, "f16": 2, "bf16": 2, "i16": 2, "u16": 2}
BYTES |= {"f32": 4, "i32": 4, "u32": 4, "f64": 8, "i64": 8, "u64": 8}
# Operations of exported encoders, by their number of inputs.
OPERATIONS = {
    0: "Const Parameter",
    1: "Abs BitwiseNot Ceiling Convert Cos Erf Exp Floor Gelu HSwish Log LogicalNot "
    "Mish Negative ReLU Result ShapeOf Sigmoid Sin SoftMax SoftPlus Sqrt Swish Tanh",
    2: "Add BitwiseAnd Broadcast Convolution CumSum Divide Equal Greater GreaterEqual "
    "GroupConvolution Less LessEqual LogicalAnd LogicalOr MVN MatMul Maximum Minimum "
    "Mod Multiply NotEqual Power ReduceMax ReduceMean ReduceProd ReduceSum Reshape "
    "Split Squeeze Subtract Transpose Unsqueeze",
    3: "Gather Range Select VariadicSplit",
    4: "Pad ScaledDotProductAttention",
    5: "ScaledDotProductAttention Slice",  # the first with a scale
}
INPUTS = {(name, n) for n, names in OPERATIONS.items() for name in names.split()}
SEVERAL = "Concat"  # has any number of inputs


def import_openvino() -> Any:
    """Import OpenVINO without its converter, which sends telemetry when imported."""
    withheld = "openvino" not in sys.modules and CONVERTER not in sys.modules
    if withheld:
        # OpenVINO ignores a converter that cannot be imported.
        sys.modules[CONVERTER] = None  # type: ignore[assignment]
    try:
        import openvino
    except ImportError:
        raise SapbertError(
            "E521",
            "Expected OpenVINO for this encoder, but it is not installed. Run `pip "
            'install "openvino>=2024.4"`, or choose the engine "torch".',
        ) from None
    finally:
        if withheld:
            del sys.modules[CONVERTER]
    return openvino


def open_engine(
    folder: Path, settings: EncoderSettings, precision: str
) -> "OpenVinoEngine":
    """Load an encoder from the export in its folder; see `Encoder.open`."""
    import_openvino()
    if not (folder / EXPORTED / GRAPH_FILE).is_file():
        raise not_exported(path=folder)
    return open_exported(folder / EXPORTED, folder, settings, precision)


def open_exported(
    exported: Path, encoder: Path, settings: EncoderSettings, precision: str
) -> "OpenVinoEngine":
    """Load an export, with the tokenizer of the original; both are folders."""
    check_graph(exported / GRAPH_FILE)
    tokenizer = load_tokenizer(encoder, settings.max_length)
    config = read_json(encoder / CONFIG_FILE)
    engine = OpenVinoEngine(exported / GRAPH_FILE, tokenizer, precision, config)
    engine.request()
    return engine


def check_graph(path: Path) -> None:
    """Check a graph, so that OpenVINO reads nothing outside of its memory.

    It would for operations with too few inputs or with a state, and for a constant
    whose size overflows.
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
        raise not_for_openvino(path=path, reason=reason) from None


def check_layer(layer: ElementTree.Element, weights: int) -> None:
    """Raise an error if a layer is not as in an export with `weights` bytes."""
    name = layer.attrib["type"]
    ports = layer.find("input")
    inputs = 0 if ports is None else len(ports.findall("port"))
    if (name, inputs) not in INPUTS and name != SEVERAL:
        raise ValueError(f"it has the operation {name!r} with {inputs} inputs")
    if not layer.attrib["version"].startswith("opset"):
        raise ValueError("it has an operation of an extension")
    if name == "Const":
        data = {} if (element := layer.find("data")) is None else element.attrib
        shape = [int(size) for size in data["shape"].split(",") if size.strip()]
        begin, size = int(data["offset"]), int(data["size"])
        values = prod(shape) * BYTES[data["element_type"]]
        whole = size == values or (not values and size == 1)  # a byte without values
        if min([begin, *shape]) < 0 or not whole or begin + size > weights:
            raise ValueError("a constant is not inside of encoder.bin")


def count_threads() -> int:
    """Return the threads of torch, which users set; 0 = one for each core."""
    if torch := sys.modules.get("torch"):
        threads: int = torch.get_num_threads()
        return threads
    if forks.forked:
        return 1
    number = os.environ.get("OMP_NUM_THREADS", "")
    return int(number) if number.isdecimal() else 0


class OpenVinoEngine:
    """See `Engine`; `config` is that of the original encoder."""

    def __init__(
        self,
        graph: Path,
        tokenizer: NameTokenizer,
        precision: str,
        config: dict[str, Any],
    ) -> None:
        self.graph = graph
        self.tokenizer = tokenizer
        self.precision = precision
        numbers = {key: n for key, n in config.items() if isinstance(n, int)}
        self.positions = numbers.get("max_position_embeddings", 0)
        vocabulary = tokenizer.backend.get_vocab_size()
        self.vocabulary = numbers.get("vocab_size", vocabulary)
        self.process: int | None = None
        self.opened: Any = None

    def request(self) -> Any:
        """Return the openvino.InferRequest of this process, compiled at first use."""
        if self.process != os.getpid():
            openvino = import_openvino()
            if self.opened is not None:
                FORKED.append(self.opened)
            settings: dict[str, Any] = {
                "INFERENCE_PRECISION_HINT": self.precision.replace("float", "f"),
                "PERFORMANCE_HINT": "LATENCY",
                "INFERENCE_NUM_THREADS": count_threads(),
                # A thread that is bound to a core waits for other processes there,
                # and the workers of `n_process` would all have the same cores.
                "ENABLE_CPU_PINNING": False,
            }
            try:
                with keep_signal_stack():
                    core = openvino.Core()
                    compiled = core.compile_model(self.graph, "CPU", settings)
            except RuntimeError as error:
                reason = str(error).strip().splitlines()[-1]
                raise not_for_openvino(path=self.graph, reason=reason) from None
            self.opened, self.process = compiled.create_infer_request(), os.getpid()
        return self.opened

    def states(self, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """See `Engine.states`.

        A pass takes longer if its shape differs from that of the pass before, and
        longest if it is new, so a name alone is padded to one of few lengths.
        """
        names, length = ids.shape
        if names == 1:
            longer = min(-(-length // SHAPE_TOKENS) * SHAPE_TOKENS, self.positions)
            padding = ((0, 0), (0, max(0, longer - length)))
            ids = np.pad(ids, padding, constant_values=self.tokenizer.pad_id)
            mask = np.pad(mask, padding)
        outputs = self.request().infer(
            [ids, mask], share_inputs=True, share_outputs=True
        )
        states: np.ndarray = outputs[0]
        return states[:, :length]


def not_exported(*, path: object) -> SapbertError:
    return SapbertError(
        "E223",
        f"Expected an encoder exported for OpenVINO in {path}, but found none. Run "
        "`spacy sapbert kb export-openvino` on the knowledge base, or choose the "
        'engine "torch".',
    )


def not_for_openvino(*, path: object, reason: object) -> SapbertError:
    return SapbertError(
        "E223",
        f"{path}: Expected an encoder that OpenVINO can run, but: {reason} Export it "
        "again with the version of OpenVINO that is installed here, or choose the "
        'engine "torch".',
    )
