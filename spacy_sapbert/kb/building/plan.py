"""The folder in which a knowledge base is built: its lock, and the plan of its shards.

One process builds, or several embed shards beside each other. The first process writes
the plan, i.e. all that decides the vectors; the others have the same plan, or stop.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Any

from ...errors import Errors, SapbertError
from ...system.writing import fcntl
from ..indexes.choice import Choice

PLAN, LOCK, VECTORS, EMBEDDED = "plan.json", "lock", "vectors", "embedded.json"
SHARDS = "shard-*"
# What a stopped build leaves. Without the plan the rest is not used, so it goes first.
LEFT = (PLAN, EMBEDDED, SHARDS, VECTORS, "index.*")


def open_lock(path: Path, *, shared: bool) -> int | None:
    """Open a file and lock it, until it is closed or the process ends.

    RETURNS (int | None): Its descriptor; None if another process holds the lock. A file
        system without locks is no error.
    RAISES (OSError): If the file cannot be opened, or was removed before it was locked.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(
            handle, fcntl.LOCK_NB | (fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        )
    except BlockingIOError:
        os.close(handle)
        return None
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
def lock_work_folder(output: Path, *, shared: bool = False) -> Iterator[Path]:
    """Create the folder in which a knowledge base is built, or continue it.

    A process that fails leaves the folder only if there are vectors to continue with.

    output (Path): The knowledge base.
    shared (bool): For a worker, which ends without a knowledge base and leaves the
        folder; others may work beside it.
    YIELDS (Path): The folder, locked where the system has locks.
    RAISES (SapbertError): If another process builds the same knowledge base, or the
        folder cannot be written.
    """
    work = output.with_name(f".{output.name}.build")
    handle = None
    try:
        while fcntl is not None and handle is None:
            work.mkdir(parents=True, exist_ok=True)
            # Another process that has just ended removes the folder.
            with suppress(FileNotFoundError):
                handle = open_lock(work / LOCK, shared=shared)
                if handle is None:
                    raise SapbertError(Errors.E350.format(path=output, work=work))
        work.mkdir(parents=True, exist_ok=True)
        yield work
        if not shared:
            remove_work_folder(work, output)
    except OSError as error:
        raise SapbertError(
            Errors.E004.format(path=output, reason=error.strerror or error)
        ) from error
    finally:
        owned = handle is not None or fcntl is None
        if owned and not shared and not any(work.glob(SHARDS)):
            remove_work_folder(work, output)
        if handle is not None:
            os.close(handle)


def remove_work_folder(work: Path, output: Path) -> None:
    """Remove the folder of a build: a part of it would be no build to continue.

    work (Path): The folder. It gets the name of what writers of the knowledge base
        leave if they are killed, which the next one removes.
    output (Path): The knowledge base.
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


def check_plan(
    folder: Path, plan: dict[str, Any], index: Choice | None, *, replace: bool
) -> None:
    """Check that the shards in a folder are of a plan; without a plan there are none.

    folder (Path): Folder of the build.
    plan (dict[str, Any]): Everything that decides the vectors; plain JSON types.
    index (Choice | None): None = any.
    replace (bool): Remove what is of another plan.
    RAISES (SapbertError): If they are of another plan, and are not to be removed.
    """
    left = [path for pattern in LEFT for path in folder.glob(pattern)]
    known = read_json(folder / PLAN)
    new = plan if index is None else plan | {"index": index._asdict()}
    if not left or (known | new == known and known.keys() == {*plan, "index"}):
        return
    if not replace:
        names = sorted(key for key in new if known.get(key) != new[key])
        raise SapbertError(
            Errors.E394.format(work=folder, names=", ".join(names) or PLAN)
        )
    for path in left:
        path.unlink()


def agree_on_plan(
    folder: Path, plan: dict[str, Any], index: Choice, *, fixed: bool
) -> Choice:
    """Write the plan if there is none yet, else use its index.

    The libraries that are installed, by which an index is chosen, may differ between
    machines, which must not cost the vectors.

    folder (Path): Folder of the build.
    plan (dict[str, Any]): See `check_plan`.
    index (Choice): The index of a new plan.
    fixed (bool): No other index may be used.
    RETURNS (Choice): The index of the plan.
    RAISES (SapbertError): If another process has written another plan meanwhile.
    """
    handle, part = mkstemp(prefix=f".{PLAN}.", dir=folder)
    with open(handle, "w", encoding="utf8") as file:
        json.dump(plan | {"index": index._asdict()}, file, indent=2)
        file.flush()
        os.fsync(handle)
    try:
        os.link(part, folder / PLAN)
    except FileExistsError:
        pass
    except OSError:  # a disk without links
        if not (folder / PLAN).exists():
            os.replace(part, folder / PLAN)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)
    check_plan(folder, plan, index if fixed else None, replace=False)
    return Choice(**read_json(folder / PLAN)["index"])
