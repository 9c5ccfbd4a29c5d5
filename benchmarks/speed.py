"""Speed and memory of the linker: the tables of docs/speed.md but for scispaCy's."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc

from benchmarks.engines import measure_engines
from benchmarks.gold_docs import parse_config, read_corpus
from benchmarks.harness import (
    machine_line,
    print_table,
    run_cli,
)
from spacy_sapbert.cli.app import make_app
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.kb.folder.versions import read_version

KB = "spacy_sapbert.kb.knowledge_base.KnowledgeBase"
STORE = "spacy_sapbert.kb.store.Store"
ENCODER = "spacy_sapbert.encoder.encoder.Encoder"
# The functions of each step, by the place where they are looked up at each call.
STEPS: dict[str, tuple[str, ...]] = {
    "tokenise": (f"{ENCODER}.tokenize",),
    "forward": (f"{ENCODER}.encode",),
    "search": (f"{KB}.search", f"{KB}.vectors"),
    "SQLite": tuple(
        f"{STORE}.{name}"
        for name in ("entries", "types", "codes", "parents", "rows_of_keys")
    ),
    "annotate": ("spacy_sapbert.pipeline.linker.write_links",),
}
REST = "the rest"  # ranking, ties, gathering of mentions, spaCy

PROCESS_ROUNDS = 5  # processes for each line
COMPONENTS: dict[str, list[str]] = {  # the packages whose entry points spaCy sees
    "none": [],
    "ours": ["spacy_sapbert"],
    "spacy-transformers'": ["spacy_transformers"],
    "all": [""],
}
# Times the steps in a new process whose spaCy sees the entry points of some packages.
PROGRAM = """
import json, sys, time
steps = {}
def timed(name, work):
    start = time.perf_counter()
    result = work()
    steps[name] = time.perf_counter() - start
    return result
kb, *packages = sys.argv[1:]
import spacy, catalogue
list_points = catalogue.Registry._get_entry_points
def list_some(self):
    return [
        point
        for point in list_points(self)
        if self.entry_point_namespace != "spacy_factories"
        or any(point.value.startswith(package) for package in packages)
    ]
catalogue.Registry._get_entry_points = list_some
nlp = timed("blank", lambda: spacy.blank("en"))
if kb:
    from spacy.tokens import Span
    config = {"kb": kb}
    timed("`nlp.add_pipe`", lambda: nlp.add_pipe("sapbert_linker", config=config))
    timed("knowledge base opened and verified (`nlp.initialize`)", nlp.initialize)
    def link(text):
        doc = nlp.make_doc(text)
        doc.ents = [Span(doc, 0, len(doc), "X")]
        return nlp(doc)
    first = "first mention: index and encoder loaded"
    timed(first, lambda: link("not the name of any disease"))
    timed("second mention", lambda: link("nor is this one"))
print(json.dumps(steps))
"""

app = make_app(add_completion=False)
app.command("engines")(measure_engines)


@app.callback()
def speed() -> None:
    """Measure speed and memory of the linker.

    Example: python -m benchmarks.speed profile gold.txt.gz --kb models/kb
    """


@contextmanager
def time_steps() -> Iterator[dict[str, float]]:
    """Sum the seconds of all steps; of nested functions only the outer one counts."""
    seconds, busy = dict.fromkeys(STEPS, 0.0), False

    def wrap(step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            nonlocal busy
            if busy:
                return function(*args, **kwargs)
            busy, start = True, time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                seconds[step] += time.perf_counter() - start
                busy = False

        return timed

    with ExitStack() as stack:
        for step, names in STEPS.items():
            for name in names:
                stack.enter_context(patch(name, wrap(step, resolve_name(name))))
        yield seconds


def profile_docs(nlp: Language, docs: Sequence[Doc]) -> dict[str, float]:
    """Link copies of documents; return the seconds of each step and of the rest."""
    nlp.get_pipe("sapbert_linker").kb.clear_cache()  # type: ignore[attr-defined]
    copies = [doc.copy() for doc in docs]
    with time_steps() as seconds:
        start = time.perf_counter()
        for _ in nlp.pipe(copies):
            pass
        total = time.perf_counter() - start
    return {**seconds, REST: total - sum(seconds.values())}


@app.command("profile")
def profile(
    documents: Path = typer.Argument(..., help="Annotated documents, PubTator."),
    kb: Path = typer.Option(..., help="Folder of the knowledge base."),
    config: list[str] = typer.Option(
        [], help="KEY=VALUE of the linker, like encoder.precision=bf16; repeatable."
    ),
    limit: int = typer.Option(0, min=0, help="First documents; 0 = all."),
    rounds: int = typer.Option(3, min=1, help="Measurements; the medians count."),
) -> None:
    """annotated documents + kb/ -> table of steps, seconds and shares

    Example: python -m benchmarks.speed profile CDR_DevelopmentSet.PubTator.txt.gz --kb
    models/kb --config encoder.precision=bf16
    """
    docs = read_corpus(documents, limit=limit).docs
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_linker", config={"kb": str(kb), **parse_config(config)})
    profile_docs(nlp, docs[:1])  # loads everything
    measured = [profile_docs(nlp, docs) for _ in range(rounds)]
    mentions = sum(len(doc.ents) for doc in docs)
    seconds = {s: statistics.median(each[s] for each in measured) for s in measured[0]}
    total = sum(seconds.values())
    rows = [
        (step, f"{t:.2f} s", f"{1e6 * t / mentions:,.0f} µs", f"{t / total:.1%}")
        for step, t in [*seconds.items(), ("all", total)]
    ]
    msg.text(machine_line())
    print_table(("Step", "Time", "A mention", "Share"), rows)
    msg.text(
        f"{len(docs):,} documents, {mentions:,} mentions, {mentions / total:,.0f} a "
        f"second; median of {rounds}"
    )


def run_program(kb: str, packages: list[str]) -> Any:
    """Return the seconds of each step of `PROGRAM`."""
    command = [sys.executable, "-c", PROGRAM, kb, *packages]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def format_times(values: list[float]) -> str:
    """Format median and range."""
    median = statistics.median(values)
    return f"{median:.3f} s ({min(values):.3f}–{max(values):.3f})"


@app.command("opening")
def measure_opening(
    kb: Path = typer.Argument(..., help="Folder of a knowledge base."),
) -> None:
    """kb/ -> times of `spacy.blank`, and of opening the knowledge base

    `spacy.blank` imports every installed component. So it is timed with no components,
    with ours, with spacy-transformers' (which this package needs) and with all.

    Example: python -m benchmarks.speed opening models/kb
    """
    blank: dict[str, list[float]] = {name: [] for name in COMPONENTS}
    opened: list[dict[str, float]] = []
    for _ in range(PROCESS_ROUNDS):  # in turns, so that a busy moment affects all lines
        for name, packages in COMPONENTS.items():
            blank[name].append(run_program("", packages)["blank"])
        opened.append(run_program(str(kb), ["spacy_sapbert"]))
    msg.text(machine_line())
    rows = [(name, format_times(seconds)) for name, seconds in blank.items()]
    print_table(("Components that spaCy sees", '`spacy.blank("en")`'), rows)
    size = sum(file.size for file in read_version(kb).manifest.files.values())
    rows = [(step, format_times([run[step] for run in opened])) for step in opened[0]]
    print_table((f"{kb.name}, {size / 1e6:,.0f} MB", "Time"), rows[1:])
    msg.text(f"Medians of {PROCESS_ROUNDS} processes, and the ranges.")


if __name__ == "__main__":
    run_cli(app)
