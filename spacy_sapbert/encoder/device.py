"""Where torch runs an encoder: on the CPU, or on a GPU."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import SapbertError
from ..io.plugins import TORCH, is_installed


def choose_device(asked: str | None) -> str:
    """Return the device of torch for what was asked for, e.g. "cpu" or "cuda:1".

    Args:
        asked: "auto" = a GPU if there is one; "cpu"; "cuda"; "cuda:1"; None = where
            spaCy runs, and without spaCy "auto".

    Raises:
        SapbertError: It is none of them, or torch has no such GPU here.
    """
    if asked is None and is_installed("thinc"):
        return find_spacy_device()
    if asked == "cpu":
        return asked  # without importing torch
    gpus = list_gpus()
    if asked in (None, "auto"):
        return "cuda" if gpus else "cpu"
    known = ["cpu", *(["cuda", *gpus] if gpus else [])]
    if asked not in known:
        raise SapbertError(
            "E357",
            f"Expected `--device` to be one of auto, {', '.join(known)}, but got "
            f"{asked!r}. For a GPU, install a torch with CUDA that fits its driver; "
            "`--device cpu` is slower.",
        )
    return asked


def list_gpus() -> list[str]:
    """Return the names of the GPUs that torch can use, if it can run an encoder."""
    if not all(map(is_installed, TORCH)):
        return []
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [f"cuda:{number}" for number in range(count)]


def find_spacy_device() -> str:
    """Return the device that `spacy.prefer_gpu()` has chosen; without it the CPU."""
    if "thinc" not in sys.modules or not is_installed("torch"):
        return "cpu"  # without importing torch: nobody has called it
    from thinc.api import get_torch_default_device

    return str(get_torch_default_device())


@contextmanager
def memory_checked() -> Iterator[None]:
    """Raise a SapbertError with its fix if the memory of a GPU is too small."""
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError:
        raise SapbertError(
            "E004",
            "Expected memory for the encoder on the GPU, but it has none left. Stop "
            "other programs that use it, pass a smaller `--names-per-pass` (the "
            "setting `names_per_pass`), or `--device cpu`, which is slower.",
        ) from None
