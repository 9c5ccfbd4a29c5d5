"""A search that began before a change never takes rows of after it."""

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb import contents
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.overlay import add_concepts, remove_concepts
from spacy_sapbert.vocabularies.concepts import Concept

LOCAL = [
    Concept("L1", ["zyq"], types=["T184"]),
    Concept("L2", ["wxv"], types=["T184"]),
]


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is remembered, so that each question is searched anew."""
    monkeypatch.setattr(contents, "MENTIONS_KEPT", 0)


@pytest.fixture
def kb(own_kb: Path) -> KnowledgeBase:
    kb = load_kb(own_kb)
    add_concepts(kb, LOCAL)
    return kb


def test_a_change_in_the_middle_of_a_search_does_not_mix_rows(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = kb.link(["wxv", "zyq", "fever"], k=3)
    assert [one.candidates[0]["cui"] for one in before] == ["L2", "L1", "C0000004"]
    old = kb.contents
    changed: list[int] = []

    def search(*arguments: Any) -> Any:
        found = contents.Contents.search(old, *arguments)
        if not changed:
            # The row of L1 is now that of L2, and there is one row less.
            changed.append(remove_concepts(kb, ["L1", "C0000004"]))
        return found

    monkeypatch.setattr(old, "search", search)
    assert kb.link(["wxv", "zyq", "fever"], k=3) == before
    assert changed == [2]
    after = kb.link(["wxv", "zyq", "fever"], k=8)
    assert {c["cui"] for one in after for c in one.candidates}.isdisjoint(
        {"L1", "C0000004"}
    )
    assert after[0].candidates[0]["cui"] == "L2"


def test_what_a_filter_left_before_a_change_is_not_remembered_after_it(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, changed = contents.admit, []

    def admit(*arguments: Any) -> Any:
        found = real(*arguments)
        if not changed:
            changed.append(add_concepts(kb, [Concept("L3", ["qqq"], types=["T184"])]))
        return found

    monkeypatch.setattr(contents, "admit", admit)
    wanted: Any = {"types": ["T184"]}
    first = kb.link(["qqq"], filter=wanted)[0].candidates
    assert "L3" not in [candidate["cui"] for candidate in first]
    assert kb.link(["qqq"], filter=wanted)[0].candidates[0]["cui"] == "L3"


def test_threads_search_with_more_filters_than_are_remembered(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "FILTERS_KEPT", 1)
    ids = [f"C000000{number}" for number in range(1, 9)]
    failed: list[Any] = []

    def work(first: int) -> None:
        try:
            for cui in (ids[first:] + ids[:first]) * 3:
                found = kb.link(["heart"], filter={"allow": [cui]})[0].candidates
                if [candidate["cui"] for candidate in found] != [cui]:
                    failed.append(found)
        except Exception as error:
            failed.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failed == []
    assert len(kb.contents.filters) == 1


def test_threads_search_while_concepts_come_and_go(kb: KnowledgeBase) -> None:
    done = threading.Event()
    failed: list[Any] = []

    def work() -> None:
        while not done.is_set():
            try:
                linked = kb.link(["wxv", "fever"], k=1, filter={"deny": ["C0000001"]})
                best = [one.candidates[0]["alias"] for one in linked]
                if best != ["wxv", "Fever"]:
                    failed.append(best)
            except Exception as error:
                failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(4):
            remove_concepts(kb, ["L1"])
            add_concepts(kb, [LOCAL[0], Concept(f"A{number}", [f"ward {number}"])])
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failed == []


def test_a_filter_of_what_is_not_there_is_not_remembered(kb: KnowledgeBase) -> None:
    for _ in range(2):
        with pytest.raises(SapbertError, match="E332"):
            kb.link(["fever"], filter={"types": ["T999"]})
    assert kb.contents.filters == {}
