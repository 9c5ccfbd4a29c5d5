import pytest
from spacy.tokens import Doc, Span, SpanGroup

import spacy_sapbert.pipeline.linker  # noqa: F401
from spacy_sapbert.formats.entities import (
    AttributeNames,
    describe_entities,
)
from tests.pipelines import NLP


@pytest.fixture
def doc() -> Doc:
    return NLP("one two three four")


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
