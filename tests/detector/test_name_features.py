"""What a detector learns from the names of a knowledge base."""

import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.ml.featureextractor import FeatureExtractor

from spacy_sapbert.detector.name_embed import NameExtractor, make_name_embed
from spacy_sapbert.detector.name_features import LabelTable, NameFeatures
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.vocabularies.concepts import Concept


@pytest.fixture(scope="module")
def names_kb(make_kb, tmp_path_factory) -> Path:
    concepts = [
        Concept("D1", ["Heart attack", "MI"], types=["T047"]),
        Concept("D2", ["Cancer, lung", "lung tumour"], types=["T191"]),
        Concept("D3", ["spastic ataxia"], types=["T047"]),
        Concept("R1", ["Aspirin", "acetylsalicylic acid"], types=["T121"]),
        Concept("X1", ["cold"], types=["T184"]),
        Concept("X2", ["Cold"], types=["T070"]),
        Concept("U1", ["Blue thing"]),
        Concept("D4", ["acute pain"], types=["T184"]),
        Concept("R2", ["acute drug"], types=["T121"]),
    ]
    return make_kb(tmp_path_factory.mktemp("names"), concepts)


@pytest.fixture(scope="module")
def features(names_kb) -> NameFeatures:
    return NameFeatures.from_kb(load_kb(names_kb))


def find(features: NameFeatures, text: str) -> dict[str, tuple[str, str]]:
    return {text[s:e]: (name, word) for s, e, name, word in features.find(text)}


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("A heart attack, then.", "heart", ("B-DISO", "DISO")),
        ("then Aspirin.", "Aspirin", ("U-CHEM", "CHEM")),
        ("The blue thing stayed.", "stayed", ("", "")),
        ("do re mi fa", "mi", ("", "")),  # an abbreviation is written exactly so
        ("lung-cancers", "lung", ("B-DISO", "DISO")),
        ("acute pain", "acute", ("B-DISO", "mixed")),  # of names of both groups
        ("Acetylsalicylic acid (ASA) helps. ASA is cheap.", "ASA", ("A-CHEM",) * 2),
        (
            "Rare hereditary ataxia (RHA) is rare. The RHA was mild.",
            "RHA",
            ("A-", "A-DISO"),
        ),
    ],
)
def test_words_have_the_features_of_names(features, text, word, expected):
    assert find(features, text)[word] == expected
    assert find(features, "the cold")["cold"][0] == "U-DISO+PHEN"  # of both groups
    assert find(features, "The blue thing")["blue"][0] == "B-untyped"


def test_tables_find_what_they_were_made_of():
    numbers = {f"text {number}": 1 + number % 200 for number in range(1000)}
    table = LabelTable.from_numbers(numbers)
    assert table.find([*numbers]).tolist() == [*numbers.values()]
    assert table.find(["other", "text 1000"]).tolist() == [0, 0]
    empty = LabelTable.from_numbers({})
    assert empty.find(["other"]).tolist() == [0]


def test_layer_adds_two_columns_and_is_saved_without_the_knowledge_base(names_kb):
    nlp = spacy.blank("en")
    docs = [nlp("A heart attack."), nlp(""), nlp("  Aspirin\n")]
    attributes = FeatureExtractor(["NORM", "SHAPE"])
    layer = NameExtractor(attributes, str(names_kb))
    layer.initialize()
    columns = layer.predict(docs)
    assert [each.shape for each in columns] == [(4, 4), (0, 4), (3, 4)]
    assert np.array_equal(columns[0][:, :2], attributes.predict(docs)[0])
    assert columns[0][1, 2] != columns[0][2, 2]  # B and L
    assert columns[2][1, 2:].all()
    copy = NameExtractor(FeatureExtractor(["NORM", "SHAPE"]), "nothing")
    copy.from_bytes(layer.to_bytes())
    assert all(map(np.array_equal, copy.predict(docs), columns))
    embed = make_name_embed(8, ["NORM"], [50], str(names_kb))
    embed.initialize(docs)
    assert [each.shape for each in embed.predict(docs)] == [(4, 8), (0, 8), (3, 8)]


def test_a_saved_detector_loads_where_only_the_package_is_installed(
    names_kb, tmp_path, monkeypatch
):
    embed = {
        "@architectures": "spacy-sapbert.NameEmbed.v1",
        "width": 8,
        "attrs": ["NORM"],
        "rows": [50],
        "kb": str(names_kb),
    }
    encode = {
        "@architectures": "spacy.MaxoutWindowEncoder.v2",
        "width": 8,
        "window_size": 1,
        "maxout_pieces": 2,
        "depth": 1,
    }
    model = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": model})
    nlp.initialize()
    nlp.to_disk(tmp_path)
    names_kb.rename(names_kb.with_name("moved"))
    monkeypatch.setitem(sys.modules, "training", None)
    try:
        loaded = spacy.load(tmp_path)
    finally:  # other tests use it too
        names_kb.with_name("moved").rename(names_kb)
    text = "A heart attack, then Aspirin."
    assert np.array_equal(loaded(text).tensor, nlp(text).tensor)
