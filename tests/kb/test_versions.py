"""An opened knowledge base does not change; an edit returns a new version."""

import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spacy_sapbert.encoder.encoder import EncoderConfig
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb import knowledge_base
from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase
from spacy_sapbert.kb.opening import load_kb
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


def test_resolve_filter_in_threads_with_more_filters_than_the_cache_holds(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb.filter_cache.size = 1
    ids = [f"C000000{number}" for number in range(1, 9)]

    def work(first: int) -> None:
        for cui in (ids[first:] + ids[:first]) * 3:
            found = kb.link(["heart"], filter={"allow": [cui]})[0].candidates
            assert [candidate["cui"] for candidate in found] == [cui]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as threads:
            list(threads.map(work, range(6)))  # which raises what they raise
    finally:
        sys.setswitchinterval(interval)
    assert len(kb.filter_cache.values) == 1


def test_link_in_threads_while_new_versions_are_written(kb: KnowledgeBase) -> None:
    done = threading.Event()
    versions = [kb]

    def work(_: int) -> None:
        while not done.is_set():
            linked = versions[-1].link(
                ["wxv", "fever"], k=1, filter={"deny": ["C0000001"]}
            )
            best = [one.candidates[0]["alias"] for one in linked]
            assert best == ["wxv", "Fever"]

    with ThreadPoolExecutor(2) as threads:
        working = threads.map(work, range(2))
        try:
            for number in range(4):
                versions.append(remove_concepts(versions[-1], ["L1"]))
                added = [LOCAL[0], Concept(f"A{number}", [f"ward {number}"])]
                versions.append(add_concepts(versions[-1], added))
                versions[-1].link(["fever"])
        finally:
            done.set()
        list(working)


def test_resolve_filter_does_not_cache_an_unknown_type(kb: KnowledgeBase) -> None:
    for _ in range(2):
        with pytest.raises(SapbertError, match="E332"):
            kb.link(["fever"], filter={"types": ["T999"]})
    assert not kb.filter_cache.values
    assert knowledge_base.FILTER_CACHE > 0


def test_link_of_two_knowledge_bases_with_one_encoder_config(
    sample_kb: Path, other_encoder_kb: Path
) -> None:
    mentions = ["a heart atack", "feverish"]
    folders = [sample_kb, other_encoder_kb]
    expected = [load_kb(folder).link(mentions) for folder in folders]
    assert expected[0] != expected[1]
    config = EncoderConfig(names_per_pass=8)
    first, second = (load_kb(folder, encoder=config) for folder in folders)
    for kb in (first, second):
        kb.link(["fever"])
        kb.clear_cache()
    assert [first.link(mentions), second.link(mentions)] == expected
    assert first.encoder.config == second.encoder.config == config


def test_pickle_of_a_knowledge_base_keeps_how_its_encoder_is_run(
    exported_kb: Path,
) -> None:
    config = EncoderConfig("openvino", 8, "bf16")
    kb = load_kb(exported_kb, encoder=config)
    again = pickle.loads(pickle.dumps(kb))
    assert again.encoder_config == again.encoder.config == config
