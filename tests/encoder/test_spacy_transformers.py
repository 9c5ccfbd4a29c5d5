"""The encoder as a layer of spacy-transformers."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Span
from spacy.util import registry

from spacy_sapbert.encoder.encoder import Encoder, EncoderConfig
from spacy_sapbert.encoder.huggingface import EncoderSettings
from spacy_sapbert.encoder.pooling import POOLINGS
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.knowledge_base import load_kb
from tests.building import build_small_kb
from tests.pipelines import make_nlp, mark_words
from tests.thousand_names import make_concepts

pytest.importorskip("spacy_transformers", reason="spacy-transformers is not installed")
ARCHITECTURE = "spacy-sapbert.SpacyTransformersEncoder.v1"
ENCODER = {"@architectures": ARCHITECTURE}
NAMES = ["", "頭痛", "x " * 100, "HER2+", "factor [UNK] [PAD] 8"]


@pytest.mark.parametrize("pooling", sorted(POOLINGS))
def test_vectors_are_those_of_torch(tiny_encoder, pooling):
    known = sorted({name for concept in make_concepts() for name in concept.aliases})
    names = [*NAMES, *known, *(f"recent {name}" for name in known)]
    assert len(names) > 1000
    settings = EncoderSettings(pooling, 12, True)
    torch, layer = (
        Encoder.open(tiny_encoder, config, settings=settings)
        for config in (
            EncoderConfig("torch"),
            registry.architectures.get(ARCHITECTURE)(),
        )
    )
    assert torch.tokenize(names) == layer.tokenize(names)
    ours, theirs = layer.embed(names), torch.embed(names)
    cosines = np.einsum("nd,nd->n", ours, theirs)
    assert cosines[theirs.any(axis=1)].min() > 0.9999
    assert (ours.any(axis=1) == theirs.any(axis=1)).all()


def test_linker_has_the_links_of_torch(sample_kb, tmp_path):
    words = ("MI", "headach", "aspirine", "zebra")
    links = []
    for encoder in ({"@architectures": "spacy-sapbert.TransformerEncoder.v1"}, ENCODER):
        nlp = make_nlp(sample_kb, encoder=encoder)
        links.append([ent._.candidates for ent in nlp(mark_words(*words)).ents])
    assert links[0] == links[1]
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert again.config["components"]["sapbert_linker"]["encoder"] == {
        **ENCODER,
        "names_per_pass": 64,
    }
    assert [e._.candidates for e in again(mark_words(*words)).ents] == links[0]


def test_names_of_a_knowledge_base_have_the_vectors_of_torch(
    concepts_file, tiny_encoder, sample_kb, tmp_path
):
    manifest = build_small_kb(
        concepts_file, tmp_path / "kb", tiny_encoder, engine="spacy_transformers"
    )
    assert manifest.encoder == load_kb(sample_kb).manifest.encoder


def test_span_getter_yields_entities():
    doc = mark_words("heart", "attack", "fever", ids={2: ""})
    doc.ents = [*doc.ents, Span(doc, 0, 2, label="X")]
    get_spans = registry.get("span_getters", "spacy-sapbert.entities.v1")()
    spans, none = get_spans([doc, mark_words()])
    assert ([span.text for span in spans], none) == (["heart attack", "fever"], [])


def test_precision_other_than_float32_is_an_error():
    with pytest.raises(SapbertError, match="spacy_transformers"):
        EncoderConfig("spacy_transformers", precision="bf16")
