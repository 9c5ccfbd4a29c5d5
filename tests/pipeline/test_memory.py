"""Long streams, memory zones and threads: equal links, and constant memory."""

import gc
import itertools
import random
import tracemalloc

import pytest
import spacy
from spacy.language import Language

WORDS = "heart attack fever MI DM aspirin ASA headache Cardiac disease of no and pain"
MOST_GROWTH = 200_000  # bytes over some thousand Docs; one has thousands


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


@pytest.mark.slow
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
