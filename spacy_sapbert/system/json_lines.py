"""Parse lines of JSON in bounded memory."""

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from .reading import USUAL_BYTES

FIELDS = 1_000  # of a line that is longer than usual
T = TypeVar("T")


def validate_line(adapter: TypeAdapter[T], line: str) -> T:
    """Parse and check a line of JSON, whose fields are lists, or objects of lists.

    RAISES (ValidationError): If it is not JSON, or not what the adapter expects.
    """
    if len(line) <= USUAL_BYTES:
        return adapter.validate_json(line)
    data = load_line(line)
    # pydantic would collect an error for each item, of some thousand bytes
    if type(data) is dict and (mixed := find_mixed(data)) is not None:
        raise make_error("mixed", mixed)
    return adapter.validate_python(data)


def load_line(line: str) -> Any:
    """Parse a line of JSON that is longer than usual.

    pydantic's parser takes some 300 bytes for each list, Python's takes 80.

    RAISES (ValidationError): If it is not JSON.
    """
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "too deep, or a number of too many digits")
        raise make_error("json_invalid", reason=reason) from None


def make_error(type: str, *place: str, reason: str = "") -> ValidationError:
    """Return an error like those of pydantic, without the input."""
    custom = PydanticCustomError(type, "invalid", {"error": reason})  # type: ignore[arg-type]
    details = InitErrorDetails(type=custom, loc=place, input=None)
    return ValidationError.from_exception_data("line", [details])


def find_mixed(fields: dict[str, Any]) -> str | None:
    """Return the first field with a list that is not only of texts or only of numbers.

    RETURNS (str | None): The name of the field, if any; "" if there are too many fields.
    """
    if len(fields) > FIELDS:
        return ""
    for name, value in fields.items():
        if type(value) is list and not is_uniform(value):
            return name
        if type(value) is dict:
            lists = value.values()
            if {*map(type, lists)} - {list} or not all(map(is_uniform, lists)):
                return name
    return None


def is_uniform(items: list[Any]) -> bool:
    """Return whether a list has only texts that UTF-8 can encode, or only integers."""
    types = {*map(type, items)}
    if types == {str}:
        try:
            "".join(items).encode("utf8")
        except UnicodeEncodeError:
            return False
    return types in (set(), {str}, {int})
