"""Several processes of a service behind one port.

Each has a pipeline of its own and takes connections from the same socket, so that each
core links. They share the file of reviews, in which SQLite lets one write at a time;
what one process alone would know, teaching and counters, is not offered.
"""

import os
import signal
from collections.abc import Callable
from typing import Any

from ..errors import SapbertError
from .logs import EventLog, describe_exception

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def run_workers(count: int, run: Callable[[], None], log: EventLog) -> None:
    """Run a function in several processes, until a signal ends all of them.

    They are forked before anything is loaded, when there is one thread.

    Args:
        run: Serves until SIGTERM.

    Raises:
        SapbertError: If a process ended by itself; the others are ended then, so that
            what starts the service can start it again.
    """
    if not hasattr(os, "fork"):
        raise SapbertError(
            "E450",
            "Expected a system that can fork with `--workers`, but this one cannot. "
            "Leave out `--workers`.",
        )
    ending = False
    workers: set[int] = set()

    def end(*_: Any) -> None:
        nonlocal ending
        ending = True
        for worker in workers:
            os.kill(worker, signal.SIGTERM)

    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    old = {number: signal.getsignal(number) for number in numbers}
    # A signal that comes between two forks reaches all of them.
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    for _ in range(count):
        worker = os.fork()
        if not worker:
            serve_and_exit(run, numbers)
        workers.add(worker)
    for number in numbers:
        if old[number] != signal.SIG_IGN:
            signal.signal(number, end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    failed = False
    try:
        while workers:
            worker, status = os.wait()
            workers.discard(worker)
            if not ending:
                failed = True
                code = os.waitstatus_to_exitcode(status)
                log.write("worker_ended", worker=worker, code=code)
                end()
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
    if failed:
        raise SapbertError(
            "E494",
            "Expected all processes of the service to run until it is stopped, but "
            "one ended. Its last line in the log has the cause.",
        )


def serve_and_exit(run: Callable[[], None], numbers: list[signal.Signals]) -> None:
    """Serve in a forked process, and end it without what its parent would do."""
    code = 1
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
        run()
        code = 0
    except SapbertError as error:
        EventLog().write("worker_failed", code=str(error)[1:5], message=str(error))
    except Exception as error:
        EventLog().write("worker_failed", **describe_exception(error))
    finally:
        os._exit(code)
