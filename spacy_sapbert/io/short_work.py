"""Many short computations without what helps long ones alone."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

paused = False  # the search for cycles, here


@contextmanager
def pause_collection() -> Iterator[None]:
    """Do not search for cycles, of which nothing within makes any.

    Python looks for them among all objects of the process again and again: half of the
    time of linking mentions that were linked before. When the last thread has left, all
    is as before the first one.
    """
    global paused
    pauses = gc.isenabled()  # else the user, or another thread, has paused it
    if pauses:
        paused = True
        gc.disable()
    try:
        yield
    finally:
        if pauses:
            gc.enable()
            paused = False


def after_fork_in_child() -> None:
    """Go on with the search that a thread of the parent has paused."""
    global paused
    if paused:
        paused = False
        gc.enable()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=after_fork_in_child)


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Compute products of arrays of numpy in one thread.

    Two take as long, and two processors: each runs on while it waits for the next
    product. For all threads of the process until the first one has left.
    """
    with find_libraries().limit(limits=1):
        yield


@cache
def find_libraries() -> Any:
    """Return a threadpoolctl.ThreadpoolController of the BLAS that is loaded."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
