"""A knowledge base that is built again, replaced and edited while threads read it."""

import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.folder.publication import save_copy
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts

pytestmark = pytest.mark.slow
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
SECONDS, THREADS = 60, 8
PAUSE = 1.0  # seconds between two changes of a process
VERSIONS = "ABC"  # of two builders, and of what replaces the folder
CHANGERS = ("builder of A", "builder of B", "replacement by C", "additions")


def make_concepts(version: str) -> list[Concept]:
    """Return the concepts of a version: the same names under other ids and numbers."""
    start = VERSIONS.index(version) * 3
    names = NAMES[start:] + NAMES[:start]
    return [
        Concept(f"{version}{number}", [name, f"{name} {version}"])
        for number, name in enumerate(names)
    ]


def change(who: str, folder: Path, encoder: str, stop: Any, outcomes: Any) -> None:
    """Build, replace or edit a knowledge base until an event is set."""
    kb, version = folder / "kb", who[-1]

    def act() -> None:
        if who.startswith("builder"):
            build_kb(folder / f"{version}.jsonl", kb, encoder, force=True)
        elif who.startswith("replacement"):
            save_copy(load_kb(folder / "other").version, kb)
        else:
            opened = load_kb(kb)
            own = next(iter(opened.concepts())).cui[0]
            number = random.randrange(10**6)
            add_concepts(opened, [Concept(f"{own}-{number}", [f"ward {number}"])])

    while not stop.is_set():
        try:
            act()
            outcomes.put((who, "done"))
        except SapbertError:  # another one has changed the folder, or is at work
            outcomes.put((who, "refused"))
        except Exception as error:
            outcomes.put((who, f"{type(error).__name__}: {error}"))
        time.sleep(PAUSE)


def find_version(kb: KnowledgeBase) -> str:
    """Link mentions, and return the version that every answer has; "mixed" if not."""
    found = {
        candidate["cui"][0]
        for linked in kb.link(MENTIONS, k=4)
        for candidate in linked.candidates
    }
    found |= {concept.cui[0] for concept in kb.concepts()}
    best = kb.link(["fever"])[0].candidates[0]
    is_right = best["alias"] == "fever" and best["score"] == 1
    return found.pop() if len(found) == 1 and is_right else "mixed"


def read(folder: Path, stop: threading.Event, answers: Counter[str]) -> None:
    """Read from opened knowledge bases, from their newest versions, and from kept ones.

    Kept ones are read from threads that start anew.
    """
    kept = load_kb(folder / "kb")
    while not stop.is_set():
        try:
            way = random.random()
            if way < 0.2:
                kept = load_kb(folder / "kb")
            elif way < 0.4:
                kept = kept.newest()
            else:
                kept.clear_cache()
            own: list[str] = []
            thread = threading.Thread(
                target=lambda kb, found: found.append(find_version(kb)),
                args=(kept, own),
            )
            thread.start()
            thread.join()
            answers[own[0] if own else "a thread failed"] += 1
        except Exception as error:
            answers[f"{type(error).__name__}: {error}"] += 1


def test_readers_get_answers_of_one_version_while_others_write(
    tiny_encoder, tmp_path, new_process
):
    for version in VERSIONS:
        write_concepts(tmp_path / f"{version}.jsonl", make_concepts(version))
    build_kb(tmp_path / "A.jsonl", tmp_path / "kb", str(tiny_encoder))
    build_kb(tmp_path / "C.jsonl", tmp_path / "other", str(tiny_encoder))
    context = new_process.context("spawn")
    stop, queue = context.Event(), context.Queue()
    changers = [
        context.Process(
            target=change, args=(who, tmp_path, str(tiny_encoder), stop, queue)
        )
        for who in CHANGERS
    ]
    ended = threading.Event()
    answers = [Counter[str]() for _ in range(THREADS)]
    readers = [
        threading.Thread(target=read, args=(tmp_path, ended, own)) for own in answers
    ]
    for each in (*changers, *readers):
        each.start()
    outcomes: Counter[tuple[str, str]] = Counter()
    until = time.monotonic() + SECONDS
    while time.monotonic() < until or any(each.is_alive() for each in changers):
        time.sleep(0.1)
        if time.monotonic() >= until:
            ended.set()
            stop.set()
        while not queue.empty():
            outcomes[queue.get()] += 1
    for reader in readers:
        reader.join()
    assert {what for _, what in outcomes} <= {"done", "refused"}, outcomes
    assert {who for who, what in outcomes if what == "done"} == {*CHANGERS}
    total = sum(answers, Counter[str]())
    assert {*total} <= {*VERSIONS}, total
    assert len(total) > 1
    load_kb(tmp_path / "kb")
