"""The error of this package, and errors that several packages raise.

Each text stands where it is raised, with its code: *Expected X, but got Y.*, then how
to put it right, with the command or the setting in backticks. No message has the text
of a document or a mention; it has lines, offsets and counts instead.
"""

import traceback
from collections.abc import Sequence
from typing import Any

SKIP = " Or pass `--on-error skip` to count what is invalid, and continue."


class SapbertError(ValueError):
    """An error of input, settings or files; the message has the fix.

    Attributes:
        code: For example "E310".
        text: The message without its code.
        document: The id of the document that cannot be linked; None = it is about
            something else, or the id is unknown.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text
        self.document: Any = None

    def __str__(self) -> str:
        return f"[{self.code}] {self.text}"


def may_skip(error: SapbertError) -> SapbertError:
    """Add to the text of an error how the command can leave out what is invalid."""
    if not error.text.endswith(SKIP):  # it may come here from several readers
        error.text += SKIP
    return error


class UnknownConceptError(SapbertError, KeyError):
    """A knowledge base has no concept with an id."""


def find_place(error: BaseException) -> str:
    """Return the file and line where an exception was raised; "" = it was not."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def check_range(setting: str, value: float, low: float, high: float) -> None:
    """Raise an error if a number is not from `low` to `high`."""
    if not low <= value <= high:
        raise SapbertError(
            "E331",
            f"Expected {setting} from {low} to {high}, but got {value!r}. Correct "
            f"`{setting}`.",
        )


def check_choice(setting: str, known: Sequence[Any], value: Any) -> None:
    """Raise a SapbertError if a setting has none of the known values."""
    if value not in known:
        raise SapbertError(
            "E331",
            f"Expected {setting} to be one of {known}, but got {value!r}. Correct "
            f"`--{setting}`.",
        )


def missing_file(*, path: object) -> SapbertError:
    return SapbertError(
        "E001", f"Expected a file at {path}, but found none. Check the path."
    )


def is_folder(*, path: object) -> SapbertError:
    return SapbertError(
        "E002", f"Expected a file at {path}, but it is a folder. Name a file inside it."
    )


def not_written(*, path: object, reason: object) -> SapbertError:
    return SapbertError(
        "E004",
        f"Expected to write {path}, but the system refused: {reason}. Nothing was "
        "left under that name. Choose a folder with enough space that you may write "
        "to.",
    )


def refused_by_system(*, path: object, reason: object) -> SapbertError:
    return SapbertError(
        "E004",
        f"Expected to read or write {path}, but the system refused: {reason}. Correct "
        "its permissions, or make space for it.",
    )


def missing_in_folder(*, file: object, folder: object) -> SapbertError:
    return SapbertError(
        "E108",
        f"Expected {file} in {folder}, but found none. Pass the folder that contains "
        "it, or the file itself.",
    )


def unknown_on_error(*, value: object) -> SapbertError:
    return SapbertError(
        "E331", f"Expected `--on-error` to be `fail` or `skip`, but got {value!r}."
    )


def unexpected_line(*, path: object, line: object, expected: object) -> SapbertError:
    return SapbertError(
        "E117",
        f"{path}:{line}: Expected {expected}, but got something else. Correct the "
        "line.",
    )


def too_long(*, path: object, line: object, limit: object) -> SapbertError:
    return SapbertError(
        "E506",
        f"{path}:{line}: Expected a document of at most {limit} characters, but got a "
        "longer one. Split it.",
    )


def blank_mention(*, path: object, line: object) -> SapbertError:
    return SapbertError(
        "E117",
        f"{path}:{line}: Expected the text of a mention, but it is blank. Correct the "
        "line, or remove it.",
    )
