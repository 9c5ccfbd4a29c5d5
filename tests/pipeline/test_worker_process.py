import pickle
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_sapbert.formats.documents import Document
from spacy_sapbert.formats.entities import describe_entities
from spacy_sapbert.formats.gold import GoldSpan
from spacy_sapbert.pipeline.batches import ComponentError
from spacy_sapbert.pipeline.worker_process import pack_document, run_job, unpack_result
from tests.pipelines import make_nlp


def test_worker_process_returns_everything_that_formats_write(sample_kb):
    nlp = make_nlp(sample_kb, spans_key="sc")
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


@Language.component("test_worker_process_bad")
def find_bad(doc: Doc) -> Doc:
    if "bad" in doc.text:
        raise ZeroDivisionError(doc.text)
    return doc


def test_worker_process_returns_the_errors_of_documents(sample_kb: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("test_worker_process_bad")
    nlp.add_pipe("sapbert_linker", config={"kb": str(sample_kb)})
    spans = [GoldSpan(3, 8, "X", "fever", [], 1)]
    documents = [
        Document("n1", "prefever", spans=spans, fields={"not": "sent"}),
        Document("n2", "bad SENTINELTEXT", place="a.jsonl:2"),
    ]
    packed = pickle.loads(pickle.dumps([pack_document(each) for each in documents]))
    results = pickle.loads(pickle.dumps(run_job(nlp, packed, [])))
    doc, error = (unpack_result(result, nlp.vocab) for result in results)
    assert isinstance(doc, Doc)
    found = [(e["start"], e["text"], e["cui"]) for e in describe_entities(doc)]
    assert found == [(3, "fever", "C0000004")]
    assert isinstance(error, ComponentError)
    assert "'n2' (a.jsonl:2)" in str(error)
    assert "SENTINELTEXT" not in str(error)
