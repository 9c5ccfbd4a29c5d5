"""From the import of notes to a taught version and back, and what may come between."""

import json
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

from spacy_sapbert import load_kb
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.serve.reviews.store import ReviewStore
from spacy_sapbert.vocabularies.concepts import Concept

from .conftest import (
    Client,
    LocalClient,
    OpenLocal,
    Start,
    decide,
    send_files,
    use_newest,
    wait_for_teaching,
)

FEVER, WARD = "C0000004", "C0000008"  # the second has a word of the ward
WORD = "vwkj zzz"


def teach(client: Client | LocalClient) -> Any:
    assert client.post("/reviews/teach", {"force": True}).status == 202
    return wait_for_teaching(client)


def link(client: Client | LocalClient, mention: str) -> Any:
    body = {"mentions": [mention], "threshold": -1}
    (found,) = client.post("/mentions", body).json()["mentions"]
    return found["candidates"][0]["alias"]


def test_two_reviewers_and_a_lead_from_import_to_a_taught_version_and_back(
    start_service: Start, own_kb: Path, tmp_path: Path
) -> None:
    client = start_service(own_kb, "--reviews", tmp_path / "reviews.db")
    same = f"{WORD}, fever."
    files = [(f"ward{n}/note.txt", same if n < 2 else f"{same} {n}") for n in range(12)]
    added = send_files(client, *files)
    ids = added["documents"]
    assert (added["read"], added["equal_texts"], len({*ids})) == (12, 1, 12)
    shared, anna_only, ben_only = ids[:4], ids[4:8], ids[8:]
    for names, of_names in ((["Anna"], anna_only), (["Ben"], ben_only)):
        for id in of_names:
            body = {"reviewers": names}
            client.post(f"/reviews/documents/{id}/assigned", body)
    for reviewer, own in (("Anna", anna_only), ("Ben", ben_only)):
        listed = client.get(f"/reviews/documents?reviewer={reviewer}").json()
        assert [one["id"] for one in listed["documents"]] == shared + own
        # The detector does not know the word: one mark, its concept, then everywhere.
        mark = {"document": shared[0], "start": 0, "end": 8}
        decide(client, reviewer, [mark], "OPEN")
        decide(client, reviewer, [mark], WARD)
        query = f"text={WORD.replace(' ', '%20')}&document={shared[0]}"
        found = client.get(f"/reviews/occurrences?{query}&reviewer={reviewer}").json()
        assert (
            found["total"],
            shared[0] in {one["document"] for one in found["places"]},
        ) == (7, False)
        decide(client, reviewer, found["places"], WARD)
        queue = client.get(f"/reviews/queue?reviewer={reviewer}").json()
        (group,) = queue["first"]
        assert group["mention"]["certainty"] == "sure"
        decide(client, reviewer, group["places"], group["mention"]["cui"])
        assert client.get(f"/reviews/queue?reviewer={reviewer}").json()["first"] == []
    # Ben says something else in one note, and marks a span that Anna has not.
    decide(client, "Ben", [{"document": shared[1], "start": 10, "end": 15}], "NIL")
    decide(client, "Ben", [{"document": shared[2], "start": 5, "end": 15}], FEVER)
    for reviewer, own in (("Anna", anna_only), ("Ben", ben_only)):
        for id in shared + own:
            done = {"reviewer": reviewer, "done": True}
            client.post(f"/reviews/documents/{id}/done", done)

    def export(reviewer: str = "agreed") -> list[Any]:
        lines = client.get(f"/reviews/export?reviewer={reviewer}").body.splitlines()
        return [one for line in lines for one in json.loads(line)["entities"]]

    found = client.get("/reviews/differences").json()
    assert [one["agreed"] for one in found["places"]] == [None, None]
    assert len(export()) == 23  # 24 and one more mention of Ben's, two open
    nil, span = (one["place"] for one in found["places"])
    if nil["document"] != shared[1]:
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
    answer = client.send("DELETE", f"/reviews/documents/{shared[0]}")
    assert answer.json() == {"versions": 1}
    assert link(client, WORD) == before
    assert client.get("/reviews/teach").json()["versions"] == []
    texts = {one["id"] for one in client.get("/reviews/documents").json()["documents"]}
    assert texts == {*ids[1:]}  # the note of equal text stays


def add_notes(client: Client | LocalClient) -> list[str]:
    files = [(f"{n}.txt", f"{WORD}, fever {n}") for n in range(12)]
    ids: list[str] = send_files(client, *files)["documents"]
    decide(client, "Ada", [{"document": id, "start": 0, "end": 8} for id in ids], WARD)
    return ids


def test_a_new_version_of_the_base_is_followed_while_a_taught_one_is_used(
    open_local: OpenLocal, own_kb: Path, tmp_path: Path
) -> None:
    """It was ignored, also by the next teaching and after a restart."""
    client = open_local(own_kb, ReviewStore(tmp_path / "reviews.db"))
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


def test_a_deletion_reaches_all_versions_and_all_processes(
    start_service: Start, own_kb: Path, tmp_path: Path
) -> None:
    options = [own_kb, "--reviews", tmp_path / "reviews.db"]
    client = start_service(*options)
    ids = add_notes(client)
    for _ in range(2):
        teach(client)
    use_newest(client)
    client.stop()
    client = start_service(*options, "--workers", 2)
    client.wait_for("listening")  # the second one
    assert link(client, WORD) == WORD
    assert client.send("DELETE", f"/reviews/documents/{ids[0]}").json() == {
        "versions": 2
    }
    for _ in range(2):  # in the process that deletes, and in the other one
        client.wait_for("kb_switched")
    assert WORD not in {link(client, WORD) for _ in range(20)}
    assert [*(tmp_path / "reviews.db.taught").iterdir()] == []
    client.stop()  # a process that is killed leaves its others behind


def test_what_a_killed_deletion_left_is_removed(
    open_local: OpenLocal, own_kb: Path, tmp_path: Path
) -> None:
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


def test_a_lock_on_the_reviews_keeps_nobody_else_waiting(
    start_service: Start, sample_kb: Path, tmp_path: Path
) -> None:
    """All requests waited for five seconds, and reading was an error of the service."""
    path = tmp_path / "reviews.db"
    client = start_service(sample_kb, "--reviews", path)
    (id,) = send_files(client, ("a.txt", "Fever."))["documents"]
    paths = [f"/reviews/documents/{id}?reviewer=Ada", "/reviews/queue?reviewer=Ada"]
    answers: list[Any] = []
    readers = [
        threading.Thread(target=lambda path=path: answers.append(client.get(path)))
        for path in paths
    ]
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    for reader in readers:
        reader.start()
    time.sleep(0.5)
    for _ in range(3):
        assert client.get("/healthz").status == 200
        assert client.post("/link", {"texts": ["Fever."]}).status == 200
    assert not answers  # they wait, and nobody else
    for reader in readers:
        reader.join()
    assert [(one.status, one.code) for one in answers] == [(503, "E491")] * 2
    holder.execute("ROLLBACK")
    assert client.get(paths[0]).status == 200
