"""Vocabulary → concepts → pairs → knowledge base → linked texts: time and peak memory.

python -m benchmarks.main_job DATA/open-rrf --encoder models/minilm --out /tmp/job
    --texts DATA/eval-text/NCBIdevelopset_corpus.txt.gz
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import typer
from wasabi import msg

from benchmarks.machine import machine_line
from spacy_sapbert.kb.manifest import read_meta
from spacy_sapbert.system.reading import read_lines
from spacy_sapbert.vocabularies.concepts import read_concepts


def run_step(command: list[str]) -> tuple[float, float]:
    """Run a command and measure it from outside.

    command (list[str]): Its words, after `python`.
    RETURNS (tuple[float, float]): Seconds, and peak memory in MB.
    """
    started = time.monotonic()
    process = subprocess.Popen([sys.executable, *command])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        msg.fail(f"Stopped: {' '.join(command)}", exits=1)
    return time.monotonic() - started, usage.ru_maxrss / 1024


def pubtator_texts(path: Path) -> Iterator[dict[str, str]]:
    """Read titles and abstracts of a PubTator file.

    path (Path): The file, plain or `.gz`.
    YIELDS (dict[str, str]): `id` and `text`.
    """
    title = ""
    for _, line in read_lines(path):
        number, _, rest = line.partition("|")
        kind, _, text = rest.partition("|")
        if kind == "t":
            title = text
        elif kind == "a":
            yield {"id": number, "text": f"{title} {text}"}


def count_concepts(path: Path) -> str:
    """Say how many concepts and names a concepts.jsonl has."""
    names = [len(concept.aliases) for concept in read_concepts(path)]
    return f"{len(names):,} concepts, {sum(names):,} names"


def count_entities(path: Path) -> str:
    """Say how many documents and entities a linked.jsonl has."""
    found = [len(json.loads(line)["entities"]) for _, line in read_lines(path)]
    return f"{len(found):,} documents, {sum(found):,} entities"


def main(
    vocabulary: Path = typer.Argument(..., help="Folder with MRCONSO."),
    encoder: str = typer.Option(..., help="Folder or hub id."),
    out: Path = typer.Option(..., help="Folder for what is made."),
    texts: Path | None = typer.Option(None, help="PubTator file to link."),
    options: str = typer.Option("", help="More options of `spacy sapbert concepts`."),
    pooling: str = typer.Option("mean", help="Of the encoder."),
) -> None:
    """vocabulary + encoder -> table of counts, seconds and peak memory"""
    out.mkdir(parents=True, exist_ok=True)
    concepts, pairs, kb = out / "concepts.jsonl", out / "pairs.tsv", out / "kb"
    rows: list[tuple[str, str, str, str]] = []

    def step(name: str, command: list[str], makes: Callable[[], str]) -> None:
        seconds, megabytes = run_step(command)
        rows.append((name, makes(), f"{seconds:.1f} s", f"{megabytes:,.0f} MB"))

    sapbert = ["-m", "spacy", "sapbert"]
    step(
        "concepts",
        [*sapbert, "concepts", str(vocabulary), "--output", str(concepts)]
        + ["--quiet", *options.split()],
        lambda: count_concepts(concepts),
    )
    step(
        "pairs",
        ["-m", "training", "pairs", str(concepts), str(pairs), "--quiet"],
        lambda: f"{sum(1 for _ in read_lines(pairs)):,} pairs",
    )
    step(
        "kb",
        [*sapbert, "kb", "build", str(concepts), str(kb), "--encoder", encoder]
        + ["--pooling", pooling, "--force", "--quiet"],
        lambda: f"{read_meta(kb)['counts']['rows']:,} rows",
    )
    if texts is not None:
        documents, linked = out / "documents.jsonl", out / "linked.jsonl"
        lines = [json.dumps(document) for document in pubtator_texts(texts)]
        documents.write_text("\n".join(lines) + "\n", "utf8")
        step(
            "link",
            [*sapbert, "link", str(documents), "--kb", str(kb), "--force"]
            + ["--output", str(linked), "--quiet"],
            lambda: count_entities(linked),
        )
    msg.text(machine_line())
    msg.table(rows, header=("Step", "Makes", "Time", "Peak memory"), divider=True)


if __name__ == "__main__":
    typer.run(main)
