"""Shorter vectors: the directions in which the names of an index differ most."""

from pathlib import Path

import numpy as np

from .row_file import Vectors, check_size, name_damage

SAMPLE = 100_000  # rows that the directions are computed from
BLOCK_ROWS = 8192
LEAST_NORM = np.float32(1e-6)


def sample_rows(vectors: Vectors) -> np.ndarray:
    """Return vectors spread evenly over all rows. Shape: (up to SAMPLE, width)."""
    numbers = np.linspace(0, len(vectors) - 1, min(SAMPLE, len(vectors)))
    return np.asarray(vectors[np.unique(numbers.astype(np.int64))], dtype=np.float32)


def fit_projection(sample: np.ndarray, width: int) -> np.ndarray:
    """Compute orthonormal directions that keep most of the cosines of a sample.

    The vectors are not centred: it is their products that are to be kept.
    Shape: (n, full width) → (full width, width).
    """
    moments = np.zeros((sample.shape[1],) * 2)
    for start in range(0, len(sample), BLOCK_ROWS):
        block = sample[start : start + BLOCK_ROWS].astype(np.float64)
        moments += block.T @ block
    directions = np.linalg.eigh(moments)[1][:, ::-1][:, : min(width, len(moments))]
    # The sign of a direction is arbitrary, and may differ between machines.
    largest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(directions.shape[1])])
    return np.ascontiguousarray(directions * signs, dtype="<f4")


def project(vectors: np.ndarray, projection: np.ndarray | None) -> np.ndarray:
    """Return shorter unit vectors. Shape: (n, width); None = unchanged vectors."""
    if projection is None:
        return np.ascontiguousarray(vectors, dtype=np.float32)
    short = vectors @ projection
    norms = np.linalg.norm(short, axis=1, keepdims=True)
    return np.asarray(short / np.maximum(norms, LEAST_NORM), dtype=np.float32)


def read_projection(path: Path, *, full: int, width: int) -> np.ndarray:
    """Read the directions of an index. Shape: (full, width)."""
    with name_damage(path):
        check_size(path.stat().st_size, 4 * full * width)
        return np.fromfile(path, "<f4").reshape(full, width)
