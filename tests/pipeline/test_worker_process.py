import spacy
from spacy.tokens import Doc, Span

from spacy_sapbert.formats.documents import Document
from spacy_sapbert.formats.entities import describe_entities
from spacy_sapbert.pipeline.worker_process import pack_doc, pack_document, run_job


def test_worker_process_returns_everything_that_formats_write(sample_kb):
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_linker", config={"kb": str(sample_kb), "spans_key": "sc"})
    doc = nlp.make_doc("heart attack and fever")
    doc.spans["sc"] = [Span(doc, 0, 2, "A"), Span(doc, 0, 2, "B"), Span(doc, 3, 4)]
    packed = [pack_document(Document("n1", doc.text, doc))]
    (data,) = run_job(nlp, packed, [])
    found = describe_entities(
        Doc(spacy.blank("en").vocab).from_bytes(data), spans_key="sc"
    )
    assert [(e["text"], e["label"], e["cui"]) for e in found] == [
        ("heart attack", "A", "C0000001"),
        ("heart attack", "B", "C0000001"),
        ("fever", "", "C0000004"),
    ]
    assert found == describe_entities(nlp(doc), spans_key="sc")


def test_worker_process_removes_what_bytes_cannot_hold(sample_kb):
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("sapbert_linker", config={"kb": str(sample_kb)})
    doc = nlp.make_doc("had fever")
    doc.ents = [Span(doc, 1, 2, "X")]
    nlp(doc)
    expected = describe_entities(doc)
    doc.user_data["other"] = object()
    doc.spans["other"] = [doc[0:1]]
    doc.spans["other"].attrs["other"] = object()
    back = Doc(nlp.vocab).from_bytes(pack_doc(doc, linker.attrs, None))
    assert describe_entities(back) == expected
    assert expected[0]["cui"] == "C0000004"
    assert not back.spans
