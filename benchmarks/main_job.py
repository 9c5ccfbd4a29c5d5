"""Vocabulary → concepts → pairs → knowledge base → linked texts: time and memory."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import typer
from wasabi import msg

from benchmarks.harness import machine_line, measure_process, run_cli
from spacy_sapbert.kb.manifest import read_manifest
from spacy_sapbert.system.reading import read_lines
from spacy_sapbert.vocabularies.concepts import read_concepts


def iter_texts(path: Path) -> Iterator[dict[str, str]]:
    """Yield `id` and `text` (title and abstract) of a PubTator file."""
    title = ""
    for _, line in read_lines(path):
        number, _, rest = line.partition("|")
        kind, _, text = rest.partition("|")
        if kind == "t":
            title = text
        elif kind == "a":
            yield {"id": number, "text": f"{title} {text}"}


def count_concepts(path: Path) -> str:
    names = [len(concept.aliases) for concept in read_concepts(path)]
    return f"{len(names):,} concepts, {sum(names):,} names"


def count_entities(path: Path) -> str:
    entities = [len(json.loads(line)["entities"]) for _, line in read_lines(path)]
    return f"{len(entities):,} documents, {sum(entities):,} entities"


def main(
    vocabulary: Path = typer.Argument(..., help="Folder with MRCONSO."),
    encoder: str = typer.Option(..., help="Folder or hub id."),
    out: Path = typer.Option(..., help="Folder for all outputs."),
    texts: Path | None = typer.Option(None, help="PubTator file to link."),
    options: str = typer.Option("", help="More options of `spacy sapbert concepts`."),
    pooling: str = typer.Option("mean", help="Of the encoder."),
) -> None:
    """vocabulary + encoder -> table of counts, seconds and peak memory

    Example: python -m benchmarks.main_job $DATA/open-rrf --encoder models/minilm --out
    results/job --texts $DATA/eval-text/NCBIdevelopset_corpus.txt.gz
    """
    out.mkdir(parents=True, exist_ok=True)
    concepts, pairs, kb = out / "concepts.jsonl", out / "pairs.tsv", out / "kb"
    rows: list[tuple[str, str, str, str]] = []

    def step(name: str, command: list[str], count: Callable[[], str]) -> None:
        seconds, megabytes = measure_process(["-m", *command, "--quiet"])
        rows.append((name, count(), f"{seconds:.1f} s", f"{megabytes:,.0f} MB"))

    sapbert = ["spacy", "sapbert"]
    read = ["concepts", str(vocabulary), "--output", str(concepts), *options.split()]
    step("concepts", [*sapbert, *read], lambda: count_concepts(concepts))
    step(
        "pairs",
        ["training", "pairs", str(concepts), str(pairs)],
        lambda: f"{sum(1 for _ in read_lines(pairs)):,} pairs",
    )
    build = ["kb", "build", str(concepts), str(kb), "--encoder", encoder]
    step(
        "kb",
        [*sapbert, *build, "--pooling", pooling, "--force"],
        lambda: f"{read_manifest(kb).counts.rows:,} rows",
    )
    if texts is not None:
        documents, linked = out / "documents.jsonl", out / "linked.jsonl"
        lines = [json.dumps(document) for document in iter_texts(texts)]
        documents.write_text("\n".join(lines) + "\n", "utf8")
        link = ["link", str(documents), "--kb", str(kb), "--force"]
        step(
            "link",
            [*sapbert, *link, "--output", str(linked)],
            lambda: count_entities(linked),
        )
    msg.text(machine_line())
    msg.table(rows, header=("Step", "Makes", "Time", "Peak memory"), divider=True)


if __name__ == "__main__":
    run_cli(main)
