import spacy
from spacy.tokens import Doc, Span

from spacy_sapbert.formats.documents import Document
from spacy_sapbert.formats.entities import describe_entities
from spacy_sapbert.pipeline.worker_process import pack_document, run_job


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
