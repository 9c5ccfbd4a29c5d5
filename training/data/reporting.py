"""What commands print: a progress bar, and a table of counts."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm
from wasabi import msg

Item = TypeVar("Item")


def show_progress(items: Iterable[Item], unit: str, *, quiet: bool) -> Iterable[Item]:
    """Return the items with a progress bar, if standard error is a terminal."""
    return tqdm(items, unit=f" {unit}", disable=quiet or not sys.stderr.isatty())


def print_counts(counts: Mapping[str, int], output: Path, *, quiet: bool) -> None:
    """Print counts and the file that was written."""
    if not quiet:
        msg.table([(key, f"{count:,}") for key, count in counts.items()])
        msg.good(f"Wrote {output}")
