"""scispaCy's linker or an older version and ours on the same documents, in one table.

Both link the gold mentions of the documents through `nlp.pipe`, on the same cores, in
separate processes that take turns. scispaCy needs its own environment, because it
supports neither numpy 2 nor a newer SciPy:

    python3.11 -m venv .venv-scispacy
    .venv-scispacy/bin/pip install scispacy==0.6.2 nmslib-metabrainz==2.1.3
        "spacy<3.8" "numpy<2" "scipy<1.11" click

    python -m benchmarks.linking CDR_DevelopmentSet.PubTator.txt.gz assets/medic.jsonl
        --out results/linking-medic --encoder models/minilm --label Disease
        --scispacy-python .venv-scispacy/bin/python

With `--before PATH`, a checkout of an older version of this project links the same
documents with the same knowledge base in turns with this one:

    python -m benchmarks.linking CDR_DevelopmentSet.PubTator.txt.gz corpus/mesh.jsonl
        --out results/linking-mesh --kb models/kb --before ../old

For OpenVINO run `spacy sapbert kb export OUT/kb` after the first run, then the same
command with `--config encoder.@architectures=spacy-sapbert.OpenVinoEncoder.v1 --config
encoder.precision=bf16`.

scispaCy's `EntityLinker` has its default settings, with the index that its
`create_tfidf_ann_index` builds of the dictionary, except that concepts without a
definition are allowed, because no dictionary here has definitions.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import typer
from wasabi import msg

from benchmarks.gold_docs import (
    choose_singles,
    describe_doc,
    parse_config,
    read_corpus,
    score_links,
)
from benchmarks.harness import describe_machine, machine_line, print_table, run_cli
from benchmarks.linking_side import WARM_UP
from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.evaluation.gold_mentions import read_aliases
from spacy_sapbert.evaluation.rankers import read_dictionary
from spacy_sapbert.formats.registry import READERS
from spacy_sapbert.system.reading import file_digest
from spacy_sapbert.system.writing import write_atomically, write_json
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts

OURS, SCISPACY, BEFORE = "ours", "scispaCy", "before"
CODE = Path(__file__).parent
ENTITIES, INDEX, KB, MADE = "entities.jsonl", "scispacy", "kb", "made.json"
LINKER = {"k": 30, "filter_for_definitions": False, "resolve_abbreviations": False}
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
    "strict": ("Acc@1, a tie is wrong", "{:.3f}", True),
    "answered": ("Acc@1, first answer", "{:.3f}", True),
    "linked": ("Mentions with an answer", "{:.1%}", True),
}


class Worker(NamedTuple):
    """Interpreter, command of `linking_side` and settings of a side.

    checkout (Path | None): Of the version of this package to use. [this one]
    """

    python: str
    command: str
    settings: dict[str, Any]
    checkout: Path | None = None


def write_entities(path: Path, concepts: Iterable[Concept]) -> None:
    """Write concepts as JSON lines of scispaCy's `Entity`.

    SOURCE: scispacy.linking_utils.Entity.
    """
    with write_atomically(path) as file:
        for concept in concepts:
            entity = {
                "concept_id": concept.cui,
                "canonical_name": concept.name,
                "aliases": concept.aliases[1:],
                "types": concept.types,
                "definition": concept.definition,
            }
            file.write(json.dumps(entity, ensure_ascii=False).encode() + b"\n")


def check_made(out: Path, made: dict[str, Any]) -> None:
    """Check that a folder was made of the same inputs, or record them.

    RAISES (SapbertError): If it was made of something else.
    """
    path = out / MADE
    if not path.exists():
        write_json(path, made)
    before = json.loads(path.read_text("utf8"))
    for setting, value in made.items():
        if before.get(setting) != value:
            raise SapbertError(Errors.E733.format(folder=out, setting=setting))


def call(
    command: Sequence[str],
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> None:
    """Run a command; exit if it fails."""
    if subprocess.run(command, check=False, env=env, cwd=cwd).returncode:
        msg.fail(f"Stopped: {' '.join(command)}", exits=1)


@contextmanager
def isolate(checkout: Path | None = None) -> Iterator[dict[str, str]]:
    """Yield environment variables with which only `benchmarks` can be imported.

    With this whole checkout on its path, spaCy would find the entry points of this
    package in an environment that lacks its libraries.

    checkout (Path | None): Another checkout of this project, whose package can be
        imported too, with its own entry points in place of the installed ones.
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


@contextmanager
def use_cores(count: int) -> Iterator[None]:
    """Start processes on some cores only; their libraries use as many threads."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def make_workers(
    out: Path,
    concepts: Path,
    build: Sequence[str],
    config: dict[str, Any],
    python: str | None,
    linker: dict[str, Any],
    kb: Path | None = None,
    before: Path | None = None,
) -> dict[str, Worker]:
    """Build the indexes that are missing, and return the sides in order of the table.

    out (Path): Folder of the indexes.
    build (Sequence[str]): Options of `kb build`.
    config (dict[str, Any]): Of our linker, except its knowledge base.
    python (str | None): Interpreter with scispaCy; None = our side only.
    linker (dict[str, Any]): Keyword arguments of scispaCy's `EntityLinker`.
    kb (Path | None): An existing knowledge base, instead of one that is built.
    before (Path | None): Checkout of an older version of this project.
    RAISES (SapbertError): If the folder was made of another dictionary or encoder.
    """
    out.mkdir(parents=True, exist_ok=True)
    made: dict[str, Any] = {"concepts": file_digest(concepts)}
    check_made(out, made if kb else {**made, "build": [*build]})
    entities, index = (str(out / name) for name in (ENTITIES, INDEX))
    if kb is None:
        kb = out / KB
        if not kb.exists():
            command = ["-m", "spacy_sapbert", "kb", "build", str(concepts), str(kb)]
            call([sys.executable, *command, *build])
    ours = {"config": {**config, "kb": str(kb)}}
    workers: dict[str, Worker] = {}
    if before:
        workers[BEFORE] = Worker(sys.executable, "ours", ours, before)
    if python:
        if not (out / ENTITIES).exists():
            write_entities(out / ENTITIES, read_concepts(concepts))
        if not (out / INDEX).exists():
            with isolate() as env:
                module = ["-m", "benchmarks.linking_side"]
                call([python, *module, "build", entities, index], env)
        settings = {"linker": linker, "entities": entities, "index": index}
        workers[SCISPACY] = Worker(python, "scispacy", settings)
    return {**workers, OURS: Worker(sys.executable, "ours", ours)}


def run_worker(
    worker: Worker, documents: Sequence[Any], singles: Sequence[Any], threads: int
) -> dict[str, Any]:
    """Run `linking_side.measure_side` in a new process on some cores."""
    request = {
        "settings": worker.settings,
        "documents": documents,
        "singles": singles,
    }
    # With our interpreter, the working folder has the package and `benchmarks`.
    ours = worker.python == sys.executable and worker.checkout is None
    place = nullcontext() if ours else isolate(worker.checkout)
    with TemporaryDirectory() as folder, place as env:
        input, output = Path(folder) / "request.json", Path(folder) / "result.json"
        input.write_text(json.dumps(request), "utf8")
        command = [worker.python, "-m", "benchmarks.linking_side", worker.command]
        with use_cores(threads):
            started = ["--started", str(time.monotonic())]
            call([*command, str(input), str(output), *started], env)
        result: dict[str, Any] = json.loads(output.read_text("utf8"))
    return result


def measure_round(
    worker: Worker, documents: Sequence[Any], singles: Sequence[Any], threads: int
) -> tuple[dict[str, float], dict[str, Any]]:
    """Measure one side once, single mentions in another process with an empty cache.

    RETURNS (tuple[dict[str, float], dict[str, Any]]): Time and memory by the keys of
        `FIGURES`, and the result of `measure_side`.
    """
    piped = run_worker(worker, documents, [], threads)
    alone = run_worker(worker, documents[:1], singles, threads)
    mentions = sum(len(document["entities"]) for document in documents[1:])
    cold, warm = (mentions / seconds for seconds in piped["passes"])
    p50, p95 = np.percentile(alone["singles"], [50, 95])
    figures = {
        **{key: (piped[key] + alone[key]) / 2 for key in ("imports", "load")},
        "first": 1000 * (piped["first"] + alone["first"]) / 2,
        "cold": cold,
        "warm": warm,
        "p50": 1000 * float(p50),
        "p95": 1000 * float(p95),
        "megabytes": piped["megabytes"],
    }
    return figures, piped


def format_figures(sides: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return a header and a row for each figure, with our ratio to the other sides."""
    others = [name for name in sides if name != OURS]
    table = [("", *sides, *(f"Ours, times as good as {name}" for name in others))]
    for key, (title, form, higher_is_better) in FIGURES.items():
        values = {name: side["figures"][key] for name, side in sides.items()}
        row = [title, *(form.format(value) for value in values.values())]
        for other in others:
            good, bad = (OURS, other) if higher_is_better else (other, OURS)
            row.append(f"{values[good] / values[bad]:.2f}×" if values[bad] else "–")
        table.append(tuple(row))
    return table


def describe_first_cuis(before: Sequence[Any], ours: Sequence[Any]) -> str:
    """Return whether the first CUI of each mention is equal, in one line.

    before, ours (Sequence[Any]): `answers` of `measure_side`.
    """
    first = [
        [answers[0][0] if answers else None for doc in side for answers in doc]
        for side in (before, ours)
    ]
    other = sum(one != two for one, two in zip(*first, strict=True))
    count = f"{len(first[0]):,} mentions"
    if other:
        return f"{other:,} of {count} have another first CUI"
    return f"all {count} have the same first CUI"


def main(
    documents: Path = typer.Argument(..., help="Annotated documents."),
    concepts: Path = typer.Argument(..., help="concepts.jsonl"),
    out: Path = typer.Option(..., help="Folder for both indexes, built once."),
    encoder: str = typer.Option("", help="Of our knowledge base: folder or hub id."),
    pooling: str = typer.Option("mean", help="Of the encoder."),
    precision: str = typer.Option("float32", help="For building: float32 or bf16."),
    kb: Path | None = typer.Option(
        None, help="Existing knowledge base. [built of the concepts with `--encoder`]"
    ),
    before: Path | None = typer.Option(
        None, help="Checkout of an older version, measured too."
    ),
    scispacy_python: Path | None = typer.Option(
        None, help="Interpreter with scispaCy, measured too."
    ),
    threshold: float = typer.Option(0.7, help="Of scispaCy, as its default."),
    config: list[str] = typer.Option(
        [], help="KEY=VALUE of our linker, like encoder.precision=bf16; repeatable."
    ),
    format: str = typer.Option("pubtator", help=f"One of {', '.join(READERS)}."),
    label: list[str] = typer.Option([], help="Mentions to link; repeatable. [all]"),
    prefix: str = typer.Option(
        "", help="Added to ids without a colon, e.g. MESH:", show_default=False
    ),
    aliases: Path | None = typer.Option(
        None, help="Lines: an id, a tab, the id that it is an alias of."
    ),
    limit: int = typer.Option(0, min=0, help="First documents; 0 = all."),
    singles: int = typer.Option(500, min=1, help="Mentions linked one by one."),
    rounds: int = typer.Option(3, min=1, help="Measurements; the medians count."),
    threads: int = typer.Option(2, min=1, help="Cores of either side."),
    output: Path | None = typer.Option(None, help="results.json to write."),
) -> None:
    """annotated documents + concepts.jsonl -> table, results.json

    Example: python -m benchmarks.linking CDR_DevelopmentSet.PubTator.txt.gz
    assets/medic.jsonl --out results/linking-medic --encoder models/minilm --label
    Disease --scispacy-python .venv-scispacy/bin/python
    """
    if bool(encoder) == bool(kb):
        raise typer.BadParameter("expected one of --encoder and --kb")
    kb, before = (path and path.absolute() for path in (kb, before))
    known = read_aliases(aliases) if aliases else {}
    changed = parse_config(config)
    corpus = read_corpus(
        documents, format=format, labels=label, prefix=prefix, limit=limit
    )
    build = ["--encoder", encoder, "--pooling", pooling, "--precision", precision]
    python = str(scispacy_python) if scispacy_python else None
    linker = {**LINKER, "threshold": threshold}
    workers = make_workers(
        out.absolute(), concepts, build, changed, python, linker, kb, before
    )
    dictionary = read_dictionary(read_concepts(concepts))
    described = [describe_doc(doc, doc.ents) for doc in corpus.docs]
    chosen = choose_singles(corpus.docs, singles + WARM_UP)
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in workers}
    last: dict[str, Any] = {}
    for number in range(rounds):
        for name, worker in workers.items():
            msg.info(f"Round {number + 1} of {rounds}: {name}")
            figures, last[name] = measure_round(worker, described, chosen, threads)
            measured[name].append(figures)
    sides: dict[str, Any] = {}
    for name, each in measured.items():
        scores = score_links(corpus, last[name]["answers"], dictionary.lookup, known)
        medians = {key: statistics.median(f[key] for f in each) for key in each[0]}
        figures = {key: {**medians, **scores}[key] for key in FIGURES}
        counts = {key: scores[key] for key in ("coverage", "judged")}
        versions = last[name]["versions"]
        sides[name] = {"figures": figures, **counts, "rounds": each}
        sides[name]["versions"] = versions
        listed = ", ".join(f"{key} {v}" for key, v in versions.items())
        msg.text(f"{name}: {listed}")
    side, entities = sides[OURS], sum(len(doc.ents) for doc in corpus.docs)
    concept_count = len(set(dictionary.ids.values()))
    msg.text(
        f"{len(corpus.docs):,} documents, {entities:,} of {corpus.mentions:,} mentions "
        f"on token boundaries, {side['judged']:,} with an id, {side['coverage']:.1%} "
        f"of them in the dictionary of {concept_count:,} concepts and "
        f"{len(dictionary.names):,} distinct names; median of {rounds}"
    )
    msg.text(f"{machine_line()}; {threads} threads each")
    header, *rows = format_figures(sides)
    print_table(header, rows)
    if before:
        msg.text(describe_first_cuis(*(last[s]["answers"] for s in (BEFORE, OURS))))
    if output:
        data = {
            "machine": {**describe_machine(), "threads": threads},
            "settings": {"rounds": rounds, "singles": singles, "labels": label}
            | {"build": build, OURS: changed, SCISPACY: linker},
            "documents": {"file": documents.name, "sha256": file_digest(documents)},
            "dictionary": {"file": concepts.name, "sha256": file_digest(concepts)},
            "sides": sides,
        }
        write_json(output, data)
        msg.good(f"Wrote {output}")


if __name__ == "__main__":
    run_cli(main)
