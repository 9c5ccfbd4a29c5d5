"""What only some systems have, and what the others do instead.

The rest of the package is the same on Linux, macOS and Windows; a test looks for words
that are not.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

HANG_UP: Any = getattr(signal, "SIGHUP", None)  # of a terminal that is closed
END_SIGNALS: list[Any] = [signal.SIGINT, signal.SIGTERM]
if HANG_UP is not None:
    END_SIGNALS.append(HANG_UP)


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
