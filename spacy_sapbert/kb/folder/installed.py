"""Finds a knowledge base: in a folder, or in an installed package."""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from ...errors import Errors, SapbertError

ENTRY_POINTS = "spacy_sapbert_kbs"


def installed_kbs() -> dict[str, Any]:
    """Return the entry points of installed knowledge bases, by name."""
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def find_kb(name: str | Path | None = None) -> Path:
    """Find the folder of a knowledge base.

    name (str | Path | None): A folder, or the name of an installed knowledge base; None
        = the only one that is installed.
    RAISES (SapbertError): If there is none, or several for None.
    """
    installed = installed_kbs()
    names = ", ".join(sorted(installed)) or "none"
    if name is None:
        if not installed:
            raise SapbertError(Errors.E308)
        if len(installed) > 1:
            raise SapbertError(Errors.E309.format(names=names))
        name = next(iter(installed))
    if Path(name).is_dir():
        return Path(name)
    if str(name) not in installed:
        raise SapbertError(Errors.E310.format(name=str(name), names=names))
    return Path(installed[str(name)].load())


def installed_name(source: str | Path | None) -> str | None:
    """Return the name of the installed knowledge base that `find_kb` would find.

    RETURNS (str | None): None if it would find a folder, or none.
    """
    installed = installed_kbs()
    if source is None:
        return next(iter(installed)) if len(installed) == 1 else None
    name = str(source)
    return name if name in installed and not Path(source).is_dir() else None
