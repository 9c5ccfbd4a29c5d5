"""Training in a process of its own, which completes its checkpoint after Ctrl-C.

`spacy project run` kills its child a quarter of a second after Ctrl-C, too early for
the end of a step and a checkpoint. So the child is a small supervisor, and training
runs in a grandchild in a session of its own, which gets neither the Ctrl-C nor the
kill. The worker stops when its standard input is closed: the supervisor closes it, or
is killed, with the same effect.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

SUPERVISED = "SPACY_SAPBERT_SUPERVISED"  # environment variable of the worker
KILLED = 128  # plus the signal: exit code of a killed process, as in shells


def run_supervised(work: Callable[[], Any]) -> int:
    """Run this command again in a process of its own, and wait for it.

    Ctrl-C or SIGTERM stops the training after its step; a second one kills it. Under
    torchrun, which supervises its processes itself, and on Windows, the work is done
    here.

    work (Callable[[], Any]): The command; ends with SystemExit.
    RETURNS (int): The exit code; after a signal 128 + signal.
    """
    alone = int(os.environ.get("WORLD_SIZE", "1")) == 1
    if SUPERVISED in os.environ or not alone or os.name != "posix":
        work()
        return 0
    worker = subprocess.Popen(
        [sys.executable, "-m", "training", *sys.argv[1:]],
        env={**os.environ, SUPERVISED: "1"},
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    pipe: Any = worker.stdin
    received: list[int] = []

    def stop(number: int, _: Any) -> None:
        received.append(number)
        worker.kill() if pipe.closed else pipe.close()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    code = worker.wait()
    if received and code == KILLED + signal.SIGINT:  # stopped and saved
        return KILLED + received[0]
    return code if code >= 0 else KILLED - code


def watch_supervisor(stop: Event) -> None:
    """Set an event when the supervisor stops the run or has ended.

    Without a supervisor, Ctrl-C or SIGTERM sets the event. A second Ctrl-C raises
    KeyboardInterrupt; a second SIGTERM does nothing, because Slurm sends one to each
    process, and torchrun another one.
    """

    def interrupt(number: int, _: Any) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    def wait() -> None:
        os.read(0, 1)  # returns when standard input is closed
        stop.set()

    if os.environ.pop(SUPERVISED, None):
        Thread(target=wait, name="watch_supervisor", daemon=True).start()
    else:
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, interrupt)


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Wait until no other process has the lock of this file, and hold it.

    The same command, repeated at once after Ctrl-C, waits for the checkpoint of the
    stopped run.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = os.open(path, os.O_CREAT | os.O_RDWR)
        fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):  # the holder before removes the file
            if os.path.samestat(os.stat(path), os.fstat(file)):
                break
        os.close(file)
    try:
        yield
    finally:
        path.unlink()
        os.close(file)
