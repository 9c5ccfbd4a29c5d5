"""The losses, miners and schedules that a training config can name."""

from collections.abc import Callable
from importlib import import_module

import catalogue
import confection
from torch import Tensor

# vectors, and the masks of positives and negatives → the loss
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
# vectors, labels, and names as numbers → the masks of positives and negatives
Miner = Callable[[Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor]]
# a step, from 0, and the steps of the run → a factor for the learning rate
Schedule = Callable[[int, int], float]

MODULES = ("miners", "multi_similarity", "other_losses", "schedules")


class registry(confection.registry):
    """Functions that a config names with `@losses`, `@miners` or `@schedules`.

    Functions of installed packages are found by their entry points, as in spaCy.
    """

    losses = catalogue.create("spacy_sapbert", "losses", entry_points=True)
    miners = catalogue.create("spacy_sapbert", "miners", entry_points=True)
    schedules = catalogue.create("spacy_sapbert", "schedules", entry_points=True)


def load_registry() -> type[registry]:
    """Return the registry after importing the modules that register functions."""
    for name in MODULES:
        import_module(f"training.losses.{name}")
    return registry
