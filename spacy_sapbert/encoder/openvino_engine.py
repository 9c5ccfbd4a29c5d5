"""Runs an exported encoder in OpenVINO, which is made for CPUs.

It needs neither torch nor transformers, so it opens sooner.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import Errors, SapbertError
from ..system import forks
from .engine import NameTokenizer
from .huggingface import EncoderSettings, check_encoder_folder
from .openvino_graph import check_graph
from .sealed import CONFIG_FILE, read_json
from .sealed_tokenizer import read_tokenizer

CONVERTER = "openvino.tools.ovc"
FOLDER = "openvino"  # in the encoder folder
GRAPH_FILE = "encoder.xml"  # its weights are in encoder.bin
DESCRIPTION_FILE = "engine.json"
FORMAT = 1
SHAPE_TOKENS = 16  # see `OpenVinoEngine.states`
# Keeps what a forked process inherited: deleting it would wait for threads that the
# fork did not copy.
FORKED: list[Any] = []


def import_openvino() -> Any:
    """Import OpenVINO without its converter, which sends telemetry when imported.

    RAISES (SapbertError): If it is not installed.
    """
    withheld = "openvino" not in sys.modules and CONVERTER not in sys.modules
    if withheld:
        # OpenVINO ignores a converter that cannot be imported.
        sys.modules[CONVERTER] = None  # type: ignore[assignment]
    try:
        import openvino
    except ImportError:
        raise SapbertError(Errors.E221) from None
    finally:
        if withheld:
            del sys.modules[CONVERTER]
    return openvino


TokenId = Annotated[int, Field(ge=0, lt=1 << 24)]


class Description(BaseModel):
    """engine.json: what an exported encoder needs besides its graph."""

    model_config = ConfigDict(strict=True)

    format: Literal[1]
    made_with: str
    width: Annotated[int, Field(ge=1, le=1 << 16)]
    pad_id: TokenId
    unknown_id: Annotated[int, Field(ge=-1, lt=1 << 24)]
    special_ids: list[TokenId]


def read_description(folder: Path) -> Description:
    """Read engine.json from the folder of a graph.

    RAISES (SapbertError): If the file is missing, damaged or of another format.
    """
    path = folder / DESCRIPTION_FILE
    try:
        return Description.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"`{'.'.join(map(str, first['loc']))}`: {first['msg']}"
        raise SapbertError(Errors.E223.format(path=path, reason=reason)) from None
    except OSError as error:
        raise SapbertError(Errors.E223.format(path=path, reason=error)) from None


def open_engine(
    source: str | Path, settings: EncoderSettings, precision: str, *, trusted: bool
) -> "OpenVinoEngine":
    """Load an exported encoder; see `engine.open_engine`.

    trusted (bool): False = check the whole folder. An exported encoder is part of a
        knowledge base, so its tokenizer and graph are checked in any case.
    RAISES (SapbertError): If OpenVINO is not installed, or the encoder is not exported
        or damaged.
    """
    import_openvino()
    folder = Path(source)
    if not (folder / FOLDER / GRAPH_FILE).is_file():
        raise SapbertError(Errors.E222.format(path=folder))
    if not trusted:
        check_encoder_folder(folder, trusted=False)
    return open_exported(folder / FOLDER, folder, settings, precision)


def open_exported(
    exported: Path, encoder: Path, settings: EncoderSettings, precision: str
) -> "OpenVinoEngine":
    """Load an exported encoder.

    exported (Path): Folder of the graph.
    encoder (Path): Folder of the encoder, with the tokenizer.
    settings (EncoderSettings): How to run it.
    precision (str): "float32" or "bf16".
    RAISES (SapbertError): If a file is missing or damaged.
    """
    description = read_description(exported)
    check_graph(exported / GRAPH_FILE)
    backend = read_tokenizer(encoder)
    backend.enable_truncation(settings.max_length)
    backend.no_padding()
    names = NameTokenizer(
        backend,
        frozenset(description.special_ids),
        description.unknown_id,
        description.pad_id,
    )
    engine = OpenVinoEngine(exported / GRAPH_FILE, names, description.width, precision)
    config = read_json(encoder / CONFIG_FILE)
    engine.positions = read_number(config, "max_position_embeddings", 0)
    engine.vocabulary = read_number(config, "vocab_size", backend.get_vocab_size())
    engine.request()
    return engine


def read_number(config: dict[str, Any], key: str, default: int) -> int:
    """Return an integer of config.json, or the default if it has none."""
    value = config.get(key)
    return value if isinstance(value, int) else default


def count_threads() -> int:
    """Return the threads to use: those of torch, which users set.

    RETURNS (int): 0 = one a core.
    """
    if torch := sys.modules.get("torch"):
        threads: int = torch.get_num_threads()
        return threads
    if forks.forked:
        return 1
    number = os.environ.get("OMP_NUM_THREADS", "")
    return int(number) if number.isdecimal() else 0


class OpenVinoEngine:
    """See `Engine`."""

    def __init__(
        self, graph: Path, tokenizer: NameTokenizer, width: int, precision: str
    ) -> None:
        self.graph = graph
        self.tokenizer = tokenizer
        self.width = width
        self.precision = precision
        self.positions = self.vocabulary = 0
        self.process: int | None = None
        self.opened: Any = None

    def request(self) -> Any:
        """Return the openvino.InferRequest of this process, compiled when first used.

        RAISES (SapbertError): If OpenVINO cannot read the graph.
        """
        if self.process != os.getpid():
            openvino = import_openvino()
            if self.opened is not None:
                FORKED.append(self.opened)
            settings: dict[str, Any] = {
                "INFERENCE_PRECISION_HINT": self.precision.replace("float", "f"),
                "PERFORMANCE_HINT": "LATENCY",
                "INFERENCE_NUM_THREADS": count_threads(),
            }
            try:
                compiled = openvino.Core().compile_model(self.graph, "CPU", settings)
            except RuntimeError as error:
                reason = str(error).strip().splitlines()[-1]
                raise SapbertError(
                    Errors.E223.format(path=self.graph, reason=reason)
                ) from None
            self.opened, self.process = compiled.create_infer_request(), os.getpid()
        return self.opened

    def states(self, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """See `Engine.states`.

        A pass takes longer if its shape is not that of the pass before, and longest if
        it is new, so a name alone is padded to one of few lengths.
        """
        names, length = ids.shape
        if names == 1:
            longer = min(-(-length // SHAPE_TOKENS) * SHAPE_TOKENS, self.positions)
            padding = ((0, 0), (0, max(0, longer - length)))
            ids = np.pad(ids, padding, constant_values=self.tokenizer.pad_id)
            mask = np.pad(mask, padding)
        found = self.request().infer([ids, mask], share_inputs=True, share_outputs=True)
        states: np.ndarray = found[0]
        return states[:, :length]
