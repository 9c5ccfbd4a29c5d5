"""Long streams, memory zones, threads and batches: equal links, and flat memory."""

import gc
import itertools
import random
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest
import spacy
from spacy.language import Language

from spacy_sapbert.kb.knowledge_base import load_kb

WORDS = "heart attack fever MI DM aspirin ASA headache Cardiac disease of no and pain"
MOST_GROWTH = 200_000  # bytes over some thousand Docs; one has thousands
UNIT = 1.5e-6  # one in the sixth digit of a score, and what floats add to it


@pytest.fixture(scope="module")
def nlp(sample_kb):
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_abbreviations")
    nlp.add_pipe("sapbert_mentions")
    config = {"kb": str(sample_kb), "k": 3, "filter": {"deny": ["C0000008"]}}
    nlp.add_pipe("sapbert_linker", config=config)
    return nlp


def make_texts(count, seed=0):
    chance = random.Random(seed)
    words = WORDS.split()
    return [" ".join(chance.choices(words, k=8)) for _ in range(count)]


def describe(doc):
    return [
        (ent.text, ent.kb_id_, ent._.cui, ent._.link_note, ent._.candidates)
        for ent in doc.ents
    ]


def test_pipe_memory_is_constant_over_a_long_stream(nlp):
    texts = itertools.cycle(make_texts(500))

    def run(count):
        for _ in nlp.pipe(itertools.islice(texts, count), batch_size=50):
            pass
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    run(500)
    tracemalloc.start()
    try:
        before = run(500)
        assert run(3000) - before < MOST_GROWTH
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(
    not hasattr(Language, "memory_zone"), reason="this spaCy has no memory zones"
)
def test_pipe_in_memory_zones_links_the_same(nlp):
    texts = make_texts(40, seed=1)
    expected = [describe(doc) for doc in nlp.pipe(texts)]
    assert sum(map(len, expected)) > 40
    linked = []
    for start in range(0, len(texts), 10):
        with nlp.memory_zone():
            # New words too, whose lexemes end with the zone.
            nlp(f"neverseen{start} of fever{start} (FVR{start})")
            part = list(nlp.pipe(texts[start : start + 10]))
            linked += [describe(doc) for doc in part]
    assert linked == expected
    assert [describe(doc) for doc in nlp.pipe(texts)] == expected


def test_pipe_in_threads_links_the_same(nlp):
    texts = make_texts(60, seed=2)
    expected = [describe(nlp(text)) for text in texts]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda text: describe(nlp(text)), texts))
    assert found == expected


def test_pipe_scores_differ_by_at_most_1e_4_between_batches(sample_kb):
    """Sums in float32 depend on the shape of the matrix that a name is a row of."""
    kb = load_kb(sample_kb)
    chance = random.Random(3)
    letters = "abcdefghij "
    mentions = ["".join(chance.choices(letters, k=12)) for _ in range(200)]
    expected = kb.link(mentions, k=3)
    for size in (1, 7, 64):
        found = [
            one
            for start in range(0, len(mentions), size)
            for one in kb.link(mentions[start : start + size], k=3)
        ]
        for got, wanted in zip(found, expected, strict=True):
            scores = [[c["score"] for c in one.candidates] for one in (got, wanted)]
            assert scores[0] == pytest.approx(scores[1], rel=0, abs=UNIT)
            first, second = scores[1][:2]
            if first - second > UNIT:
                assert got.candidates[0]["cui"] == wanted.candidates[0]["cui"]
            assert got.note == wanted.note
