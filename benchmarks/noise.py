"""Names as people write them → how many first answers of a knowledge base are right."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import typer

from benchmarks.gold_docs import read_gold_docs
from benchmarks.harness import machine_line, print_table, run_cli
from benchmarks.linking import LINKER, Worker, make_scispacy_worker, run_worker
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.order.names import make_mentions
from spacy_sapbert.kb.order.noise import (
    Noise,
    add_word,
    join_words,
    read_wrong,
    turn_words,
)

NAMES = 1500
SHORTEST = 5  # letters
LETTERS = "abcdefghijklmnopqrstuvwxyz"

Answered = tuple[str, set[str]]  # a mention, and the ids that are right


def misspell(name: str, random: Random) -> str:
    """Drop, add, change or swap a letter; all letters of the alphabet alike."""
    places = [number for number, letter in enumerate(name) if letter.isalpha()]
    if not places:
        return name
    place = random.choice(places)
    before, letter, after = name[:place], name[place], name[place + 1 :]
    return random.choice(
        [
            before + after,
            before + random.choice(LETTERS) + letter + after,
            before + random.choice(LETTERS) + after,
            before + after[:1] + letter + after[1:],
        ]
    )


def change_number(name: str, random: Random) -> str:
    """Return the English plural of a name, or the singular of a plural."""
    if name.endswith("s"):
        return name[:-1]
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def repeat(noise: Noise, times: int) -> Noise:
    """Return a noise that is made several times."""

    def disturb(name: str, random: Random) -> str:
        for _ in range(times):
            name = noise(name, random)
        return name

    return disturb


KINDS: dict[str, Noise] = {
    "as it is": lambda name, _: name,
    "one typing error": misspell,
    "two typing errors": repeat(misspell, 2),
    "three typing errors": repeat(misspell, 3),
    "one letter read wrong": read_wrong,
    "two letters read wrong": repeat(read_wrong, 2),
    "a word added": add_word,
    "another order": turn_words,
    "plural or singular": change_number,
    "joined or split": join_words,
}


def held_out_names(kb: KnowledgeBase, random: Random) -> list[Answered]:
    """Return names that no order was learned from, and their concepts."""
    learned = {mention.cui for mention in make_mentions(kb)} if kb.ranker else set()
    entries = kb.entries(random.sample(range(kb.rows), min(kb.rows, 20 * NAMES)))
    names = [
        (of_row[0].alias, {entry.cui for entry in of_row})
        for of_row in entries.values()
        if len(of_row[0].alias) >= SHORTEST
    ]
    rest = [name for name in names if name[1].isdisjoint(learned)]
    return (rest if len(rest) >= NAMES else names)[:NAMES]


def disturb_letters(text: str, share: float, random: Random) -> str:
    """Make a typing error at a share of the letters of a text."""
    for _ in range(sum(random.random() < share for _ in text)):
        text = misspell(text, random)
    return text


def read_mentions(kb: KnowledgeBase, path: Path, label: str) -> Iterator[Answered]:
    """Yield the mentions of annotated documents that have one concept of the kb."""
    import spacy

    for doc, golds in read_gold_docs(path, spacy.blank("en")):
        for span, gold in zip(doc.spans["gold"], golds, strict=True):
            if (label and span.label_ != label) or len(gold.parts) != 1:
                continue
            found = (kb.concept(cui.partition(":")[2] or cui) for cui in gold.parts[0])
            if cuis := {concept.cui for concept in found if concept is not None}:
                yield gold.mention, cuis


def measure(kb: KnowledgeBase, mentions: list[Answered]) -> float:
    """Return the share of right first answers, without a threshold."""
    links = kb.link([text for text, _ in mentions], threshold=-1, k=1)
    right = [
        bool(linked.candidates) and linked.candidates[0]["cui"] in cuis
        for linked, (_, cuis) in zip(links, mentions, strict=True)
    ]
    return float(np.mean(right))


def ask_scispacy(worker: Worker, texts: Sequence[str]) -> Iterator[str]:
    """Yield the first answer of scispaCy for each text; "" = none."""
    document = {
        "words": [text or "-" for text in texts],
        "spaces": [False] * len(texts),
        "entities": [[number, number + 1, "X"] for number in range(len(texts))],
    }
    cores = sorted(os.sched_getaffinity(0))
    found = run_worker(worker, documents=[document], singles=[], cores=cores)
    for candidates in found["answers"]:
        yield candidates[0][0] if candidates else ""


def without_order(kb: KnowledgeBase) -> KnowledgeBase:
    """Return the same knowledge base, whose candidates are ordered by cosine."""
    manifest = kb.manifest.model_copy(update={"order": None, "ngrams": False})
    return KnowledgeBase(
        replace(kb.version, manifest=manifest), encoder=kb.encoder_config, old=kb
    )


def main(
    kb: Path = typer.Argument(..., help="Knowledge base with a learned order."),
    documents: list[Path] = typer.Option(
        [], help="Annotated documents in PubTator's format; may be repeated."
    ),
    label: str = typer.Option("", help="Only mentions with this label."),
    seed: int = typer.Option(7, help="Of the noise."),
    scispacy_python: Path | None = typer.Option(
        None, help="Interpreter with scispaCy, measured too; see benchmarks.linking."
    ),
    concepts: Path | None = typer.Option(
        None, help="concepts.jsonl of the knowledge base, for scispaCy's index."
    ),
    out: Path = typer.Option(
        Path("results/scispacy"), help="Folder for scispaCy's index."
    ),
) -> None:
    """kb/ -> right first answers on noise, in the learned order and by cosine

    No side has a threshold.

    Example: python -m benchmarks.noise kb --documents CDR_dev.PubTator.txt.gz --label
    Disease
    """
    ordered = load_kb(kb)
    plain = without_order(ordered)
    random = Random(seed)
    names = held_out_names(ordered, random)
    groups: list[tuple[str, list[Answered]]] = []
    for kind, noise in KINDS.items():
        disturbed = [(noise(name, random), cuis) for name, cuis in names]
        changed = [
            (n, c)
            for (n, c), (old, _) in zip(disturbed, names, strict=True)
            if n != old
        ]
        groups.append((kind, changed or disturbed))
    for path in documents:
        mentions = list(read_mentions(ordered, path, label))
        for share in (0.0, 0.05, 0.1):
            spoilt = [(disturb_letters(t, share, random), c) for t, c in mentions]
            groups.append((f"{path.name}, {share:.0%} of the letters", spoilt))
    header = ["Mentions", "Number", "By cosine", "Learned order"]
    rows = [
        [title, f"{len(mentions):,}"]
        + [f"{measure(kb, mentions):.4f}" for kb in (plain, ordered)]
        for title, mentions in groups
    ]
    if scispacy_python is not None and concepts is not None:
        header.append("scispaCy")
        linker = {**LINKER, "threshold": 0.0}
        worker = make_scispacy_worker(str(scispacy_python), concepts, out, linker)
        texts = [text for _, group in groups for text, _ in group]
        answers = ask_scispacy(worker, texts)
        for row, (_, group) in zip(rows, groups, strict=True):
            firsts = islice(answers, len(group))
            right = [f in cuis for f, (_, cuis) in zip(firsts, group, strict=True)]
            row.append(f"{np.mean(right):.4f}")
    msg.text(f"{machine_line()}; {ordered.rows:,} names, seed {seed}.")
    print_table(header, rows)


if __name__ == "__main__":
    run_cli(main)
