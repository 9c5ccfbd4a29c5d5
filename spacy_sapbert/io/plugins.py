"""What other packages add: entry points, and libraries that may be missing."""

import warnings
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

from ..errors import Errors, SapbertError, Warnings


@cache
def load_plugins(group: str) -> Mapping[str, Any]:
    """Return the objects of an entry point group, by the names of the entry points.

    One that cannot be imported is left out, with a warning (W024): the formats of
    other packages still work.
    """
    plugins: dict[str, Any] = {}
    for point in entry_points(group=group):
        try:
            plugins[point.name] = point.load()
        except Exception as error:  # of any package
            reason = f"{type(error).__name__}: {error}"
            values = {"name": point.name, "value": point.value, "reason": reason}
            text = Warnings.W024.format(group=group, **values)
            warnings.warn(text, UserWarning, stacklevel=2)
    return MappingProxyType(plugins)


def require(module: str, packages: str) -> Any:
    """Import a module of a library that not everybody has installed.

    Args:
        packages: What pip installs.

    Raises:
        SapbertError: If it cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        values = {"library": module, "packages": packages, "reason": error}
        raise SapbertError(Errors.E521.format(**values)) from None


def load_object(target: Any, package: str | None) -> Any:
    """Return an object, or import one that is named like "jsonl:write_docs".

    Args:
        package: The module is in it.
    """
    if not isinstance(target, str):
        return target
    module, _, name = target.partition(":")
    return getattr(import_module(f".{module}", package), name)
