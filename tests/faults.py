"""Changes that are killed, or find the disk full, at chosen moments.

Each runs in a fork of a process without other threads, which `new_process.call` starts.
An audit hook of Python counts its writes: files that are opened for writing, renames,
and the like.
"""

import errno
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

WRITES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link"}
# Processes are killed here, but no power fails: no write waits for the disk.
os.fsync = lambda _: None
# What an error of a full disk has; tokenizers and safetensors have no code.
FULL_DISK = ("[E004]", "[E004]", "[E355]", "(os error")
# How a change ended. DESPITE: it did not need the write that failed.
KILLED, DONE, REFUSED, FAILED, DESPITE, STOPPED = -9, 0, 1, 3, 4, 5
# how it was stopped → how it may end
ENDS = {
    "kill": {KILLED, DONE},
    "stop": {STOPPED, DONE},
    "full": {REFUSED, DESPITE, DONE},
    "limit": {REFUSED, DONE},
}


def limit_files(size: int) -> None:
    """Let no file of this process get larger, as if the disk were full then."""
    import resource  # which Windows lacks

    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def fill_disk(disk: Path, free: int) -> None:
    """Leave some bytes of a disk free, beside a file."""
    space = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with open(disk / "filler", "wb") as filler:
        os.posix_fallocate(filler.fileno(), 0, space - free)


def is_write(event: str, arguments: tuple[Any, ...]) -> bool:
    """Return whether an event of the audit hooks changes files."""
    if event == "open":
        return bool(arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    if event == "sqlite3.connect":
        return not any(part in str(arguments) for part in ("mode=ro", ":memory:"))
    return event in WRITES


def run_in_fork(work: Callable[[], int]) -> int:
    """Do some work in a fork of this process; return its code, or − a signal."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = FAILED
    try:
        code = work()
    except SystemExit as end:  # of a command
        code = end.code if isinstance(end.code, int) else DONE
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def stop_at(how: str, moment: int, change: Callable[[], object]) -> int:
    """Make a change in a fork, stop it at a moment, and return how it ended.

    Args:
        how: "kill" (-9), "stop" (Ctrl-C), "full" (the write finds no space), or
            "limit".
        moment: The number of the write, from 1; of "limit" the bytes of a file.
    """
    left = 0 if how == "limit" else moment

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if left > 0 and is_write(event, arguments):
            left -= 1
            if not left and how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if not left and how == "stop":
                raise KeyboardInterrupt
            if not left:
                raise OSError(errno.ENOSPC, "No space left on device")

    def work() -> int:
        if how == "limit":
            limit_files(moment)
        else:
            sys.addaudithook(watch)
        try:
            change()
        except KeyboardInterrupt:
            return STOPPED
        except Exception as error:
            if any(part in str(error) for part in FULL_DISK):
                return REFUSED
            raise
        return DONE if how == "limit" or left else DESPITE

    return run_in_fork(work)


def stop_copies(
    how: str,
    moments: Iterable[int],
    source: Path,
    folder: Path,
    change: Callable[[Path], object],
    check: Callable[[int], object],
) -> None:
    """Stop the change of a folder at several moments, each time of a new copy.

    Args:
        how: As of `stop_at`.
        moments: The change goes through before the last of them.
        check: Called after each with how it ended.
    """
    ends: list[int] = []
    for moment in moments:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        ends.append(stop_at(how, moment, lambda: change(folder)))
        assert ends[-1] in ENDS[how], (how, moment, ends)
        check(ends[-1])
        if ends[-1] == DONE:
            break
    assert ends[-1] == DONE, (how, ends)
    assert {*ends} - {DONE, DESPITE}, (how, ends)
