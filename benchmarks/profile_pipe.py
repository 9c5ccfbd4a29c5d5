"""Where the time of the linker goes: seconds and shares of five steps of `nlp.pipe`.

    python -m benchmarks.profile_pipe CDR_DevelopmentSet.PubTator.txt.gz --kb models/kb

The documents come with their gold mentions as entities; with `--singles` each of some
mentions is a document, linked one a call, as `benchmarks.linking` does it too. The
functions of each step are wrapped, so that nothing else is slowed down.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import spacy
import typer
from spacy.tokens import Doc
from wasabi import msg

from benchmarks.linking_inputs import choose_singles, parse_config, read_corpus
from benchmarks.linking_measure import make_docs
from benchmarks.machine import machine_line
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.registry import READERS

# The functions of each step, by what they are looked up in when they are called.
STEPS: dict[str, tuple[str, ...]] = {
    "tokenise": ("spacy_sapbert.encoder.tokenize_names",),
    "forward": ("spacy_sapbert.encoder.encode_token_ids",),
    "search": (
        "spacy_sapbert.kb.contents.Contents.search",
        "spacy_sapbert.kb.contents.Contents.vectors",
    ),
    "SQLite": tuple(
        f"spacy_sapbert.kb.layered_store.LayeredStore.{name}"
        for name in ("entries", "types", "codes", "parents", "rows_of_keys")
    ),
    "annotate": ("spacy_sapbert.pipeline.linker.write_links",),
}
REST = "the rest"  # ranking, ties, gathering of mentions, spaCy


class Clock:
    """Adds up the seconds of steps; of one inside another the outer counts."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STEPS, 0.0)
        self.busy = False

    def wrap(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Make a function that counts for a step."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            if self.busy:
                return function(*args, **kwargs)
            self.busy = True
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[step] += time.perf_counter() - start
                self.busy = False

        return timed


@contextmanager
def clocked() -> Iterator[Clock]:
    """Wrap the functions of all steps.

    YIELDS (Clock): What they take.
    """
    clock = Clock()
    with ExitStack() as stack:
        for step, names in STEPS.items():
            for name in names:
                package, module, *classes, function = name.split(".")
                place: Any = import_module(f"{package}.{module}")
                for inner in classes:
                    place = getattr(place, inner)
                wrapped = clock.wrap(step, getattr(place, function))
                stack.enter_context(patch.object(place, function, wrapped))
        yield clock


def profile_docs(
    nlp: Any, docs: Sequence[Doc], *, alone: bool = False
) -> dict[str, float]:
    """Link documents and time the steps.

    nlp (Language): A pipeline with the linker, everything loaded.
    docs (Sequence[Doc]): They stay as they are.
    alone (bool): One document a call, not a stream.
    RETURNS (dict[str, float]): Seconds of each of `STEPS`, and of what is none.
    """
    nlp.get_pipe("sapbert_linker").forget()
    copies = [doc.copy() for doc in docs]
    with clocked() as clock:
        start = time.perf_counter()
        for _ in map(nlp, copies) if alone else nlp.pipe(copies):
            pass
        total = time.perf_counter() - start
    return {**clock.seconds, REST: total - sum(clock.seconds.values())}


def main(
    documents: Path = typer.Argument(..., help="Annotated documents."),
    kb: Path = typer.Option(..., help="Folder of the knowledge base."),
    config: list[str] = typer.Option(
        [], help="KEY=VALUE of the linker, like encoder.precision=bf16; repeatable."
    ),
    format: str = typer.Option("pubtator", help=f"One of {', '.join(READERS)}."),
    label: list[str] = typer.Option([], help="Mentions to take; repeatable. [all]"),
    limit: int = typer.Option(0, min=0, help="First documents; 0 = all."),
    singles: int = typer.Option(
        0, min=0, help="Mentions linked one a call; 0 = documents."
    ),
    rounds: int = typer.Option(3, min=1, help="Of measuring; the medians count."),
) -> None:
    """annotated documents + kb/ -> table of steps, seconds and shares"""
    try:
        settings = {"kb": str(kb), **parse_config(config)}
        corpus = read_corpus(documents, format=format, labels=label, limit=limit)
        nlp = spacy.blank("en")
        nlp.add_pipe("sapbert_linker", config=settings)
        profile_docs(nlp, corpus.docs[:1])  # loads everything
        docs = corpus.docs
        if singles:
            docs = list(make_docs(nlp.vocab, choose_singles(docs, singles)))
        measured = [profile_docs(nlp, docs, alone=singles > 0) for _ in range(rounds)]
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    mentions = sum(len(doc.ents) for doc in docs)
    seconds = {
        step: statistics.median(each[step] for each in measured) for step in measured[0]
    }
    total = sum(seconds.values())
    rows = [
        (
            step,
            f"{taken:.2f} s",
            f"{1e6 * taken / mentions:,.0f} µs",
            f"{taken / total:.1%}",
        )
        for step, taken in [*seconds.items(), ("all", total)]
    ]
    msg.text(machine_line())
    msg.text(
        f"{len(docs):,} documents, {mentions:,} mentions, "
        f"{mentions / total:,.0f} a second; median of {rounds}"
    )
    header = ("Step", "Time", "A mention", "Share")
    msg.table(rows, header=header, divider=True, aligns=("l", "r", "r", "r"))


if __name__ == "__main__":
    typer.run(main)
