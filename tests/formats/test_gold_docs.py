"""Annotated documents as Docs and as tables: `convert`, `read_docs`."""

from pathlib import Path
from typing import Any

from spacy.tokens import Span, SpanGroup

from spacy_sapbert.formats.entities import describe_entities
from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from spacy_sapbert.formats.gold_docs import make_gold, make_gold_docs
from tests.pipelines import NLP

CANCER = "Breast and ovarian  cancer."


def make(*spans: Any, nlp: Any = NLP) -> Any:
    mentions = [GoldMention(s, e, label, "", parts, 1) for s, e, label, parts in spans]
    documents = [GoldDocument("d", CANCER, mentions)]
    options = {"path": Path("gold.txt"), "spans_key": "gold", "label": "ENTITY"}
    ((key, doc),) = make_gold_docs(documents, nlp, **options)
    assert key == "d"
    return doc


def describe(spans: Any) -> Any:
    return [(s.start_char, s.end_char, s.label_, s.kb_id_) for s in spans]


def test_make_gold_has_the_places_and_ids_of_a_group_else_those_of_its_spans():
    doc = make((0, 6, "A", [["C1", "C2"]]), (20, 27, "B", []))
    first = GoldMention(0, 6, "A", "Breast", [["C1", "C2"]], 0)
    last = GoldMention(20, 27, "B", "cancer.", [], 0)
    expected = GoldDocument("d", CANCER, [first, last])
    assert make_gold(doc, "d", spans_key="gold") == expected
    of_spans = [first._replace(parts=[["C1"]]), last]
    doc.ents = [*doc.ents, Span(doc, 1, 2, label="X")]
    assert make_gold(doc).mentions == of_spans
    other = GoldMention(7, 10, "X", "and", [[]], 0)
    assert make_gold(doc, every=True).mentions == [of_spans[0], other, last]
    attrs = doc.spans["gold"].attrs
    for key, values, mentions in (
        ("start_char", [-1, 20], [last]),
        ("end_char", [6, 28], []),
        ("ids", [[]], of_spans),  # of another program
    ):
        attrs[key] = values
        assert make_gold(doc, spans_key="gold").mentions == mentions
    assert make_gold(doc, spans_key="other").mentions == []


def test_entities_of_a_group_with_equal_offsets_keep_their_own_links():
    doc = NLP("one two three four")
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
