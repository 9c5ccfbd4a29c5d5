"""spaCy's trainable `entity_linker` over the candidates of a knowledge base."""

from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.tokens import Span
from spacy.training import Example
from spacy.util import fix_random_seed, registry

from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.pipeline.spacy_kb import SpacyKB
from tests.pipelines import make_nlp, mark_words

INFARCTION, MITRAL = "C0000001", "C0000002"
CONFIG = Path(__file__).parents[2] / "experiments" / "context" / "context.cfg"
HEART = "The chest pain began at noon , and troponin shows an MI"
VALVE = "The murmur is loud , because her valve leaks after an MI"


@pytest.fixture(scope="module")
def spacy_kb(sample_kb) -> SpacyKB:
    """The sample as a knowledge base of spaCy."""
    return registry.misc.get("spacy-sapbert.KB.v1")(sample_kb)(spacy.blank("en").vocab)


def mark_last(nlp, text, cui=""):
    """Make a Doc whose last word is an entity."""
    doc = nlp.make_doc(text)
    doc.ents = [Span(doc, len(doc) - 1, len(doc), "DISEASE", kb_id=cui)]
    return doc


def train_linker(kb):
    """Train the pipeline of the experiment to tell two meanings of MI."""
    fix_random_seed(0)
    config = spacy.util.load_config(CONFIG, {"paths.kb": str(kb)}, interpolate=True)
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    pairs = [(HEART, INFARCTION), (VALVE, MITRAL)]
    examples = [
        Example(mark_last(nlp, text), mark_last(nlp, text, cui)) for text, cui in pairs
    ]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(100):
        nlp.update(examples, sgd=optimizer, annotates=["sentencizer"])
    return nlp


def link(nlp, text):
    return nlp(mark_last(nlp, text)).ents[0].kb_id_


@pytest.fixture(scope="module")
def trained(sample_kb):
    return train_linker(sample_kb)


def test_sentence_decides_between_concepts_with_one_name(trained, sample_kb):
    assert [link(trained, HEART), link(trained, VALVE)] == [INFARCTION, MITRAL]
    plain = make_nlp(sample_kb)
    assert link(plain, HEART) == link(plain, VALVE)


def test_sentence_changes_no_link_that_names_decide(trained):
    assert link(trained, VALVE.replace("MI", "Pyrexia")) == "C0000004"
    assert link(trained, VALVE.replace("MI", "zebra")) == "NIL"


@pytest.mark.parametrize("kind", ["disk", "bytes"])
def test_saved_pipeline_brings_its_knowledge_base(trained, tmp_path, kind):
    if kind == "disk":
        trained.to_disk(tmp_path / "saved")
        (tmp_path / "saved").rename(tmp_path / "moved")
        again = spacy.load(tmp_path / "moved")
    else:
        again = spacy.util.load_model_from_config(trained.config)
        again.from_bytes(trained.to_bytes())
    assert [link(again, HEART), link(again, VALVE)] == [INFARCTION, MITRAL]


def test_candidates_are_those_among_which_the_names_leave_a_choice(spacy_kb, sample_kb):
    doc = mark_words("MI", "fever", "zebra")
    both, one, none = spacy_kb.get_candidates_batch(doc.ents)
    assert {c.entity_ for c in both} == {INFARCTION, MITRAL}
    assert {c.alias_ for c in both} == {"MI"}
    first, second = (c.prior_prob for c in both)
    assert first == second <= 0.5
    assert ([c.entity_ for c in one], none) == (["C0000004"], [])
    (linked,) = load_kb(sample_kb).link(["fever"])
    assert one[0].prior_prob == pytest.approx(linked.candidates[0]["probability"])
    alone = [spacy_kb.get_candidates(ent) for ent in doc.ents]
    batches = [both, one, none]
    assert [[c.entity_ for c in x] for x in alone] == [
        [c.entity_ for c in x] for x in batches
    ]


def test_options_of_linking_limit_the_candidates(spacy_kb):
    options = {"filter": {"deny": [MITRAL]}}
    doc = mark_words("MI")
    for name, mentions in (("", doc.ents[0]), ("Batch", doc.ents)):
        make = registry.misc.get(f"spacy-sapbert.Candidate{name}Generator.v1")
        found = make(options)(spacy_kb, mentions)
        (candidate,) = found[0] if name else found
        assert candidate.entity_ == INFARCTION


def test_vectors_are_those_of_preferred_names(spacy_kb, sample_kb):
    kb = load_kb(sample_kb)
    (vector,) = kb.encoder.embed(["Myocardial infarction"])
    assert spacy_kb.entity_vector_length == len(vector)
    retired = spacy_kb.get_vector("C9999999")
    assert np.dot(spacy_kb.get_vector(INFARCTION), vector) == pytest.approx(1)
    assert np.dot(retired, vector) == pytest.approx(1)
    assert not spacy_kb.get_vector("C8888888").any()
    found = spacy_kb.get_vectors([INFARCTION, "", INFARCTION, MITRAL])
    assert (found[0] == found[2]).all()
    assert not found[1].any()
    assert spacy_kb.get_vectors([]).shape == (0, len(vector))
