"""Finds a knowledge base: in a folder, or in an installed package."""

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from ...errors import SapbertError
from .versions import CURRENT, no_kb

PIPELINE_FILE = "config.cfg"
ENTRY_POINTS = "spacy_sapbert_kbs"


def installed_kbs() -> dict[str, EntryPoint]:
    """Return the entry points of installed knowledge bases, by name."""
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def find_kb(name: str | Path | None = None) -> Path:
    """Find the folder of a knowledge base.

    Args:
        name: A folder or the name of an installed one; None = the only installed one.
    """
    installed = installed_kbs()
    names = ", ".join(sorted(installed)) or "none"
    if name is None:
        if len(installed) != 1:
            raise SapbertError(
                "E308",
                f"Expected one installed knowledge base, but found {names}. Name a "
                "folder or one of them with the setting `kb`, install one with `pip "
                "install`, or build one with `spacy sapbert kb build`.",
            )
        name = next(iter(installed))
    folder = Path(name)
    if folder.is_dir():
        check_no_pipeline(folder)
        return folder
    point = installed.get(str(name))
    if point is None:
        raise not_found(name, f"found neither; installed are: {names}", "Correct it")
    try:
        return Path(point.load())
    except (Exception, SystemExit) as error:  # of its package
        reason = f"{point.value} failed with {type(error).__name__}: {error}"
        raise not_found(name, reason, "Install its package again") from error


def not_found(name: object, reason: str, fix: str) -> SapbertError:
    return SapbertError(
        "E310",
        f"Expected a folder or an installed knowledge base under {str(name)!r}, but "
        f"{reason}. {fix}, or name a folder with the setting `kb`.",
    )


def check_no_pipeline(folder: Path) -> None:
    """Raise an error if a folder is a pipeline, with the knowledge base inside."""
    if (folder / PIPELINE_FILE).is_file() and not (folder / CURRENT).exists():
        folders = sorted(path.parent for path in folder.glob(f"*/*/{CURRENT}"))
        inside = f"in {folders[0]}" if folders else "the `kb` of a linker in config.cfg"
        raise no_kb(folder, f"it is a pipeline. Its knowledge base is {inside}")


def installed_name(source: str | Path | None) -> str | None:
    """Return the installed knowledge base that `find_kb` finds; None = a folder."""
    installed = installed_kbs()
    if source is None:
        return next(iter(installed)) if len(installed) == 1 else None
    name = str(source)
    return name if name in installed and not Path(source).is_dir() else None
