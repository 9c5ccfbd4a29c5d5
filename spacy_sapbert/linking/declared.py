"""Values that are declared once: type, range, default and meaning of each field.

A field of a frozen dataclass is annotated with its type and an `Option`. The checks,
the default config, its page in the docs and the requests of the service are read from
that.
"""

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cached_property, lru_cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
)

from ..errors import SapbertError

STRICT = ConfigDict(strict=True, allow_inf_nan=False)
MANY = 100  # texts from which on equal lists are one object


@dataclass(frozen=True)
class Option:
    """What is declared about a field besides its type and its default.

    Attributes:
        doc: What it does, as a comment of the config.
        low, high: The range of a number.
        changes_search: Whether the candidates found, or their scores, depend on it.
    """

    doc: str
    low: float | None = None
    high: float | None = None
    changes_search: bool = False


class Declared:
    """A declared field of a dataclass.

    Args:
        allowed: The only possible values; empty = they cannot be listed.
    """

    def __init__(self, name: str, type: Any, default: Any) -> None:
        self.name = name
        self.type = type
        self.default = default
        self.option = next(m for m in type.__metadata__ if isinstance(m, Option))
        self.allowed = list_allowed(type)

    @cached_property
    def validate(self) -> Callable[[Any], Any]:
        """The check of pydantic, made when a value is not the default.

        spaCy imports this module for everyone who has this package installed.
        """
        from pydantic import TypeAdapter

        limits: Any = Field(ge=self.option.low, le=self.option.high)
        kind: Any = self.type
        if self.option.low is not None:
            kind = Annotated[kind, limits]
        config = None if is_dataclass(unwrap(kind)) else STRICT  # it has its own
        return TypeAdapter(kind, config=config).validate_python

    def check(self, value: Any, prefix: str = "") -> Any:
        """Return a value as the field holds it: a number of numpy as one of Python."""
        try:
            return self.validate(plain_value(value))
        except ValidationError as error:
            first: Any = error.errors(include_url=False)[0]
        inner = first.get("ctx", {}).get("error")
        if isinstance(inner, SapbertError):
            raise inner
        name, got = f"{prefix}{self.name}", repr(value)
        low, high, allowed = self.option.low, self.option.high, self.allowed
        if low is not None:
            raise SapbertError(
                "E313",
                f"Expected {name} from {low} to {high}, but got {value!r}. Correct "
                f"`{name}`.",
            )
        if first["type"] == "literal_error" and first["loc"]:  # an item of a list
            allowed, got = self.named, repr(first["input"])
        if allowed:
            raise SapbertError(
                "E335",
                f"Expected `{name}` to be of {[*allowed]}, but got {got}. Correct "
                f"`{name}`.",
            )
        if get_origin(unwrap(self.type)) is Mapping:
            if not first["loc"]:
                raise wrong_label_types(got=f"a {type(value).__name__}")
            name = f"{name}.{first['loc'][0]}"
        raise SapbertError(
            "E331",
            f"Expected `{name}` to be a list of texts, but got something else. Write "
            'it like `["T047", "DISO"]`.',
        )

    @property
    def named(self) -> tuple[Any, ...]:
        """The values that the type names, of a list those of its items."""
        kind = unwrap(self.type)
        if get_origin(kind) is tuple:
            return list_allowed(get_args(kind)[0])
        return () if kind is bool else self.allowed

    def describe_values(self) -> str:
        """Return the possible values in words, for the docs."""
        kind, option = unwrap(self.type), self.option
        if option.low is not None:
            text = f"{option.low:g} to {option.high:g}".replace("-", "−")
            return f"null, {text}" if NoneType in get_args(kind) else text
        if get_origin(kind) is Mapping:
            return "lists of texts by label"
        if get_origin(kind) is tuple:
            return f"list of {as_code(self.named)}" if self.named else "list of texts"
        return as_code(self.allowed)


@lru_cache
def declare(cls: Hashable) -> dict[str, Declared]:
    """Return the declared fields of a dataclass, by name."""
    hints = get_type_hints(cls, include_extras=True)
    declared: dict[str, Declared] = {}
    for field in fields(cls):  # type: ignore[arg-type]
        default = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        declared[field.name] = Declared(field.name, hints[field.name], default)
    return declared


def check_fields(values: Any, prefix: str = "") -> None:
    """Check the fields of a dataclass that is being made, and set the clean values."""
    kind: Any = type(values)
    for name, declared in declare(kind).items():
        value = getattr(values, name)
        default = declared.default
        if type(value) is not type(default) or value != default:
            object.__setattr__(values, name, declared.check(value, prefix))


def unwrap(kind: Any) -> Any:
    """Return a type without its metadata."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def list_allowed(kind: Any) -> tuple[Any, ...]:
    """Return the values of a type that names them, else ()."""
    kind = unwrap(kind)
    if get_origin(kind) is Literal:
        return get_args(kind)
    if kind is bool:
        return False, True
    if get_origin(kind) in (Union, UnionType):
        named = [list_allowed(part) for part in get_args(kind) if part is not NoneType]
        return (None, *named[0]) if all(named) else ()
    return ()


def config_type(kind: Any) -> Any:
    """Return a type as a config has it: lists for tuples, and no named values."""
    kind = unwrap(kind)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return reduce(or_, {type(value) for value in parts})
    if origin in (Union, UnionType):
        return reduce(or_, map(config_type, parts))
    if origin is tuple:
        return list[config_type(parts[0])]  # type: ignore[misc]
    if origin is Mapping:
        return dict[str, config_type(parts[1])]  # type: ignore[misc]
    if is_dataclass(kind):
        declared = declare(kind)  # type: ignore[arg-type]
        fields_of = [config_type(field.type) for field in declared.values()]
        return dict[str, reduce(or_, fields_of)]  # type: ignore[misc]
    return kind


def as_code(values: tuple[Any, ...]) -> str:
    return ", ".join(f"`{json.dumps(value)}`" for value in values)


def plain_value(value: Any) -> Any:
    """Return a number of numpy as one of Python, and an array as a list."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def order_texts(values: Any) -> Any:
    """Return a list as a tuple without repetitions; a set has no order, so it fails."""
    values = plain_value(values)
    if isinstance(values, (list, tuple)) and all(isinstance(v, str) for v in values):
        return tuple(dict.fromkeys(values))
    return values


def sort_texts(values: Any) -> tuple[str, ...]:
    """Return texts sorted and without repetitions."""
    values = plain_value(values)
    if not isinstance(values, (list, tuple, set, frozenset)):
        raise ValueError
    texts = tuple(values)
    if len(texts) < MANY:
        return sort_checked(texts)
    try:
        return share_sorted(texts)
    except TypeError:  # one has no hash
        raise ValueError from None


def sort_checked(texts: tuple[str, ...]) -> tuple[str, ...]:
    if not all(isinstance(text, str) and text for text in texts):
        raise ValueError
    return tuple(sorted({*texts}))


@lru_cache(maxsize=32)
def share_sorted(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return texts sorted; the same object for equal texts.

    A filter may have 100,000 ids. Requests that bring equal ones keep them in memory
    once, and they are sorted once.
    """
    clean = sort_checked(texts)
    return texts if clean == texts else share_sorted(clean)


Text = Annotated[str, Field(min_length=1)]
OrderedTexts = Annotated[tuple[Text, ...], BeforeValidator(order_texts)]
SortedTexts = Annotated[tuple[str, ...], PlainValidator(sort_texts)]


def wrong_label_types(*, got: object) -> SapbertError:
    return SapbertError(
        "E334",
        "Expected `label_types` to map labels to lists of semantic types, but got "
        f'{got}. Write it like `{{"DISEASE": ["T047"]}}`, without the labels that may '
        "have any type.",
    )
