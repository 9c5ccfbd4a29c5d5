"""From the import of notes to a taught version and back, and what may come between."""

import json
import stat
import threading
from typing import Any

import pytest

from spacy_sapbert import load_kb
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.teaching.teach import teach_documents
from spacy_sapbert.serve.reviews import taught
from spacy_sapbert.serve.reviews.store import NewNote, ReviewStore
from spacy_sapbert.vocabularies.concepts import Concept

from .conftest import (
    LocalClient,
    decide,
    link_all,
    send_files,
    use_newest,
    wait_for_teaching,
)

FEVER, WARD = "C0000004", "C0000008"  # the second has a word of the ward
WORD = "vwkj zzz"


@pytest.fixture
def client(open_local, own_kb, tmp_path) -> LocalClient:
    """A service whose reviews and knowledge base a test may change."""
    return open_local(own_kb, ReviewStore(tmp_path / "reviews.db"))


def teach(client: LocalClient) -> Any:
    assert client.post("/reviews/teach", {}).status == 202
    return wait_for_teaching(client)


def link(client: LocalClient, mention: str) -> Any:
    body = {"mentions": [mention], "threshold": 0}
    (found,) = client.post("/mentions", body).json()["mentions"]
    return found["candidates"][0]["alias"]


def test_two_reviewers_and_a_lead_from_import_to_a_taught_version_and_back(client):
    same = f"{WORD}, fever."
    files = [(f"ward{n}/note.txt", same if n < 2 else f"{same} {n}") for n in range(12)]
    added = send_files(client, *files)
    ids = added["documents"]
    assert (added["read"], added["equal_texts"], len({*ids})) == (12, 1, 12)
    for reviewer in ("Anna", "Ben"):
        for start, end, cui in ((0, 8, WARD), (10, 15, FEVER)):
            places = [{"document": id, "start": start, "end": end} for id in ids]
            decide(client, reviewer, places, cui)
    # Ben says something else in one note, and marks a span that Anna has not.
    decide(client, "Ben", [{"document": ids[1], "start": 10, "end": 15}], "NIL")
    decide(client, "Ben", [{"document": ids[2], "start": 5, "end": 15}], FEVER)
    for reviewer in ("Anna", "Ben"):
        for id in ids:
            done = {"reviewer": reviewer, "done": True}
            client.post(f"/reviews/documents/{id}/done", done)

    def export(reviewer: str = "agreed") -> list[Any]:
        lines = client.get(f"/reviews/export?reviewer={reviewer}").body.splitlines()
        return [one for line in lines for one in json.loads(line)["entities"]]

    found = client.get("/reviews/differences").json()
    assert [one["agreed"] for one in found["places"]] == [None, None]
    assert len(export()) == 23  # 24 and one more mention of Ben's, two open
    nil, span = (one["place"] for one in found["places"])
    if nil["document"] != ids[1]:
        nil, span = span, nil
    decide(client, "Lead", [nil], FEVER, settles=True)
    decide(client, "Lead", [span], "NO_MENTION", settles=True)
    found = client.get("/reviews/differences").json()["places"]
    assert all(one["agreed"] for one in found)
    assert len(export()) == 24
    assert {one["cui"] for one in export()} == {FEVER, WARD}
    state = teach(client)
    (version,) = state["versions"]
    counts = version["report"]["counts"]
    assert (counts["documents"], counts["mentions"]) == (12, 24)
    assert not version["older_base"]
    before = link(client, WORD)
    use_newest(client)
    assert (before == WORD, link(client, WORD)) == (False, WORD)
    quality = client.post("/reviews/quality", {}).json()
    assert quality["mentions"] == 24  # NO_MENTION is none
    assert quality["first"] == 1.0
    # Back: one patient asks for deletion. What has learned from the note goes.
    answer = client.send("DELETE", f"/reviews/documents/{ids[0]}")
    assert answer.json() == {"versions": 1}
    assert link(client, WORD) == before
    assert client.get("/reviews/teach").json()["versions"] == []
    texts = {one["id"] for one in client.get("/reviews/documents").json()["documents"]}
    assert texts == {*ids[1:]}  # the note of equal text stays
    events = [json.loads(line)["event"] for line in client.log.getvalue().splitlines()]
    written = [each for each in events if each.startswith(("taught", "kb_"))]
    assert written == ["taught", "kb_switched", "kb_switched", "taught_removed"]


def add_notes(client: LocalClient) -> list[str]:
    files = [(f"{n}.txt", f"{WORD}, fever {n}") for n in range(12)]
    ids: list[str] = send_files(client, *files)["documents"]
    decide(client, "Ada", [{"document": id, "start": 0, "end": 8} for id in ids], WARD)
    return ids


def test_a_new_version_of_the_base_is_followed_while_a_taught_one_is_used(
    client, open_local, own_kb, tmp_path
):
    """It was ignored, also by the next teaching and after a restart."""
    add_notes(client)
    teach(client)
    use_newest(client)
    add_concepts(load_kb(own_kb), [Concept("L0000001", ["Ward rounds"])])
    (version,) = client.get("/reviews/teach").json()["versions"]
    assert (version["used"], version["older_base"]) == (True, True)
    assert client.get("/concepts/L0000001").status == 404
    new, old = teach(client)["versions"]
    assert (new["older_base"], old["older_base"]) == (False, True)
    use_newest(client)
    assert client.get("/concepts/L0000001").status == 200
    assert link(client, WORD) == WORD
    client.post("/reviews/switch", {"number": 1})
    assert client.get("/concepts/L0000001").status == 404
    again = open_local(own_kb, ReviewStore(tmp_path / "reviews.db"))
    versions = again.get("/reviews/teach").json()["versions"]
    assert [one["older_base"] for one in versions] == [False, True]
    again.post("/reviews/switch", {"number": None})
    assert again.get("/concepts/L0000001").status == 200


def test_a_teaching_that_ends_while_it_is_described_has_its_version(
    client, monkeypatch
):
    """It was done, and its version was not among the versions."""
    read, described = taught.Teacher.read_versions, threading.Event()

    def read_slowly(teacher: taught.Teacher) -> Any:
        found = read(teacher)
        if threading.current_thread().name != "teacher":
            described.set()
            while teacher.state == "running":
                pass
        return found

    def wait(*args: Any, **options: Any) -> Any:
        assert described.wait(60)
        return teach_documents(*args, **options)

    add_notes(client)
    monkeypatch.setattr(taught, "teach_documents", wait)
    assert client.post("/reviews/teach", {}).status == 202
    monkeypatch.setattr(taught.Teacher, "read_versions", read_slowly)
    assert len(wait_for_teaching(client)["versions"]) == 1


def test_what_a_killed_deletion_left_is_removed(open_local, own_kb, tmp_path):
    """The document is gone, and the version that learned from it not yet."""
    store = ReviewStore(tmp_path / "reviews.db")
    client = open_local(own_kb, store)
    ids = add_notes(client)
    teach(client)
    use_newest(client)
    store.delete_document(ids[0])
    again = open_local(own_kb, ReviewStore(tmp_path / "reviews.db"))
    assert again.get("/reviews/teach").json()["versions"] == []
    assert link(again, WORD) != WORD


def test_a_taught_version_shares_no_text_with_others(open_local, own_kb, tmp_path):
    taught = tmp_path / "reviews.db.taught"
    taught.mkdir(mode=0o755)  # as an older version has made it
    mode = stat.S_IMODE((own_kb / "v1" / "concepts.db").stat().st_mode)
    client = open_local(own_kb, ReviewStore(tmp_path / "reviews.db"))
    assert (tmp_path / "reviews.db").stat().st_mode & 0o077 == 0
    assert client.post("/reviews/switch", {"number": 1}).code == "E469"
    client.post("/reviews/teach", {})  # nothing is decided
    while (state := client.get("/reviews/teach").json())["state"] == "running":
        pass
    assert state["error"]["code"] == "E362"
    for id in add_notes(client):
        decide(client, "Ada", [{"document": id, "start": 10, "end": 15}], FEVER)
    before = link(client, WORD)
    assert client.post("/reviews/teach", {}).status == 202
    state = wait_for_teaching(client)
    assert [one["used"] for one in state["versions"]] == [False]
    assert state["report"]["names"]["all"] > state["report"]["before"]["all"]
    assert link(client, WORD) == before != WORD
    # Its names are texts of the notes. What it shares with the original has none, and
    # the original stays as it was.
    paths = [taught, *taught.rglob("*")]
    shared = {p.name for p in paths if p.is_file() and p.stat().st_nlink > 1}
    assert {"model.safetensors", "concepts.db"} <= shared
    assert taught.stat().st_mode & 0o077 == 0
    assert (own_kb / "v1" / "meta.json").is_file()
    assert stat.S_IMODE((own_kb / "v1" / "concepts.db").stat().st_mode) == mode


OTHER = "qxkw zzz"


def add_other_note(client: LocalClient, text: str = OTHER, cui: str = WARD) -> str:
    (id,) = send_files(client, ("other.txt", f"{text}, fever"))["documents"]
    decide(client, "Ada", [{"document": id, "start": 0, "end": 8}], cui)
    return str(id)


def test_a_note_that_is_deleted_during_a_teaching_is_not_taught(
    open_local, own_kb, tmp_path, monkeypatch
):
    store = ReviewStore(tmp_path / "reviews.db")
    client = open_local(own_kb, store)
    others, deleted = add_notes(client), add_other_note(client)
    teach(client)
    use_newest(client)
    # The links of the other notes may have the word as a name of their candidates.
    link_all(client)
    written, released = threading.Event(), threading.Event()

    def hold(*args: Any, **options: Any) -> Any:
        """Teach, and wait before the new version is published."""
        result = teach_documents(*args, **options)
        written.set()
        assert released.wait(60)
        return result

    monkeypatch.setattr(taught, "teach_documents", hold)
    assert client.post("/reviews/teach", {}).status == 202
    assert written.wait(60)
    assert client.send("DELETE", f"/reviews/documents/{'0' * 32}").status == 404
    answer = client.send("DELETE", f"/reviews/documents/{deleted}")
    released.set()
    assert answer.json()["versions"] >= 1
    state = wait_for_teaching(client)
    assert [one["report"]["counts"]["documents"] for one in state["versions"]] == [
        len(others)
    ]
    use_newest(client)
    store.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [p.name for p in files if OTHER.encode() in p.read_bytes()] == []
    again = open_local(own_kb, ReviewStore(tmp_path / "reviews.db"))
    assert link(again, WORD) == WORD  # it has learned the others
    assert link(again, OTHER) != OTHER
    assert OTHER not in again.post("/search", {"text": OTHER}).body.decode()


def test_the_report_of_a_teaching_forgets_a_deleted_note(client):
    add_notes(client)
    ids = [
        add_other_note(client),
        add_other_note(client, f"{OTHER} means more", "C0000005"),
    ]
    (contradiction,) = teach(client)["report"]["contradictions"]
    assert contradiction["mention"] == OTHER
    for id in ids:
        assert client.send("DELETE", f"/reviews/documents/{id}").status == 200
    assert OTHER not in client.get("/reviews/teach").body.decode()


def test_what_a_killed_teaching_left_is_removed(open_local, own_kb, tmp_path):
    """It may have texts of notes that were deleted since, whatever its number."""
    folder = tmp_path / "reviews.db.taught"
    for name in ("3", ".7.abcd.tmp"):  # not described yet, not whole
        (folder / name).mkdir(parents=True)
        (folder / name / "taught.jsonl").write_text("a text")
    store = ReviewStore(tmp_path / "reviews.db")
    (id,) = store.add_documents([NewNote("n", "Fever.")]).documents
    store.set_links(id, [{"alias": "a text"}], "a version that is gone")
    open_local(own_kb, store)
    assert [*folder.iterdir()] == []
    assert store.query("SELECT kb FROM documents") == [(None,)]


def test_teaching_needs_reviews_and_one_process(open_local, local, sample_kb, store):
    several = open_local(sample_kb, store, workers=2)
    for answer in (
        several.get("/reviews/teach"),
        several.post("/reviews/teach", {}),
        several.get("/metrics"),
    ):
        assert (answer.status, answer.code) == (409, "E495")
    assert several.get("/reviews/documents").status == 200
    for path in ("documents", "teach"):
        assert local.get(f"/reviews/{path}").code == "E467"
