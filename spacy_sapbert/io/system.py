"""What only some systems have, and what the others do instead.

The rest of the package is the same on Linux, macOS and Windows; a test looks for words
that are not.
"""

import os
import re
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

STREAM = Path("-")  # the standard input or output, in place of a file
HANG_UP: Any = getattr(signal, "SIGHUP", None)  # of a terminal that is closed
END_SIGNALS: list[Any] = [signal.SIGINT, signal.SIGTERM]
if HANG_UP is not None:
    END_SIGNALS.append(HANG_UP)


def drop_quotes(words: Iterable[str]) -> list[str]:
    """Return the words of a command without quotes around whole words.

    On Windows `spacy project run` leaves those of project.yml in the words.
    """
    return [re.sub(r"""^(["'])(.*)\1$""", r"\2", word) for word in words]


def count_cores() -> int:
    """Return the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def open_folder(path: Path) -> int:
    """Open a folder to lock it; the null device where folders cannot be opened."""
    return os.open(path if fcntl else os.devnull, os.O_RDONLY)


def lock_handle(handle: int, *, wait: bool = False) -> bool | None:
    """Lock an open file or folder until it is closed or the process ends.

    False = another process has locked it, or the disk has no locks; None = the system
    has none.
    """
    if not fcntl:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def remove_open(handle: int, path: Path) -> None:
    """Remove and close an open file that is locked, if the system allows it.

    Windows removes no open one.
    """
    if not fcntl:
        os.close(handle)
    with suppress(OSError):
        path.unlink()
    if fcntl:
        os.close(handle)


def sync_path(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    if not fcntl and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY if fcntl else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def free_memory() -> int | None:
    """Return the bytes of memory that a program can still have; None = not known.

    In a container, its limit counts too; files that are kept in memory are free.
    """
    group = Path("/sys/fs/cgroup")
    with suppress(OSError):
        text = Path("/proc/meminfo").read_text("utf8")
        free = int(re.findall(r"^MemAvailable: *(\d+) kB", text, re.MULTILINE)[0]) << 10
        with suppress(OSError, ValueError):  # there is no limit, or it is "max"
            limit = int((group / "memory.max").read_text("utf8"))
            used = int((group / "memory.current").read_text("utf8"))
            stat = (group / "memory.stat").read_text("utf8")
            kept = int(re.findall(r"^inactive_file (\d+)", stat, re.MULTILINE)[0])
            free = min(free, limit - used + kept)
        return free
    return None
