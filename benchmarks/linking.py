"""This version of the linker and an older one on the same documents, in one table.

Each links the gold mentions of the documents through `nlp.pipe` on the same cores, in
separate processes that take turns:

    python -m benchmarks.linking CDR_DevelopmentSet.PubTator.txt.gz --kb models/medic
        --label Disease --before ../old

`--before` names a checkout of an older version. If it cannot read the knowledge base,
name one that it built by `--before-kb`. With `--small-python`, the interpreter of a
small installation (docs/speed.md), this version is measured without torch and
transformers too.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import spacy
import typer
from spacy.tokens import Doc, Span

from benchmarks.harness import (
    machine_line,
    print_table,
    run_cli,
)
from benchmarks.linking_side import WARM_UP
from spacy_sapbert.formats.gold_docs import read_docs
from spacy_sapbert.io.terminal import msg

OURS, SMALL, BEFORE = "ours", "ours, small", "before"
CODE = Path(__file__).parent
SIDE = "benchmarks.linking_side"
SINGLES = 500  # mentions linked one by one
# key: title, format, and whether higher is better
FIGURES: dict[str, tuple[str, str, bool]] = {
    "imports": ("Imports", "{:.2f} s", False),
    "load": ("Load, without imports", "{:.2f} s", False),
    "first": ("First document", "{:.0f} ms", False),
    "cold": ("Mentions a second, first pass", "{:,.0f}", True),
    "warm": ("Mentions a second, second pass", "{:,.0f}", True),
    "p50": ("One mention, median", "{:.2f} ms", False),
    "p95": ("One mention, 95 % within", "{:.2f} ms", False),
    "megabytes": ("Peak memory", "{:,.0f} MB", False),
    "linked": ("Mentions with an answer", "{:.1%}", True),
}


Answers = Sequence[Sequence[tuple[str, float]]]  # ids and scores for each mention


class Worker(NamedTuple):
    """Interpreter and config of the linker of a side."""

    python: str
    config: dict[str, Any]
    checkout: Path | None = None  # of the version of this package to use


def parse_config(values: Sequence[str]) -> dict[str, Any]:
    """Parse settings of the linker: `encoder.precision=bf16`, JSON or a text."""
    config: dict[str, Any] = {}
    for value in values:
        key, _, text = value.partition("=")
        try:
            config[key] = json.loads(text)
        except ValueError:
            config[key] = text
    nested: dict[str, Any] = spacy.util.dot_to_dict(config)
    return nested


def read_entities(path: Path, *, labels: Sequence[str], limit: int) -> list[Doc]:
    """Read annotated documents that have entities; no labels, or no limit = all."""
    with warnings.catch_warnings():  # of mentions that are no entities
        warnings.simplefilter("ignore", UserWarning)
        docs = [doc for _, doc in read_docs(path, spacy.blank("en"))]
    for doc in docs:
        doc.set_ents([ent for ent in doc.ents if not labels or ent.label_ in labels])
    return [doc for doc in docs[: limit or None] if doc.ents]


def describe_doc(tokens: Doc | Span, entities: Iterable[Span]) -> dict[str, Any]:
    """Return tokens and entities as JSON can hold them."""
    first = tokens[0].i
    return {
        "words": [token.text for token in tokens],
        "spaces": [bool(token.whitespace_) for token in tokens],
        "entities": [[e.start - first, e.end - first, e.label_] for e in entities],
    }


def choose_singles(docs: Sequence[Doc], count: int, seed: int = 0) -> list[Any]:
    """Return random mentions with distinct texts, each as a document of its own."""
    distinct = {ent.text: ent for doc in docs for ent in doc.ents}
    texts = random.Random(seed).sample(list(distinct), min(count, len(distinct)))
    return [describe_doc(distinct[text], [distinct[text]]) for text in texts]


def call(command: Sequence[str], **settings: Any) -> None:
    """Run a command; exit if it fails."""
    if subprocess.run(command, check=False, **settings).returncode:
        msg.fail(f"Stopped: {' '.join(command)}", exits=1)


@contextmanager
def isolate(checkout: Path | None = None) -> Iterator[dict[str, str]]:
    """Yield environment variables with which only `benchmarks` can be imported.

    With this whole checkout on its path, spaCy would find the entry points of this
    package beside those of the other.

    Args:
        checkout: Another checkout of this project, whose package can be imported too,
            with its own entry points in place of the installed ones.
    """
    with TemporaryDirectory() as folder:
        (Path(folder) / CODE.name).symlink_to(CODE)
        paths = [folder]
        if checkout:
            paths.append(os.fspath(checkout))
            command = [sys.executable, "setup.py", "-q", "egg_info"]
            call([*command, "--egg-base", folder], cwd=checkout)
        path = os.pathsep.join(paths)
        yield {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


def run_worker(worker: Worker, **request: Any) -> dict[str, Any]:
    """Run `linking_side.measure_side` in a new process."""
    # With our interpreter, the working folder has the package and `benchmarks`.
    ours = worker.python == sys.executable and worker.checkout is None
    place = nullcontext() if ours else isolate(worker.checkout)
    with TemporaryDirectory() as folder, place as env:
        input, output = Path(folder) / "request.json", Path(folder) / "result.json"
        input.write_text(json.dumps({**request, "config": worker.config}), "utf8")
        command = [worker.python, "-m", SIDE, str(input), str(output)]
        call([*command, "--started", str(time.monotonic())], env=env)
        return dict(json.loads(output.read_text("utf8")))


def measure_round(
    worker: Worker, documents: Sequence[Any], singles: Sequence[Any], cores: list[int]
) -> dict[str, Any]:
    """Measure one side once, single mentions in another process with an empty cache."""
    result = run_worker(worker, documents=documents, singles=[], cores=cores)
    alone = run_worker(worker, documents=documents[:1], singles=singles, cores=cores)
    result["figures"] = {**alone["figures"], **result["figures"]}
    return result


def format_figures(sides: dict[str, dict[str, float]]) -> list[tuple[str, ...]]:
    """Return a header and the rows: figures, and our ratio to each other side."""
    others = [name for name in sides if name not in (OURS, SMALL)]
    pairs = [(own, other) for own in (OURS, SMALL) if own in sides for other in others]
    titles = (
        f"{own[0].upper()}{own[1:]}, times as good as {other}" for own, other in pairs
    )
    table = [("", *sides, *titles)]
    for key, (title, form, higher_is_better) in FIGURES.items():
        row = [title, *(form.format(figures[key]) for figures in sides.values())]
        for own, other in pairs:
            good, bad = (own, other) if higher_is_better else (other, own)
            value = sides[bad][key]
            row.append(f"{sides[good][key] / value:.2f}×" if value else "–")
        table.append(tuple(row))
    return table


def describe_first_cuis(before: Answers, ours: Answers) -> str:
    """Return whether the first CUI of each mention is equal, in one line."""
    other = sum(
        [cui for cui, _ in one[:1]] != [cui for cui, _ in two[:1]]
        for one, two in zip(before, ours, strict=True)
    )
    count = f"{len(ours):,} mentions"
    if other:
        return f"{other:,} of {count} have another first CUI"
    return f"all {count} have the same first CUI"


def main(
    documents: Path = typer.Argument(..., help="Annotated documents."),
    kb: Path = typer.Option(..., help="Folder of our knowledge base."),
    before: Path | None = typer.Option(
        None, help="Checkout of an older version, measured too."
    ),
    before_kb: Path | None = typer.Option(
        None, help="Its knowledge base, if it cannot read ours. [--kb]"
    ),
    small_python: Path | None = typer.Option(
        None, help="Interpreter with this package but without torch, measured too."
    ),
    config: list[str] = typer.Option(
        [], help="KEY=VALUE of our linker, like encoder.precision=bf16; repeatable."
    ),
    label: list[str] = typer.Option([], help="Mentions to link; repeatable. [all]"),
    limit: int = typer.Option(0, min=0, help="First documents; 0 = all."),
    rounds: int = typer.Option(3, min=1, help="Measurements; the medians count."),
    threads: int = typer.Option(2, min=1, help="Cores of either side."),
) -> None:
    """annotated documents + kb/ -> table

    Example: python -m benchmarks.linking CDR_DevelopmentSet.PubTator.txt.gz --kb
    models/kb --before ../old
    """
    docs = read_entities(documents, labels=label, limit=limit)
    if len(docs) < 2:
        msg.fail("Expected two documents with mentions: the first warms up", exits=1)

    def make_worker(kb: Path, checkout: Path | None = None) -> Worker:
        options = {**parse_config(config), "kb": str(kb.absolute())}
        return Worker(sys.executable, options, checkout)

    workers: dict[str, Worker] = {}
    if before:
        workers[BEFORE] = make_worker(before_kb or kb, before.absolute())
    workers[OURS] = make_worker(kb)
    if small_python:
        workers[SMALL] = workers[OURS]._replace(python=str(small_python))
    described = [describe_doc(doc, doc.ents) for doc in docs]
    singles = choose_singles(docs, SINGLES + WARM_UP)
    cores = sorted(os.sched_getaffinity(0))[:threads]
    measured: dict[str, list[dict[str, Any]]] = {name: [] for name in workers}
    for number in range(rounds):
        for name, worker in workers.items():
            msg.info(f"Round {number + 1} of {rounds}: {name}")
            measured[name].append(measure_round(worker, described, singles, cores))
    answers: dict[str, Answers] = {n: r[-1]["answers"] for n, r in measured.items()}
    sides: dict[str, dict[str, float]] = {}
    for name, results in measured.items():
        figures = [result["figures"] for result in results]
        medians = {
            key: statistics.median(f[key] for f in figures) for key in figures[0]
        }
        linked = statistics.fmean(bool(found) for found in answers[name])
        sides[name] = medians | {"linked": linked}
        versions = ", ".join(f"{k} {v}" for k, v in results[0]["versions"].items())
        msg.text(f"{name}: {versions}")
    msg.text(
        f"{len(docs):,} documents, {len(answers[OURS]):,} mentions; median of {rounds}"
    )
    msg.text(f"{machine_line()}; {threads} threads each")
    header, *rows = format_figures(sides)
    print_table(header, rows)
    if before:
        msg.text(describe_first_cuis(answers[BEFORE], answers[OURS]))


if __name__ == "__main__":
    run_cli(main)
