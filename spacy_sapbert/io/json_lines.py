"""Parse lines of JSON in bounded memory."""

import json
from collections.abc import Collection
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from .reading import USUAL_BYTES

FIELDS = 1_000  # of a line that is longer than usual
T = TypeVar("T")


def validate_line(
    adapter: TypeAdapter[T], line: str, *, numbers: Collection[str] = ()
) -> T:
    """Parse and check a line of JSON, whose fields have texts or lists of texts.

    Args:
        numbers: The fields that have lists of integers.

    Raises:
        ValidationError: If it is not JSON, or not what the adapter expects.
    """
    if len(line) <= USUAL_BYTES:
        return adapter.validate_json(line)
    data = load_line(line)
    # pydantic would collect an error for each item, of some thousand bytes
    if type(data) is dict and (mixed := find_mixed(data, numbers)) is not None:
        raise make_error("mixed", mixed)
    return adapter.validate_python(data)


def load_line(line: str) -> Any:
    """Parse a line of JSON that is longer than usual.

    pydantic's parser takes some 300 bytes for each list, Python's takes 80.
    """
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "too deep, or a number of too many digits")
        raise make_error("json_invalid", reason=reason) from None


def make_error(type: str, *place: str, reason: str = "") -> ValidationError:
    """Return an error like those of pydantic, without the input."""
    custom = PydanticCustomError(type, "invalid", {"error": reason})
    details = InitErrorDetails(type=custom, loc=place, input=None)
    return ValidationError.from_exception_data("line", [details])


def find_mixed(fields: dict[str, Any], numbers: Collection[str]) -> str | None:
    """Return the first field with a list of something else; "" for too many fields."""
    if len(fields) > FIELDS:
        return ""
    for name, value in fields.items():
        is_right = is_integers if name in numbers else is_texts
        if type(value) is list and not is_right(value):
            return name
        if type(value) is dict and not all(map(is_right, value.values())):
            return name
    return None


def is_texts(items: Any) -> bool:
    """Return whether a value is a list of texts that UTF-8 can encode."""
    try:
        "".join(items).encode("utf8")
    except (TypeError, UnicodeEncodeError):
        return False
    return type(items) is list


def is_integers(items: Any) -> bool:
    """Return whether a value is a list of integers."""
    return type(items) is list and {*map(type, items)} <= {int}
