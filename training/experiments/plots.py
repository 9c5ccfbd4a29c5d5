"""Figures by matplotlib, as PNG and as SVG."""

from pathlib import Path
from typing import Any

from spacy_sapbert.io.plugins import require
from spacy_sapbert.io.writing import check_name, write_atomically

# SOURCE: Okabe and Ito: colours that people with any colour vision can distinguish.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
ENDINGS = (".png", ".svg")


def open_figure(rows: int, columns: int, *, width: float = 5.0) -> tuple[Any, Any]:
    """Return a figure of plots of a width in inches, and its axes.

    Shape of the axes: (rows, columns).
    """
    library = require("matplotlib.figure", "matplotlib")
    size = (width * columns, 0.8 * width * rows)
    figure = library.Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure to a file; equal figures make equal files."""
    import matplotlib as mpl

    ending = path.suffix.removeprefix(".")
    # By default an SVG has the date and random ids.
    options = {"metadata": {"Date": None}} if ending == "svg" else {"dpi": 150}
    with (
        write_atomically(path) as file,
        mpl.rc_context({"svg.hashsalt": "spacy-sapbert"}),
    ):
        figure.savefig(file, format=ending, **options)


def name_figures(stem: Path) -> list[Path]:
    """Return the paths of a figure as PNG and as SVG."""
    check_name(stem)
    return [stem.with_name(f"{stem.name}{ending}") for ending in ENDINGS]


def write_figure(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as PNG and as SVG, and return both paths."""
    paths = name_figures(stem)
    for path in paths:
        save_figure(figure, path)
    return paths
