"""Random batches for miners and losses."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

Batch = tuple[Tensor, Tensor, Tensor]
BOUNDS = torch.tensor([0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.6])  # margins of the tests


@pytest.fixture(scope="session")
def random_batch() -> Callable[..., Batch]:
    """Draw rows, labels and names; no triplet is so near a bound that rounding decides.

    Some rows have the same name, as their numbers show.
    """

    def draw(seed: int, *, rows: int = 40, concepts: int = 12) -> Batch:
        generator = torch.Generator().manual_seed(seed)
        while True:
            labels = torch.randint(concepts, (rows,), generator=generator)
            centres = torch.randn(concepts, 8, generator=generator)
            raw = centres[labels] + torch.randn(rows, 8, generator=generator)
            unit = torch.nn.functional.normalize(raw, dim=1)
            distances = torch.cdist(unit, unit)
            same = labels[:, None] == labels[None, :]
            gaps = distances[:, None, :] - distances[:, :, None]  # anchor, one, other
            gaps = gaps[same[:, :, None] & ~same[:, None, :]]
            if ((gaps[:, None] - BOUNDS).abs() > 1e-5).all():
                return raw, labels, torch.randint(rows, (rows,), generator=generator)

    return draw
