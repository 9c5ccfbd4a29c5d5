"""What runs an encoder: one module per engine behind one protocol."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..errors import Errors, SapbertError
from .huggingface import EncoderSettings

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor

# Each is a module `…_engine` here with a function `open_engine`.
ENGINES = ("torch", "openvino")
PRECISIONS = ("float32", "bf16")


class NameTokenizer(NamedTuple):
    """Tokenises names for an encoder.

    backend (tokenizers.Tokenizer): Truncates long names and does not pad.
    special_ids (frozenset[int]): Ids that stand for no text, and the unknown id.
    unknown_id (int): Id of tokens that the encoder does not have; -1 = none.
    pad_id (int): Id of padding.
    """

    backend: "Tokenizer"
    special_ids: frozenset[int]
    unknown_id: int
    pad_id: int


class Engine(Protocol):
    """A loaded encoder.

    tokenizer (NameTokenizer): Its tokenizer.
    width (int): Width of its token states.
    positions (int): Maximum of tokens in a name; 0 = not known.
    vocabulary (int): Number of its token ids.
    """

    tokenizer: NameTokenizer
    width: int
    positions: int
    vocabulary: int

    def states(self, ids: np.ndarray, mask: np.ndarray) -> "Tensor | np.ndarray":
        """Compute token states; not safe for threads.

        ids (np.ndarray): Token ids, int64. Shape: (n, length).
        mask (np.ndarray): 1 for a token, 0 for padding. Shape: (n, length).
        RETURNS (Tensor | np.ndarray): States of the last layer in float32, on any
            device, valid until the next call. Shape: (n, length, width).
        """


def open_engine(
    engine: str,
    source: str | Path,
    settings: EncoderSettings,
    precision: str,
    *,
    trusted: bool,
) -> Engine:
    """Load an encoder.

    engine (str): One of `ENGINES`.
    source (str | Path): A folder or a hub id.
    settings (EncoderSettings): How to run it.
    precision (str): One of `PRECISIONS`.
    trusted (bool): See `Encoder.open`.
    RAISES (SapbertError): If there is no such encoder, the library of the engine is
        missing, or the encoder fails for a name of the maximal length.
    """
    module: Any = import_module(f".{engine}_engine", __package__)
    opened: Engine = module.open_engine(source, settings, precision, trusted=trusted)
    if 0 < opened.positions < settings.max_length:
        raise SapbertError(
            Errors.E230.format(
                limit=opened.positions, name=source, got=settings.max_length
            )
        )
    shape = (1, settings.max_length)
    ids = np.full(shape, opened.tokenizer.pad_id + 1)  # any but padding
    try:
        found = tuple(opened.states(ids, np.ones_like(ids)).shape)
        reason = f"its states have the shape {found}"
    except Exception as error:  # the libraries raise almost any
        found, reason = (), " ".join(str(error).split())[:300]
    if found != (*shape, opened.width):
        raise SapbertError(Errors.E231.format(name=source, reason=reason))
    return opened
