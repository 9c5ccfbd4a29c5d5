"""What must not outlive a fork: locks that are held, torch's threads, folders.

A child of a fork has one thread and a copy of everything else: locks that nobody will
ever open, a pool of threads that are not there, and objects that remove what is still
the parent's.
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
forked = False  # this process is the child of a fork
encoder_opened = False  # here, or in the parent before the fork


class ProcessLock:
    """A lock for the threads of one process; in a forked child it is open."""

    def __init__(self) -> None:
        self.renew()
        LOCKS.add(self)

    def renew(self) -> None:
        """Open the lock, whoever holds it."""
        self.lock = threading.Lock()

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self.lock.release()


class OwnFolder:
    """A temporary folder that goes with this object, in the process that made it.

    prefix (str): Its name begins so.
    """

    def __init__(self, prefix: str) -> None:
        self.path = Path(mkdtemp(prefix=prefix))
        finalize(self, remove_own, self.path, os.getpid())


def remove_own(folder: Path, process: int) -> None:
    """Remove a folder if this is the process that made it.

    folder (Path): The folder.
    process (int): The process.
    """
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


def limit_torch() -> None:
    """Have torch work with one thread: its others did not come along."""
    # spaCy has imported it wherever it is installed; a fork is no time for imports.
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def guard_encoder() -> None:
    """Keep an encoder that is opened now from waiting for threads that are not there.

    Torch gets one thread in every process that is forked from here on, and in this one
    too if it was forked itself: whether its parent had used torch, nobody can tell.
    """
    global encoder_opened
    encoder_opened = True
    if forked:
        limit_torch()


def begin_child() -> None:
    """Mend what a fork broke; runs in the child before anything else of ours."""
    global forked
    forked = True
    for lock in list(LOCKS):
        lock.renew()
    if encoder_opened:
        limit_torch()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=begin_child)
