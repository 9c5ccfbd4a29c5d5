"""What is cache: the last results, no more than so many, the same as without."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.io.cache import LruCache
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb

MENTIONS = ["heart atack", "Fever", "mi", "febril", "pain of the heart", "?", "fever"]


def test_lru_cache_removes_the_least_recently_used() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put_many({"a": 1, "b": 2})
    assert cache.get_many(["a"]) == {"a": 1}
    cache.put_many({"c": 3})
    assert cache.get_many(["a", "b", "c"]) == {"a": 1, "c": 3}
    cache.put_many({"d": 4, "e": 5, "f": 6})
    assert cache.get_many("abcdef") == {"e": 5, "f": 6}


@given(st.integers(0, 4), st.lists(st.dictionaries(st.integers(0, 6), st.integers())))
def test_lru_cache_keeps_at_most_its_size(most: int, steps: list[Any]) -> None:
    cache: LruCache[int, int] = LruCache(most)
    kept: list[int] = []
    for step in steps:
        cache.put_many(step)
        kept = [key for key in kept if key not in step] + list(step)
        kept = kept[len(kept) - most :] if most < len(kept) else kept
        assert sorted(cache.values) == sorted(kept)


def test_lru_cache_works_with_threads() -> None:
    cache: LruCache[int, int] = LruCache(50)

    def use(first: int) -> None:
        for number in range(first, first + 2000):
            cache.put_many({number: number})
            found = cache.get_many(range(number - 20, number + 1))
            assert all(key == value for key, value in found.items())

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(use, range(0, 4000, 1000)))
    assert len(cache.values) == 50


def without_cache(kb: KnowledgeBase) -> KnowledgeBase:
    """The same without caches."""
    kb.searcher.results.size = kb.searcher.concepts.size = 0
    return kb


@pytest.mark.parametrize(
    "settings",
    [{}, {"k": 2}, {"threshold": 0.99}, {"filter": {"types": ["T047"]}}],
    ids=str,
)
def test_link_without_a_cache_gives_the_same_links(
    sample_kb: Path, settings: Any
) -> None:
    fresh = [
        without_cache(load_kb(sample_kb)).link([m], **settings)[0] for m in MENTIONS
    ]
    kb = load_kb(sample_kb)
    for _ in range(2):
        assert [kb.link([m], **settings)[0] for m in MENTIONS] == fresh
    assert kb.searcher.results.values


def test_link_encodes_a_mention_once(sample_kb: Path, encoded: list[int]) -> None:
    kb = load_kb(sample_kb)
    kb.link(["heart atack", "heart atack"])
    kb.link(["heart atack"])
    assert sum(encoded) == 1
    without_cache(kb)
    kb.clear_cache()
    kb.link(["heart atack"])
    assert sum(encoded) == 2


def test_link_result_may_be_changed_by_its_caller(sample_kb: Path) -> None:
    kb = load_kb(sample_kb)
    candidate = kb.link(["heart atack"])[0].candidates[0]
    before = {**candidate, "codes": {s: [*c] for s, c in candidate["codes"].items()}}
    candidate["codes"].setdefault("ICD10CM", []).append("changed")
    candidate["types"].append("changed")
    again = kb.link(["heart atack"])[0].candidates[0]
    assert again["codes"] == before["codes"]
    assert "changed" not in again["types"]


def test_link_with_other_options_searches_again(sample_kb: Path) -> None:
    kb = load_kb(sample_kb)
    assert kb.link(["fevr"], threshold=-1)[0].note is None
    assert kb.link(["fevr"], threshold=1)[0].note == "below_threshold"
    assert len(kb.link(["fevr"], k=1)[0].candidates) == 1
    assert len(kb.link(["fevr"], k=3)[0].candidates) == 3
