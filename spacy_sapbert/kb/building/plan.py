"""The folder in which a knowledge base is built, and the plan of its vectors.

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
from ...io.writing import write_json
from ..folder.publication import lock_file
from ..indexes.registry import Backend, choose_index, make_backend

PLAN, LOCK, VECTORS, EMBEDDED = "plan.json", "lock", "vectors", "embedded.json"
# What a stopped build leaves. Without the plan the rest is not used, so it goes first.
LEFT = (PLAN, EMBEDDED, VECTORS, "index.*")


@contextmanager
def lock_work_folder(output: Path) -> Iterator[Path]:
    """Create the folder in which a knowledge base is built, or continue it.

    A process that fails leaves the folder only if there are vectors to continue with.
    """
    work = output.with_name(f".{output.name}.build")
    built = False
    try:
        work.mkdir(parents=True, exist_ok=True)
        with lock_file(work / LOCK, output, wait=0):
            try:
                yield work
                built = True
            finally:
                if built or not (work / EMBEDDED).is_file():
                    remove_work_folder(work, output)
    except OSError as error:
        raise not_written(path=output, reason=error.strerror or error) from error


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


def describe_index(index: Backend) -> dict[str, Any]:
    """Return what a plan has about an index."""
    return {"index": {"name": index.name, "settings": index.settings}}


def check_plan(
    work: Path, plan: dict[str, Any], index: Backend | None, *, replace: bool
) -> None:
    """Check that what is in the folder is of a plan, in JSON types, and an index.

    What is of another plan is an error, or is removed with `replace`.
    """
    left = [path for pattern in LEFT for path in work.glob(pattern)]
    known = read_json(work / PLAN)
    new = plan if index is None else plan | describe_index(index)
    names = sorted(key for key in new if known.get(key) != new[key])
    if not left or not names:
        return
    if not replace:
        raise SapbertError(
            "E394",
            f"Expected to continue the build in {work}, but it is of another plan "
            f"(other: {', '.join(names)}). Repeat the command that began it, pass "
            "`--force` to `kb build` to begin again, or remove the folder.",
        )
    for path in left:
        path.unlink()


def plan_index(
    work: Path, plan: dict[str, Any], index: Backend | None, *, rows: int, width: int
) -> Backend:
    """Return the index of the plan, which is written if there is none yet.

    The index is chosen by the libraries that are installed, if none is given. That they
    have changed must not cost the vectors.
    """
    if not (work / PLAN).exists():
        chosen = index or choose_index(rows, width)
        write_json(work / PLAN, plan | describe_index(chosen))
    return make_backend(**read_json(work / PLAN)["index"])
