"""Fork safety: locks, threads of torch, and temporary folders in a forked child.

A forked child has one thread and a copy of everything else: locks that no thread will
release, a thread pool without threads, and objects whose finalizers would remove files
of the parent.
"""

import os
import shutil
import sys
import threading
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from weakref import WeakSet, finalize

LOCKS: "WeakSet[ProcessLock]" = WeakSet()
forked = False  # this process is a forked child
encoder_opened = False  # in this process, or in its parent before the fork


class ProcessLock:
    """A lock for the threads of one process; it is released in a forked child.

    A thread that holds it may take it again.
    """

    def __init__(self) -> None:
        self.renew()
        LOCKS.add(self)

    def renew(self) -> None:
        """Replace the lock by a released one."""
        self.lock = threading.RLock()

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self.lock.release()


class TemporaryFolder:
    """A temporary folder, removed with this object by the process that created it."""

    def __init__(self, prefix: str) -> None:
        self.path = Path(mkdtemp(prefix=prefix))
        finalize(self, remove_own, self.path, os.getpid())


def remove_own(folder: Path, process: int) -> None:
    """Remove a folder if `process`, which created it, is this process."""
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


def use_one_thread() -> None:
    """Limit torch to one thread, if it is imported."""
    # spaCy imports it wherever it is installed; a forked child must not import
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def make_fork_safe() -> None:
    """Prepare for forks when an encoder is opened.

    Torch uses one thread in every process forked from now on, and in this process if
    it was forked: its parent may have used torch.
    """
    global encoder_opened
    encoder_opened = True
    if forked:
        use_one_thread()


def after_fork_in_child() -> None:
    """Release all locks, limit torch; runs first in a forked child."""
    global forked
    forked = True
    for lock in list(LOCKS):
        lock.renew()
    if encoder_opened:
        use_one_thread()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=after_fork_in_child)
