"""Runs an exported encoder in OpenVINO, which is made for CPUs.

It needs neither weights for PyTorch nor transformers, and so opens sooner.
"""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import Errors, SapbertError
from ..huggingface import EncoderSettings
from .registry import NameTokenizer

if TYPE_CHECKING:
    from torch import Tensor

CONVERTER = "openvino.tools.ovc"
FOLDER = "openvino"  # in the encoder folder
GRAPH_FILE = "encoder.xml"  # its weights lie beside it, in encoder.bin
DESCRIPTION_FILE = "engine.json"
TOKENIZER_FILE = "tokenizer.json"  # of the encoder folder
FORMAT = 1
# What a description must say, and of which type.
FIELDS: dict[str, type] = {
    "format": int,
    "made_with": str,
    "width": int,
    "pad_id": int,
    "unknown_id": int,
    "special_ids": list,
}

# Taking apart in a forked process what runs in its parent would wait for threads that
# the fork did not copy.
FORKED: list[Any] = []


def import_openvino() -> Any:
    """Import OpenVINO without its converter, which reports each import to its maker.

    RETURNS (ModuleType): The library.
    RAISES (SapbertError): If it is not installed.
    """
    withheld = "openvino" not in sys.modules and CONVERTER not in sys.modules
    if withheld:
        # OpenVINO does without what cannot be imported.
        sys.modules[CONVERTER] = None  # type: ignore[assignment]
    try:
        import openvino
    except ImportError:
        raise SapbertError(Errors.E221) from None
    finally:
        if withheld:
            del sys.modules[CONVERTER]
    return openvino


def read_description(folder: Path) -> dict[str, Any]:
    """Read what an exported encoder needs besides its graph.

    folder (Path): With the graph.
    RETURNS (dict[str, Any]): With `FIELDS`.
    RAISES (SapbertError): If the file is missing, damaged or of another format.
    """
    path = folder / DESCRIPTION_FILE
    try:
        data = json.loads(path.read_text("utf8"))
        for field, kind in FIELDS.items():
            if type(data[field]) is not kind:
                raise ValueError(f"`{field}` is not as expected")
        if data["format"] != FORMAT:
            raise ValueError(f"its format is {data['format']} and not {FORMAT}")
        if any(type(number) is not int for number in data["special_ids"]):
            raise ValueError("`special_ids` is not as expected")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SapbertError(Errors.E223.format(path=path, reason=error)) from None
    return dict(data)


def open_engine(
    source: str | Path, settings: EncoderSettings, precision: str
) -> "OpenVinoEngine":
    """Load an encoder that was exported; see `engines.open_engine`.

    RAISES (SapbertError): If OpenVINO is not installed, or the encoder not exported, or
        what was exported is damaged.
    """
    import_openvino()
    folder = Path(source)
    if not (folder / FOLDER / GRAPH_FILE).is_file():
        raise SapbertError(Errors.E222.format(path=folder))
    return open_exported(folder / FOLDER, folder / TOKENIZER_FILE, settings, precision)


def open_exported(
    folder: Path, tokenizer: Path, settings: EncoderSettings, precision: str
) -> "OpenVinoEngine":
    """Load what was exported.

    folder (Path): With the graph.
    tokenizer (Path): The tokenizer.json of the encoder.
    settings (EncoderSettings): How the encoder is run.
    precision (str): "float32" or "bf16".
    RETURNS (OpenVinoEngine): Ready to run.
    RAISES (SapbertError): If something is missing or damaged.
    """
    from tokenizers import Tokenizer

    description = read_description(folder)
    try:
        pieces = Tokenizer.from_file(str(tokenizer))
    except Exception as error:  # tokenizers has no narrower one
        raise SapbertError(Errors.E223.format(path=tokenizer, reason=error)) from None
    pieces.enable_truncation(settings.max_length)
    pieces.no_padding()
    names = NameTokenizer(
        pieces,
        frozenset(description["special_ids"]),
        description["unknown_id"],
        description["pad_id"],
    )
    engine = OpenVinoEngine(folder / GRAPH_FILE, names, description["width"], precision)
    engine.request()
    return engine


class OpenVinoEngine:
    """See `Engine`."""

    def __init__(
        self, graph: Path, tokenizer: NameTokenizer, width: int, precision: str
    ) -> None:
        self.graph = graph
        self.tokenizer = tokenizer
        self.width = width
        self.precision = precision
        self.process: int | None = None
        self.opened: Any = None

    def request(self) -> Any:
        """Return what runs the encoder in this process, compiled when first asked for.

        RETURNS (openvino.InferRequest): For one batch at a time.
        RAISES (SapbertError): If OpenVINO cannot read the graph.
        """
        if self.process != os.getpid():
            import torch

            openvino = import_openvino()
            if self.opened is not None:
                FORKED.append(self.opened)
            settings: dict[str, Any] = {
                "INFERENCE_PRECISION_HINT": self.precision.replace("float", "f"),
                "PERFORMANCE_HINT": "LATENCY",
                # What people set for PyTorch holds here too.
                "INFERENCE_NUM_THREADS": torch.get_num_threads(),
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

    def states(self, ids: np.ndarray, mask: np.ndarray) -> "Tensor":
        """See `Engine.states`."""
        import torch

        found = self.request().infer([ids, mask], share_inputs=True, share_outputs=True)
        return torch.from_numpy(found[0])
