"""`python -m benchmarks.detection`: which mentions the names of a vocabulary find."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import spacy
import typer

from benchmarks.gold_docs import GOLD, read_gold_docs
from benchmarks.harness import machine_line, print_table, run_cli
from spacy_sapbert.pipeline.stop_list import read_stop_names

HEADER = ("sapbert_mentions", "found", "P", "R", "F", "tokens/s")


def score(right: int, found: int, gold: int) -> list[str]:
    """Return precision, recall and F."""
    values = (right / max(found, 1), right / max(gold, 1), 2 * right / (found + gold))
    return [f"{value:.3f}" for value in values]


def main(
    kb: Path = typer.Argument(..., help="Folder of the knowledge base."),
    corpus: Path = typer.Argument(..., help="PubTator file."),
    labels: str = typer.Option("", help="Labels of the gold mentions: a,b. [all]"),
    stop_names: Path | None = typer.Option(
        None, help="From `spacy sapbert stop-names`. [only as by default]"
    ),
) -> None:
    """kb/ + annotated documents -> precision, recall and F of exact mentions, speed

    Example: python -m benchmarks.detection models/kb dev.txt --labels Disease
    """
    kept = {label for label in labels.split(",") if label}
    blank = spacy.blank("en")
    docs = [doc for doc, _ in read_gold_docs(corpus, blank)]
    golds = [
        {
            (span.start_char, span.end_char)
            for span in doc.spans[GOLD]
            if not kept or span.label_ in kept
        }
        for doc in docs
    ]
    lists: dict[str, list[str] | None] = {"": None}
    if stop_names is not None:
        lists["with the list"] = read_stop_names(stop_names)
    rows: list[tuple[str, ...]] = []
    for name, names in lists.items():
        for short_forms in (False, True):
            config: dict[str, Any] = {"kb": str(kb), "short_forms": short_forms}
            nlp = spacy.blank("en")
            detector: Any = nlp.add_pipe(
                "sapbert_mentions", config={**config, "stop_names": names}
            )
            detector.initialize()
            texts = [nlp.make_doc(doc.text) for doc in docs]
            start = time.process_time()
            found = [detector(text) for text in texts]
            seconds = time.process_time() - start
            counts: Counter[str] = Counter()
            for doc, gold in zip(found, golds, strict=True):
                places = {(ent.start_char, ent.end_char) for ent in doc.ents}
                counts.update(
                    right=len(places & gold), found=len(places), gold=len(gold)
                )
            title = ", ".join(filter(None, (name, "short forms" * short_forms)))
            speed = f"{sum(map(len, texts)) / seconds:,.0f}"
            rows.append(
                (title or "default", str(counts["found"]), *score(**counts), speed)
            )
    typer.echo(f"{corpus.name}: {sum(map(len, golds)):,} mentions")
    print_table(HEADER, rows)
    typer.echo(machine_line())


if __name__ == "__main__":
    run_cli(main)
