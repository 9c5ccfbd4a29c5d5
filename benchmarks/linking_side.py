"""One side of `benchmarks.linking`, measured in a process of its environment.

    PYTHON -m benchmarks.linking_side REQUEST RESULT --started SECONDS

Only the standard library is imported here, so that the time of all imports is measured.
"""

import argparse
import builtins
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import quantiles
from typing import Any

WARM_UP = 20  # first calls of one mention, not measured
LIBRARIES = (
    "spacy",
    "openvino",
    "spacy-transformers",
    "transformers",
    "torch",
    "numpy",
)


def load_linker(config: dict[str, Any]) -> Any:
    """Load a pipeline with our linker, its index and its encoder."""
    import spacy

    nlp = spacy.blank("en")
    linker: Any = nlp.add_pipe("sapbert_linker", config=config)
    linker.kb.index  # noqa: B018 (loaded when first used)
    linker.kb.encoder  # noqa: B018
    return nlp


def list_answers(ent: Any) -> list[tuple[str, float]]:
    """Return ids of concepts with their scores, the best first, if it is linked."""
    if ent._.cui is None:
        return []
    return [(found["cui"], found["score"]) for found in ent._.candidates]


@contextmanager
def time_imports() -> Iterator[list[float]]:
    """Yield a list to which the seconds of each import statement are added."""
    original, seconds, inside = builtins.__import__, [], False

    def timed(*args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if inside:
            return original(*args, **kwargs)
        inside, start = True, time.perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            seconds.append(time.perf_counter() - start)
            inside = False

    builtins.__import__ = timed
    try:
        yield seconds
    finally:
        builtins.__import__ = original


def peak_megabytes() -> float:
    """Return the peak memory of this process (Linux)."""
    # In a child process, `ru_maxrss` is at least that of its parent.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(ln.split()[1]) / 1024 for ln in lines if ln.startswith("VmHWM:"))


def make_docs(vocab: Any, documents: Iterable[dict[str, Any]]) -> Iterator[Any]:
    """Yield Docs with the same tokens and entities under every version of spaCy."""
    from spacy.tokens import Doc, Span

    for document in documents:
        doc = Doc(vocab, words=document["words"], spaces=document["spaces"])
        doc.set_ents([Span(doc, *entity) for entity in document["entities"]])
        yield doc


def time_singles(nlp: Any, documents: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Link documents one by one; return median and 95th percentile in ms."""
    seconds: list[float] = []
    for doc in list(make_docs(nlp.vocab, documents)):
        start = time.perf_counter()
        nlp(doc)
        seconds.append(time.perf_counter() - start)
    counted = seconds[min(WARM_UP, len(seconds) // 2) :]
    twentieths = quantiles(counted, n=20, method="inclusive")
    return {"p50": 1000 * twentieths[9], "p95": 1000 * twentieths[18]}


def measure_side(request: dict[str, Any], *, started: float) -> dict[str, Any]:
    """Load a pipeline and link with it.

    Args:
        request: `config` of the linker; `documents`, the first of which is linked
            alone, the others twice; `singles`, each linked alone.
        started: Start of the process, by `time.monotonic`.

    Returns:
        `figures` by the keys of `linking.FIGURES`; the `answers` to each entity of the
        first pass; `versions` of libraries.
    """
    with time_imports() as imports:
        nlp = load_linker(request["config"])
    ready = time.monotonic() - started
    figures = {"imports": sum(imports), "load": ready - sum(imports)}
    first, *others = request["documents"]
    linked = list(make_docs(nlp.vocab, [first]))
    start = time.perf_counter()
    linked = list(nlp.pipe(linked))
    figures["first"] = 1000 * (time.perf_counter() - start)
    for name in ("cold", "warm") if others else ():
        docs = list(make_docs(nlp.vocab, others))
        start = time.perf_counter()
        docs = list(nlp.pipe(docs))
        seconds = time.perf_counter() - start
        figures[name] = sum(len(doc.ents) for doc in docs) / seconds
        if name == "cold":
            linked += docs
    if request["singles"]:
        figures |= time_singles(nlp, request["singles"])
    figures["megabytes"] = peak_megabytes()
    answers = [list_answers(ent) for doc in linked for ent in doc.ents]
    versions: dict[str, str] = {}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):  # a small installation lacks some
            versions[name] = version(name)
    return {"figures": figures, "answers": answers, "versions": versions}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("input", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--started", type=float, default=0.0)
    arguments = parser.parse_args()
    request = json.loads(arguments.input.read_text("utf8"))
    os.sched_setaffinity(0, request["cores"])  # libraries use as many threads
    result = measure_side(request, started=arguments.started)
    arguments.output.write_text(json.dumps(result), "utf8")


if __name__ == "__main__":
    main()
