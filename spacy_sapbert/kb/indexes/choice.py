"""Chooses the index of a knowledge base by its size and the free memory."""

import os
from pathlib import Path
from typing import NamedTuple

from ...system.progress import format_time
from .registry import (
    EXACT_ROWS,
    Size,
    complete_settings,
    estimate_size,
    index_files,
    is_usable,
)

MEMORY_INFO = Path("/proc/meminfo")
# The limit of a container, and what it uses: cgroup v2, then v1.
CONTAINER_LIMITS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)
SHARE = 0.5  # of the free memory that an index may take
NAME_BYTES = 240  # of a name, while a knowledge base is built
SHORT_WIDTH = 128
GIGABYTE = 1e9
COMPACT_SUFFIX = ".i16"


class Choice(NamedTuple):
    """A backend, and the settings that differ from its defaults."""

    backend: str
    settings: dict[str, int]


# In order: the first that is installed and fits into the memory.
CHOICES = (
    Choice("hnsw", {}),
    Choice("faiss", {}),
    Choice("hnsw", {"pca": SHORT_WIDTH}),
    Choice("exact", {"compact": 1}),
)


def read_number(path: Path) -> int | None:
    """Read a number of the system; None if there is none."""
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):  # "max"
        return None


def free_memory() -> int | None:
    """Return the bytes of memory that are free on Linux, else None."""
    found = []
    try:
        for line in MEMORY_INFO.read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError):
        return None
    for limit, used in CONTAINER_LIMITS:
        most, now = read_number(limit), read_number(used)
        if most is not None and now is not None:
            found.append(max(0, most - now))
    return min(found, default=None)


def choose_index(rows: int, width: int, *, free: int | None) -> Choice:
    """Choose the index for vectors.

    Up to `EXACT_ROWS` comparing all rows is about as fast as a graph. Of the others the
    first of `CHOICES` is used that is installed and takes at most half of the free
    memory while it is built and used; if none does, the one that takes least.

    rows (int), width (int): Of the vectors.
    free (int | None): Bytes of free memory; None = not known, and enough.
    RETURNS (Choice): The backend and its settings.
    """
    if rows <= EXACT_ROWS:
        return Choice("exact", {})
    usable = [choice for choice in CHOICES if is_usable(choice.backend)]
    graphs = [choice for choice in usable if choice.backend != "exact"] or usable
    for choice in graphs:
        if free is None or needed_memory(choice, rows, width) <= SHARE * free:
            return choice
    return min(graphs, key=lambda choice: needed_memory(choice, rows, width))


def uses_compact_rows(choice: Choice) -> bool:
    """Return whether an index stores the full vectors with 16 bits a value."""
    files = index_files(choice.backend, complete_settings(*choice))
    return any(name.endswith(COMPACT_SUFFIX) for name in files)


def needed_memory(choice: Choice, rows: int, width: int) -> int:
    """Return the bytes of memory to build and to use an index."""
    size = estimate_size(choice.backend, rows, width, choice.settings)
    return max(size.memory, size.building)


def describe_size(choice: Choice, size: Size, threads: int) -> str:
    """Format what an index takes."""
    settings = "".join(f", {key} {value}" for key, value in choice.settings.items())
    text = (
        f"{choice.backend}{settings}: {size.memory / GIGABYTE:.1f} GB of memory, "
        f"{size.disk / GIGABYTE:.1f} GB on disk"
    )
    if size.seconds:
        text += f", about {format_time(size.seconds / threads)} to index"
    return text


def describe_choices(choice: Choice, rows: int, width: int, *, threads: int = 0) -> str:
    """Format the chosen index and, for comparison, the others.

    choice (Choice): The index that is built.
    rows (int), width (int): Of the vectors.
    threads (int): Threads of the build, 0 = all.
    """
    threads = threads or os.cpu_count() or 1
    every = [choice, *(each for each in CHOICES if each != choice)]
    sizes = [
        describe_size(
            each, estimate_size(each.backend, rows, width, each.settings), threads
        )
        for each in every
    ]
    others = "; ".join(sizes[1:])
    return f"{rows:,} distinct names of width {width}: {sizes[0]} (others: {others})"
