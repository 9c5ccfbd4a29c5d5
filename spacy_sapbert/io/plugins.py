"""What other packages add: entry points, and libraries that may be missing."""

import warnings
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, cast

from ..errors import SapbertError


@cache
def load_plugins(
    group: str, kind: type, ours: tuple[str, ...], *, subclasses: bool = False
) -> Mapping[str, Any]:
    """Return the objects of an entry point group, by the names of the entry points.

    One that cannot be imported, is of another type or has a name that is taken is left
    out, with a warning (W024): the others still work.

    Args:
        kind: Whose objects they are, a dataclass.
        ours: Names that no other package may have.
        subclasses: They are subclasses of `kind` instead of its objects.
    """
    plugins: dict[str, Any] = {}
    for point in entry_points(group=group):
        try:
            plugin = point.load()
        except (Exception, SystemExit) as error:  # of any package
            fault = f"{type(error).__name__}: {error}"
        else:
            fault = find_fault(plugin, kind, subclasses=subclasses)
        if point.name in ours or point.name in plugins:
            fault = "its name is taken"
        if fault:
            text = (
                f"[W024] Expected the entry point {point.name!r} of {group} to name a "
                f"{kind.__name__} in {point.value}, but it is left out: {fault}. "
                "Correct or uninstall its package."
            )
            warnings.warn(text, UserWarning, stacklevel=2)
        else:
            plugins[point.name] = plugin
    return MappingProxyType(plugins)


def find_fault(plugin: Any, kind: Any, *, subclasses: bool) -> str:
    """Return why an object is not what an entry point names; "" = it is."""
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    if subclasses:
        is_kind = isinstance(plugin, type) and issubclass(plugin, kind)
    else:
        is_kind = isinstance(plugin, kind)
    if not is_kind:
        return f"it is a {type(plugin).__name__}"
    strict = ConfigDict(strict=True, arbitrary_types_allowed=True)
    for item in () if subclasses else fields(kind):
        try:
            types: TypeAdapter[Any] = TypeAdapter(cast(Any, item.type), config=strict)
            types.validate_python(getattr(plugin, item.name))
        except ValidationError:
            return f"its `{item.name}` has another type"
    return ""


TORCH = ("torch", "transformers", "safetensors")  # of the extra `torch`


def is_installed(module: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # no parent; unusable in `sys.modules`
        return False


def require_torch(otherwise: str = "") -> None:
    """Raise an error for what a light installation lacks; it may name another way."""
    if missing := [name for name in TORCH if not is_installed(name)]:
        raise SapbertError(
            "E521",
            f"Expected {' and '.join(missing)} to be installed, but this is a light "
            "installation, which does not train or build. Run `pip install "
            f"{' '.join(TORCH)}`{otherwise}.",
        )


def require(module: str, packages: str) -> Any:
    """Import a module that not everybody has; the error names what pip installs."""
    try:
        return import_module(module)
    except ImportError as error:
        raise SapbertError(
            "E521",
            f"Expected {module} to be installed, but got: {error}. Run `pip install "
            f"{packages}`.",
        ) from None


def load_object(target: Any, package: str | None) -> Any:
    """Return an object, or import one of a package, named like "jsonl:write_docs"."""
    if not isinstance(target, str):
        return target
    module, _, name = target.partition(":")
    return getattr(import_module(f".{module}", package), name)
