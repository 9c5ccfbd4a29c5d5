import pickle
import threading
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from spacy_sapbert import LinkBatches, SapbertError, __version__  # noqa: E402
from spacy_sapbert.distributed import link_batches  # noqa: E402
from spacy_sapbert.distributed.link_batches import open_once  # noqa: E402
from spacy_sapbert.formats.arrow import MENTION_SCHEMA  # noqa: E402
from spacy_sapbert.formats.entities import describe_entities  # noqa: E402
from spacy_sapbert.kb.edits.change import add_concepts  # noqa: E402
from spacy_sapbert.kb.folder.versions import read_version  # noqa: E402
from spacy_sapbert.kb.knowledge_base import load_kb  # noqa: E402
from spacy_sapbert.vocabularies.concepts import Concept  # noqa: E402

SENTINEL = "SENTINELTEXT"


@Language.component("test_distributed_fails")
def fail_on_some(doc: Doc) -> Doc:
    if "DM" in doc.text:
        raise ZeroDivisionError(doc.text)
    return doc


def make_table(*texts: str | None) -> Any:
    numbers = [str(number) for number in range(len(texts))]
    return pa.table({"id": numbers, "text": pa.array(texts, pa.string())})


def test_link_batches_links_as_the_pipeline_does(sample_kb):
    texts = ["Fever and MI.", "heart attack, diabetes", "Pyrexia"]
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_mentions")
    nlp.add_pipe("sapbert_linker", config={"kb": str(sample_kb)})
    rows = LinkBatches(kb=sample_kb, candidates=True)(make_table(*texts)).to_pylist()
    entities = [
        {"id": str(number), **entity}
        for number, doc in enumerate(nlp.pipe(texts))
        for entity in describe_entities(doc)
    ]
    assert len(rows) == len(entities) == 5
    same = ("id", "start", "end", "text", "label", "cui", "name", "score", "note")
    for name in (*same, "probability", "types", "tie"):
        found = [row[name] for row in rows]
        assert found == [entity[name] for entity in entities]  # type: ignore[misc]
    for row, entity in zip(rows, entities, strict=True):
        assert dict(row["codes"]) == entity["codes"]
        cuis = [candidate["cui"] for candidate in row["candidates"]]
        assert cuis == [candidate["cui"] for candidate in entity["candidates"]]
    digest = read_version(sample_kb).manifest.digest
    run = {(row["kb_digest"], row["package_version"], row["error"]) for row in rows}
    assert run == {(digest, __version__, None)}


def test_link_batches_pickles_small_and_opens_in_the_process(
    make_link, documents, expected
):
    link = make_link()
    link(documents)
    data = pickle.dumps(link.iterate)
    assert len(data) < 2000
    rows = pa.Table.from_batches(pickle.loads(data)(documents.to_batches()))
    assert rows.to_pylist() == expected
    first, other = make_link(), make_link(max_chars=7)
    assert open_once(first.settings) is open_once(other.settings)


@pytest.mark.parametrize(("partitions", "batch_size"), [(1, 3), (7, 1)])
def test_link_batches_rows_do_not_depend_on_the_partitions(
    make_link, documents, expected, partitions, batch_size
):
    link = make_link(batch_size=batch_size)
    size = -(-len(documents) // partitions)
    batches = documents.to_batches(size)
    assert len(batches) == partitions
    rows = [row for batch in link.iterate(batches) for row in batch.to_pylist()]
    assert rows == expected


def test_link_batches_keeps_columns_with_their_types(make_link, documents):
    raw = pa.array([bytes([200, n]) for n in range(20)], pa.binary_view())
    documents = documents.append_column("raw", raw)
    rows = make_link(keep=["ward", "raw"])(documents)
    assert rows.schema.names == [*MENTION_SCHEMA.names, "ward", "raw"]
    assert rows.schema.field("ward").type == pa.int8()
    assert rows.schema.field("raw").type == pa.binary_view()
    assert {row["raw"][1] + 100 == int(row["id"]) for row in rows.to_pylist()} == {True}
    wards = {row["note"]: row["ward"] for row in documents.to_pylist()}
    assert {wards[int(row["id"])] == row["ward"] for row in rows.to_pylist()} == {True}


def test_link_batches_a_document_that_is_too_long_is_a_row(expected):
    *linked, last = expected
    assert {row["error"] for row in linked} == {None}
    assert last["id"] == "119"
    assert last["error"].startswith("[E374] Expected a document of at most 1,000")
    assert "it has 1,900 characters" in last["error"]
    assert last["kb_digest"] == linked[0]["kb_digest"]
    null = {name for name, value in last.items() if value is None}
    run = {"id", "error", "kb_digest", "package_version"}
    assert null - {"ward"} == {*MENTION_SCHEMA.names} - run


def test_link_batches_a_document_whose_component_fails_is_a_row(sample_kb, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("test_distributed_fails")
    nlp.to_disk(tmp_path / "failing")
    link = LinkBatches(tmp_path / "failing", kb=sample_kb, mentions="names")
    rows = link(make_table("fever", f"DM {SENTINEL} fever", "aspirin")).to_pylist()
    assert [(row["id"], row["cui"]) for row in rows] == [
        ("0", "C0000004"),
        ("1", None),
        ("2", "C0000006"),
    ]
    error = rows[1]["error"]
    assert error.startswith("[E513]")
    assert "test_distributed_fails" in error
    assert SENTINEL not in error


def test_link_batches_text_of_other_bytes_is_a_row(sample_kb):
    bad = b"fever \xff"
    ends = b"".join(n.to_bytes(4, "little") for n in (0, 5, 5 + len(bad)))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"fever" + bad)]
    texts = pa.Array.from_buffers(pa.string(), 2, buffers)
    rows = LinkBatches(kb=sample_kb)(pa.table({"id": ["a", "b"], "text": texts}))
    found = [(row["id"], row["cui"], row["error"]) for row in rows.to_pylist()]
    assert found[0] == ("a", "C0000004", None)
    assert found[1][:2] == ("b", None)
    assert found[1][2].startswith("[E374]")
    assert "it has other bytes" in found[1][2]


def test_documents_of_similar_length_are_linked_together(monkeypatch):
    monkeypatch.setattr(link_batches, "CHARS_TOGETHER", 7)
    chunks = link_batches.plan_chunks(np.array([4, 0, 1, 9, 8, 2, 3]), most=2)
    assert [chunk.tolist() for chunk in chunks] == [[2, 5], [6, 0], [4], [3]]


def test_link_batches_without_text_nothing_is_opened():
    link = LinkBatches(kb="/nowhere")
    rows = link(make_table(*[""] * 10_000, None))
    assert (rows.num_rows, rows.schema) == (0, MENTION_SCHEMA)
    assert link(make_table()).schema == MENTION_SCHEMA
    assert list(link.iterate([])) == []
    with pytest.raises(SapbertError, match="E310.*/nowhere"):
        link(make_table("fever"))


@pytest.mark.parametrize(
    "type", [pa.string_view(), pa.dictionary(pa.int8(), pa.large_string())]
)
def test_link_batches_reads_any_type_of_text(sample_kb, type):
    link = LinkBatches(kb=sample_kb)
    table = make_table("fever", None, "aspirin")
    texts = pa.array(table.column("text").to_pylist(), type)
    assert link(table.set_column(1, "text", texts)) == link(table)


@pytest.mark.parametrize(
    ("options", "columns", "match"),
    [
        ({"treshold": 0.5}, {}, "E333.*'threshold'.*'treshold'"),
        ({"keep": "ward"}, {}, "E331.*'ward'"),
        ({"keep": ["score"]}, {}, "E331.*'score'"),
        ({"max_chars": 1_000_001}, {}, "E331.*max_chars"),
        ({"batch_size": 0}, {}, "E331.*batch_size"),
        ({}, {"id": [1]}, "E410.*'text'.*have id"),
        ({"keep": ["ward"]}, {"id": [1], "text": ["a"]}, "E410.*'ward'"),
        ({}, {"id": [1], "text": [1]}, "E410.*texts in the column 'text'.*int64"),
        ({}, {"id": [0.5], "text": ["a"]}, "E410.*whole numbers in.*'id'.*double"),
    ],
)
def test_link_batches_checks_its_settings_then_the_columns(options, columns, match):
    with pytest.raises(SapbertError, match=match):
        LinkBatches(**options)(pa.table(columns))
    assert LinkBatches(max_chars=1, batch_size=1).max_chars == 1


def test_link_batches_of_another_version_of_the_kb_is_an_error(sample_kb):
    link = LinkBatches(kb=sample_kb, kb_digest="0" * 64)
    with pytest.raises(SapbertError, match="E351"):
        link(make_table("fever"))


def test_link_batches_writes_the_digest_of_the_version_that_linked(own_kb, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_mentions", config={"kb": str(own_kb)})
    config = {"kb": str(own_kb), "reload_seconds": 0}
    nlp.add_pipe("sapbert_linker", config=config)
    nlp.to_disk(tmp_path / "pipeline", exclude=["sapbert_linker"])
    link = LinkBatches(tmp_path / "pipeline")
    old = read_version(own_kb).manifest.digest
    assert link(make_table("fever")).column("kb_digest").to_pylist() == [old]
    add_concepts(load_kb(own_kb), [Concept("L1", ["ward 1"])])
    rows = link(make_table("fever")).to_pylist()
    digest = read_version(own_kb).manifest.digest
    assert [(row["cui"], row["kb_digest"]) for row in rows] == [("C0000004", digest)]
    assert digest != old


def test_link_batches_from_threads_at_once(make_link, documents, expected):
    link = make_link(k=3)  # not opened before
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(link(documents))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [rows.to_pylist() for rows in found] == [expected] * 4


def test_link_batches_new_words_do_not_stay_in_memory(make_link, monkeypatch):
    monkeypatch.setattr(link_batches, "CACHED_STRINGS", 250)
    link = make_link(keep=[], id="id", text="text", k=4)  # not opened before
    sizes = []
    for run in range(6):
        table = make_table(*(f"fever of {run}x{number}" for number in range(100)))
        assert link(table).column("text").to_pylist() == ["fever"] * 100
        sizes.append(len(open_once(link.settings).nlp.vocab.strings))
    # Two tables have more than 250 new strings; those of the others are freed.
    assert sizes[0] < sizes[1]
    assert sizes[1:] == [sizes[1]] * 5
