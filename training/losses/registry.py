"""What a training config may name: losses, miners and schedules."""

from collections.abc import Callable

import catalogue
import confection
from torch import Tensor

# vectors, and the masks of positives and negatives → the loss
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
# vectors, labels, and names as numbers → the masks of positives and negatives
Miner = Callable[[Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor]]
# a step, from 0, and the steps of the run → a factor for the learning rate
Schedule = Callable[[int, int], float]


class registry(confection.registry):
    """Functions that a config names with `@losses`, `@miners` or `@schedules`.

    Those of installed packages are found by their entry points, as in spaCy.
    """

    losses = catalogue.create("spacy_sapbert", "losses", entry_points=True)
    miners = catalogue.create("spacy_sapbert", "miners", entry_points=True)
    schedules = catalogue.create("spacy_sapbert", "schedules", entry_points=True)
