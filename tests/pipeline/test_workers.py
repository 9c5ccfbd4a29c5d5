import pickle
import signal
from collections.abc import Callable
from typing import Any

import pytest
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.documents import Document
from spacy_sapbert.formats.entities import LinkedDoc, describe_entities
from spacy_sapbert.formats.gold import GoldMention
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.pipeline import workers
from spacy_sapbert.pipeline.running import ComponentError
from spacy_sapbert.pipeline.workers import Workers, link_packed, pack_document
from tests.pipelines import make_nlp


@pytest.fixture
def link_as_worker(monkeypatch) -> Callable[..., list[Any]]:
    """Links documents as a worker does, with what is sent to it and back."""

    def link(nlp: Language, *documents: Document) -> list[Any]:
        monkeypatch.setattr(workers, "get_pipeline", lambda: nlp)
        packed = pickle.loads(pickle.dumps([*map(pack_document, documents)]))
        results: list[Any] = pickle.loads(pickle.dumps(link_packed(packed, [])))
        return results

    return link


def test_workers_returns_everything_that_formats_write(sample_kb, link_as_worker):
    nlp = make_nlp(sample_kb, spans_key="sc")
    doc = nlp.make_doc("heart attack and fever")
    doc.spans["sc"] = [Span(doc, 0, 2, "A"), Span(doc, 0, 2, "B"), Span(doc, 3, 4)]
    (linked,) = link_as_worker(nlp, Document("n1", doc.text, doc))
    assert [(e["text"], e["label"], e["cui"]) for e in linked.entities] == [
        ("heart attack", "A", "C0000001"),
        ("heart attack", "B", "C0000001"),
        ("fever", "", "C0000004"),
    ]
    entities = describe_entities(nlp(doc), spans_key="sc")
    assert linked == LinkedDoc("n1", doc.text, entities, {}, "en")


@Language.component("test_workers_bad")
def find_bad(doc: Doc) -> Doc:
    if "bad" in doc.text:
        raise ZeroDivisionError(doc.text)
    return doc


def test_workers_returns_the_errors_of_documents(sample_kb, link_as_worker):
    nlp = spacy.blank("en")
    nlp.add_pipe("test_workers_bad")
    nlp.add_pipe("sapbert_linker", config={"kb": str(sample_kb)})
    spans = [GoldMention(3, 8, "X", "fever", [], 1)]
    documents = [
        Document("n1", "prefever", mentions=spans, fields={"not": "sent"}),
        Document("n2", "bad SENTINELTEXT", place="a.jsonl:2"),
    ]
    linked, error = link_as_worker(nlp, *documents)
    found = [(e["start"], e["text"], e["cui"]) for e in linked.entities]
    assert found == [(3, "fever", "C0000004")]
    assert linked.fields == {}
    assert isinstance(error, ComponentError)
    assert "'n2' (a.jsonl:2)" in str(error)
    assert "SENTINELTEXT" not in str(error)


@pytest.mark.usefixtures("new_process")
def test_workers_keep_the_order_and_can_be_used_again(exported_kb):
    """A job is too large for the buffer of a pipe, and more follow than are sent ahead.

    Sending one must not wait.
    """
    count = 2 * workers.JOBS_AHEAD + 2
    settings = {"name": None, "kb": str(exported_kb)}

    def jobs(first: int):
        for number in range(first, first + count):
            yield [Document(str(number) * 900_000, "fever")], list[str]()
        raise SapbertError("E001", "of the reader")

    with Workers(settings, load_kb(exported_kb), 2) as pool:
        results = pool.run(jobs(0))
        found = [next(results) for _ in range(count)]
        assert [documents[0].id[0] for documents, _ in found] == [*"01234567"]
        assert [docs[0].entities[0]["text"] for _, docs in found] == ["fever"] * count
        with pytest.raises(SapbertError, match="of the reader"):
            next(results)
        # a run that is left early does not disturb the next
        assert next(pool.run(jobs(0)))[0][0].id[0] == "0"
        assert next(pool.run(jobs(4)))[0][0].id[0] == "4"


def test_start_worker_sets_the_threads_and_leaves_ctrl_c_to_the_parent(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(workers, "started", [])
    handler, threads = signal.getsignal(signal.SIGINT), torch.get_num_threads()
    try:
        workers.start_worker({}, (), threads + 1)
        assert torch.get_num_threads() == threads + 1
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, handler)
        torch.set_num_threads(threads)
