"""Documents to review: read from files, queued, done, compared, removed for good."""

import io
import tempfile
import zipfile
from contextlib import nullcontext
from typing import Any

import pytest

from spacy_sapbert.linking.certainty import judge_link
from spacy_sapbert.serve.problems import RequestError
from spacy_sapbert.serve.reviews import imports
from spacy_sapbert.serve.reviews import queue as queues
from spacy_sapbert.serve.reviews.decisions import NewDecision
from spacy_sapbert.serve.reviews.imports import import_uploads
from spacy_sapbert.serve.reviews.queue import make_queue
from spacy_sapbert.serve.reviews.store import NewNote, ReviewStore, Span

ANN = "T1\tDisease 4 9\tfever\nN1\tReference T1 KB:C0000004\tFever\n"


def make_archive(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def brat_archive() -> bytes:
    hidden = {"deep/": b"", "deep/.b.txt": b"Hidden."}
    files = {"deep/b.txt": b"Has fever.", "deep/b.ann": ANN.encode()}
    return make_archive(hidden | files)


@pytest.mark.parametrize(
    ("file", "data", "name", "spans"),
    [
        ("b.zip", brat_archive(), "deep/b.txt", [Span(4, 9, "Disease", "C0000004")]),
        ("l.csv", "id,text\nx,F\xe9brile\n".encode("latin-1"), "x", None),
        (
            "first.pubtator",
            b"1|t|Fever.\n1|a|\n1\t0\t5\tFever\tDisease\tC0000004\n\n",
            "1",
            [Span(0, 5, "Disease", "C0000004")],
        ),
    ],
)
def test_files_are_read_with_what_they_propose(store, kb, file, data, name, spans):
    (id,) = import_uploads(store, kb, [(file, data)]).documents
    document = store.document(id)
    assert document is not None
    assert document.name == name
    assert store.proposals(id) == spans


def test_a_file_that_cannot_be_read_is_an_error_without_our_folder(store, kb):
    with pytest.raises(RequestError) as caught:
        import_uploads(store, kb, [("b/a.jsonl", b'{"id": 1}\n')])
    assert "[E117] a.jsonl:1" in str(caught.value)
    assert "sapbert-documents" not in str(caught.value)
    assert "--" not in str(caught.value)  # of the command line
    for broken in (brat_archive()[:-30] + b"PK\x05\x06", b"Fever."):
        with pytest.raises(RequestError, match="Expected an archive"):
            import_uploads(store, kb, [("a.zip", broken)])
    fever = ("a.txt", b"Fever.")  # it is not kept either
    with pytest.raises(RequestError, match="ward/letter.docx.*Save it as text"):
        import_uploads(store, kb, [fever, ("ward/letter.docx", brat_archive())])
    assert store.documents() == []


def test_an_archive_that_unpacks_to_too_much_is_an_error(store, kb, monkeypatch):
    blanks = b" " * (40 << 20)
    data = make_archive({"a.txt": b"Fever.", "b.txt": blanks, "c.txt": blanks})
    assert len(data) < 1 << 20
    with pytest.raises(RequestError, match="E458") as caught:
        import_uploads(store, kb, [("b.zip", data)])
    assert caught.value.status == 413
    assert store.documents() == []
    for most, fits in ((6, True), (5, False)):  # "Fever." has 6
        monkeypatch.setattr(imports, "MOST_UNPACKED", most)
        with nullcontext() if fits else pytest.raises(RequestError):
            import_uploads(store, kb, [("c.zip", make_archive({"a.txt": b"Fever."}))])
        assert len(store.documents()) == 1


@pytest.mark.parametrize("name", ["../evil.txt", "/evil.txt"])
def test_an_archive_writes_nothing_outside(store, kb, name, tmp_path, monkeypatch):
    temporary = tmp_path / "outer" / "temporary"
    temporary.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    for file in (("b.zip", make_archive({name: b"Fever."})), (name, b"Fever.")):
        import_uploads(store, kb, [file])
        assert [*temporary.parent.rglob("*")] == [temporary]


def mention(cui: str | None, *scores: float, **first: Any) -> Any:
    """Return a mention with candidates of some scores, and more of the first one."""
    facts = {"name": "", "alias": "", "probability": None, "types": [], "tie": None}
    candidates: Any = [
        {**facts, "cui": f"C{n}", "score": s} for n, s in enumerate(scores)
    ]
    candidates[0] |= first
    return {
        **{"start": 0, "end": 1, "text": "x", "label": "", "cui": cui, "note": None},
        **{"proposed": False, "known": True, "candidates": candidates},
        "certainty": judge_link("x", cui, candidates),
    }


def test_what_is_most_uncertain_is_first_in_the_queue(store, monkeypatch):
    expected = {
        "tied": mention("C0", 1.0, 1.0, tie="id"),
        "hardly probable": mention("C0", 0.9, probability=0.3),
        "probable": mention("C0", 0.9, probability=0.7),
        "nothing, but near": mention(None, 0.8, probability=0.4),
        "nothing": mention(None, 0.9, probability=0.1),
        "sure": mention("C0", 0.9, probability=0.9),
        "a name": mention("C0", 1.0, probability=0.99),
    }
    (id,) = store.add_documents([NewNote("n", "x" * 99)]).documents
    found = [
        {**one, "text": text, "start": place, "end": place + 1}
        for place, (text, one) in enumerate(expected.items())
    ]
    store.set_links(id, found[::-1], "kb")
    groups = make_queue(store, "kb", "Ada", {}).first
    assert [one.mention["text"] for one in groups] == [*expected]
    assert make_queue(store, "another kb", "Ada", {}).mentions == 0
    (id,) = store.add_documents([NewNote("more", "x" * 98)]).documents
    store.set_links(id, found, "kb")  # equal mentions are one group
    monkeypatch.setattr(queues, "MOST_PLACES", 1)
    queue = make_queue(store, "kb", "Ada", {})
    assert (queue.mentions, len(queue.first)) == (2 * len(found), len(found))
    assert {len(group.places) for group in queue.first} == {1}


def test_a_removed_document_leaves_nothing_in_the_file(tmp_path):
    path = tmp_path / "reviews.db"
    store = ReviewStore(path)
    spans = [Span(0, 1, "secret-label", "")]
    notes = [
        NewNote("kept", "a text that stays"),
        NewNote("secret-name", "a very secret text", spans),
    ]
    keep, id = store.add_documents(notes).documents
    store.set_links(id, [{"text": "secret-mention"}], "kb")
    store.set_done(id, "secret-person", True)
    store.set_links(keep, [{"alias": "secret-name"}], "a version that learned it")
    store.delete_document(id)
    store.forget_links(kb="kb")
    assert store.document(keep) is not None
    assert store.document(id) is None
    store.close()
    assert b"secret" not in path.read_bytes()


XRAY = "Normal chest x-ray."
TABLE = f"id,text\n1,{XRAY}\n1,{XRAY}\n".encode()
WARDS = {"ward1/note1.txt": b"Fever.", "ward2/note1.txt": b"MI."}


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ([("b.zip", make_archive(WARDS))], {n: t.decode() for n, t in WARDS.items()}),
        (
            [("anna.txt", XRAY.encode()), ("ben.txt", XRAY.encode())],
            {"anna.txt": XRAY, "ben.txt": XRAY},
        ),
        ([("note.txt", XRAY.encode())] * 2, {"note.txt": XRAY, "note.txt (2)": XRAY}),
        ([("t.csv", TABLE)], {"1": XRAY, "1 (2)": XRAY}),
    ],
)
def test_no_note_of_an_upload_disappears(store, kb, files, names):
    """Notes of one name, or of one text, became one note without a word."""
    added = import_uploads(store, kb, files)
    assert (added.read, added.skipped) == (2, 0)
    assert added.equal_texts == (len({*names.values()}) == 1)
    notes = [store.document(id) for id in added.documents]
    assert {one.name: one.text for one in notes if one} == names
    again = import_uploads(store, kb, files)
    assert (again.documents, again.read, again.skipped) == (added.documents, 2, 2)
    assert len(store.documents()) == 2


def test_more_documents_than_are_kept_are_none(tmp_path):
    store = ReviewStore(tmp_path / "few.db", most_documents=2)
    notes = [NewNote(str(number), "Fever.") for number in range(3)]
    with pytest.raises(RequestError, match="E488") as caught:
        store.add_documents(notes)
    assert caught.value.status == 507
    assert store.documents() == []
    store.add_documents(notes[:2])
    assert store.add_documents(notes[:2]).skipped == 2
    store.close()


def test_a_detected_mention_that_is_no_mention_opens_what_is_in_it(store):
    (id,) = store.add_documents([NewNote("n", "heart failure")]).documents
    wide = {**mention("C0", 1.0), "start": 0, "end": 13, "text": "heart failure"}
    part = {**mention("C1", 1.0), "start": 6, "end": 13, "text": "failure"}
    store.set_links(id, [wide, part], "kb")
    said = {"reviewer": "Ada", "document": id, "start": 0, "end": 13}

    def count(key: str, chosen: str) -> int:
        store.add_decisions([NewDecision(key=key, chosen=chosen, **said)])
        return make_queue(store, "kb", "Ada", {}).mentions

    assert make_queue(store, "kb", "Ada", {}).mentions == 2
    assert count("key-first", "C0") == 0
    assert count("key-second", "NO_MENTION") == 1
    assert count("key-third", "OPEN") == 2
