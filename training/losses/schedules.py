"""Schedules of the learning rate, as a factor from 0 to 1.

All schedules rise linearly over `warmup_steps` steps: with three of them by 1/4, 2/4
and 3/4 to 1 at the step after. The first step therefore changes the weights, too.
"""

from collections.abc import Callable

from spacy_sapbert.errors import SapbertError
from training.losses.functions import Schedule, registry


@registry.schedules("spacy-sapbert.Constant.v1")
def make_constant(warmup_steps: int = 0) -> Schedule:
    """Build a schedule that stays at 1 after the warm-up."""
    return make_schedule(warmup_steps, lambda done: 1.0)


@registry.schedules("spacy-sapbert.Linear.v1")
def make_linear(warmup_steps: int = 0) -> Schedule:
    """Build a schedule that decreases linearly to 0 at the end of the run."""
    return make_schedule(warmup_steps, lambda done: 1 - done)


def make_schedule(warmup_steps: int, shape: Callable[[float], float]) -> Schedule:
    """Build a schedule of a warm-up and then `shape`.

    Args:
        shape: Returns the factor when a share, 0 to 1, of the run after the warm-up is
            done.
    """

    if warmup_steps < 0:
        raise SapbertError(
            "E331",
            f"Expected warmup_steps of at least 0, but got {warmup_steps}. Correct it.",
        )

    def factor(step: int, total: int) -> float:
        rise = min(1.0, (step + 1) / (warmup_steps + 1))
        done = (step - warmup_steps) / max(total - warmup_steps, 1)
        return rise * shape(min(max(done, 0.0), 1.0))

    return factor
