"""Checks of weights: that all are there, fit, are finite and not all zero."""

import zipfile
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ..errors import Errors, SapbertError
from .adapters import WEIGHTS_FILE as ADAPTER_WEIGHTS
from .sealed import check_numbers

# Not used: a name is the first token state or the mean of all.
POOLER = "pooler."
# Older versions of transformers store the numbers of the positions.
BUFFER = "position_ids"
NOT_FINITE, ALL_ZERO = "not finite", "all zero"


def is_needed(name: str) -> bool:
    """Return whether a name cannot be embedded without a weight."""
    return not name.startswith(POOLER) and not name.endswith(BUFFER)


def check_missing(missing: Iterable[str], name: str | Path) -> None:
    """Check that the files had all weights that an encoder needs.

    missing (Iterable[str]): Names of weights that they did not have.
    name (str | Path): The folder or hub id.
    RAISES (SapbertError): If one is missing other than the pooler's.
    """
    if needed := sorted(filter(is_needed, missing)):
        raise SapbertError(
            Errors.E226.format(name=name, count=len(needed), example=needed[0])
        )


def find_bad_weight(model: Any) -> tuple[str, str] | None:
    """Find a weight that no trained encoder has.

    model (torch.nn.Module): The encoder.
    RETURNS (tuple[str, str] | None): The first weight that is not finite, or that is a
        matrix of zeros, by name, and what it is; None if there is none.
    """
    for name, weights in model.state_dict().items():
        if not weights.is_floating_point() or not weights.numel():
            continue
        low, high = (float(value) for value in weights.aminmax())
        if not abs(low) + abs(high) < float("inf"):  # also if it is NaN
            return name, NOT_FINITE
        # Zeros are usual for a bias, and for the only row of a matrix.
        is_matrix = weights.ndim > 1 and min(weights.shape) > 1
        if low == high == 0 and is_matrix and is_needed(name):
            return name, ALL_ZERO
    return None


def check_weights(model: Any, name: str | Path) -> None:
    """Check the weights of an encoder; see `find_bad_weight`.

    name (str | Path): The folder or hub id, for the error.
    RAISES (SapbertError): If one is not finite or a matrix is zero.
    """
    if bad := find_bad_weight(model):
        weight, problem = bad
        raise SapbertError(
            Errors.E227.format(name=name, weight=weight, problem=problem)
        )


def check_pickled(path: Path) -> None:
    """Check that a file of pickled weights has weights alone; runs no code of it.

    Since torch 2.6, `weights_only` makes tensors and nothing else of a pickle. On the
    device "meta" they take no memory.

    RAISES (SapbertError): If it is damaged, or has something else.
    """
    import torch

    try:
        weights = torch.load(
            path, map_location="meta", weights_only=True, mmap=zipfile.is_zipfile(path)
        )
    except Exception as error:  # torch raises almost any for a damaged file
        raise SapbertError(Errors.E233.format(path=path)) from error
    if not isinstance(weights, dict) or not all(
        isinstance(value, torch.Tensor) for value in weights.values()
    ):
        raise SapbertError(Errors.E233.format(path=path))


def read_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Read the shapes of the weights of an encoder from the headers of its files."""
    from safetensors import safe_open

    shapes: dict[str, tuple[int, ...]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        if path.name != ADAPTER_WEIGHTS:
            with safe_open(path, framework="pt") as file:
                for key in file.keys():  # noqa: SIM118, it is no dict
                    shapes[key] = tuple(file.get_slice(key).get_shape())
    return shapes


def check_shapes(folder: Path) -> None:
    """Compare config.json with the weights, before memory is allocated for them.

    folder (Path): The folder of an encoder that `save_encoder` wrote.
    RAISES (SapbertError): If a weight is missing or has another shape.
    """
    import torch
    from transformers import AutoConfig, AutoModel, modeling_utils

    shapes = read_shapes(folder)
    check_numbers(folder, shapes)
    config = AutoConfig.from_pretrained(
        folder, trust_remote_code=False, local_files_only=True
    )
    # Random weights take time even without memory; later versions skip them.
    skip_weights = getattr(modeling_utils, "no_init_weights", nullcontext)
    with skip_weights(), torch.device("meta"):
        model = AutoModel.from_config(config, trust_remote_code=False)
    expected = {key: tuple(w.shape) for key, w in model.state_dict().items()}
    check_missing(expected.keys() - shapes.keys(), folder)
    for key, shape in expected.items():
        if key in shapes and shapes[key] != shape:
            raise SapbertError(
                Errors.E229.format(name=folder, weight=key, shape=shapes[key])
            )
