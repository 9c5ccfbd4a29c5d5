"""Runs an exported encoder in ONNX Runtime, which is fast on CPUs.

It needs neither torch nor transformers, so it opens sooner. ONNX Runtime checks shapes
and indices, and that all weights are inside of the folder, but some of its operations
read outside of their memory. A graph may have those of encoders alone.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SapbertError
from ..io import forks
from ..io.system import count_cores
from .encoder import EXPORTED, GRAPH_FILE, EncoderConfig
from .huggingface import EncoderSettings
from .safety import CONFIG_FILE, read_json
from .tokenizer import NameTokenizer, load_tokenizer

NAMES = (
    "Abs Add And Cast Ceil Clip Concat Constant ConstantOfShape Conv Cos CumSum Div "
    "Equal Erf Exp Expand Flatten Floor Gather GatherElements Greater GreaterOrEqual "
    "HardSwish Identity If IsNaN LayerNormalization Less LessOrEqual Log MatMul "
    "MatMulInteger Max Min Mod Mul Neg Not Or Pad Pow QuantizeLinear Range ReduceMax "
    "ReduceMean ReduceSum Relu Reshape Shape Sigmoid Sign Sin Slice Softmax Softplus "
    "Split Sqrt Squeeze Sub Tanh Tile Transpose Unsqueeze Where"
)
OPERATIONS = frozenset(NAMES.split())
# Fields of the messages in onnx.proto, by their numbers.
MODEL_GRAPH, MODEL_FUNCTIONS = 7, 25
GRAPH_NODE = 1
NODE_OPERATION, NODE_ATTRIBUTE, NODE_DOMAIN = 4, 5, 7
ATTRIBUTE_GRAPHS = (6, 11)
VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5  # kinds of fields in protobuf
SIZES = {FIXED_64: 8, FIXED_32: 4}


def import_onnxruntime() -> Any:
    """Import ONNX Runtime without its telemetry.

    Else it writes an id of the user's device into the home folder, and sends reports.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read when imported
    try:
        import onnxruntime
    except ImportError:
        raise SapbertError(
            "E521",
            "Expected ONNX Runtime for this encoder, but it is not installed. Run `pip "
            'install "onnxruntime>=1.30"`, or choose the engine "torch".',
        ) from None
    onnxruntime.disable_telemetry_events()  # on Windows
    return onnxruntime


def open_engine(
    folder: Path, settings: EncoderSettings, _: EncoderConfig
) -> "OnnxEngine":
    """Load an encoder from the export in its folder; see `Encoder.open`."""
    if not (folder / EXPORTED / GRAPH_FILE).is_file():
        raise not_exported(path=folder)
    return open_exported(folder / EXPORTED, folder, settings)


def open_exported(
    exported: Path, encoder: Path, settings: EncoderSettings
) -> "OnnxEngine":
    """Load an export, with the tokenizer of the original; both are folders."""
    check_graph(exported / GRAPH_FILE)
    tokenizer = load_tokenizer(encoder, settings.max_length)
    config = read_json(encoder / CONFIG_FILE)
    engine = OnnxEngine(exported / GRAPH_FILE, tokenizer, config)
    engine.session()
    return engine


def check_graph(path: Path) -> None:
    """Raise an error if a graph has an operation that encoders do not need."""
    try:
        for field, value in read_fields(memoryview(path.read_bytes())):
            if field == MODEL_FUNCTIONS:
                raise ValueError("it defines operations.")
            names = list_operations(value) if field == MODEL_GRAPH else ()
            if unknown := next((name for name in names if name not in OPERATIONS), ""):
                raise ValueError(f"it has the operation {unknown}.")
    except (OSError, ValueError, IndexError, RecursionError) as error:
        raise not_for_onnx(path=path, reason=error) from None


def list_operations(graph: memoryview) -> Iterator[str]:
    """Yield the operations of a graph and of the graphs in it, after their domains."""
    for field, node in read_fields(graph):
        if field != GRAPH_NODE:
            continue
        domains, names = [], []
        for part, value in read_fields(node):
            if part == NODE_OPERATION:
                names.append(bytes(value))
            elif part == NODE_DOMAIN and value:
                domains.append(bytes(value))
            elif part == NODE_ATTRIBUTE:
                for kind, inner in read_fields(value):
                    if kind in ATTRIBUTE_GRAPHS:
                        yield from list_operations(inner)
        yield repr(b".".join(domains + names))[2:-1]  # on one line


def read_fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield number and bytes of each field of a message of protobuf."""
    place = 0
    while place < len(message):
        tag, place = read_number(message, place)
        field, kind = tag >> 3, tag & 7
        if kind == VARINT:
            _, end = read_number(message, place)
        elif kind == BYTES:
            size, place = read_number(message, place)
            end = place + size
        else:
            end = place + SIZES.get(kind, len(message))
        if tag >> 32 or end > len(message):  # others may ignore what is too much
            raise ValueError("it is damaged.")
        yield field, message[place:end]
        place = end


def read_number(message: memoryview, place: int) -> tuple[int, int]:
    """Return a number of 7 bits a byte, the lowest first, and the place after it."""
    number = shift = 0
    while True:
        byte = message[place]
        number |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return number, place


def count_threads() -> int:
    """Return the threads of torch, which users set; else one for each core."""
    if forks.forked:
        return 1
    if torch := sys.modules.get("torch"):
        threads: int = torch.get_num_threads()
        return threads
    number = os.environ.get("OMP_NUM_THREADS", "")
    return int(number) if number.isdecimal() and int(number) else count_cores()


def open_session(graph: Path) -> Any:
    """Return an onnxruntime.InferenceSession of a graph, which starts no thread.

    Threads that share a pass wait for each other: a mention takes longer with them.
    """
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what fails is raised
    try:
        return onnxruntime.InferenceSession(
            str(graph), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # the library has no narrower one
        raise not_for_onnx(path=graph, reason=error) from None


class OnnxEngine:
    """See `Engine`; `config` is that of the original encoder.

    A product that rounds to bytes makes of the noise of padding, 1e-7, up to 1e-4: a
    name would have another vector in another batch.
    """

    pads, names = False, 16

    @property
    def threads(self) -> int:
        return count_threads()

    def __init__(
        self, graph: Path, tokenizer: NameTokenizer, config: dict[str, Any]
    ) -> None:
        self.graph = graph
        self.tokenizer = tokenizer
        numbers = {key: n for key, n in config.items() if isinstance(n, int)}
        self.positions = numbers.get("max_position_embeddings", 0)
        vocabulary = tokenizer.backend.get_vocab_size()
        self.vocabulary = numbers.get("vocab_size", vocabulary)
        self.sessions: dict[int, Any] = {}  # by the id of the process

    def session(self) -> Any:
        """Return the onnxruntime.InferenceSession of this process."""
        if os.getpid() not in self.sessions:
            self.sessions[os.getpid()] = open_session(self.graph)
        return self.sessions[os.getpid()]

    def states(self, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """See `Engine.states`."""
        session = self.session()
        try:
            states: np.ndarray = session.run(["states"], {"ids": ids, "mask": mask})[0]
        except Exception as error:
            raise not_for_onnx(path=self.graph, reason=error) from None
        return states


def not_exported(*, path: object) -> SapbertError:
    return SapbertError(
        "E223",
        f"Expected an encoder exported for ONNX Runtime in {path}, but found none. Run "
        "`spacy sapbert kb export-onnx` on the knowledge base, or choose the engine "
        '"torch".',
    )


def not_for_onnx(*, path: object, reason: object) -> SapbertError:
    reason = " ".join(str(reason).split())[:300]
    return SapbertError(
        "E223",
        f"{path}: Expected an encoder that ONNX Runtime can run, but: {reason} Export "
        "it again with the version of ONNX Runtime that is installed here, or choose "
        'the engine "torch".',
    )
