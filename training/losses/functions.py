"""The losses, miners, schedules and loggers that a training config can name."""

from collections.abc import Callable
from functools import partial
from inspect import Signature, signature
from pathlib import Path
from typing import Any, TypeVar

import catalogue
import confection
from torch import Tensor

# vectors, and the masks of positives and negatives → the loss
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
# vectors, labels, and a number for each name → the masks of positives and negatives
Miner = Callable[[Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor]]
# a step, from 0, and the steps of the run → a factor for the learning rate
Schedule = Callable[[int, int], float]
LogStep = Callable[[dict[str, Any]], Any]  # gets each entry of training.jsonl
# a folder beside the encoder, the id of the run, which a resumed run has again, and the
# settings → what takes the entries, those before a stop too, and what is called at the
# end
Logger = Callable[[Path, str, dict[str, Any]], tuple[LogStep, Callable[[], Any]]]
Function = TypeVar("Function", bound=Callable[..., Any])


class registry(confection.registry):
    """Functions that a config names with `@losses`, `@miners` and the like.

    Functions of installed packages are found by their entry points, as in spaCy.
    """

    losses = catalogue.create("spacy_sapbert", "losses", entry_points=True)
    miners = catalogue.create("spacy_sapbert", "miners", entry_points=True)
    schedules = catalogue.create("spacy_sapbert", "schedules", entry_points=True)
    loggers = catalogue.create("spacy_sapbert", "loggers", entry_points=True)


def register_partial(kind: Any, name: str) -> Callable[[Function], Function]:
    """Register a loss or a miner; its keyword-only arguments are those of the config.

    The registry gets a function that returns it with the arguments of the config.
    """

    def register(function: Function) -> Function:
        def make(**settings: Any) -> Callable[..., Any]:
            return partial(function, **settings)

        parameters = signature(function).parameters.values()
        settings = [each for each in parameters if each.kind is each.KEYWORD_ONLY]
        make.__signature__ = Signature(settings)  # type: ignore[attr-defined]
        kind.register(name, func=make)
        return function

    return register
