"""What other packages add: entry points, and libraries that may be missing."""

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from ..errors import Errors, SapbertError


@cache
def load_plugins(group: str) -> dict[str, Any]:
    """Return the objects of an entry point group, by the names of the entry points.

    Raises:
        SapbertError: If one cannot be imported.
    """
    found: dict[str, Any] = {}
    for point in entry_points(group=group):
        try:
            found[point.name] = point.load()
        except Exception as error:  # of any package
            reason = f"{type(error).__name__}: {error}"
            values = {"name": point.name, "value": point.value, "reason": reason}
            raise SapbertError(Errors.E024.format(group=group, **values)) from error
    return found


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
