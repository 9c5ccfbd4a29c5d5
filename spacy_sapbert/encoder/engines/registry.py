"""What runs an encoder: one file per engine behind one small protocol."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ...errors import Errors, SapbertError
from ..huggingface import EncoderSettings

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor

# Each is a module here with a function `open_engine`.
ENGINES = ("torch", "openvino")
PRECISIONS = ("float32", "bf16")


class NameTokenizer(NamedTuple):
    """Cuts names into the wordpieces of an encoder.

    pieces (tokenizers.Tokenizer): Set to cut what is too long, and not to pad.
    special_ids (frozenset[int]): Ids that stand for no text, and the unknown one.
    unknown_id (int): Stands for what the encoder does not know; -1 = it knows all.
    pad_id (int): Fills up the rows of a batch.
    """

    pieces: "Tokenizer"
    special_ids: frozenset[int]
    unknown_id: int
    pad_id: int


class Engine(Protocol):
    """An opened encoder.

    tokenizer (NameTokenizer): Its wordpieces.
    width (int): Of its states.
    """

    tokenizer: NameTokenizer
    width: int

    def states(self, ids: np.ndarray, mask: np.ndarray) -> "Tensor":
        """Run the encoder; not made for several threads at once.

        ids (np.ndarray): Wordpieces, int64. Shape: (n, length).
        mask (np.ndarray): 1 for a wordpiece, 0 for padding. Shape: (n, length).
        RETURNS (Tensor): States of the last layer in float32, on any device, valid
            until the next call. Shape: (n, length, width).
        """


def check_engine(engine: str, precision: str) -> None:
    """Check that there is such an engine.

    engine (str): One of `ENGINES`.
    precision (str): One of `PRECISIONS`.
    RAISES (SapbertError): If either is another.
    """
    if engine not in ENGINES:
        raise SapbertError(Errors.E220.format(known=ENGINES, engine=engine))
    if precision not in PRECISIONS:
        raise SapbertError(Errors.E204.format(precision=precision))


def open_engine(
    engine: str, source: str | Path, settings: EncoderSettings, precision: str
) -> Engine:
    """Load an encoder.

    engine (str): What runs it, one of `ENGINES`.
    source (str | Path): A folder or a hub id.
    settings (EncoderSettings): How it is run.
    precision (str): One of `PRECISIONS`.
    RETURNS (Engine): Ready to run.
    RAISES (SapbertError): If there is no such encoder, or nothing to run it with.
    """
    module: Any = import_module(f".{engine}_engine", __package__)
    opened: Engine = module.open_engine(source, settings, precision)
    return opened
