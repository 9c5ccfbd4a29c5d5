"""Documents to review: read from files, queued, done, compared, removed for good."""

import base64
import contextlib
import io
import json
import sqlite3
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.serve.encodings import to_utf8
from spacy_sapbert.serve.problems import RequestError
from spacy_sapbert.serve.reviews.agreement import compute_f1
from spacy_sapbert.serve.reviews.export import merge_decisions
from spacy_sapbert.serve.reviews.imports import import_uploads
from spacy_sapbert.serve.reviews.mentions import (
    ShownConcept,
    ShownMention,
    measure_doubt,
)
from spacy_sapbert.serve.reviews.queue import make_queue
from spacy_sapbert.serve.reviews.store import Decision, ReviewStore, Span

from .conftest import Client, OpenLocal, Start

PUBTATOR = (
    "1|t|Fever after aspirin.\n1|a|No headache.\n1\t0\t5\tFever\tDisease\tC0000004\n"
    "1\t12\t19\taspirin\tChemical\tC0000005\n\n"
)
JSONL = json.dumps(
    {
        "id": "note-7",
        "text": "A heart attack.",
        "entities": [{"start": 2, "end": 14, "label": "DISO", "cui": "C0000001"}],
    }
)
ANN = "T1\tDisease 4 9\tfever\nN1\tReference T1 KB:C0000004\tFever\n"


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = ReviewStore(tmp_path / "reviews.db")
    yield opened
    opened.close()


def make_archive(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def brat_archive() -> bytes:
    return make_archive({"deep/b.txt": b"Has fever.", "deep/b.ann": ANN.encode()})


@pytest.mark.parametrize(
    ("files", "name", "spans"),
    [
        ({"a.txt": "Plain fever.\r\n"}, "a.txt", None),
        (
            {"a.txt": PUBTATOR},
            "1",
            [(0, 5, "Disease", "C0000004"), (12, 19, "Chemical", "C0000005")],
        ),
        ({"a.jsonl": JSONL}, "note-7", [(2, 14, "DISO", "C0000001")]),
        (
            {"b.txt": "Has fever.", "b.ann": ANN},
            "b.txt",
            [(4, 9, "Disease", "C0000004")],
        ),
        ({"b.zip": brat_archive()}, "b.txt", [(4, 9, "Disease", "C0000004")]),
        ({"c.csv": "id,text\nx,Fever again\n"}, "x", None),
        ({"l.csv": "id,text\nx,F\xe9brile\n".encode("latin-1")}, "x", None),
    ],
)
def test_files_are_read_with_what_they_propose(
    store: ReviewStore, files: dict[str, Any], name: str, spans: Any
) -> None:
    uploads = {
        file: data if isinstance(data, bytes) else data.encode()
        for file, data in files.items()
    }
    found = import_uploads(store, uploads)
    (id,) = found.documents
    document = store.document(id)
    assert document is not None
    assert document.name == name
    assert store.proposals(id) == (spans and [Span(*span) for span in spans])


def test_a_file_that_cannot_be_read_is_an_error_without_our_folder(
    store: ReviewStore,
) -> None:
    with pytest.raises(RequestError) as caught:
        import_uploads(store, {"a.jsonl": b'{"id": 1}\n'})
    assert "a.jsonl" in str(caught.value)
    assert "sapbert-documents" not in str(caught.value)
    with pytest.raises(SapbertError):
        import_uploads(store, {"a.zip": brat_archive()[:-30] + b"PK\x05\x06"})


@pytest.mark.parametrize("content", ["a", "né", "\ud800", "====", "Rm V2"])
def test_content_that_is_not_base64_is_refused(
    open_local: OpenLocal, sample_kb: Path, store: ReviewStore, content: str
) -> None:
    client = open_local(sample_kb, store)
    files = [{"name": "a.txt", "content": content}]
    answer = client.post("/reviews/import", {"files": files})
    assert (answer.status, answer.code) == (422, "E457")
    assert store.documents() == []


def test_an_archive_that_unpacks_to_too_much_is_an_error(store: ReviewStore) -> None:
    blanks = b" " * (40 << 20)
    data = make_archive({"a.txt": b"Fever.", "b.txt": blanks, "c.txt": blanks})
    assert len(data) < 1 << 20
    with pytest.raises(RequestError, match="E458") as caught:
        import_uploads(store, {"b.zip": data})
    assert caught.value.status == 413
    assert store.documents() == []


@pytest.mark.parametrize("name", ["../evil.txt", "/evil.txt", "..\\evil.txt"])
def test_an_archive_writes_nothing_outside(
    store: ReviewStore, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "outer" / "temporary"
    temporary.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    for files in ({"b.zip": make_archive({name: b"Fever."})}, {name: b"Fever."}):
        import_uploads(store, files)
        assert [*temporary.parent.rglob("*")] == [temporary]


@pytest.mark.parametrize(
    "name", ["..", ".", "", "/", "a/..", "\0.txt", "x" * 300 + ".txt", "\ud800.txt"]
)
def test_an_upload_of_any_name_is_read_or_refused(
    store: ReviewStore, name: str
) -> None:
    with contextlib.suppress(RequestError):
        import_uploads(store, {name: b"Fever."})


def test_windows_texts_become_utf8_and_others_stay() -> None:
    assert to_utf8(b"caf\xe9 \x96").decode() == "café –"
    for data in (b"plain", "né".encode(), b"\xff\xfea\x00", b"PK\x03\x04\xff"):
        assert to_utf8(data) == data


def mention(cui: str | None, *scores: float, **first: Any) -> ShownMention:
    candidates = [
        ShownConcept(
            cui=f"C{place}",
            name="",
            alias="",
            score=score,
            probability=None,
            types=[],
            tie=None,
        )
        for place, score in enumerate(scores)
    ]
    candidates[0].update(first)  # type: ignore[typeddict-item]
    return ShownMention(
        start=0,
        end=1,
        text="x",
        label="",
        cui=cui,
        note=None,
        proposed=False,
        candidates=candidates,
    )


def test_doubt_is_one_of_a_tie_and_falls_with_the_margin() -> None:
    exact = measure_doubt(mention("C0", 1.0, 0.5))
    clear = measure_doubt(mention("C0", 0.9, 0.7))
    near = measure_doubt(mention("C0", 0.9, 0.88))
    tied = measure_doubt(mention("C0", 1.0, 1.0, tie="id"))
    assert clear <= exact < near < tied == 1.0
    assert measure_doubt(mention("C0", 0.9, probability=0.7)) == pytest.approx(0.3)
    assert measure_doubt(mention(None, 0.8)) > measure_doubt(mention(None, 0.2))


def decision(
    reviewer: str, start: int, chosen: str, *, settles: bool = False
) -> Decision:
    where = ("d", start, start + 1)
    return Decision(0, "", reviewer, *where, "", chosen, [], "", settles)


def test_what_holds_is_what_all_say_or_what_was_agreed() -> None:
    decisions = [
        decision("Ada", 0, "A"),
        decision("Ben", 0, "A"),
        decision("Ada", 2, "A"),
        decision("Ben", 2, "B"),
        decision("Ada", 4, "A"),
        decision("Ben", 4, "B"),
        decision("Ada", 4, "C", settles=True),
        decision("Ben", 6, "D"),
    ]
    found = [(one.start, one.chosen) for one in merge_decisions(decisions)]
    assert found == [(0, "A"), (4, "C"), (6, "D")]


def test_f1_counts_mentions_that_one_does_not_have() -> None:
    ours = {("d", 0, 5): "A", ("d", 8, 9): "B", ("e", 0, 1): "A"}
    theirs = {("d", 0, 5): "A", ("d", 7, 9): "B", ("d", 3, 4): "NO_MENTION"}
    assert compute_f1(ours, theirs) == 0.5  # of document e only one has decided
    assert compute_f1({}, theirs) is None


def test_three_hundred_mentions_of_ten_names_are_ten_groups(store: ReviewStore) -> None:
    for number in range(30):
        text = " ".join(f"name{place}" for place in range(10)) + f" {number}"
        id = store.add_document(f"{number}.txt", text)
        found = [
            {
                **mention(f"C{place}", 1.0, 0.5 + place / 20),
                "start": 6 * place,
                "end": 6 * place + 5,
                "text": f"name{place}",
            }
            for place in range(10)
        ]
        store.set_links({id: found}, "kb")
    queue = make_queue(store, "kb", "Ada")
    assert (queue.mentions, queue.groups) == (300, 10)
    assert [len(group.places) for group in queue.first] == [30] * 10
    assert make_queue(store, "another kb", "Ada").mentions == 0


def test_a_removed_document_leaves_nothing_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "reviews.db"
    store = ReviewStore(path)
    keep = store.add_document("kept", "a text that stays")
    id = store.add_document("secret-name", "a very secret text")
    store.set_proposals(id, [Span(0, 1, "secret-label", "")])
    store.set_links({id: [{"text": "secret-mention"}]}, "kb")
    store.set_done(id, "secret-person", True)
    store.set_links({keep: [{"alias": "secret-name"}]}, "a version that learned it")
    store.delete_document(id, kb="kb")
    assert store.document(keep) is not None
    assert store.document(id) is None
    with pytest.raises(sqlite3.IntegrityError):
        store.query("DELETE FROM documents")
    store.close()
    assert b"secret" not in path.read_bytes()


@pytest.fixture(scope="module")
def reviewed(
    start_service: Start, sample_kb: Path, tmp_path_factory: pytest.TempPathFactory
) -> Client:
    """A service that was started with documents."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "in").mkdir()
    (folder / "in" / "a.pubtator").write_text(PUBTATOR)
    options = [sample_kb, "--reviews", folder / "reviews.db"]
    documents = ["--documents", folder / "in" / "a.pubtator"]
    client = start_service(*options, *documents)
    files = [
        {"name": f"{number}.txt", "content": base64.b64encode(text.encode()).decode()}
        for number, text in enumerate(["MI and fever", "The fever, MI.", "More MI"])
    ]
    answer = client.post("/reviews/import", {"files": files})
    assert len(answer.json()["documents"]) == 3, answer.body
    while client.post("/reviews/prepare", {}).json()["left"]:
        pass
    return client


def decide_all(
    client: Client,
    places: list[Any],
    chosen: str,
    reviewer: str,
    *,
    settles: bool = False,
) -> None:
    who = "settled" if settles else reviewer
    decisions = [
        {
            "key": f"{who}-{place['document'][:8]}-{place['start']:04}",
            "reviewer": reviewer,
            "document": place["document"],
            "start": place["start"],
            "end": place["end"],
            "label": place["label"],
            "chosen": chosen,
            "settles": settles,
        }
        for place in places
    ]
    answer = client.post("/reviews/decisions/all", {"decisions": decisions})
    assert answer.status == 200, answer.body


def test_a_day_of_two_reviewers(reviewed: Client) -> None:
    queue = reviewed.get("/reviews/queue?reviewer=Ada").json()
    groups = {one["mention"]["text"].lower(): one for one in queue["first"]}
    # A tie comes first; equal mentions of all notes are together.
    assert queue["first"][0]["mention"]["text"] == "MI"
    assert (len(groups["mi"]["places"]), groups["mi"]["documents"]) == (3, 3)
    assert len(groups["fever"]["places"]) == 3
    aspirin = groups["aspirin"]["mention"]
    assert (aspirin["cui"], aspirin["proposed"]) == ("C0000005", True)
    assert groups["aspirin"]["places"][0]["before"] == "Fever after "
    decide_all(reviewed, groups["mi"]["places"], "C0000001", "Ada")
    decide_all(reviewed, groups["fever"]["places"], "C0000004", "Ada")
    after = reviewed.get("/reviews/queue?reviewer=Ada").json()
    assert after["mentions"] == queue["mentions"] - 6
    decide_all(reviewed, groups["mi"]["places"][:2], "C0000002", "Ben")
    decide_all(reviewed, groups["mi"]["places"][2:], "C0000001", "Ben")
    found = reviewed.get("/reviews/differences").json()
    assert (found["total"], found["open"]) == (2, 2)
    first = found["places"][0]
    assert first["choices"] == {"Ada": "C0000001", "Ben": "C0000002"}
    assert found["names"]["C0000002"] == "Mitral insufficiency"
    decide_all(reviewed, [first["place"]], "C0000002", "Ada", settles=True)
    found = reviewed.get("/reviews/differences").json()
    assert (found["total"], found["open"]) == (2, 1)
    assert found["places"][1]["choices"] == first["choices"]  # Ada's own stays
    assert found["places"][1]["agreed"] == "C0000002"
    lines = reviewed.get("/reviews/export?reviewer=agreed").body.splitlines()
    exported = {one["id"]: one for one in map(json.loads, lines)}
    assert {"1", "0.txt", "1.txt", "2.txt"} == exported.keys()  # the given names
    (pair,) = reviewed.get("/reviews/agreement").json()["pairs"]
    assert (pair["mentions"], pair["agree"]) == (3, 1)
    listed = reviewed.get("/reviews/documents?reviewer=Ada").json()["documents"]
    counts = {one["name"]: (one["mentions"], one["decisions"]) for one in listed}
    assert counts["0.txt"] == (2, 2)
    assert counts["1"] == (2, 1)


def test_a_note_is_opened_again_done_and_removed(reviewed: Client) -> None:
    note = {"name": "again", "text": "Headache, and rose thorn."}
    id = reviewed.post("/reviews/documents", note).json()["document"]
    place = {"document": id, "start": 14, "end": 24, "label": ""}
    decide_all(reviewed, [place], "NIL", "Ada")
    found = reviewed.get(f"/reviews/documents/{id}?reviewer=Ada").json()
    texts = [one["text"] for one in found["mentions"]]
    assert texts == ["Headache", "rose thorn"]
    other = reviewed.get(f"/reviews/documents/{id}?reviewer=Ben").json()
    assert [one["text"] for one in other["mentions"]] == ["Headache"]
    done = {"reviewer": "Ada", "done": True}
    assert reviewed.post(f"/reviews/documents/{id}/done", done).json() == done
    assert reviewed.get(f"/reviews/documents/{id}").json()["done"] == ["Ada"]
    removed = reviewed.send("DELETE", f"/reviews/documents/{id}")
    assert removed.json() == {"versions": 0}
    assert reviewed.get(f"/reviews/documents/{id}").status == 404


def open_places(client: Client, reviewer: str) -> dict[str, list[Any]]:
    """The open places of a reviewer by text, after all documents are linked."""
    while client.post("/reviews/prepare", {}).json()["left"]:
        pass
    found = client.get(f"/reviews/queue?reviewer={reviewer}").json()["first"]
    return {one["mention"]["text"].lower(): one["places"] for one in found}


def test_a_day_with_kill_9_at_any_moment_loses_nothing(
    start_service: Start, own_kb: Path, tmp_path: Path
) -> None:
    """Twenty documents with links, two reviewers, agree, teach, use, back, export."""
    texts = [f"Day {number}: vwkj zzz, fever, MI." for number in range(20)]
    documents = tmp_path / "day.pubtator"
    documents.write_text(
        "".join(
            f"{number}|t|{text}\n{number}|a|\n"
            + "".join(
                f"{number}\t{text.index(word)}\t{text.index(word) + len(word)}\t{word}"
                f"\tDisease\t{cui}\n"
                for word, cui in (
                    ("vwkj zzz", "-1"),
                    ("fever", "C0000004"),
                    ("MI", "C0000001"),
                )
            )
            + "\n"
            for number, text in enumerate(texts)
        )
    )
    options = [own_kb, "--reviews", tmp_path / "reviews.db"]
    client = start_service(*options, "--documents", documents)
    places = open_places(client, "Ada")
    assert {text: len(found) for text, found in places.items()} == {
        "vwkj zzz": 20,
        "fever": 20,
        "mi": 20,
    }
    decide_all(client, places["vwkj zzz"], "C0000008", "Ada")
    accepted: list[Any] = []

    def write() -> None:
        for place in places["fever"]:
            try:
                decide_all(client, [place], "C0000004", "Ada")
            except OSError:
                return
            accepted.append(place)

    writer = threading.Thread(target=write)
    writer.start()
    while len(accepted) < 5:
        time.sleep(0.001)
    client.process.kill()
    writer.join()
    client = start_service(*options, "--documents", documents)  # they are there once
    left = open_places(client, "Ada")
    assert len(left.get("fever", [])) in (20 - len(accepted), 19 - len(accepted))
    decide_all(client, left["fever"], "C0000004", "Ada")
    decide_all(client, left["mi"], "C0000001", "Ada")
    assert open_places(client, "Ada") == {}
    other = open_places(client, "Ben")
    decide_all(client, other["mi"][:4], "C0000002", "Ben")
    decide_all(client, other["mi"][4:], "C0000001", "Ben")
    found = client.get("/reviews/differences").json()
    assert (found["total"], found["open"]) == (4, 4)
    settled = [one["place"] for one in found["places"]]
    decide_all(client, settled, "C0000001", "Ben", settles=True)
    assert client.get("/reviews/differences").json()["open"] == 0
    assert client.post("/reviews/teach", {"force": True}).status == 202
    taught = tmp_path / "reviews.db.taught"
    while not [*taught.glob(".1.*.tmp")]:
        time.sleep(0.001)
    client.process.kill()
    client = start_service(*options)
    assert [*taught.iterdir()] == []  # nothing of the texts is left
    assert client.get("/reviews/differences").json()["open"] == 0
    assert client.post("/reviews/teach", {"force": True}).status == 202
    assert client.wait_for("taught")["changed"]
    body = {"mentions": ["vwkj zzz"]}

    def first(client: Client) -> str | None:
        (linked,) = client.post("/mentions", body).json()["mentions"]
        cui: str | None = linked["cui"]
        return cui

    before = first(client)
    (version,) = client.post("/reviews/switch", {}).json()["versions"]
    assert (version["mentions"], version["used"]) == (60, True)
    assert (before != "C0000008", first(client)) == (True, "C0000008")
    client.process.kill()
    client = start_service(*options)  # what was in use is in use again
    assert first(client) == "C0000008"
    (version,) = client.get("/reviews/teach").json()["versions"]
    assert version["used"]
    state = client.post("/reviews/switch", {"number": None}).json()
    assert not state["versions"][0]["used"]
    assert first(client) == before
    lines = client.get("/reviews/export?reviewer=agreed").body.splitlines()
    exported = [json.loads(line) for line in lines]
    assert sorted(one["id"] for one in exported) == sorted(map(str, range(20)))
    assert {len(one["entities"]) for one in exported} == {3}
    found = client.get("/reviews/places?text=vwkj%20zzz").json()
    assert found["total"] == 20
    # What was learned from a deleted document goes with it.
    id = found["places"][0]["document"]
    assert client.send("DELETE", f"/reviews/documents/{id}").json() == {"versions": 1}
    assert client.get("/reviews/teach").json()["versions"] == []
    assert not (tmp_path / "reviews.db.taught" / "1").exists()
    assert client.post("/reviews/switch", {"number": 1}).code == "E469"


def test_documents_need_a_file_of_reviews(new_process: Any, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "spacy_sapbert", "serve", "kb", "--port", "0"]
    done = new_process.run([*command, "--documents", tmp_path])
    assert done.returncode == 1
    assert "[E423]" in done.stderr
