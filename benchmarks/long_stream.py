"""Memory over a long stream of short documents.

The documents are made of mentions of a file, in an order that never ends, so that the
words are finite: spaCy keeps each new word for ever, but for `nlp.memory_zone()`. With
`--new-words` each document has a word of its own; `--zone` puts each thousand documents
into a zone.

python -m benchmarks.long_stream models/kb mentions.tsv
"""

import os
import random
import time
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import spacy
import typer
from wasabi import msg

from benchmarks.machine import machine_line
from benchmarks.processes import read_memory
from spacy_sapbert.evaluation.gold_mentions import read_mentions

AT_ONCE = 1000  # documents in a zone
TOLD = (1_000, 10_000, 50_000, 100_000)


def make_texts(mentions: list[str], *, new_words: bool, seed: int) -> Iterator[str]:
    """Make short texts for ever.

    mentions (list[str]): What they speak of.
    new_words (bool): Put a word into each that no other has.
    seed (int): Of the choice.
    YIELDS (str): Texts of about twenty words.
    """
    chance, number = random.Random(seed), 0
    while True:
        first, second = chance.choices(mentions, k=2)
        number += 1
        extra = f" See record x{number}x." if new_words else ""
        yield f"The patient was treated for {first}, and had {second} before.{extra}"


def main(
    kb: Path = typer.Argument(..., help="Folder of the knowledge base."),
    mentions: Path = typer.Argument(..., help="Gold mentions."),
    documents: int = typer.Option(100_000, min=AT_ONCE, help="How many."),
    new_words: bool = typer.Option(False, "--new-words", help="A new word in each."),
    zone: bool = typer.Option(False, "--zone", help="Run in `nlp.memory_zone()`s."),
    seed: int = typer.Option(0, help="Of the texts."),
) -> None:
    """kb/ + mentions -> table of memory"""
    golds = [gold.mention for gold in read_mentions(mentions)]
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_mentions")
    nlp.add_pipe("sapbert_linker", config={"kb": str(kb)})
    texts = make_texts(list(dict.fromkeys(golds)), new_words=new_words, seed=seed)
    msg.text(machine_line())
    rows, done, found, start = [], 0, 0, time.perf_counter()
    while done < documents:
        with nlp.memory_zone() if zone else nullcontext():
            for doc in nlp.pipe(islice(texts, AT_ONCE)):
                found += len(doc.ents)
        done += AT_ONCE
        if done in TOLD:
            memory = read_memory(os.getpid())
            rows.append(
                (
                    f"{done:,}",
                    f"{found:,}",
                    f"{time.perf_counter() - start:,.0f} s",
                    f"{memory.get('Rss', 0) / 1024:,.1f} MB",
                    f"{memory.get('Anonymous', 0) / 1024:,.1f} MB",
                )
            )
    header = ("Documents", "Entities", "Time", "RSS", "without files")
    msg.table(rows, header=header, divider=True, aligns=("r",) * 5)


if __name__ == "__main__":
    typer.run(main)
