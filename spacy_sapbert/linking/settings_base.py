"""A record of settings whose fields are declared once: type, range, default, meaning.

The default config, the requests of the service and the docs are read from its fields.
"""

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from reprlib import repr as shorten
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

from ..errors import SapbertError


def order_texts(values: Any) -> Any:
    """Return a list as a tuple without repetitions; a set has no order, so it fails."""
    values = plain_value(values)
    if isinstance(values, (list, tuple)) and all(isinstance(v, str) for v in values):
        return tuple(dict.fromkeys(values))
    return values


def list_texts(values: Any) -> Any:
    values = plain_value(values)
    return tuple(values) if isinstance(values, (list, set, frozenset)) else values


@lru_cache(maxsize=32)
def sort_texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return texts sorted and without repetitions; the same object for equal texts.

    A filter may have 100,000 ids. Requests that bring equal ones keep them in memory
    once, and they are sorted once.
    """
    clean = tuple(sorted({*texts}))
    return texts if clean == texts else sort_texts(clean)


def plain_value(value: Any) -> Any:
    """Return a number of numpy as one of Python, and an array as a list."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


Text = Annotated[str, Field(min_length=1)]
OrderedTexts = Annotated[tuple[Text, ...], BeforeValidator(order_texts)]
SortedTexts = Annotated[
    tuple[Text, ...], BeforeValidator(list_texts), AfterValidator(sort_texts)
]
SomeTexts = Annotated[
    tuple[Text, ...],
    Field(min_length=1),
    BeforeValidator(list_texts),
    AfterValidator(sort_texts),
]


class Settings(BaseModel):
    """Settings that cannot be changed; a wrong name or value is a SapbertError."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False
    )
    prefix: ClassVar[str] = ""  # of the names of the fields in errors

    if not TYPE_CHECKING:  # type checkers read the arguments from the fields

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise self.describe_error(error) from None

    @field_validator("*", mode="before")
    @classmethod
    def make_plain(cls, value: Any) -> Any:
        return plain_value(value)

    @classmethod
    def schemas(cls) -> dict[str, Any]:
        """Return the JSON schema of each field."""
        properties: dict[str, Any] = cls.model_json_schema()["properties"]
        return properties

    @classmethod
    def describe_error(cls, error: ValidationError) -> SapbertError:
        first = error.errors(include_url=False)[0]
        inner = first.get("ctx", {}).get("error")
        if isinstance(inner, SapbertError):
            return inner
        field, *places = first["loc"]
        name, got = f"{cls.prefix}{field}", shorten(first["input"])
        if first["type"] == "extra_forbidden":
            return unknown_setting(name=name, known=cls.model_fields)
        schema = cls.schemas()[str(field)]
        if places and schema["type"] == "object":
            name, schema = f"{name}.{places[0]}", schema["additionalProperties"]
        return SapbertError(
            "E331",
            f"Expected `{name}` to be {describe_values(schema)}, but got {got}. "
            f"Correct `{name}`.",
        )

    def replace(self, **values: Any) -> Self:
        """Return these settings with some values replaced, which are checked."""
        return type(self)(**{**dict(self), **values}) if values else self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self


def describe_values(schema: Mapping[str, Any]) -> str:
    """Return the possible values of a setting in words, from its JSON schema."""
    if kinds := schema.get("anyOf"):
        return " or ".join(describe_values(kind) for kind in kinds)
    if values := schema.get("enum"):
        return "one of " + ", ".join(json.dumps(value) for value in values)
    if "minimum" in schema:
        return f"from {schema['minimum']:g} to {schema['maximum']:g}"
    if schema["type"] == "array":
        if values := schema["items"].get("enum"):
            return "a list of " + ", ".join(json.dumps(value) for value in values)
        return f"a list of {'one or more ' * ('minItems' in schema)}texts"
    words = {"boolean": "true or false", "object": "lists of texts by label"}
    return words.get(schema["type"], schema["type"])


def unknown_setting(*, name: str, known: Iterable[str]) -> SapbertError:
    known = [*known]
    similar = get_close_matches(name, known, 1)
    fix = f"Did you mean {similar[0]!r}?" if similar else "Correct its name."
    return SapbertError(
        "E333", f"Expected one of the settings {known}, but got {name!r}. {fix}"
    )
