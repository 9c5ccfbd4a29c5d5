"""The sides of `benchmarks.linking`: what they need, made once; their processes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from wasabi import msg

from benchmarks.linking_inputs import write_entities
from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.system.reading import file_digest
from spacy_sapbert.system.writing import write_json
from spacy_sapbert.vocabularies.concepts import read_concepts

OURS, SCISPACY = "ours", "scispaCy"
CODE = Path(__file__).parent
ENTITIES, INDEX, KB, MADE = "entities.jsonl", "scispacy", "kb", "made.json"


class Worker(NamedTuple):
    """How one side is started.

    python (str): The interpreter of its environment.
    module (str): Of `benchmarks`, to be run.
    settings (dict[str, Any]): For its `make_side`.
    """

    python: str
    module: str
    settings: dict[str, Any]


def check_made(out: Path, made: dict[str, Any]) -> None:
    """Check that what a folder has is of the same inputs.

    out (Path): The folder.
    made (dict[str, Any]): What it is to be made of; written down if nobody did yet.
    RAISES (SapbertError): If it was made of something else.
    """
    path = out / MADE
    if not path.exists():
        write_json(path, made)
    before = json.loads(path.read_text("utf8"))
    for setting, value in made.items():
        if before.get(setting) != value:
            raise SapbertError(Errors.E733.format(folder=out, setting=setting))


def prepare_ours(out: Path, concepts: Path, build: Sequence[str]) -> None:
    """Build our knowledge base, unless it is there.

    out (Path): Folder for it.
    concepts (Path): concepts.jsonl
    build (Sequence[str]): Options of `kb build`.
    RAISES (SapbertError): If the folder has one of another dictionary or encoder.
    """
    out.mkdir(parents=True, exist_ok=True)
    check_made(out, {"concepts": file_digest(concepts), "build": [*build]})
    if not (out / KB).exists():
        places = [os.fspath(concepts), os.fspath(out / KB)]
        command = ["-m", "spacy_sapbert", "kb", "build", *places, *build]
        call([sys.executable, *command])


def prepare_scispacy(out: Path, concepts: Path, python: str) -> None:
    """Build scispaCy's index of the same dictionary, unless it is there.

    out (Path): Folder for it, after `prepare_ours`.
    concepts (Path): concepts.jsonl
    python (str): The interpreter of scispaCy's environment.
    """
    if not (out / ENTITIES).exists():
        write_entities(out / ENTITIES, read_concepts(concepts))
    if not (out / INDEX).exists():
        places = [os.fspath((out / name).absolute()) for name in (ENTITIES, INDEX)]
        with alone() as env:
            call([python, "-m", "benchmarks.linking_scispacy", "build", *places], env)


def call(command: list[str], env: dict[str, str] | None = None) -> None:
    """Run a command.

    command (list[str]): Its words.
    env (dict[str, str] | None): Its environment; None = that of this process.
    RAISES (SystemExit): If it fails. It has said why.
    """
    if subprocess.run(command, check=False, env=env).returncode:
        msg.fail(f"Stopped: {' '.join(command)}", exits=1)


@contextmanager
def alone() -> Iterator[dict[str, str]]:
    """Let another environment import `benchmarks`, and nothing else of the checkout.

    Were the checkout on its path, spaCy would find the entry points of an installation
    in place, and import what that environment has no libraries for.

    YIELDS (dict[str, str]): Environment variables for a process.
    """
    with TemporaryDirectory() as folder:
        (Path(folder) / CODE.name).symlink_to(CODE)
        yield {**os.environ, "PYTHONPATH": folder, "PYTHONSAFEPATH": "1"}


@contextmanager
def pinned(threads: int) -> Iterator[None]:
    """Start processes on some cores only: so many threads every library then takes.

    threads (int): How many cores.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:threads])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def make_workers(
    out: Path, config: dict[str, Any], python: str | None, theirs: dict[str, Any]
) -> dict[str, Worker]:
    """Say how the sides are started.

    out (Path): Folder that has what both need; absolute.
    config (dict[str, Any]): Of our linker, but for its knowledge base.
    python (str | None): The interpreter of scispaCy's environment; None = without.
    theirs (dict[str, Any]): Keyword arguments of scispaCy's `EntityLinker`.
    RETURNS (dict[str, Worker]): By name, in the order of the table.
    """
    workers: dict[str, Worker] = {}
    if python:
        places = {"entities": str(out / ENTITIES), "index": str(out / INDEX)}
        workers[SCISPACY] = Worker(
            python, "benchmarks.linking_scispacy", {"linker": theirs, **places}
        )
    workers[OURS] = Worker(
        sys.executable,
        "benchmarks.linking_ours",
        {"config": {**config, "kb": str(out / KB)}},
    )
    return workers


def run_worker(
    worker: Worker,
    documents: Sequence[Any],
    *,
    singles: Sequence[Any] = (),
    threads: int,
) -> dict[str, Any]:
    """Measure one side in a process of its own.

    worker (Worker): The side.
    documents (Sequence[Any]): See `linking_measure.measure_side`.
    singles (Sequence[Any]): See there.
    threads (int): How many cores it gets.
    RETURNS (dict[str, Any]): What it measured.
    RAISES (SystemExit): If it fails. It has said why.
    """
    request = {
        "settings": worker.settings,
        "documents": documents,
        "singles": singles,
    }
    # Our side has the package of this process, installed or not.
    ours = worker.python == sys.executable
    with TemporaryDirectory() as folder, nullcontext() if ours else alone() as env:
        asked, answered = Path(folder) / "request.json", Path(folder) / "result.json"
        asked.write_text(json.dumps(request), "utf8")
        command = [worker.python, "-m", worker.module, str(asked), str(answered)]
        with pinned(threads):
            call([*command, "--started", str(time.monotonic())], env)
        result: dict[str, Any] = json.loads(answered.read_text("utf8"))
    return result
