"""One side of `benchmarks.linking`, measured in a process of its environment.

    PYTHON -m benchmarks.linking_side ours|scispacy REQUEST RESULT --started SECONDS
    PYTHON -m benchmarks.linking_side build ENTITIES INDEX

Only the standard library is imported here, so that the time of all imports is measured.
"""

import argparse
import builtins
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

WARM_UP = 20  # first calls of one mention, not measured


class Side(NamedTuple):
    """A pipeline, ready to link."""

    nlp: Any
    # an entity → ids of concepts with their scores, the best first
    answers: Callable[[Any], Iterable[Any]]
    libraries: Sequence[str]  # packages whose versions matter


def make_ours(settings: dict[str, Any]) -> Side:
    """Load our linker with `config`, its index and its encoder."""
    import spacy

    nlp = spacy.blank("en")
    linker: Any = nlp.add_pipe("sapbert_linker", config=settings["config"])
    linker.kb.index  # noqa: B018 (loaded when first used)
    linker.kb.encoder  # noqa: B018

    def answers(ent: Any) -> list[tuple[str, float]]:
        if ent._.cui is None:
            return []
        return [(found["cui"], found["score"]) for found in ent._.candidates]

    engines = ("openvino", "spacy-transformers", "transformers", "torch")
    return Side(nlp, answers, ("spacy", *engines, "numpy"))


def make_scispacy(settings: dict[str, Any]) -> Side:
    """Load scispaCy's `EntityLinker` with the entities and index of `build_index`."""
    import spacy
    from scispacy.candidate_generation import CandidateGenerator, LinkerPaths
    from scispacy.linking import EntityLinker
    from scispacy.linking_utils import KnowledgeBase
    from spacy.language import Language

    kb = KnowledgeBase(settings["entities"])
    names, vectorizer, index = LinkerPaths.from_directory(settings["index"]).load()
    generator = CandidateGenerator(index, vectorizer, names, kb)

    # scispaCy's own factory accepts no generator, as a config has plain values only.
    @Language.factory("local_scispacy_linker")
    def make_linker(nlp: Language, name: str) -> EntityLinker:
        return EntityLinker(
            nlp, name, candidate_generator=generator, **settings["linker"]
        )

    nlp = spacy.blank("en")
    nlp.add_pipe("local_scispacy_linker")
    libraries = ("scispacy", "spacy", "nmslib-metabrainz", "scikit-learn", "scipy")
    return Side(nlp, lambda ent: ent._.kb_ents, (*libraries, "numpy"))


SIDES = {"ours": make_ours, "scispacy": make_scispacy}


def build_index(entities: Path, out: Path) -> None:
    """Build scispaCy's index of JSON lines of its `Entity`."""
    from scispacy.candidate_generation import create_tfidf_ann_index
    from scispacy.linking_utils import KnowledgeBase

    part = out.with_name(f"{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    create_tfidf_ann_index(os.fspath(part), KnowledgeBase(entities))
    part.rename(out)


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


def measure_side(
    request: dict[str, Any], make_side: Callable[[Any], Side], *, started: float
) -> dict[str, Any]:
    """Load a pipeline and link with it.

    Args:
        request: `settings` for `make_side`; `documents`, the first of which is linked
            alone, the others twice; `singles`, each linked alone.
        started: Start of the process, by `time.monotonic`.

    Returns:
        `figures` by the keys of `linking.FIGURES`; the `answers` to each entity of the
        first pass; `versions` of libraries.
    """
    with time_imports() as imports:
        side = make_side(request["settings"])
    ready = time.monotonic() - started
    nlp = side.nlp
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
    answers = [
        [[str(cui), float(score)] for cui, score in side.answers(ent)]
        for doc in linked
        for ent in doc.ents
    ]
    versions: dict[str, str] = {}
    for name in side.libraries:
        with suppress(PackageNotFoundError):  # a small installation lacks some
            versions[name] = version(name)
    return {"figures": figures, "answers": answers, "versions": versions}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=(*SIDES, "build"))
    parser.add_argument("input", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--started", type=float, default=0.0)
    arguments = parser.parse_args()
    if arguments.command == "build":
        build_index(arguments.input, arguments.output)
        return
    request = json.loads(arguments.input.read_text("utf8"))
    os.sched_setaffinity(0, request["cores"])  # libraries use as many threads
    make_side = SIDES[arguments.command]
    result = measure_side(request, make_side, started=arguments.started)
    arguments.output.write_text(json.dumps(result), "utf8")


if __name__ == "__main__":
    main()
