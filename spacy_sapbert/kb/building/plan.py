"""The folder in which a knowledge base is built: its lock, and the plan of its shards.

A build writes its plan, i.e. all that decides the vectors. The build that continues it
has the same plan, or stops.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ...errors import SapbertError, not_written
from ...io.writing import fcntl, write_json
from ..indexes.backend import Backend
from ..indexes.registry import choose_index, make_backend

PLAN, LOCK, VECTORS, EMBEDDED = "plan.json", "lock", "vectors", "embedded.json"
SHARDS = "shard-*"
SHARD_ROWS = 8_192  # names embedded between two saves
# What a stopped build leaves. Without the plan the rest is not used, so it goes first.
LEFT = (PLAN, EMBEDDED, SHARDS, VECTORS, "index.*")


def open_lock(path: Path) -> int:
    """Open a file and lock it, until it is closed or the process ends.

    A BlockingIOError if another process holds the lock, and a FileNotFoundError if the
    file was removed before. A file system without locks is not an error.
    """
    if fcntl is None:  # Windows has no such locks, and removes no open file
        return os.open(os.devnull, os.O_RDONLY)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:
        pass  # this file system has no locks
    try:
        if not os.path.samestat(os.fstat(handle), os.stat(path)):
            raise FileNotFoundError
    except OSError:
        os.close(handle)
        raise
    return handle


@contextmanager
def lock_work_folder(output: Path) -> Iterator[Path]:
    """Create the folder in which a knowledge base is built, or continue it.

    A process that fails leaves the folder only if there are vectors to continue with.
    """
    work = output.with_name(f".{output.name}.build")
    handle = None
    try:
        while handle is None:
            work.mkdir(parents=True, exist_ok=True)
            # Another process that has just ended removes the folder.
            with suppress(FileNotFoundError):
                handle = open_lock(work / LOCK)
        yield work
        remove_work_folder(work, output)
    except BlockingIOError:
        raise SapbertError(
            "E350",
            f"Expected no other build of {output}, but one is running in {work}, or "
            "workers of one. Wait until they have finished, or name another folder.",
        ) from None
    except OSError as error:
        raise not_written(path=output, reason=error.strerror or error) from error
    finally:
        if handle is not None:
            if not any(work.glob(SHARDS)):
                remove_work_folder(work, output)
            os.close(handle)


def remove_work_folder(work: Path, output: Path) -> None:
    """Remove the folder of a build; a part of it would not be a build to continue.

    It gets the name of what writers of the knowledge base leave if they are killed,
    which the next one removes.
    """
    aside = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    with suppress(OSError):
        work = work.rename(aside)
    shutil.rmtree(work, ignore_errors=True)


def read_json(path: Path) -> dict[str, Any]:
    """Return a small JSON file of a stopped build; empty if there is none."""
    try:
        data = json.loads(path.read_text("utf8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def describe_index(index: Backend | None) -> dict[str, Any]:
    """Return what a plan has about an index; None = any."""
    if index is None:
        return {}
    return {"index": {"name": index.name, "settings": index.settings}}


def check_plan(
    folder: Path, plan: dict[str, Any], index: Backend | None, *, replace: bool
) -> None:
    """Check that the shards in a folder are of a plan; without a plan there are none.

    The plan is everything that decides the vectors, in JSON types. What is of another
    plan is an error, or is removed with `replace`.
    """
    left = [path for pattern in LEFT for path in folder.glob(pattern)]
    known = read_json(folder / PLAN)
    new = plan | describe_index(index)
    if not left or (known | new == known and known.keys() == {*plan, "index"}):
        return
    if not replace:
        names = sorted(key for key in new if known.get(key) != new[key])
        raise SapbertError(
            "E394",
            (
                "Expected to continue the build in {work}, but it is of another plan "
                "(other: {names}). Repeat the command that began it, pass `--force` to "
                "`kb build` to begin again, or remove the folder."
            ).format(work=folder, names=", ".join(names) or PLAN),
        )
    for path in left:
        path.unlink()


def agree_on_plan(
    folder: Path, plan: dict[str, Any], index: Backend | None, *, rows: int, width: int
) -> Backend:
    """Write the plan if there is none yet, and return its index.

    The index is chosen by the libraries that are installed, if none is given. That they
    have changed must not cost the vectors.
    """
    if not (folder / PLAN).exists():
        new = plan | describe_index(index or choose_index(rows, width))
        write_json(folder / PLAN, new)
    check_plan(folder, plan, index, replace=False)
    return make_backend(**read_json(folder / PLAN)["index"])
