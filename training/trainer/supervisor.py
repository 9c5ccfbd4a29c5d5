"""Training in a process of its own, which completes its checkpoint after Ctrl-C.

`spacy project run` kills its child a quarter of a second after Ctrl-C, too early for
the end of a step and a checkpoint. So the child is a small supervisor, and training
runs in a grandchild in a session of its own, which gets neither the Ctrl-C nor the
kill. A pipe connects the two: the supervisor writes to it to stop the training, and if
the supervisor is killed, the pipe closes, with the same effect.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Any

PIPE = "SPACY_SAPBERT_STOP_PIPE"  # file descriptor of the pipe's end for reading
KILLED = 128  # plus the signal: exit code of a killed process, as in shells


def run_supervised(work: Callable[[], Any]) -> int:
    """Run this command again in a process of its own, and wait for it.

    Ctrl-C or SIGTERM stops the training after its step; a second one kills it. Under
    torchrun, which supervises its processes itself, and on Windows, the work is done
    here.

    work (Callable[[], Any]): The command; ends with SystemExit.
    RETURNS (int): The exit code.
    """
    alone = int(os.environ.get("WORLD_SIZE", "1")) == 1
    if PIPE in os.environ or not alone or os.name != "posix":
        work()
        return 0
    reading, writing = os.pipe()
    worker = subprocess.Popen(
        [sys.executable, "-m", "training", *sys.argv[1:]],
        env={**os.environ, PIPE: str(reading)},
        pass_fds=[reading],
        start_new_session=True,
    )
    os.close(reading)
    asked = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            worker.kill()
        else:
            asked = True
            os.close(writing)

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    code = worker.wait()
    return code if code >= 0 else KILLED - code


def watch_supervisor(stop: Event) -> None:
    """Set an event when the supervisor stops the run or has ended.

    Without a supervisor, Ctrl-C sets the event, and a second one raises
    KeyboardInterrupt.
    """
    if PIPE not in os.environ:

        def interrupt(number: int, frame: FrameType | None) -> None:
            if stop.is_set():
                raise KeyboardInterrupt
            stop.set()

        signal.signal(signal.SIGINT, interrupt)
        return
    reading = int(os.environ.pop(PIPE))

    def wait() -> None:
        os.read(reading, 1)  # returns when the pipe is closed
        stop.set()

    Thread(target=wait, name="watch_supervisor", daemon=True).start()


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
