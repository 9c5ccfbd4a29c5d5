"""The wording and the code of every error and warning.

Each text has the form *Expected X, but got Y.*, then how to put it right, with the
command or the setting in backticks. No message has the text of a
document or a mention; it has lines, offsets and counts instead.

The texts are in `messages`: those of a package in the module of its name.
"""

import traceback
from collections.abc import Sequence
from typing import Any

from .messages.cli import CliErrors
from .messages.distributed import DistributedErrors
from .messages.encoder import EncoderErrors, EncoderWarnings
from .messages.evaluation import EvaluationErrors
from .messages.files import FilesErrors, FilesWarnings
from .messages.formats import FormatsErrors, FormatsWarnings
from .messages.kb import KbErrors, KbWarnings
from .messages.linking import LinkingErrors
from .messages.pipeline import PipelineErrors, PipelineWarnings
from .messages.serve import ServeErrors
from .messages.vocabularies import VocabulariesErrors


class SapbertError(ValueError):
    """An error of input, settings or files; the message has the fix."""


class UnknownConceptError(SapbertError, KeyError):
    """A knowledge base has no concept with an id."""

    __str__ = ValueError.__str__  # that of KeyError shows a representation


class _WithCodes(type):
    def __getattribute__(cls, code: str) -> Any:
        text = super().__getattribute__(code)
        if code.startswith("_") or not isinstance(text, str):
            return text
        return f"[{code}] {text}"


class Errors(
    FilesErrors,
    LinkingErrors,
    KbErrors,
    EncoderErrors,
    VocabulariesErrors,
    FormatsErrors,
    PipelineErrors,
    EvaluationErrors,
    DistributedErrors,
    ServeErrors,
    CliErrors,
    metaclass=_WithCodes,
):
    """Every error, by its code."""


class Warnings(
    FilesWarnings,
    KbWarnings,
    EncoderWarnings,
    FormatsWarnings,
    PipelineWarnings,
    metaclass=_WithCodes,
):
    """Every warning, by its code."""


def find_place(error: BaseException) -> str:
    """Return the file and line where an exception was raised; "" = it was not."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def check_range(setting: str, value: float, low: float, high: float) -> None:
    """Raise an error if a number is not from `low` to `high`."""
    if not low <= value <= high:
        raise SapbertError(
            Errors.E313.format(setting=setting, low=low, high=high, value=value)
        )


def check_choice(setting: str, known: Sequence[Any], value: Any) -> None:
    """Raise a SapbertError if a setting has none of the known values."""
    if value not in known:
        raise SapbertError(
            Errors.E605.format(setting=setting, known=known, value=value)
        )
