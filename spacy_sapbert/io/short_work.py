"""Many short computations without what helps long ones alone.

Two threads of a library for arrays take two processors, and as long as one: each runs
on while it waits for the next product. And Python looks for cycles among all objects of
the process again and again, up to a third of the time.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

paused = False  # the search for cycles, here


@cache
def find_libraries() -> Any:
    """Return a threadpoolctl.ThreadpoolController of the BLAS that is loaded."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def short_work() -> Iterator[None]:
    """Use one thread for products of arrays, and do not search for cycles.

    For what ends soon and makes no cycles. When the last thread has left it, all is as
    before the first one.
    """
    global paused
    with find_libraries().limit(limits=1):
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
