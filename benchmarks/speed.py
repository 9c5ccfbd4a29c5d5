"""Speed and memory of the linker: the tables of docs/speed.md but for scispaCy's."""

import multiprocessing
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple
from unittest.mock import patch

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import minibatch

from benchmarks.engines import measure_engines, measure_mining
from benchmarks.gold_docs import parse_config, read_corpus
from benchmarks.harness import (
    machine_line,
    print_table,
    read_memory,
    run_cli,
)
from benchmarks.new_process import (
    measure_build,
    measure_busy,
    measure_opening,
    measure_sharing,
)
from spacy_sapbert.cli.app import make_app
from spacy_sapbert.evaluation.gold_mentions import read_mentions
from spacy_sapbert.linking.ranking import has_text
from spacy_sapbert.system.terminal import msg

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
PROCESSES, BATCH_SIZE, MENTIONS = 2, 32, 8  # workers, Docs in a batch, in a Doc
ZONE = 1000  # documents in a memory zone
REPORTED = (1_000, 10_000, 50_000, 100_000)  # documents

app = make_app(add_completion=False)
app.command("engines")(measure_engines)
app.command("mining")(measure_mining)
app.command("opening")(measure_opening)
app.command("build")(measure_build)
app.command("busy")(measure_busy)
app.command("sharing")(measure_sharing)


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


class PipeRun(NamedTuple):
    """One run of `nlp.pipe`.

    first (float): Seconds until the first Doc.
    seconds (float): Seconds from the first Doc to the last.
    memory (list[dict[str, int]]): From `read_memory`, of each worker.
    links (list[list[str]]): The ids of the candidates of each mention.
    """

    first: float
    seconds: float
    memory: list[dict[str, int]]
    links: list[list[str]]


def read_texts(mentions: Path) -> list[str]:
    """Read the distinct mentions of a file that can be linked."""
    texts = dict.fromkeys(gold.mention for gold in read_mentions(mentions))
    return [text for text in texts if has_text(text)]


def make_docs(nlp: Language, texts: Sequence[str]) -> list[Doc]:
    """Return Docs of `MENTIONS` mentions each, which are their entities."""
    docs = []
    for some in minibatch(texts, MENTIONS):
        doc = Doc(nlp.vocab, words=list(some))
        doc.ents = [Span(doc, i, i + 1, label="X") for i in range(len(doc))]
        docs.append(doc)
    return docs


def run_pipe(nlp: Language, docs: Sequence[Doc], n_process: int) -> PipeRun:
    """Run a pipeline over copies of Docs with an empty cache."""
    nlp.get_pipe("sapbert_linker").kb.clear_cache()  # type: ignore[attr-defined]
    links: list[list[str]] = []
    memory: list[dict[str, int]] = []
    start = first = time.perf_counter()
    copies = (doc.copy() for doc in docs)
    linked = nlp.pipe(copies, n_process=n_process, batch_size=BATCH_SIZE)
    for number, doc in enumerate(linked, 1):
        if number == 1:
            first = time.perf_counter()
        links += [[found["cui"] for found in ent._.candidates] for ent in doc.ents]
        if number == len(docs):
            workers = [child.pid or 0 for child in multiprocessing.active_children()]
            memory = [read_memory(pid) for pid in workers or [os.getpid()]]
    return PipeRun(first - start, time.perf_counter() - first, memory, links)


@app.command("processes")
def processes(
    kb: Path = typer.Argument(..., help="Folder of the knowledge base."),
    mentions: Path = typer.Argument(..., help="Gold mentions."),
) -> None:
    """kb/ + mentions -> table of start methods: speed, memory, equality

    Each method runs the same Docs through `nlp.pipe(n_process=…)`, from a process that
    has linked before. RSS counts shared pages in each worker, PSS divides them.

    Example: python -m benchmarks.speed processes models/kb mentions.tsv
    """
    texts = read_texts(mentions)
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_linker", config={"kb": str(kb)})
    docs = make_docs(nlp, texts)
    run_pipe(nlp, docs[:BATCH_SIZE], 1)  # loads everything
    one = run_pipe(nlp, docs, 1)
    runs = {"one": one}
    for method in multiprocessing.get_all_start_methods():
        multiprocessing.set_start_method(method, force=True)
        runs[f"{PROCESSES} × {method}"] = run_pipe(nlp, docs, PROCESSES)
    rows = []
    for name, run in runs.items():
        memory = [
            f"{statistics.fmean(m.get(key, 0) for m in run.memory) / 1024:,.0f} MB"
            for key in ("Rss", "Pss")
        ]
        speed = f"{len(run.links) / run.seconds:,.0f}"
        equal = "yes" if run.links == one.links else "no"
        rows.append((name, f"{run.first:.1f} s", speed, *memory, equal))
    msg.text(machine_line())
    header = ("Processes", "First Doc", "Mentions/s", "RSS", "PSS", "Equal")
    print_table(header, rows)
    msg.text(f"{len(texts):,} mentions; the speed is that after the first Doc.")


def make_texts(mentions: list[str], *, new_words: bool) -> Iterator[str]:
    """Yield short texts without end; with `new_words`, each has a word of its own."""
    chance, number = random.Random(0), 0
    while True:
        first, second = chance.choices(mentions, k=2)
        number += 1
        extra = f" See record x{number}x." if new_words else ""
        yield f"The patient was treated for {first}, and had {second} before.{extra}"


@app.command("stream")
def stream(
    kb: Path = typer.Argument(..., help="Folder of the knowledge base."),
    mentions: Path = typer.Argument(..., help="Gold mentions."),
    documents: int = typer.Option(100_000, min=ZONE, help="Number of documents."),
    new_words: bool = typer.Option(False, "--new-words", help="A new word in each."),
    zone: bool = typer.Option(False, "--zone", help="Run in `nlp.memory_zone()`s."),
) -> None:
    """kb/ + mentions -> table of memory over a long stream of short documents

    Example: python -m benchmarks.speed stream models/kb mentions.tsv --new-words --zone
    """
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_mentions")
    nlp.add_pipe("sapbert_linker", config={"kb": str(kb)})
    texts = make_texts(read_texts(mentions), new_words=new_words)
    rows, entities, start = [], 0, time.perf_counter()
    for done in range(ZONE, documents + 1, ZONE):
        with nlp.memory_zone() if zone else nullcontext():
            entities += sum(len(doc.ents) for doc in nlp.pipe(islice(texts, ZONE)))
        if done in REPORTED:
            taken, memory = time.perf_counter() - start, read_memory(os.getpid())
            sizes = (
                f"{memory.get(key, 0) / 1024:,.1f} MB" for key in ("Rss", "Anonymous")
            )
            rows.append((f"{done:,}", f"{entities:,}", f"{taken:,.0f} s", *sizes))
    msg.text(machine_line())
    print_table(("Documents", "Entities", "Time", "RSS", "without files"), rows)


if __name__ == "__main__":
    run_cli(app)
