"""Finds a knowledge base: in a folder, or in an installed package."""

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from ...errors import SapbertError
from .layout import CURRENT

PIPELINE_FILE = "config.cfg"
ENTRY_POINTS = "spacy_sapbert_kbs"


def installed_kbs() -> dict[str, EntryPoint]:
    """Return the entry points of installed knowledge bases, by name."""
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def find_kb(name: str | Path | None = None) -> Path:
    """Find the folder of a knowledge base.

    Args:
        name: A folder, or the name of an installed knowledge base; None = the only one
            that is installed.
    """
    installed = installed_kbs()
    names = ", ".join(sorted(installed)) or "none"
    if name is None:
        if not installed:
            raise SapbertError(
                "E308",
                "Expected a knowledge base, but none is named and none is installed. "
                "Name a folder with the setting `kb`, install a knowledge base "
                "package with `pip install`, or build one with `spacy sapbert kb "
                "build`.",
            )
        if len(installed) > 1:
            raise SapbertError(
                "E309",
                f"Expected one installed knowledge base, but found {names}. Choose "
                "one with the setting `kb`.",
            )
        name = next(iter(installed))
    folder = Path(name)
    if folder.is_dir():
        check_no_pipeline(folder)
        return folder
    if str(name) not in installed:
        raise SapbertError(
            "E310",
            f"Expected a folder or an installed knowledge base under {str(name)!r}, "
            f"but found neither; installed are: {names}. Correct the setting `kb`.",
        )
    point = installed[str(name)]
    try:
        return Path(point.load())
    except (Exception, SystemExit) as error:  # of its package
        reason = f"{type(error).__name__}: {error}"
        raise SapbertError(
            "E369",
            f"Expected the installed knowledge base {point.name!r} ({point.value}) to "
            f"name its folder, but: {reason}. Install its package again, or name a "
            "folder.",
        ) from error


def check_no_pipeline(folder: Path) -> None:
    """Raise an error if a folder is a pipeline, with the knowledge base inside."""
    if (folder / PIPELINE_FILE).is_file() and not (folder / CURRENT).exists():
        folders = sorted(path.parent for path in folder.glob(f"*/*/{CURRENT}"))
        inside = f"in {folders[0]}" if folders else "the `kb` of a linker in config.cfg"
        raise SapbertError(
            "E596",
            f"Expected a knowledge base in {folder}, but it is a pipeline. Its "
            f"knowledge base is {inside}.",
        )


def installed_name(source: str | Path | None) -> str | None:
    """Return the installed knowledge base that `find_kb` finds; None = a folder."""
    installed = installed_kbs()
    if source is None:
        return next(iter(installed)) if len(installed) == 1 else None
    name = str(source)
    return name if name in installed and not Path(source).is_dir() else None
