"""This linker, scispaCy's and an older version on the same documents, in one table.

Each links the gold mentions of the documents in processes that take turns, with one
core and with two:

    python -m benchmarks.linking CDR_DevelopmentSet.PubTator.txt.gz --kb models/medic
        --label Disease --texts CDR_TrainingSet.PubTator.txt.gz
        --scispacy models/scispacy --page docs/speed.md

`--scispacy` is a folder, in which an environment with scispaCy, its index of the
concepts, and an environment with the light installation of this checkout and hnswlib
are made once: ours is then measured in the latter. `--before` is the interpreter of an
environment with another version of this package.

With texts, each side finds mentions by the names of the vocabulary before it links:
`sapbert_mentions`, and in scispaCy's environment spaCy's `entity_ruler`.
"""

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
import venv
import warnings
from collections.abc import Sequence
from operator import ne
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import spacy
import typer
from spacy.tokens import Doc, DocBin

from benchmarks import linking_side
from benchmarks.harness import machine_line, run_cli
from benchmarks.linking_side import (
    DOCUMENTS,
    OURS,
    SCISPACY,
    SINGLES,
    TEXTS,
    WARM_UP,
)
from docs.generate import write_parts
from spacy_sapbert import KnowledgeBase, load_kb
from spacy_sapbert.evaluation.gold_mentions import Resolve, make_resolver
from spacy_sapbert.evaluation.rankers import kb_lookup
from spacy_sapbert.formats.gold import GoldMention
from spacy_sapbert.formats.gold_docs import GOLD, make_gold, read_docs
from spacy_sapbert.io.progress import format_count
from spacy_sapbert.io.reading import file_digest
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import write_atomically
from training.data.options import format_markdown

BEFORE = "before"
CHECKOUT = Path(__file__).parents[1]
MOST_SINGLES = 500  # mentions linked one by one
# It builds an index with float16 in sparse arrays, which scipy had until 1.10.
OF_SCISPACY = ("scispacy==0.6.2", "spacy==3.8.18", "scipy<1.11", "numpy<2")
# key: title, format, and whether higher is better
FIGURES: dict[str, tuple[str, str, bool]] = {
    "imports": ("Start and imports", "{:.2f} s", False),
    "load": ("Load", "{:.2f} s", False),
    "first": ("First document", "{:.0f} ms", False),
    "cold": ("Mentions a second, first pass", "{:,.0f}", True),
    "warm": ("Mentions a second, again", "{:,.0f}", True),
    "documents": ("Documents a second, with detection", "{:,.0f}", True),
    "other_median": ("One mention that is not a name, median", "{:.2f} ms", False),
    "other_95": ("… 95 % within", "{:.2f} ms", False),
    "name_median": ("One mention that is a name, median", "{:.2f} ms", False),
    "name_95": ("… 95 % within", "{:.2f} ms", False),
    "megabytes": ("Peak memory", "{:,.0f} MB", False),
    "right": ("First candidate right", "{:.3f}", True),
    "linked": ("Mentions with an answer", "{:.1%}", True),
    "precision": ("Answers that are right", "{:.3f}", True),
}
Figures = dict[str, float]


class Worker(NamedTuple):
    """The interpreter of a side, its kind and the arguments with which it opens."""

    python: Path
    kind: str
    settings: dict[str, str]


class Entities(NamedTuple):
    """The documents with their entities, and the concepts of these.

    Attributes:
        concepts: For each part of a composite mention those that are right; empty =
            the knowledge base has none, or nobody said which it is.
    """

    docs: list[Doc]
    concepts: list[list[frozenset[str]]]


def make_environment(folder: Path, packages: Sequence[str], *options: str) -> Path:
    """Install packages into an environment; return its interpreter."""
    python = folder / "bin" / "python"
    if not python.exists():
        msg.info(f"Make an environment in {folder}")
        venv.create(folder, with_pip=True)
    command = [str(python), "-m", "pip", "install", "-q", *options, *packages]
    subprocess.run(command, check=True)
    return python


def make_workers(folder: Path, kb: KnowledgeBase, ours: Worker) -> dict[str, Worker]:
    """Return scispaCy's side and ours in a light installation; the index is made too.

    What is there is used again, except for this package.
    """
    theirs = make_environment(folder / "scispacy", OF_SCISPACY)
    constraints = os.fspath(CHECKOUT / "constraints.txt")
    light = make_environment(
        folder / "light", [f"{CHECKOUT}[hnsw]"], "--no-compile", "-c", constraints
    )
    entities = folder.absolute() / "entities.jsonl"
    write_entities(entities, kb)
    index = entities.with_name(f"index-{file_digest(entities)[:16]}")
    settings = {"entities": os.fspath(entities), "index": os.fspath(index)}
    scispacy = Worker(theirs.absolute(), SCISPACY, settings)
    if not index.exists():
        msg.info("Build scispaCy's index, which takes minutes")
        partial = index.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        new = {**settings, "index": os.fspath(partial)}
        code = f"import linking_side as side; side.open_scispacy(**{new})"
        command = [str(scispacy.python), "-c", code]
        subprocess.run(command, check=True, cwd=Path(__file__).parent)
        partial.rename(index)
    return {SCISPACY: scispacy, OURS: ours._replace(python=light.absolute())}


def write_entities(path: Path, kb: KnowledgeBase) -> None:
    """Write the concepts as JSON lines of scispacy.linking_utils.Entity."""
    with write_atomically(path) as file:
        for concept in kb.concepts():
            entity = {
                "concept_id": concept.cui,
                "canonical_name": concept.name,
                "aliases": concept.aliases[1:],
                "types": concept.types,
                "definition": concept.definition,
            }
            file.write(json.dumps(entity, ensure_ascii=False).encode() + b"\n")


def run_side(worker: Worker, folder: Path, cores: Sequence[int]) -> dict[str, Any]:
    """Run `measure` in a new process, which does not import this checkout."""
    result = folder / "result.json"
    code = os.fspath(Path(linking_side.__file__).absolute())
    started = time.monotonic()
    arguments = [worker.kind, json.dumps(worker.settings), str(result), str(started)]
    subprocess.run(
        [os.fspath(worker.python), "-I", code, *arguments],
        check=True,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": str(len(cores))},
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    return dict(json.loads(result.read_text("utf8")))


def list_docs(path: Path) -> list[Doc]:
    """Read annotated documents, without a warning of mentions that are no entities."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return [doc for _, doc in read_docs(path, spacy.blank("en"))]


def read_entities(path: Path, labels: Sequence[str], resolve: Resolve) -> Entities:
    """Read annotated documents that have entities with these labels; none = all."""
    docs = list_docs(path)
    golds: list[dict[tuple[int, int], GoldMention]] = []
    for doc in docs:
        doc.set_ents([ent for ent in doc.ents if not labels or ent.label_ in labels])
        gold = make_gold(doc, spans_key=GOLD)
        golds.append({(m.start, m.end): m for m in gold.mentions})
    concepts = [
        resolve(mentions[ent.start_char, ent.end_char])
        for doc, mentions in zip(docs, golds, strict=True)
        for ent in doc.ents
    ]
    return Entities([doc for doc in docs if doc.ents], concepts)


def choose_singles(docs: Sequence[Doc], names: set[str]) -> dict[str, list[Doc]]:
    """Return random mentions with distinct texts, each as a document of its own.

    Those that are names, but for case, and others.
    """
    distinct = {ent.text: ent for doc in docs for ent in doc.ents}
    chosen: dict[str, list[Doc]] = {}
    for key in SINGLES:
        texts = [t for t in distinct if (t.lower() in names) == (key == "name")]
        count = min(MOST_SINGLES + WARM_UP, len(texts))
        some = random.Random(0).sample(texts, count)
        chosen[key] = [distinct[text].as_doc() for text in some]
    return chosen


def write_input(folder: Path, entities: Entities, kb: KnowledgeBase) -> None:
    """Write what all sides read."""
    DocBin(docs=entities.docs).to_disk(folder / DOCUMENTS)
    names = {name.lower() for concept in kb.concepts() for name in concept.aliases}
    for key, docs in choose_singles(entities.docs, names).items():
        DocBin(docs=docs).to_disk(folder / SINGLES[key])


def score(answers: Sequence[tuple[str | None, bool]], entities: Entities) -> Figures:
    """Return the shares of right first candidates, of answers, and of right answers.

    Composite mentions, and those without a concept in the knowledge base, do not count
    for what is right.
    """
    judged = [
        (cui in concepts[0], is_answer)
        for (cui, is_answer), concepts in zip(answers, entities.concepts, strict=True)
        if len(concepts) == 1 and concepts[0]
    ]
    right = [is_right for is_right, is_answer in judged if is_answer]
    return {
        "right": statistics.fmean(is_right for is_right, _ in judged),
        "linked": statistics.fmean(is_answer for _, is_answer in answers),
        "precision": statistics.fmean(right) if right else 0.0,
    }


def compare_sides(sides: dict[str, Figures]) -> list[list[str]]:
    """Return rows: figures of each side, and how many times as good ours is."""
    others = [name for name in sides if name != OURS]
    table = []
    for key, (title, form, higher_is_better) in FIGURES.items():
        if key not in sides[OURS]:
            continue
        row = [title, *(form.format(figures[key]) for figures in sides.values())]
        for other in others:
            good, bad = sides[OURS][key], sides[other][key]
            if not higher_is_better:
                good, bad = bad, good
            row.append(f"{good / bad:.2f} ×" if bad else "–")
        table.append(row)
    return table


def make_table(results: dict[int, dict[str, Figures]]) -> list[str]:
    """Return a table in Markdown for each number of cores, with a line before it."""
    lines: list[str] = []
    for cores, sides in results.items():
        others = [f"times as good as {name}" for name in sides if name != OURS]
        rows = compare_sides(sides)
        lines += ["", f"With {format_count(cores, 'core')}:", ""]
        lines += format_markdown(["", *sides, *others], rows)
    return lines


def main(
    documents: Path = typer.Argument(..., help="Annotated documents."),
    kb: Path = typer.Option(..., help="Folder of our knowledge base."),
    before: Path | None = typer.Option(None, help="Another interpreter, measured too."),
    before_kb: Path | None = typer.Option(
        None, help="Its knowledge base, if it cannot read ours. [--kb]"
    ),
    scispacy: Path | None = typer.Option(
        None, help="Folder for environments and index: scispaCy is measured too."
    ),
    texts: list[Path] = typer.Option(
        [], help="Further documents, linked with detection; repeatable."
    ),
    label: list[str] = typer.Option([], help="Mentions to link; repeatable. [all]"),
    cores: list[int] = typer.Option([1, 2], min=1, help="Of each side; repeatable."),
    rounds: int = typer.Option(3, min=1, help="Measurements; the medians count."),
    page: Path | None = typer.Option(
        None, help='Page whose part "linking" becomes the table.'
    ),
) -> None:
    """annotated documents + kb/ -> table"""
    opened = load_kb(kb)
    entities = read_entities(documents, label, make_resolver(kb_lookup(opened), {}))
    if len(entities.docs) < 2:
        msg.fail("Expected two documents with mentions: the first warms up", exits=1)
    ours = Worker(Path(sys.executable), OURS, {"kb": os.fspath(kb.absolute())})
    workers: dict[str, Worker] = {}
    if before:
        its_kb = {"kb": os.fspath((before_kb or kb).absolute())}
        workers[BEFORE] = Worker(before.absolute(), OURS, its_kb)
    workers |= make_workers(scispacy, opened, ours) if scispacy else {OURS: ours}
    usable = sorted(os.sched_getaffinity(0))
    results: dict[int, dict[str, Figures]] = {}
    answers: dict[str, list[tuple[str | None, bool]]] = {}
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_input(folder, entities, opened)
        plain = [doc.text for doc in entities.docs]
        plain += [doc.text for path in texts for doc in list_docs(path)]
        (folder / TEXTS).write_text(json.dumps(plain), "utf8")
        for count in cores:
            measured: dict[str, list[Figures]] = {name: [] for name in workers}
            for number in range(rounds):
                for name, worker in workers.items():
                    turn = f"round {number + 1} of {rounds}: {name}"
                    msg.info(f"{format_count(count, 'core')}, {turn}")
                    result = run_side(worker, folder, usable[:count])
                    measured[name].append(result["figures"])
                    answers[name] = result["answers"]
            results[count] = {
                name: {
                    key: statistics.median(figures[key] for figures in runs)
                    for key in runs[0]
                }
                | score(answers[name], entities)
                for name, runs in measured.items()
            }
    described = (
        f"{len(entities.docs):,} documents with {len(entities.concepts):,} mentions, "
        f"{len(plain):,} texts with detection; median of {rounds}; {machine_line()}"
    )
    lines = [described, *make_table(results)]
    typer.echo("\n".join(lines))
    if before:
        firsts = ([cui for cui, _ in answers[name]] for name in (BEFORE, OURS))
        other = sum(map(ne, *firsts))
        count = len(entities.concepts)
        msg.text(f"{other:,} of {count:,} mentions have another first candidate")
    if page:
        written = write_parts(page.read_text("utf8"), {"linking": "\n".join(lines)})
        page.write_text(written, "utf8")


if __name__ == "__main__":
    run_cli(main)
