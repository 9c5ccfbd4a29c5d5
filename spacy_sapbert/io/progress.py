"""Show progress: a bar on a terminal, else a line each half minute."""

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

LINE_SECONDS = 30.0  # before the first line, and between lines
LINE = "{desc}{n:,}{unit} so far, {rate_noinv:.1f}{unit}/s{postfix}"
LINE_OF_ALL = (
    "{desc}{n:,} of {total:,}{unit}, {rate_noinv:.1f}{unit}/s, {remaining} left"
    "{postfix}"
)


class LineWriter:
    """A file for tqdm that writes lines, and not each over the one before."""

    def write(self, text: str) -> None:
        """Write a line to the standard error, if there is anything in it."""
        if line := text.strip():
            sys.stderr.write(line + "\n")

    def flush(self) -> None:
        """Flush the standard error."""
        sys.stderr.flush()


def show_progress(
    items: Iterable[Any] | None = None,
    *,
    unit: str,
    total: int | None = None,
    initial: int = 0,
    desc: str = "",
    quiet: bool = False,
) -> Any:
    """Return a `tqdm` bar, which writes lines if the standard error is no terminal.

    A line has the number so far, the rate and, with a total, the time left.

    Args:
        items: Passed on; None = call `update`.
        unit: What is counted, e.g. "documents".
        total: Their number, if it is known.
    """
    shared: dict[str, Any] = {
        "total": total,
        "initial": initial,
        "unit": f" {unit}",
        "disable": quiet,
    }
    if sys.stderr.isatty():
        return tqdm(items, desc=desc or None, **shared)
    return tqdm(
        items,
        desc=desc and f"{desc}: ",
        bar_format=LINE if total is None else LINE_OF_ALL,
        file=LineWriter(),
        delay=LINE_SECONDS,
        mininterval=LINE_SECONDS,
        maxinterval=LINE_SECONDS,
        miniters=1,
        smoothing=0,
        leave=False,
        **shared,
    )


def format_count(count: int, word: str) -> str:
    """Format a number and its word: "1 document", "2 documents"; "2 entities"."""
    if count == 1:
        return f"{count} {word}"
    plural = word[:-1] + "ies" if word.endswith("y") else word + "s"
    return f"{count:,} {plural}"


def format_time(seconds: float) -> str:
    """Format a duration: "0.5 s", "2 min 5 s", "3 h 10 min"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
