"""What runs an encoder: one module per engine behind one protocol."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import Errors, SapbertError
from .huggingface import EncoderSettings
from .tokenizer import NameTokenizer

if TYPE_CHECKING:
    from torch import Tensor

# Each is a module `…_engine` here with a function `open_engine`.
ENGINES = ("torch", "openvino")
PRECISIONS = ("float32", "bf16")


class Engine(Protocol):
    """A loaded encoder.

    Attributes:
        width: Width of its token states.
        positions: Maximum of tokens in a name; 0 = not known.
        vocabulary: Number of its token ids.
    """

    tokenizer: NameTokenizer
    width: int
    positions: int
    vocabulary: int

    def states(self, ids: np.ndarray, mask: np.ndarray) -> "Tensor | np.ndarray":
        """Compute token states; not safe for threads.

        Args:
            ids: Token ids, int64. Shape: (n, length).
            mask: 1 for a token, 0 for padding, int64. Shape: (n, length).

        Returns:
            States of the last layer in float32, on any device, valid until the next
            call. Shape: (n, length, width).
        """


def open_engine(
    engine: str,
    source: str | Path,
    settings: EncoderSettings,
    precision: str,
    *,
    trusted: bool,
) -> Engine:
    """Load an encoder, and try it with a name of the maximal length.

    Raises:
        SapbertError: There is no such encoder, the library of the engine is missing,
            or the encoder fails.
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
        computed = tuple(opened.states(ids, np.ones_like(ids)).shape)
        reason = f"its states have the shape {computed}"
    except Exception as error:  # the libraries raise almost any
        computed, reason = (), " ".join(str(error).split())[:300]
    if computed != (*shape, opened.width):
        raise SapbertError(Errors.E231.format(name=source, reason=reason))
    return opened
