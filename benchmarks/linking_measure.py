"""What either side of `benchmarks.linking` measures, each in its own environment.

Only the standard library is imported here, so that it is known what imports take.
"""

import argparse
import builtins
import json
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

STATUS = Path("/proc/self/status")
PASSES = 2  # the first one cold, the second one warm
WARM_UP = 20  # calls of one mention that do not count, before the others


class Side(NamedTuple):
    """A pipeline that is measured.

    nlp (Language): The pipeline; all that it needs is loaded.
    answers (Callable[[Span], Iterable[Any]]): Gives what it found for an entity: ids
        of concepts with their scores, the best first; none if it is not linked.
    libraries (Sequence[str]): Installed packages whose versions matter.
    """

    nlp: Any
    answers: Callable[[Any], Iterable[Any]]
    libraries: Sequence[str]


class ImportTimer:
    """Adds up the seconds of import statements, while it is installed.

    Those inside functions count too: who imports when first used takes the same time,
    only later.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.inside = False
        self.wrapped = builtins.__import__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.inside:
            return self.wrapped(*args, **kwargs)
        self.inside = True
        start = time.perf_counter()
        try:
            return self.wrapped(*args, **kwargs)
        finally:
            self.seconds += time.perf_counter() - start
            self.inside = False

    def __enter__(self) -> "ImportTimer":
        builtins.__import__ = self
        return self

    def __exit__(self, *error: Any) -> None:
        builtins.__import__ = self.wrapped


def peak_megabytes() -> float:
    """Return the most memory that this process had at once."""
    # Of a started process `ru_maxrss` is at least what the starting one had.
    if STATUS.is_file():
        lines = STATUS.read_text().splitlines()
        peak = next(line for line in lines if line.startswith("VmHWM:"))
        return int(peak.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def make_docs(vocab: Any, documents: Iterable[dict[str, Any]]) -> Iterator[Any]:
    """Make Docs that have the same tokens under every version of spaCy.

    vocab (Vocab): Of the pipeline.
    documents (Iterable[dict[str, Any]]): From `describe_doc`.
    YIELDS (Doc): Each with its entities.
    """
    from spacy.tokens import Doc, Span

    for document in documents:
        doc = Doc(vocab, words=document["words"], spaces=document["spaces"])
        doc.set_ents([Span(doc, *entity) for entity in document["entities"]])
        yield doc


def measure_side(
    request: dict[str, Any],
    make_side: Callable[[dict[str, Any]], Side],
    *,
    started: float,
) -> dict[str, Any]:
    """Load a pipeline and link with it.

    request (dict[str, Any]): `settings` for `make_side`; `documents`, the first of
        which is linked alone, the others twice; `singles`, each linked alone.
    make_side (Callable): Makes the pipeline, ready to link.
    started (float): When the process was started, by `time.monotonic`.
    RETURNS (dict[str, Any]): Seconds of `imports`, of `load` without them, of the
        `first` document, of both `passes`, and of each of the `singles`; `megabytes`;
        `answers` to each entity of the first pass, by document; `versions`.
    """
    with ImportTimer() as imports:
        side = make_side(request["settings"])
    ready = time.monotonic() - started
    nlp = side.nlp
    first, *others = request["documents"]
    linked = list(make_docs(nlp.vocab, [first]))
    start = time.perf_counter()
    linked = list(nlp.pipe(linked))
    result: dict[str, Any] = {
        "imports": imports.seconds,
        "load": ready - imports.seconds,
        "first": time.perf_counter() - start,
        "passes": [],
    }
    for number in range(PASSES if others else 0):
        docs = list(make_docs(nlp.vocab, others))
        start = time.perf_counter()
        docs = list(nlp.pipe(docs))
        result["passes"].append(time.perf_counter() - start)
        if number == 0:
            linked += docs
    result["singles"] = time_singles(nlp, request["singles"])
    result["megabytes"] = peak_megabytes()
    result["answers"] = [
        [[[str(c), float(s)] for c, s in side.answers(ent)] for ent in doc.ents]
        for doc in linked
    ]
    result["versions"] = {name: version(name) for name in side.libraries}
    return result


def time_singles(nlp: Any, documents: Sequence[dict[str, Any]]) -> list[float]:
    """Link documents one a call.

    nlp (Language): The pipeline.
    documents (Sequence[dict[str, Any]]): The first `WARM_UP` do not count, nor of few
        the first half.
    RETURNS (list[float]): Seconds of each of the others.
    """
    seconds: list[float] = []
    for doc in list(make_docs(nlp.vocab, documents)):
        start = time.perf_counter()
        nlp(doc)
        seconds.append(time.perf_counter() - start)
    return seconds[min(WARM_UP, len(seconds) // 2) :]


def run_side(make_side: Callable[[dict[str, Any]], Side]) -> None:
    """Do what the command line of a worker says.

    make_side (Callable): See `measure_side`.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("request", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--started", type=float, required=True)
    given = parser.parse_args()
    request = json.loads(given.request.read_text("utf8"))
    result = measure_side(request, make_side, started=given.started)
    given.result.write_text(json.dumps(result), "utf8")
