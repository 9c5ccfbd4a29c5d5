"""Schedules of the learning rate, as a factor from 0 to 1.

All schedules rise linearly over `warmup_steps` steps: with three of them by 1/4, 2/4
and 3/4 to 1 at the step after. The first step therefore changes the weights, too.
"""

import math

from training.errors import Errors, SapbertError
from training.losses.registry import Schedule, registry


@registry.schedules("spacy-sapbert.Constant.v1")
def make_constant(warmup_steps: int = 0) -> Schedule:
    """Build a schedule that stays at 1 after the warm-up."""
    check_warmup(warmup_steps)

    def factor(step: int, total: int) -> float:
        return warm_up(step, warmup_steps)

    return factor


@registry.schedules("spacy-sapbert.Linear.v1")
def make_linear(warmup_steps: int = 0) -> Schedule:
    """Build a schedule that decreases linearly to 0 at the end of the run."""
    check_warmup(warmup_steps)

    def factor(step: int, total: int) -> float:
        done = share_done(step, total, warmup_steps)
        return warm_up(step, warmup_steps) * (1 - done)

    return factor


@registry.schedules("spacy-sapbert.Cosine.v1")
def make_cosine(warmup_steps: int = 0) -> Schedule:
    """Build a schedule that decreases along a half cosine to 0 at the end."""
    check_warmup(warmup_steps)

    def factor(step: int, total: int) -> float:
        done = share_done(step, total, warmup_steps)
        return warm_up(step, warmup_steps) * (1 + math.cos(math.pi * done)) / 2

    return factor


def warm_up(step: int, warmup_steps: int) -> float:
    """Return the warm-up factor of a step: above 0, and 1 from `warmup_steps` on."""
    return min(1.0, (step + 1) / (warmup_steps + 1))


def share_done(step: int, total: int, warmup_steps: int) -> float:
    """Return the share of the run after the warm-up that is done, 0 to 1."""
    done = (step - warmup_steps) / max(total - warmup_steps, 1)
    return min(max(done, 0.0), 1.0)


def check_warmup(warmup_steps: int) -> None:
    """Raise a SapbertError if the number of warm-up steps is negative."""
    if warmup_steps < 0:
        raise SapbertError(
            Errors.E616.format(setting="warmup_steps", least=0, value=warmup_steps)
        )
