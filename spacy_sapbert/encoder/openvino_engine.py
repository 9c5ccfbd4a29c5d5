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
from .huggingface import EncoderSettings
from .openvino_graph import check_graph
from .safety import CONFIG_FILE, check_encoder_folder, read_json
from .tokenizer import NameTokenizer, load_tokenizer

CONVERTER = "openvino.tools.ovc"
FOLDER = "openvino"  # in the encoder folder
GRAPH_FILE = "encoder.xml"  # its weights are in encoder.bin
DESCRIPTION_FILE = "engine.json"
SHAPE_TOKENS = 16  # see `OpenVinoEngine.states`
# Keeps what a forked process inherited: deleting it would wait for threads that the
# fork did not copy.
FORKED: list[Any] = []


class Description(BaseModel):
    """engine.json: what an exported encoder needs besides its graph."""

    model_config = ConfigDict(strict=True)

    format: Literal[1] = 1
    made_with: str
    width: Annotated[int, Field(ge=1)]


def import_openvino() -> Any:
    """Import OpenVINO without its converter, which sends telemetry when imported.

    Raises:
        SapbertError: It is not installed.
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


def open_engine(
    source: str | Path, settings: EncoderSettings, precision: str, *, trusted: bool
) -> "OpenVinoEngine":
    """Load an encoder that was exported into its own folder; see `engine.open_engine`.

    An exported encoder is part of a knowledge base, so its tokenizer and graph are
    checked even if it is trusted.
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
    """Load an exported encoder from its folder and that of the original.

    Raises:
        SapbertError: A file is missing, damaged or of another format.
    """
    path = exported / DESCRIPTION_FILE
    try:
        width = Description.model_validate_json(path.read_bytes()).width
    except (ValidationError, OSError) as error:
        damaged = isinstance(error, ValidationError)
        reason = "it is damaged, or of another version." if damaged else error
        raise SapbertError(Errors.E223.format(path=path, reason=reason)) from None
    check_graph(exported / GRAPH_FILE)
    tokenizer = load_tokenizer(encoder, settings.max_length)
    config = read_json(encoder / CONFIG_FILE)
    engine = OpenVinoEngine(
        exported / GRAPH_FILE, tokenizer, precision, width=width, config=config
    )
    engine.request()
    return engine


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
    """See `Engine`.

    Args:
        config: The content of config.json.
    """

    def __init__(
        self,
        graph: Path,
        tokenizer: NameTokenizer,
        precision: str,
        *,
        width: int,
        config: dict[str, Any],
    ) -> None:
        self.graph = graph
        self.tokenizer = tokenizer
        self.precision = precision
        self.width = width
        numbers = {key: n for key, n in config.items() if isinstance(n, int)}
        self.positions = numbers.get("max_position_embeddings", 0)
        vocabulary = tokenizer.backend.get_vocab_size()
        self.vocabulary = numbers.get("vocab_size", vocabulary)
        self.process: int | None = None
        self.opened: Any = None

    def request(self) -> Any:
        """Return the openvino.InferRequest of this process, compiled when first used.

        Raises:
            SapbertError: OpenVINO cannot read the graph.
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
