"""How the learning rate moves over a run, as a factor from 0 to 1.

All schedules begin with `warmup_steps` steps on a line from near 0 up to 1, and reach 1
at the step after: with three of them at 1/4, 2/4, 3/4, 1. So the first step moves the
weights too.
"""

import math

from training.errors import Errors, SapbertError
from training.losses.registry import Schedule, registry


@registry.schedules("spacy-sapbert.Constant.v1")
def make_constant(warmup_steps: int = 0) -> Schedule:
    """Make a schedule that stays at 1.

    warmup_steps (int): Steps on the way up, 0 or more.
    RETURNS (Schedule): A step, from 0, and the steps of the run → the factor.
    RAISES (SapbertError): If `warmup_steps` is below 0.
    """
    check_warmup(warmup_steps)

    def factor(step: int, total: int) -> float:
        return warm_up(step, warmup_steps)

    return factor


@registry.schedules("spacy-sapbert.Linear.v1")
def make_linear(warmup_steps: int = 0) -> Schedule:
    """Make a schedule that falls on a line, to 0 at the end of the run.

    warmup_steps (int): Steps on the way up, 0 or more.
    RETURNS (Schedule): A step, from 0, and the steps of the run → the factor.
    RAISES (SapbertError): If `warmup_steps` is below 0.
    """
    check_warmup(warmup_steps)

    def factor(step: int, total: int) -> float:
        done = share_done(step, total, warmup_steps)
        return warm_up(step, warmup_steps) * (1 - done)

    return factor


@registry.schedules("spacy-sapbert.Cosine.v1")
def make_cosine(warmup_steps: int = 0) -> Schedule:
    """Make a schedule that falls on half a wave, to 0 at the end of the run.

    warmup_steps (int): Steps on the way up, 0 or more.
    RETURNS (Schedule): A step, from 0, and the steps of the run → the factor.
    RAISES (SapbertError): If `warmup_steps` is below 0.
    """
    check_warmup(warmup_steps)

    def factor(step: int, total: int) -> float:
        done = share_done(step, total, warmup_steps)
        return warm_up(step, warmup_steps) * (1 + math.cos(math.pi * done)) / 2

    return factor


def warm_up(step: int, warmup_steps: int) -> float:
    """Compute how far the rate has risen.

    step (int): From 0.
    warmup_steps (int): Steps on the way up.
    RETURNS (float): Above 0, and 1 from step `warmup_steps` on.
    """
    return min(1.0, (step + 1) / (warmup_steps + 1))


def share_done(step: int, total: int, warmup_steps: int) -> float:
    """Compute which share of the run after the warm-up is done.

    step (int): From 0.
    total (int): Steps of the whole run; a short one may end within the warm-up.
    warmup_steps (int): Steps on the way up.
    RETURNS (float): 0 until the warm-up ends, 1 at step `total`.
    """
    done = (step - warmup_steps) / max(total - warmup_steps, 1)
    return min(max(done, 0.0), 1.0)


def check_warmup(warmup_steps: int) -> None:
    """Check that no warm-up is shorter than none.

    warmup_steps (int): What was given.
    RAISES (SapbertError): If it is below 0.
    """
    if warmup_steps < 0:
        raise SapbertError(
            Errors.E616.format(setting="warmup_steps", least=0, value=warmup_steps)
        )
