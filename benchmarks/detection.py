"""`python -m benchmarks.detection`: which mentions the names of a vocabulary find."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import spacy
import typer
from spacy.matcher import PhraseMatcher
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from benchmarks.gold_docs import GOLD, read_gold_docs
from benchmarks.harness import machine_line, print_table, run_cli
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.pipeline.mention_detector import SapbertMentions

HEADER = ("", "found", "P", "R", "F1", "P over", "R over", "F1 over", "ms/doc")
Place = tuple[int, int]  # start and end in characters
Find = Callable[[Doc], Sequence[Span]]


class Counts(NamedTuple):
    """Spans that are right, of those found and of the gold ones, by either rule."""

    found: int
    gold: int
    exact: int
    found_over: int
    gold_over: int


def overlaps(place: Place, others: Sequence[Place]) -> bool:
    """Return whether a place shares a character with one of the others."""
    return any(place[0] < end and start < place[1] for start, end in others)


def count_places(found: Sequence[Place], gold: Sequence[Place]) -> Counts:
    """Compare the distinct places of one document."""
    return Counts(
        found=len(found),
        gold=len(gold),
        exact=len({*found} & {*gold}),
        found_over=sum(overlaps(place, gold) for place in found),
        gold_over=sum(overlaps(place, found) for place in gold),
    )


def score(counts: Counts) -> list[float]:
    """Return precision, recall and F1 of exact, then of overlapping spans."""
    figures: list[float] = []
    for right, recalled in (
        (counts.exact, counts.exact),
        (counts.found_over, counts.gold_over),
    ):
        precision = right / max(counts.found, 1)
        recall = recalled / max(counts.gold, 1)
        f1 = 2 * precision * recall / ((precision + recall) or 1)
        figures += [precision, recall, f1]
    return figures


def make_phrase_finder(kb: KnowledgeBase) -> Find:
    """Return what spaCy's PhraseMatcher finds of the same names, in lower case."""
    nlp = spacy.blank("en")
    matcher = PhraseMatcher(nlp.vocab, attr="LOWER")
    names = {alias for concept in kb.concepts() for alias in concept.aliases}
    for name in sorted(names):
        matcher.add("NAME", [nlp.make_doc(name)])

    def find(doc: Doc) -> list[Span]:
        read = nlp.make_doc(doc.text)
        return filter_spans(matcher(read, as_spans=True))

    return find


def make_name_finder(kb: Path) -> Find:
    """Return what `sapbert_mentions` finds."""
    nlp = spacy.blank("en")
    component = nlp.add_pipe("sapbert_mentions", config={"kb": str(kb)})
    assert isinstance(component, SapbertMentions)

    def find(doc: Doc) -> list[Span]:
        return list(nlp(doc.text).ents)

    return find


def main(
    kb: Path = typer.Argument(..., help="Folder of the knowledge base."),
    corpora: list[Path] = typer.Argument(..., help="PubTator files."),
    labels: str = typer.Option("", help="Labels of the gold mentions: a,b. [all]"),
    phrases: bool = typer.Option(True, help="Also spaCy's PhraseMatcher."),
) -> None:
    """kb/ + annotated documents -> precision, recall and F1 of detected mentions

    `over`: a span that overlaps a gold span is right, and a gold span that overlaps a
    found span is found.

    Example: python -m benchmarks.detection models/kb dev.txt --labels Disease
    """
    kept = {label for label in labels.split(",") if label}
    finders = {"sapbert_mentions": make_name_finder(kb)}
    if phrases:
        finders["PhraseMatcher, lower case"] = make_phrase_finder(load_kb(kb))
    for corpus in corpora:
        docs = [doc for doc, _ in read_gold_docs(corpus, spacy.blank("en"))]
        golds = [
            sorted(
                {
                    (span.start_char, span.end_char)
                    for span in doc.spans[GOLD]
                    if not kept or span.label_ in kept
                }
            )
            for doc in docs
        ]
        rows: list[tuple[str, ...]] = []
        for name, find in finders.items():
            start = time.process_time()
            found = [
                sorted({(span.start_char, span.end_char) for span in find(doc)})
                for doc in docs
            ]
            seconds = time.process_time() - start
            each = map(count_places, found, golds)
            total = Counts(*map(sum, zip(*each, strict=True)))
            figures = [f"{figure:.3f}" for figure in score(total)]
            ms = f"{1000 * seconds / len(docs):.1f}"
            rows.append((name, f"{total.found:,}", *figures, ms))
        typer.echo(f"{corpus.name}: {sum(map(len, golds)):,} mentions")
        print_table(HEADER, rows)
    typer.echo(machine_line())


if __name__ == "__main__":
    run_cli(main)
