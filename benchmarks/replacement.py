"""A knowledge base that is built again, replaced and edited while threads read it."""

import multiprocessing
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer
from tqdm import tqdm

from benchmarks.harness import machine_line, print_table, run_cli
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.packages.copies import save_copy
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts

NAMES = [
    "fever",
    "heart attack",
    "diabetes",
    "asthma",
    "cold",
    "pain",
    "stroke",
    "gout",
]
MENTIONS = ["fever", "heart atack", "diabetis", "gout", "ward"]
PAUSE = 1.0  # seconds between two changes of a process
VERSIONS = "ABC"  # of two builders and of what replaces the folder


def make_concepts(version: str) -> list[Concept]:
    """Return the concepts of a version: the same names under other ids and numbers."""
    # In another order, so that rows and concepts have other numbers in each version.
    start = VERSIONS.index(version) * 3
    names = NAMES[start:] + NAMES[:start]
    return [
        Concept(f"{version}{number}", [name, f"{name} {version}"])
        for number, name in enumerate(names)
    ]


def run_until(stop: Event, action: Callable[[], Any], counts: Any, who: str) -> None:
    """Repeat an action until an event is set, and count how it ended."""
    while not stop.is_set():
        try:
            action()
            counts.put((who, "done"))
        except SapbertError as error:
            counts.put((who, str(error)[:6]))
        except Exception as error:
            counts.put((who, f"other: {type(error).__name__}: {error}"[:200]))
        time.sleep(PAUSE)


def change(who: str, folder: Path, encoder: str, stop: Event, counts: Any) -> None:
    """Build, replace or edit a knowledge base until an event is set."""
    kb, version = folder / "kb", who[-1]
    if who.startswith("builder"):
        run_until(
            stop,
            lambda: build_kb(folder / f"{version}.jsonl", kb, encoder, force=True),
            counts,
            who,
        )
    elif who.startswith("replacement"):
        other = load_kb(folder / "other")
        run_until(stop, lambda: save_copy(other, kb), counts, who)
    else:

        def add() -> None:
            opened = load_kb(kb)
            own = opened.concepts().__next__().cui[0]
            number = random.randrange(10**6)
            add_concepts(opened, [Concept(f"{own}-{number}", [f"ward {number}"])])

        run_until(stop, add, counts, who)


def check_answers(kb: KnowledgeBase) -> str:
    """Link mentions, and return the version that every answer has; "mixed" if not."""
    found = {
        candidate["cui"][0]
        for linked in kb.link(MENTIONS, k=4)
        for candidate in linked.candidates
    }
    found |= {concept.cui[0] for concept in kb.concepts()}
    best = kb.link(["fever"])[0].candidates[0]
    right = best["alias"] == "fever" and best["score"] == 1
    return found.pop() if len(found) == 1 and right else "mixed"


def read(folder: Path, stop: threading.Event, counts: Counter[str]) -> None:
    """Read from opened knowledge bases, their newest versions, and kept ones.

    Kept ones are read from threads that start anew.
    """
    kept: KnowledgeBase | None = None
    while not stop.is_set():
        try:
            how = random.random()
            if kept is None or how < 0.2:
                kept = load_kb(folder / "kb")
                version = check_answers(kept)  # loads encoder and index
            elif how < 0.4:
                kept = kept.newest()
                version = check_answers(kept)
            else:
                kept.clear_cache()
                answers: list[str] = []
                opened = kept
                thread = threading.Thread(
                    target=lambda kb, own: own.append(check_answers(kb)),
                    args=(opened, answers),
                )
                thread.start()
                thread.join()
                version = answers[0] if answers else "other: the thread failed"
            counts[f"version {version}" if len(version) == 1 else version] += 1
        except SapbertError as error:
            kept = None
            counts[str(error)[:6]] += 1
        except Exception as error:
            kept = None
            counts[f"other: {type(error).__name__}: {error}"[:200]] += 1


def measure(encoder: str, *, seconds: float, threads: int) -> Counter[tuple[str, str]]:
    """Change a knowledge base from four processes while threads read it; see `main`.

    RETURNS (Counter[tuple[str, str]]): By who and what.
    """
    with TemporaryDirectory(prefix="sapbert-replacement-") as temporary:
        folder = Path(temporary)
        for version in VERSIONS:
            write_concepts(folder / f"{version}.jsonl", make_concepts(version))
        build_kb(folder / "A.jsonl", folder / "kb", encoder)
        build_kb(folder / "C.jsonl", folder / "other", encoder)
        context = multiprocessing.get_context("spawn")
        stop, queue = context.Event(), context.Queue()
        changers = [
            context.Process(target=change, args=(who, folder, encoder, stop, queue))
            for who in ("builder of A", "builder of B", "replacement by C", "additions")
        ]
        for changer in changers:
            changer.start()
        ended = threading.Event()
        own = [Counter[str]() for _ in range(threads)]
        readers = [
            threading.Thread(target=read, args=(folder, ended, each)) for each in own
        ]
        for reader in readers:
            reader.start()
        counts: Counter[tuple[str, str]] = Counter()
        until = time.monotonic() + seconds
        with tqdm(disable=not sys.stderr.isatty(), unit=" changes") as bar:
            while time.monotonic() < until:
                time.sleep(0.1)
                while not queue.empty():
                    counts[queue.get()] += 1
                    bar.update()
        ended.set()
        stop.set()
        for reader in readers:
            reader.join()
        for changer in changers:
            while changer.is_alive():
                changer.join(0.1)
                while not queue.empty():
                    counts[queue.get()] += 1
        for each in own:
            counts.update({("readers", what): n for what, n in each.items()})
        load_kb(folder / "kb")
        return counts


def main(
    encoder: str = typer.Argument(..., help="Folder of a small encoder."),
    seconds: float = typer.Option(60, min=1, help="How long."),
    threads: int = typer.Option(8, min=1, help="Threads that read."),
) -> None:
    """encoder/ -> table: two builds, a replacement and edits while threads read

    Each answer must be of one version of the knowledge base, and no reader may get an
    error. A writer may: another one has changed the folder (E338) or is at work (E350,
    E550). Exit code: 1 if an answer is mixed, a reader has an error, or an error has no
    code.

    Example: python -m benchmarks.replacement models/sample/kb/v1/encoder
    """
    counts = measure(encoder, seconds=seconds, threads=threads)
    typer.echo(machine_line())
    print_table(
        ("who, what", "times"),
        [(f"{who}: {what}", times) for (who, what), times in sorted(counts.items())],
    )
    bad = [
        (who, what)
        for who, what in counts
        if what.startswith("other")
        or (who == "readers" and not what.startswith("version"))
    ]
    raise typer.Exit(bool(bad))


if __name__ == "__main__":
    run_cli(main)
