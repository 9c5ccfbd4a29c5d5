"""This version of the linker and another one on the same documents, in one table.

Each links the gold mentions of the documents in processes that take turns:

    python -m benchmarks.linking CDR_DevelopmentSet.PubTator.txt.gz --kb models/medic
        --label Disease --before ../old/.venv/bin/python

`--before` is the interpreter of an environment with another version, or with other
packages, such as the light installation.
"""

import json
import random
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from operator import ne
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# An interpreter with another version runs this file, and has no other module of it.
import spacy
import typer
from spacy.tokens import Doc, DocBin

OURS, BEFORE = "ours", "before"
SIDE = "--side"  # first argument of a process that measures
DOCUMENTS, SINGLES = "documents.spacy", "singles.spacy"
MOST_SINGLES = 500  # mentions linked one by one
WARM_UP = 20  # further ones before them, not measured
# key: title, format, and whether higher is better
FIGURES: dict[str, tuple[str, str, bool]] = {
    "load": ("Start and load", "{:.2f} s", False),
    "first": ("First document", "{:.0f} ms", False),
    "cold": ("Mentions a second, first pass", "{:,.0f}", True),
    "warm": ("Mentions a second, second pass", "{:,.0f}", True),
    "p50": ("One mention, median", "{:.2f} ms", False),
    "p95": ("One mention, 95 % within", "{:.2f} ms", False),
    "megabytes": ("Peak memory", "{:,.0f} MB", False),
    "linked": ("Mentions with an answer", "{:.1%}", True),
}


def peak_megabytes() -> float:
    """Return the peak memory of this process (Linux)."""
    # In a child process, `ru_maxrss` is at least that of its parent.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(ln.split()[1]) / 1024 for ln in lines if ln.startswith("VmHWM:"))


def time_pass(nlp: Any, docs: Sequence[Doc]) -> float:
    """Link Docs as one stream; return the seconds."""
    start = time.perf_counter()
    for _ in nlp.pipe(docs):
        pass
    return time.perf_counter() - start


def measure(folder: Path, kb: str, started: float) -> dict[str, Any]:
    """Link the documents of a folder with the package of this interpreter.

    Args:
        started: Start of this process, by `time.monotonic`.

    Returns:
        `figures` by the keys of `FIGURES`, and the `cuis` of all mentions.
    """
    nlp = spacy.blank("en")
    linker: Any = nlp.add_pipe("sapbert_linker", config={"kb": kb})
    linker.kb.index  # noqa: B018 (loaded when first used)
    linker.kb.encoder  # noqa: B018
    figures = {"load": time.monotonic() - started}

    def read(name: str) -> list[Doc]:
        return list(DocBin().from_disk(folder / name).get_docs(nlp.vocab))

    first, *others = docs = read(DOCUMENTS)
    mentions = sum(len(doc.ents) for doc in others)
    figures["first"] = 1000 * time_pass(nlp, [first])
    figures["cold"] = mentions / time_pass(nlp, others)
    figures["warm"] = mentions / time_pass(nlp, read(DOCUMENTS)[1:])
    linker.kb.clear_cache()
    singles = [1000 * time_pass(nlp, [doc]) for doc in read(SINGLES)]
    measured = singles[min(WARM_UP, len(singles) // 2) :]
    twentieths = statistics.quantiles(measured, n=20, method="inclusive")
    figures |= {"p50": twentieths[9], "p95": twentieths[18]}
    cuis = [ent._.cui for doc in docs for ent in doc.ents]
    figures["linked"] = statistics.fmean(cui is not None for cui in cuis)
    figures["megabytes"] = peak_megabytes()
    return {"figures": figures, "cuis": cuis}


def run_side(python: str, folder: Path, kb: Path) -> dict[str, Any]:
    """Run `measure` in a new process, which does not import this checkout."""
    result = folder / "result.json"
    arguments = map(str, (folder, kb.absolute(), time.monotonic(), result))
    command = [python, "-P", __file__, SIDE, *arguments]
    subprocess.run(command, check=True, cwd=folder)
    return dict(json.loads(result.read_text("utf8")))


def read_entities(path: Path, labels: Sequence[str]) -> list[Doc]:
    """Read annotated documents that have entities with these labels; none = all."""
    from spacy_sapbert.formats.gold_docs import read_docs

    with warnings.catch_warnings():  # of mentions that are no entities
        warnings.simplefilter("ignore", UserWarning)
        docs = [doc for _, doc in read_docs(path, spacy.blank("en"))]
    for doc in docs:
        doc.set_ents([ent for ent in doc.ents if not labels or ent.label_ in labels])
    return [doc for doc in docs if doc.ents]


def choose_singles(docs: Sequence[Doc]) -> list[Doc]:
    """Return random mentions with distinct texts, each as a document of its own."""
    distinct = {ent.text: ent for doc in docs for ent in doc.ents}
    count = min(MOST_SINGLES + WARM_UP, len(distinct))
    return [
        distinct[text].as_doc() for text in random.Random(0).sample([*distinct], count)
    ]


def format_figures(sides: dict[str, dict[str, float]]) -> list[list[str]]:
    """Return rows: figures of each side, and how many times as good ours is."""
    table = []
    for key, (title, form, higher_is_better) in FIGURES.items():
        row = [title, *(form.format(figures[key]) for figures in sides.values())]
        good, bad = (sides.get(name, {}).get(key) for name in (OURS, BEFORE))
        if not higher_is_better:
            good, bad = bad, good
        row.append(f"{good / bad:.2f}×" if good and bad else "–")
        table.append(row)
    return table


def main(
    documents: Path = typer.Argument(..., help="Annotated documents."),
    kb: Path = typer.Option(..., help="Folder of our knowledge base."),
    before: str | None = typer.Option(None, help="Another interpreter, measured too."),
    before_kb: Path | None = typer.Option(
        None, help="Its knowledge base, if it cannot read ours. [--kb]"
    ),
    label: list[str] = typer.Option([], help="Mentions to link; repeatable. [all]"),
    rounds: int = typer.Option(3, min=1, help="Measurements; the medians count."),
) -> None:
    """annotated documents + kb/ -> table"""
    from benchmarks.harness import machine_line, print_table
    from spacy_sapbert.io.terminal import msg

    docs = read_entities(documents, label)
    if len(docs) < 2:
        msg.fail("Expected two documents with mentions: the first warms up", exits=1)
    workers = {BEFORE: (before, before_kb or kb)} if before else {}
    workers[OURS] = (sys.executable, kb)
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in workers}
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        DocBin(docs=docs).to_disk(folder / DOCUMENTS)
        DocBin(docs=choose_singles(docs)).to_disk(folder / SINGLES)
        for number in range(rounds):
            for name, (python, its_kb) in workers.items():
                msg.info(f"Round {number + 1} of {rounds}: {name}")
                results[name].append(run_side(python, folder, its_kb))
    sides = {
        name: {
            key: statistics.median(r["figures"][key] for r in runs) for key in FIGURES
        }
        for name, runs in results.items()
    }
    cuis = {name: runs[-1]["cuis"] for name, runs in results.items()}
    msg.text(f"{len(docs):,} documents; median of {rounds}; {machine_line()}")
    print_table(["", *sides, "Ours, times as good"], format_figures(sides))
    if before:
        other = sum(map(ne, cuis[BEFORE], cuis[OURS]))
        msg.text(f"{other:,} of {len(cuis[OURS]):,} mentions have another CUI")


if __name__ == "__main__":
    if sys.argv[1:2] == [SIDE]:
        folder, kb, started, output = sys.argv[2:]
        measured = measure(Path(folder), kb, float(started))
        Path(output).write_text(json.dumps(measured), "utf8")
    else:
        from benchmarks.harness import run_cli

        run_cli(main)
