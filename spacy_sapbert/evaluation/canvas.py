"""Figures that people of all kinds of sight can read: colours, axes, files."""

from pathlib import Path
from typing import Any

from ..errors import Errors, SapbertError
from ..system.writing import write_atomically

# Okabe and Ito's, which people of all kinds of sight can tell apart
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
ENDINGS = (".png", ".svg")


def open_canvas(rows: int, columns: int, *, width: float = 5.0) -> tuple[Any, Any]:
    """Begin a figure.

    rows (int): Of pictures.
    columns (int): Of pictures.
    width (float): Of each, in inches.
    RETURNS (tuple[Figure, np.ndarray]): The figure, and its axes.
        Shape: (rows, columns).
    RAISES (SapbertError): If matplotlib is not installed.
    """
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot
    except ImportError as error:
        raise SapbertError(Errors.E752.format(reason=error)) from None
    # the ids in an SVG would differ each time
    mpl.rcParams["svg.hashsalt"] = "spacy-sapbert"
    mpl.rcParams["axes.spines.top"] = mpl.rcParams["axes.spines.right"] = False
    size = (width * columns, 0.8 * width * rows)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=size, squeeze=False, layout="constrained"
    )
    return figure, axes


def check_figure(path: Path) -> None:
    """Check that a figure can be drawn, before anything takes long.

    path (Path): The file to write.
    RAISES (SapbertError): If its ending is none of `ENDINGS`, or matplotlib is not
        installed.
    """
    if path.suffix not in ENDINGS:
        known = " or ".join(ENDINGS)
        raise SapbertError(Errors.E580.format(known=known, path=path))
    close_figure(open_canvas(1, 1)[0])


def close_figure(figure: Any) -> None:
    """Let go of the memory of a figure.

    figure (Figure): The figure.
    """
    from matplotlib import pyplot

    pyplot.close(figure)


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure to a file, which takes its name when it is whole.

    figure (Figure): The figure; it stays open.
    path (Path): The file; its ending says the format.
    RAISES (SapbertError): If the system refuses, e.g. a full disk.
    """
    ending = path.suffix.removeprefix(".")
    # a date in an SVG would differ each time
    options = {"metadata": {"Date": None}} if ending == "svg" else {"dpi": 150}
    with write_atomically(path) as file:
        figure.savefig(file, format=ending, **options)


def write_figure(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as PNG and as SVG.

    figure (Figure): The figure; it is closed.
    stem (Path): Where, without an ending.
    RETURNS (list[Path]): Both files.
    """
    paths = [stem.with_name(f"{stem.name}{ending}") for ending in ENDINGS]
    for path in paths:
        save_figure(figure, path)
    close_figure(figure)
    return paths
