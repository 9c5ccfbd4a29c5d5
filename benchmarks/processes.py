"""One process against several: speed, memory, and whether the links are equal.

Each start method of the system runs the same Docs through `nlp.pipe(n_process=…)`, from
a process that has linked before. RSS counts the pages that processes share in each of
them, PSS divides them (Linux only).

python -m benchmarks.processes models/kb mentions.tsv
"""

import multiprocessing
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import minibatch
from wasabi import msg

from benchmarks.machine import machine_line
from spacy_sapbert.evaluation.gold_mentions import read_mentions


class Run(NamedTuple):
    """What was measured.

    first (float): Seconds until the first Doc came.
    seconds (float): Seconds from then to the last.
    memory (list[dict[str, int]]): Of each worker, in kilobytes, by "Pss" and "Rss".
    links (list[Any]): All candidates.
    """

    first: float
    seconds: float
    memory: list[dict[str, int]]
    links: list[Any]


def make_docs(nlp: Language, texts: Iterable[str], size: int) -> list[Doc]:
    """Make Docs of some mentions each.

    nlp (Language): The pipeline.
    texts (Iterable[str]): Mentions.
    size (int): Mentions in a Doc.
    RETURNS (list[Doc]): With the mentions as entities.
    """
    docs = []
    for some in minibatch(texts, size):
        doc = Doc(nlp.vocab, words=list(some))
        doc.ents = [Span(doc, i, i + 1, label="X") for i in range(len(doc))]
        docs.append(doc)
    return docs


def read_memory(process: int) -> dict[str, int]:
    """Read how much memory a process holds.

    process (int): The process.
    RETURNS (dict[str, int]): Kilobytes, by the names of smaps_rollup; empty where the
        system has no such file.
    """
    path = Path(f"/proc/{process}/smaps_rollup")
    if not path.exists():
        return {}
    lines = (line.split() for line in path.read_text("ascii").splitlines()[1:])
    return {line[0].rstrip(":"): int(line[1]) for line in lines}


def run_pipe(nlp: Language, docs: list[Doc], n_process: int, batch_size: int) -> Run:
    """Run the pipeline over copies of Docs, and measure it.

    nlp (Language): The pipeline.
    docs (list[Doc]): The Docs.
    n_process (int): Worker processes; 1 = none.
    batch_size (int): Docs at once.
    RETURNS (Run): The measures.
    """
    linker: Any = nlp.get_pipe("sapbert_linker")
    linker.forget()  # so that no worker is given what another has found
    links: list[Any] = []
    memory: list[dict[str, int]] = []
    start = time.perf_counter()
    first = start
    copies = (doc.copy() for doc in docs)
    found = nlp.pipe(copies, n_process=n_process, batch_size=batch_size)
    for number, doc in enumerate(found, 1):
        if number == 1:
            first = time.perf_counter()
        links += [ent._.candidates for ent in doc.ents]
        if number == len(docs):
            workers = [child.pid or 0 for child in multiprocessing.active_children()]
            memory = [read_memory(pid) for pid in workers or [os.getpid()]]
    return Run(first - start, time.perf_counter() - first, memory, links)


def describe_equality(links: list[Any], expected: list[Any]) -> str:
    """Say in how far links are the same.

    links (list[Any]): Candidates of each mention.
    expected (list[Any]): Those of one process.
    RETURNS (str): "yes"; or that only scores differ, and by how much at the most; "no".
    """
    if links == expected:
        return "yes"

    def scores(one: list[Any]) -> list[float]:
        return [c["score"] for candidates in one for c in candidates]

    def others(one: list[Any]) -> list[Any]:
        return [[c["cui"] for c in candidates] for candidates in one]

    if others(links) != others(expected):
        return "no"
    pairs = zip(scores(links), scores(expected), strict=True)
    differing = [abs(a - b) for a, b in pairs if a != b]
    return f"but for {len(differing)} scores, by up to {max(differing):.0e}"


def describe_run(name: str, run: Run, expected: Run) -> list[str]:
    """Make a row of the table.

    name (str): Of the run.
    run (Run): What was measured.
    expected (Run): Of one process.
    RETURNS (list[str]): The cells.
    """

    def mean(key: str) -> str:
        values = [each.get(key, 0) for each in run.memory]
        return f"{sum(values) / len(values) / 1024:,.0f} MB" if any(values) else "?"

    rate = len(run.links) / run.seconds
    return [
        name,
        f"{run.first:.1f} s",
        f"{rate:,.0f}",
        f"{rate * expected.seconds / len(expected.links):.2f}",
        mean("Rss"),
        mean("Pss"),
        describe_equality(run.links, expected.links),
    ]


def main(
    kb: Path = typer.Argument(..., help="Folder of the knowledge base."),
    mentions: Path = typer.Argument(..., help="Gold mentions."),
    n_process: int = typer.Option(2, min=2, help="Worker processes."),
    batch_size: int = typer.Option(32, min=1, help="Docs at once."),
    size: int = typer.Option(8, min=1, help="Mentions in a Doc."),
    limit: int = typer.Option(8000, min=1, help="Mentions."),
) -> None:
    """kb/ + mentions -> table of start methods"""
    texts = [gold.mention for gold in read_mentions(mentions)]
    texts = [text for text in dict.fromkeys(texts) if not text.isspace()][:limit]
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_linker", config={"kb": str(kb)})
    docs = make_docs(nlp, texts, size)
    run_pipe(nlp, docs[:batch_size], 1, batch_size)  # opens everything
    one = run_pipe(nlp, docs, 1, batch_size)
    rows = [describe_run("one process", one, one)]
    for method in multiprocessing.get_all_start_methods():
        multiprocessing.set_start_method(method, force=True)
        run = run_pipe(nlp, docs, n_process, batch_size)
        rows.append(describe_run(f"{n_process} × {method}", run, one))
    header = ("Processes", "First Doc", "Mentions/s", "Ratio", "RSS", "PSS", "Equal")
    msg.text(machine_line())
    msg.table(rows, header=header, divider=True, aligns=("l", *"rrrrr", "l"))
    msg.text(
        f"{len(texts):,} distinct mentions. Mentions a second are counted from the "
        "first Doc on; RSS and PSS are the mean of the workers."
    )


if __name__ == "__main__":
    typer.run(main)
