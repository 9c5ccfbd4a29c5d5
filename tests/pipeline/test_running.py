import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.documents import Document
from spacy_sapbert.pipeline.linker import list_detectors
from spacy_sapbert.pipeline.running import (
    complete_pipeline,
    get_linker,
    link_documents,
    load_pipeline,
)
from tests.pipelines import make_nlp

SENTINEL = "SENTINELTEXT"


@Language.component("test_pipelines_note_entities")
def note_entities(doc):
    """Declares nothing, as negspaCy's and medspaCy's components do."""
    doc.user_data["fields"] = {"noted": len(doc.ents)}
    return doc


def test_complete_pipeline_adds_the_detector_before_the_linker():
    nlp = make_nlp(None, spans_key="sc")
    complete_pipeline(nlp, mentions="names", options={"k": 3, "threshold": 0.5})
    assert nlp.pipe_names == ["sapbert_mentions", "sapbert_linker"]
    assert nlp.get_pipe("sapbert_mentions").spans_key == "sc"
    options = nlp.get_pipe("sapbert_linker").options
    assert (options.k, options.threshold) == (3, 0.5)
    complete_pipeline(nlp, mentions="names")  # which it has now
    assert nlp.pipe_names == ["sapbert_mentions", "sapbert_linker"]
    with pytest.raises(SapbertError, match="E331"):
        complete_pipeline(nlp, mentions="ner")
    nlp.rename_pipe("sapbert_linker", "mine")
    assert get_linker(nlp) is nlp.get_pipe("mine")


@Language.component("test_pipelines_long_forms", assigns=["span._.long_form"])
def find_long_forms(doc):
    return doc


def test_complete_pipeline_keeps_the_detector_of_abbreviations():
    for component in ("sapbert_abbreviations", "test_pipelines_long_forms"):
        nlp = spacy.blank("en")
        nlp.add_pipe(component)
        complete_pipeline(nlp, detection=False)
        assert nlp.pipe_names == [component, "sapbert_linker"]


def test_complete_pipeline_finds_components_that_detect_entities(sample_kb):
    nlp = spacy.blank("en")
    nlp.add_pipe("test_pipelines_note_entities")
    nlp.add_pipe("attribute_ruler")
    with pytest.raises(SapbertError, match=r"E508.*doc\.ents.*`assigns`"):
        complete_pipeline(nlp, kb=str(sample_kb))
    assert list_detectors(nlp, None) == []  # nor is the linker that was added
    nlp.add_pipe("ner")
    assert list_detectors(nlp, None) == ["ner"]


@Language.component("test_pipelines_failing", assigns=["doc.ents"])
def failing(doc):
    if "bad" in doc.text:
        raise RuntimeError(doc.text)
    return doc


@Language.factory("test_pipelines_together")
def make_together(nlp, name):
    return Together()


class Together:
    """Fails for a batch as a whole, and only then."""

    def __call__(self, doc):
        return doc

    def pipe(self, stream, **kwargs):
        list(stream)
        raise MemoryError(SENTINEL)


@Language.component("test_pipelines_entities", assigns=["doc.ents"])
def set_entities(doc):
    """Takes the first word; only spaCy's own tokens are looked at."""
    doc.ents = [Span(doc, 0, 1, label="FIRST")] if len(doc) else []
    return doc


def make_linking(sample_kb, *components):
    nlp = spacy.blank("en")
    for component in components:
        nlp.add_pipe(component)
    complete_pipeline(nlp, kb=str(sample_kb), mentions="names")
    return nlp


def cuis(docs):
    return [(doc.id, [entity["cui"] for entity in doc.entities]) for doc in docs]


def test_link_documents_failing_document_is_an_error_without_text(sample_kb):
    nlp = make_linking(sample_kb, "test_pipelines_failing")
    texts = ["fever", "fine", f"bad {SENTINEL}", f"bad too {SENTINEL}"]
    documents = [Document(f"n{i}", text) for i, text in enumerate(texts)]
    with pytest.raises(SapbertError, match="E513.*'n2'") as caught:
        list(link_documents(nlp, documents, batch_size=2))
    assert "'test_pipelines_failing' failed with RuntimeError" in str(caught.value)
    assert SENTINEL not in str(caught.value)
    assert caught.value.__cause__ is None


def test_link_documents_repeats_a_failing_batch_one_by_one(sample_kb):
    nlp = make_linking(sample_kb, "test_pipelines_together")
    documents = [Document(1, "fever"), Document(2, "aspirin")]
    found = cuis(link_documents(nlp, documents, batch_size=2))
    assert found == [(1, ["C0000004"]), (2, ["C0000006"])]


def test_link_documents_keeps_existing_entities(sample_kb):
    nlp = make_linking(sample_kb, "test_pipelines_entities")
    doc = nlp.make_doc("fever and aspirin")
    doc.ents = [doc.char_span(10, 17, label="X")]
    empty, none = nlp.make_doc("fever"), nlp.make_doc("")
    empty.ents = []
    documents = [
        Document(1, doc.text, doc),
        Document(2, empty.text, empty),
        Document(3, "", none),
        Document(4, "fever and aspirin"),
        Document(5, "fever", nlp.make_doc("fever")),
    ]
    assert cuis(link_documents(nlp, documents, batch_size=3)) == [
        (1, ["C0000006"]),
        (2, []),
        (3, []),
        (4, ["C0000004", "C0000006"]),
        (5, ["C0000004"]),
    ]


def test_link_documents_with_entities_skips_nothing_but_detectors(sample_kb):
    nlp = make_linking(sample_kb, "test_pipelines_note_entities")
    doc = nlp.make_doc("fever and aspirin")
    doc.ents = [doc.char_span(10, 17, label="X")]
    documents = [Document(1, doc.text, doc)]
    [linked] = link_documents(nlp, documents, batch_size=1)
    assert linked.fields["noted"] == 1
    assert cuis([linked]) == [(1, ["C0000006"])]


def test_load_pipeline_invalid_folder_is_an_error_of_one_line(tmp_path):
    (tmp_path / "config.cfg").write_text("[nlp]\nlang = [")
    (tmp_path / "meta.json").write_text('{"lang": "en"}')
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "CURRENT").write_text("v1")
    with pytest.raises(SapbertError, match="E507.*knowledge base"):
        load_pipeline(str(tmp_path / "kb"))
    with pytest.raises(SapbertError, match="E507"):
        load_pipeline(str(tmp_path))
    with pytest.raises(SapbertError, match="E331.*--lang"):
        load_pipeline(str(tmp_path), lang="en")
