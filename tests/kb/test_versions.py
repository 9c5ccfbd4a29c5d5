"""An opened knowledge base does not change; an edit returns a new version."""

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb import knowledge_base
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.overlay import add_concepts, remove_concepts
from spacy_sapbert.vocabularies.concepts import Concept

LOCAL = [
    Concept("L1", ["zyq"], types=["T184"]),
    Concept("L2", ["wxv"], types=["T184"]),
]


@pytest.fixture
def kb(own_kb: Path) -> KnowledgeBase:
    return add_concepts(load_kb(own_kb), LOCAL)


def test_knowledge_base_finds_the_same_after_an_edit(kb: KnowledgeBase) -> None:
    mentions = ["wxv", "zyq", "fever"]
    before = kb.link(mentions, k=3)
    assert [one.candidates[0]["cui"] for one in before] == ["L2", "L1", "C0000004"]
    # The row of L1 becomes that of L2, and there is one row less.
    changed = remove_concepts(kb, ["L1", "C0000004"])
    kb.clear_cache()
    assert kb.link(mentions, k=3) == before
    assert kb.link(mentions, k=3, filter={"types": ["T184"]})[0].cui == "L2"
    after = changed.link(mentions, k=8)
    cuis = {c["cui"] for one in after for c in one.candidates}
    assert cuis.isdisjoint({"L1", "C0000004"})
    assert after[0].candidates[0]["cui"] == "L2"


def test_reopen_shares_encoder_and_index_of_the_base(kb: KnowledgeBase) -> None:
    kb.link(["fever"])
    changed = add_concepts(kb, [Concept("L3", ["qqq"])])
    assert changed.encoder is kb.encoder
    assert changed.loaded_base is kb.loaded_base
    assert changed.rows == kb.rows + 1


def test_linker_uses_the_knowledge_base_that_is_set(own_kb: Path) -> None:
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("sapbert_linker", config={"kb": str(own_kb)})
    doc = Doc(nlp.vocab, words=["zyq"])
    doc.ents = [Span(doc, 0, 1, "X")]
    assert nlp(doc.copy()).ents[0]._.cui != "L1"
    linker.kb = add_concepts(linker.kb, LOCAL)
    assert nlp(doc.copy()).ents[0]._.cui == "L1"


def test_resolve_filter_in_threads_with_more_filters_than_the_cache_holds(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb.filter_cache.size = 1
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
    assert len(kb.filter_cache.values) == 1


def test_link_in_threads_while_new_versions_are_written(kb: KnowledgeBase) -> None:
    done = threading.Event()
    failed: list[Any] = []
    versions = [kb]

    def work() -> None:
        while not done.is_set():
            try:
                linked = versions[-1].link(
                    ["wxv", "fever"], k=1, filter={"deny": ["C0000001"]}
                )
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
            versions.append(remove_concepts(versions[-1], ["L1"]))
            added = [LOCAL[0], Concept(f"A{number}", [f"ward {number}"])]
            versions.append(add_concepts(versions[-1], added))
            versions[-1].link(["fever"])
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failed == []


def test_resolve_filter_does_not_cache_an_unknown_type(kb: KnowledgeBase) -> None:
    for _ in range(2):
        with pytest.raises(SapbertError, match="E332"):
            kb.link(["fever"], filter={"types": ["T999"]})
    assert not kb.filter_cache.values
    assert knowledge_base.FILTER_CACHE > 0
