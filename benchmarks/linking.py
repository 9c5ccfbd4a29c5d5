"""Documents + a dictionary → scispaCy's linker and ours, side by side in one table.

    python -m benchmarks.linking CDR_DevelopmentSet.PubTator.txt.gz assets/medic.jsonl
    --out results/linking-medic --encoder models/minilm --pooling mean --label Disease
    --scispacy-python .venv-scispacy/bin/python

Both link the gold mentions of the same documents with the same dictionary through
`nlp.pipe`, on the same cores, each in processes of its own that take turns. scispaCy
needs an environment of its own, since it takes no numpy 2 and builds its index with no
newer SciPy:

    python3.11 -m venv .venv-scispacy
    .venv-scispacy/bin/pip install scispacy==0.6.2 nmslib-metabrainz==2.1.3
        "spacy<3.8" "numpy<2" "scipy<1.11" click

For OpenVINO on our side give `spacy sapbert kb export OUT/kb` after the first run, then
the same command with `--config encoder.@architectures=spacy-sapbert.OpenVinoEncoder.v1
--config encoder.precision=bf16`.

scispaCy runs as its `EntityLinker` does, but for the dictionary: its own index, made of
it by its own `create_tfidf_ann_index`; 30 neighbours, similarity above 0.7; concepts
without a definition allowed, since no dictionary here has any.
"""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer
from wasabi import msg

from benchmarks.linking_inputs import (
    Corpus,
    choose_singles,
    describe_doc,
    parse_config,
    read_corpus,
)
from benchmarks.linking_judging import judge_side
from benchmarks.linking_measure import WARM_UP
from benchmarks.linking_runs import (
    OURS,
    SCISPACY,
    Worker,
    make_workers,
    prepare_ours,
    prepare_scispacy,
    run_worker,
)
from benchmarks.machine import describe_machine, machine_line
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.gold_mentions import Lookup, read_aliases
from spacy_sapbert.evaluation.rankers import read_dictionary
from spacy_sapbert.formats.registry import READERS
from spacy_sapbert.system.reading import file_digest
from spacy_sapbert.system.writing import write_json
from spacy_sapbert.vocabularies.concepts import read_concepts

# its defaults, but for what the text above says
LINKER = {"k": 30, "filter_for_definitions": False, "resolve_abbreviations": False}
# key: title, how it is written, and whether more of it is better
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
    "tied": ("Mentions with a tie", "{:.1%}", False),
    "linked": ("Mentions with an answer", "{:.1%}", True),
}


def measure_round(
    worker: Worker, documents: Sequence[Any], singles: Sequence[Any], *, threads: int
) -> tuple[dict[str, float], dict[str, Any]]:
    """Measure one side once; single mentions in a process that knows none of them yet.

    worker (Worker): The side.
    documents (Sequence[Any]): From `describe_doc`.
    singles (Sequence[Any]): From `choose_singles`.
    threads (int): How many cores it gets.
    RETURNS (tuple[dict[str, float], dict[str, Any]]): The figures that take time or
        memory, and all that `measure_side` gave.
    """
    piped = run_worker(worker, documents, threads=threads)
    alone = run_worker(worker, documents[:1], singles=singles, threads=threads)
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


def compare_sides(
    workers: dict[str, Worker],
    corpus: Corpus,
    lookup: Lookup,
    aliases: dict[str, str],
    *,
    rounds: int,
    singles: int,
    threads: int,
    progress: bool = False,
) -> dict[str, Any]:
    """Measure all sides in turn, and judge them.

    workers (dict[str, Worker]): The sides, by name.
    corpus (Corpus): The documents.
    lookup (Lookup): See `judge_side`.
    aliases (dict[str, str]): Ids that another one stands for.
    rounds (int): How often each is measured.
    singles (int): Mentions that are linked one a call.
    threads (int): Cores of each.
    progress (bool): Say what is being measured.
    RETURNS (dict[str, Any]): For each side the median `figures`, those of all `rounds`,
        its `versions`, and what else `judge_side` tells.
    """
    documents = [describe_doc(doc, doc.ents) for doc in corpus.docs]
    drawn = choose_singles(corpus.docs, singles + WARM_UP)
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in workers}
    last: dict[str, Any] = {}
    for number in range(rounds):
        for name, worker in workers.items():
            if progress:
                msg.info(f"Round {number + 1} of {rounds}: {name}")
            figures, last[name] = measure_round(
                worker, documents, drawn, threads=threads
            )
            measured[name].append(figures)
    sides: dict[str, Any] = {}
    for name, each in measured.items():
        judged = judge_side(corpus, last[name]["answers"], lookup, aliases)
        medians = {
            key: statistics.median(figures[key] for figures in each) for key in each[0]
        }
        more = {key: judged.pop(key) for key in [*judged] if key in FIGURES}
        sides[name] = {
            "figures": {**medians, **more},
            **judged,
            "rounds": each,
            "versions": last[name]["versions"],
        }
    return sides


def list_facts(sides: dict[str, Any], counts: dict[str, int]) -> list[str]:
    """Say what was measured, in lines to stand above the table.

    sides (dict[str, Any]): From `compare_sides`.
    counts (dict[str, int]): Of documents, entities, mentions, concepts and names.
    RETURNS (list[str]): The lines.
    """
    lines = []
    for name, side in sides.items():
        versions = ", ".join(f"{key} {v}" for key, v in side["versions"].items())
        lines.append(f"{name}: {versions}")
    side = sides[OURS]  # both were judged on the same mentions
    lines.append(
        f"{counts['documents']:,} documents, {counts['entities']:,} of "
        f"{counts['mentions']:,} mentions on token boundaries, {side['judged']:,} with "
        f"an id, {side['coverage']:.1%} of them in the dictionary of "
        f"{counts['concepts']:,} concepts and {counts['names']:,} distinct names; "
        f"median of {len(side['rounds'])}"
    )
    return lines


def list_table(sides: dict[str, Any]) -> list[tuple[str, ...]]:
    """Lay the figures out.

    sides (dict[str, Any]): From `compare_sides`.
    RETURNS (list[tuple[str, ...]]): A header, and a row for each figure; with both
        sides, the last column says how many times as good ours is.
    """
    table = [("", *sides, *(["Ours, times as good"] if len(sides) > 1 else []))]
    for key, (title, form, more_is_better) in FIGURES.items():
        values = {name: side["figures"][key] for name, side in sides.items()}
        row = [title, *(form.format(value) for value in values.values())]
        if len(sides) > 1:
            good, bad = (OURS, SCISPACY) if more_is_better else (SCISPACY, OURS)
            row.append(f"{values[good] / values[bad]:.2f}×" if values[bad] else "–")
        table.append(tuple(row))
    return table


def main(
    documents: Path = typer.Argument(..., help="Annotated documents."),
    concepts: Path = typer.Argument(..., help="concepts.jsonl"),
    out: Path = typer.Option(..., help="Folder for both indexes, made once."),
    encoder: str = typer.Option(..., help="Of our knowledge base: folder or hub id."),
    pooling: str = typer.Option("mean", help="Of the encoder."),
    precision: str = typer.Option("float32", help="For building: float32 or bf16."),
    scispacy_python: Path | None = typer.Option(
        None, help="Interpreter of scispaCy's environment. [ours is measured alone]"
    ),
    threshold: float = typer.Option(0.7, help="Of scispaCy, which has the same."),
    config: list[str] = typer.Option(
        [], help="KEY=VALUE of our linker, like encoder.precision=bf16; repeatable."
    ),
    format: str = typer.Option("pubtator", help=f"One of {', '.join(READERS)}."),
    label: list[str] = typer.Option([], help="Mentions to take; repeatable. [all]"),
    prefix: str = typer.Option(
        "", help="Put before ids without a colon, e.g. MESH:", show_default=False
    ),
    aliases: Path | None = typer.Option(
        None, help="Lines: an id, a tab, the id that it is an alias of."
    ),
    limit: int = typer.Option(0, min=0, help="First documents; 0 = all."),
    singles: int = typer.Option(500, min=1, help="Mentions linked one a call."),
    rounds: int = typer.Option(3, min=1, help="Of measuring; the medians count."),
    threads: int = typer.Option(2, min=1, help="Cores of either side."),
    output: Path | None = typer.Option(None, help="results.json to write."),
) -> None:
    """annotated documents + concepts.jsonl -> table, results.json"""
    try:
        known = read_aliases(aliases) if aliases else {}
        changed = parse_config(config)
        corpus = read_corpus(
            documents, format=format, labels=label, prefix=prefix, limit=limit
        )
        build = ["--encoder", encoder, "--pooling", pooling, "--precision", precision]
        prepare_ours(out, concepts, build)
        theirs = {**LINKER, "threshold": threshold}
        python = str(scispacy_python) if scispacy_python else None
        if python:
            prepare_scispacy(out, concepts, python)
        workers = make_workers(out.absolute(), changed, python, theirs)
        dictionary = read_dictionary(read_concepts(concepts))
        sides = compare_sides(
            workers,
            corpus,
            dictionary.lookup,
            known,
            rounds=rounds,
            singles=singles,
            threads=threads,
            progress=True,
        )
        counts = {
            "documents": len(corpus.docs),
            "entities": sum(len(doc.ents) for doc in corpus.docs),
            "mentions": corpus.mentions,
            "concepts": len(set(dictionary.ids.values())),
            "names": len(dictionary.names),
        }
        if output:
            data = {
                "machine": {**describe_machine(), "threads": threads},
                "settings": {"rounds": rounds, "singles": singles, "labels": label}
                | {"build": build, OURS: changed, SCISPACY: theirs},
                "documents": {"file": documents.name, "sha256": file_digest(documents)},
                "dictionary": {"file": concepts.name, "sha256": file_digest(concepts)},
                "counts": counts,
                "sides": sides,
            }
            write_json(output, data)
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    msg.text(f"{machine_line()}; {threads} threads each")
    for line in list_facts(sides, counts):
        msg.text(line)
    header, *rows = list_table(sides)
    msg.table(rows, header=header, divider=True, aligns=("l", *"r" * len(header[1:])))
    if output:
        msg.good(f"Wrote {output}")


if __name__ == "__main__":
    typer.run(main)
