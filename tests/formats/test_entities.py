import numpy as np
import pytest
from spacy.tokens import Doc, Span, SpanGroup

import spacy_sapbert.pipeline.linker  # noqa: F401
from spacy_sapbert.formats.entities import (
    AttributeNames,
    describe_entities,
)
from tests.pipelines import NLP

CANDIDATES = [
    {"cui": "C1", "name": "One", "alias": "one", "score": 0.5, "types": []},
    {"cui": "C2", "name": "Two", "alias": "two", "score": 0.25, "types": ["T1"]},
]


@pytest.fixture
def doc() -> Doc:
    return NLP("one two three four")


def test_entities_without_concept_keep_candidates_and_note(doc):
    doc.ents = [Span(doc, 0, 1, label="X", kb_id="NIL")]
    doc.ents[0]._.candidates = CANDIDATES
    doc.ents[0]._.link_note = "below_threshold"
    (entity,) = describe_entities(doc)
    assert (entity["cui"], entity["name"], entity["score"]) == (None, None, None)
    assert entity["candidates"] == CANDIDATES
    assert entity["note"] == "below_threshold"


def test_entities_of_a_group_with_equal_offsets_keep_their_own_links(doc):
    spans = [Span(doc, 2, 3, label=label) for label in "ABC"] + [Span(doc, 0, 1)]
    group = SpanGroup(doc, name="sc", spans=spans)
    group.attrs["cui"] = ["C1", "C2", None, "C4"]
    group.attrs["link_note"] = [None, None, "empty", None]
    doc.spans["sc"] = group
    described = describe_entities(doc, spans_key="sc")
    assert [(e["start"], e["label"], e["cui"], e["note"]) for e in described] == [
        (0, "", "C4", None),
        (8, "A", "C1", None),
        (8, "B", "C2", None),
        (8, "C", None, "empty"),
    ]


def test_entities_attributes_can_have_other_names(doc):
    doc.ents = [Span(doc, 0, 1, label="X")]
    Span.set_extension("mesh_id", default="M1", force=True)
    names = AttributeNames("mesh_id", "nobody_registered", "nor_this")
    (entity,) = describe_entities(doc, names=names)
    Span.remove_extension("mesh_id")
    assert (entity["cui"], entity["candidates"], entity["note"]) == ("M1", [], None)


def test_entities_have_all_fields_of_the_chosen_concept(doc):
    doc.ents = [Span(doc, 0, 1, label="X")]
    candidate = {
        **CANDIDATES[1],
        "rank": 1,
        "codes": {"MSH": ["D2"]},
        "tie": True,
        "probability": np.float32(0.75),
    }
    doc.ents[0]._.cui, doc.ents[0]._.candidates = "C2", [candidate]
    (entity,) = describe_entities(doc)
    assert (entity["types"], entity["codes"]) == (["T1"], {"MSH": ["D2"]})
    assert entity["probability"] == 0.75
    assert type(entity["probability"]) is float
    assert entity["candidates"] == [{**candidate, "probability": 0.75}]


@pytest.mark.parametrize("score", [float("nan"), np.float32("inf"), None])
def test_entities_scores_that_are_no_numbers_are_none(doc, score):
    doc.ents = [Span(doc, 0, 1, label="X")]
    doc.ents[0]._.candidates = [{"cui": "C1", "score": score}]
    assert describe_entities(doc)[0]["candidates"] == [{"cui": "C1", "score": None}]
