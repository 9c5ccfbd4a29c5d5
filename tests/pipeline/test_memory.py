"""Long streams, memory zones and threads: equal links, and constant memory."""

import gc
import itertools
import random
from pathlib import Path

import pytest
import spacy
from spacy.language import Language

WORDS = "heart attack fever MI DM aspirin ASA headache Cardiac disease of no and pain"
MOST_GROWTH = 30 << 20  # bytes over 100,000 Docs; one has thousands
STATUS = Path("/proc/self/status")


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
@pytest.mark.skipif(not STATUS.is_file(), reason="only Linux says what is used")
def test_pipe_memory_is_constant_over_a_long_stream(nlp):
    texts = itertools.cycle(make_texts(500))

    def run(count):
        for _ in nlp.pipe(itertools.islice(texts, count), batch_size=50):
            pass
        gc.collect()
        return int(STATUS.read_text().partition("VmRSS:")[2].split()[0]) << 10

    before = run(5_000)
    assert run(100_000) - before < MOST_GROWTH


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
