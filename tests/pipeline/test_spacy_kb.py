"""spaCy's trainable `entity_linker` over the candidates of a knowledge base."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import spacy
from spacy.tokens import Span
from spacy.training import Example
from spacy.util import fix_random_seed, registry

from spacy_sapbert.kb.folder import versions
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.pipeline.spacy_kb import SpacyKB, make_spacy_kb
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


def train_linker(kb, reader=None, shared=None):
    """Train the pipeline of the experiment to tell two meanings of MI.

    `reader` is the layer that reads the sentence, and `shared` a component with one.
    """
    fix_random_seed(0)
    config = spacy.util.load_config(CONFIG, {"paths.kb": str(kb)}, interpolate=True)
    linker = config["components"]["entity_linker"]["model"]
    if shared is not None:
        config["components"]["tok2vec"] = {"factory": "tok2vec", "model": shared}
        config["nlp"]["pipeline"].insert(1, "tok2vec")
    linker["tok2vec"] = reader or linker["tok2vec"]
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


def test_layer_that_components_share_reads_the_sentence(sample_kb):
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96}
    config = spacy.util.load_config(CONFIG)
    shared = config["components"]["entity_linker"]["model"]["tok2vec"]
    nlp = train_linker(sample_kb, listener, shared)
    assert [link(nlp, HEART), link(nlp, VALVE)] == [INFARCTION, MITRAL]


def test_transformer_reads_the_sentence(sample_kb):
    pytest.importorskip(
        "spacy_transformers", reason="spacy-transformers is not installed"
    )
    reader = {
        "@architectures": "spacy-transformers.Tok2VecTransformer.v3",
        "name": str(sample_kb / "v1" / "encoder"),
        "get_spans": {"@span_getters": "spacy-transformers.doc_spans.v1"},
        "tokenizer_config": {"use_fast": True},
        "transformer_config": {},
        "pooling": {"@layers": "reduce_mean.v1"},
        "grad_factor": 1.0,
        "mixed_precision": False,
        "grad_scaler_config": {},
    }
    nlp = train_linker(sample_kb, reader)
    assert [link(nlp, HEART), link(nlp, VALVE)] == [INFARCTION, MITRAL]


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


def test_installed_knowledge_base_is_saved_by_its_name(
    sample_kb, tmp_path, monkeypatch
):
    point = SimpleNamespace(name="wards", load=lambda: sample_kb)
    monkeypatch.setattr(versions, "entry_points", lambda group: [point])
    vocab = spacy.blank("en").vocab
    installed = make_spacy_kb("wards")(vocab)
    installed.to_disk(tmp_path / "kb")
    data = installed.to_bytes()
    assert not [*tmp_path.rglob("concepts.db")]
    assert len(data) < 1000
    again, other = SpacyKB(vocab), SpacyKB(vocab)
    again.from_disk(tmp_path / "kb")
    other.from_bytes(data)
    vector = installed.get_vector(MITRAL)
    assert (again.get_vector(MITRAL) == vector).all()
    assert (other.get_vector(MITRAL) == vector).all()


def test_empty_knowledge_base_stays_empty(tmp_path):
    empty, again = (SpacyKB(spacy.blank("en").vocab) for _ in range(2))
    empty.to_disk(tmp_path / "kb")
    again.from_disk(tmp_path / "kb")
    again.from_bytes(empty.to_bytes())
    assert again.is_empty()


def test_answer_stands_beside_that_of_the_linker(trained, sample_kb, tmp_path):
    trained.to_disk(tmp_path)
    nlp = spacy.load(tmp_path)
    nlp.add_pipe("sapbert_linker", config={"kb": str(sample_kb)}, first=True)
    for text, cui in ((HEART, INFARCTION), (VALVE, MITRAL)):
        (ent,) = nlp(mark_last(nlp, text)).ents
        assert (ent.kb_id_, len(ent._.candidates) > 1) == (cui, True)
        assert ent._.link_note == "ambiguous"


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
