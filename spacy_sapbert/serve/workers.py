"""Several processes of a service behind one port.

Each has a pipeline of its own and takes connections from the same socket, so that each
core links. They share the file of reviews, in which SQLite lets one write at a time;
what one process alone would know, teaching and counters, is not offered.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any

from ..errors import SapbertError
from ..io.system import END_SIGNALS
from .logs import EventLog, describe_exception


def run_workers(count: int, run: Callable[[], None], log: EventLog) -> None:
    """Run a function in several processes, until a signal ends all of them.

    They are forked before anything is loaded, when there is one thread.

    Args:
        run: Serves until SIGTERM.

    Raises:
        SapbertError: If a process ended by itself; the others are ended then, so that
            what starts the service can start it again.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        raise SapbertError(
            "E450",
            "Expected a system that can fork with `--workers`, but this one cannot. "
            "Leave out `--workers`.",
        )
    context = multiprocessing.get_context("fork")
    pipe = os.pipe()  # this process alone keeps its end to write
    workers = [
        context.Process(target=serve, args=[run, log, pipe]) for _ in range(count)
    ]
    ending = False

    def end(*_: Any) -> None:
        nonlocal ending
        ending = True
        for worker in workers:
            worker.terminate()

    # A signal that comes between two forks reaches all of them.
    signal.pthread_sigmask(signal.SIG_BLOCK, END_SIGNALS)
    for worker in workers:
        worker.start()
    for number in END_SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, END_SIGNALS)
    wait([worker.sentinel for worker in workers])
    failed = not ending
    end()
    for worker in workers:
        worker.join()
        log.write("worker_ended", worker=worker.pid, code=worker.exitcode)
    if failed:
        raise SapbertError(
            "E494",
            "Expected all processes of the service to run until it is stopped, but "
            "one ended. Its last line in the log has the cause.",
        )


def serve(run: Callable[[], None], log: EventLog, pipe: tuple[int, int]) -> None:
    """Serve in a process, whose exit code is 1 if it fails.

    It ends when its parent has ended, even if that was killed.
    """
    reading, writing = pipe
    os.close(writing)

    def follow() -> None:
        os.read(reading, 1)  # until nobody has the other end
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, name="parent", daemon=True).start()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, END_SIGNALS)
    try:
        run()
    except Exception as error:
        told = describe_exception(error)
        if isinstance(error, SapbertError):
            told = {"code": error.code, "message": error.text}
        log.write("worker_failed", **told)
        sys.exit(1)
