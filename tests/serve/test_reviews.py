"""Decisions: kept through kill -9, exported, compared, taught."""

import io
import json
import sqlite3
import stat
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import cohen_kappa_score

from spacy_sapbert import load_kb
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.serve.reviews import taught
from spacy_sapbert.serve.reviews.agreement import compare_reviewers, compute_kappa
from spacy_sapbert.serve.reviews.decisions import NewDecision, Shown
from spacy_sapbert.serve.reviews.quality import (
    Answered,
    DecidedMention,
    measure_quality,
)
from spacy_sapbert.serve.reviews.store import NewNote, ReviewStore

from .conftest import (
    Client,
    LocalClient,
    OpenLocal,
    Start,
    link_all,
    use_newest,
    wait_for_teaching,
)

NOTE = "Fever, no qqxx. MI?"


def decide(
    client: Client | LocalClient, document: str, key: str, /, **fields: Any
) -> Any:
    shown = [{"cui": "C0000004", "score": 1.0}]
    body = {"key": key, "reviewer": "Ada", "document": document, "shown": shown}
    place = {"start": 0, "end": 5, "chosen": "C0000004"}
    decision = {**body, **place, **fields}
    return client.post("/reviews/decisions", {"decisions": [decision]})


@pytest.fixture(scope="module")
def reviewed(
    start_service: Start, sample_kb: Path, tmp_path_factory: pytest.TempPathFactory
) -> Client:
    """A service with a note that two reviewers have decided on."""
    path = tmp_path_factory.mktemp("reviews") / "reviews.db"
    client = start_service(sample_kb, "--reviews", path)
    note = {"name": "note", "text": NOTE}
    document = client.post("/reviews/documents", note).json()["document"]
    for number, (reviewer, start, end, chosen) in enumerate(
        [
            ("Ada", 0, 5, "C0000004"),
            ("Ada", 10, 14, "C0000008"),
            ("Ada", 10, 14, "NIL"),
            ("Ada", 16, 18, "C0000001"),
            ("Ben", 0, 5, "C0000004"),
            ("Ben", 16, 18, "C0000002"),
            ("Ben", 10, 14, "C0000008"),
            ("Ben", 10, 14, None),
        ]
    ):
        answer = decide(
            client,
            document,
            f"key-{number:05}",
            reviewer=reviewer,
            start=start,
            end=end,
            chosen=chosen,
        )
        assert answer.status == 200, answer.body
    return client


def test_a_document_has_the_last_decision_of_each_reviewer(reviewed: Client) -> None:
    listed = reviewed.get("/reviews/documents").json()
    assert listed["reviewers"] == ["Ada", "Ben"]
    (document,) = listed["documents"]
    assert document["decisions"] == 5
    read = reviewed.get(f"/reviews/documents/{document['id']}").json()
    assert read["text"] == NOTE
    found = [(d["reviewer"], d["start"], d["chosen"]) for d in read["decisions"]]
    assert found == [
        ("Ada", 0, "C0000004"),
        ("Ada", 10, "NIL"),
        ("Ada", 16, "C0000001"),
        ("Ben", 0, "C0000004"),
        ("Ben", 16, "C0000002"),
    ]


def test_agreement_is_that_of_mentions_of_both(reviewed: Client) -> None:
    (pair,) = reviewed.get("/reviews/agreement").json()
    assert (pair["reviewers"], pair["mentions"], pair["agree"]) == (
        ["Ada", "Ben"],
        2,
        1,
    )
    assert pair["kappa"] == pytest.approx(1 / 3, abs=1e-4)  # (1/2 − 1/4) / (1 − 1/4)


def test_quality_is_that_of_the_answers_to_decided_mentions(reviewed: Client) -> None:
    assert reviewed.get("/reviews/quality").status == 405  # it costs
    found = reviewed.post("/reviews/quality", {}).json()
    # fever, and a word that means nothing; on MI they differ
    assert (found["mentions"], found["without_concept"]) == (2, 1)
    assert found["first"] == 1.0
    assert found["causes"] == []


def test_measure_quality_counts_decisions(sample_kb: Path) -> None:
    kb = load_kb(sample_kb)
    mentions = [
        DecidedMention("fever", "", "C0000004", 3),
        DecidedMention("MI", "", "C0000002", 1),
        DecidedMention("zebra", "", "NIL", 2),
    ]
    links = kb.link([one.text for one in mentions], threshold=-1)
    answered = [
        Answered(mention, linked.candidates, linked.cui)
        for mention, linked in zip(mentions, links, strict=True)
    ]
    found = measure_quality(kb, answered)
    assert (found.first, found.near) == (0.75, 1.0)
    assert (found.precision, found.recall, found.none) == (0.5, 0.75, 0.0)
    assert (found.mentions, found.without_concept) == (6, 2)
    assert [(cause.cause, cause.mentions) for cause in found.causes] == [("tie", 1)]


@pytest.mark.parametrize(
    "format", ["jsonl", "csv", "pubtator", "brat", "biocxml", "biocjson"]
)
def test_an_export_is_read_as_it_was_decided(
    reviewed: Client, tmp_path: Path, format: str
) -> None:
    answer = reviewed.get(f"/reviews/export?format={format}&reviewer=Ada")
    assert answer.status == 200
    assert "attachment" in answer.headers["content-disposition"]
    name = answer.headers["content-disposition"].split('"')[1]
    path = tmp_path / name
    path.write_bytes(answer.body)
    if format == "brat":
        with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
            archive.extractall(tmp_path / "brat")
        path = tmp_path / "brat"
    (document,) = read_corpus(path, format)
    mentions = [(mention.mention, mention.parts) for mention in document.mentions]
    expected = [("Fever", [["C0000004"]]), ("qqxx", []), ("MI", [["C0000001"]])]
    assert mentions == expected


def test_an_export_of_all_has_a_document_for_each_reviewer(
    reviewed: Client, tmp_path: Path
) -> None:
    lines = reviewed.get("/reviews/export").body.decode().splitlines()
    ids = [json.loads(line)["id"].partition("-")[2] for line in lines]
    assert ids == ["Ada", "Ben"]
    assert reviewed.get("/reviews/export?format=docx").code == "E457"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"document": "0" * 32}, 404),
        ({"chosen": "C1234567"}, 404),
        ({"start": 5, "end": 5}, 422),
        ({"end": 1000}, 422),
        ({"start": -1}, 422),
        ({"reviewer": ""}, 422),
        ({"reviewer": "agreed"}, 422),  # stands for what holds
        ({"reviewer": "\ud800"}, 422),
        ({"key": "../../x"}, 422),
        ({"shown": [{"cui": "x", "more": 1}]}, 422),
        ({"shown": [{"cui": "x", "score": float("nan")}]}, 422),
        ({"shown": [{"cui": "x", "score": float("inf")}]}, 422),
        ({"chosen": 5}, 422),
    ],
)
def test_a_decision_that_is_not_possible_is_refused(
    reviewed: Client, fields: dict[str, Any], status: int
) -> None:
    documents = reviewed.get("/reviews/documents").json()["documents"]
    answer = decide(reviewed, documents[0]["id"], "key-of-bad", **fields)
    assert answer.status == status
    assert reviewed.get("/reviews/documents").json()["documents"] == documents


def test_a_decision_is_refused_while_its_file_is_not_at_its_path(
    start_service: Start, sample_kb: Path, tmp_path: Path
) -> None:
    path = tmp_path / "reviews.db"
    client = start_service(sample_kb, "--reviews", path)
    note = {"name": "note", "text": NOTE}
    document = client.post("/reviews/documents", note).json()["document"]
    assert decide(client, document, "key-before").status == 200
    moved = path.rename(tmp_path / "moved.db")
    for key in ("key-moved", "key-before"):  # the second one would write nothing
        answer = decide(client, document, key)
        assert (answer.status, answer.code) == (503, "E490")
        assert str(tmp_path) not in answer.body.decode()
    path.write_bytes(moved.read_bytes())  # what is put there is another file
    assert decide(client, document, "key-replaced").code == "E490"
    assert len(client.get("/reviews/export").body.splitlines()) == 1
    moved.replace(path)
    assert decide(client, document, "key-back", reviewer="Ben").status == 200
    path.unlink()
    note = {"name": "other", "text": "fever"}
    assert client.post("/reviews/documents", note).code == "E490"


def test_a_service_without_reviews_has_none(service: Client) -> None:
    assert service.get("/reviews/documents").code == "E467"
    assert service.get("/reviews/teach").code == "E467"


def test_kill_9_loses_no_decision_that_was_accepted(
    start_service: Start, sample_kb: Path, tmp_path: Path
) -> None:
    path = tmp_path / "reviews.db"
    client = start_service(sample_kb, "--reviews", path)
    assert path.stat().st_mode & 0o077 == 0
    note = {"name": "note", "text": "fever " * 100}
    document = client.post("/reviews/documents", note).json()["document"]
    accepted: list[str] = []

    def review(reviewer: int) -> None:
        for place in range(100):
            key = f"{reviewer}-key-{place:05}"
            start = 6 * place
            try:
                answer = decide(
                    client,
                    document,
                    key,
                    reviewer=f"R{reviewer}",
                    start=start,
                    end=start + 5,
                )
            except OSError:
                return
            if answer.status == 200:
                accepted.append(key)

    threads = [threading.Thread(target=review, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    while len(accepted) < 20:
        time.sleep(0.001)
    client.process.kill()
    for thread in threads:
        thread.join()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    kept = {key for (key,) in connection.execute("SELECT key FROM decisions")}
    connection.close()
    assert {*accepted} <= kept
    store = ReviewStore(path)  # the file goes on
    assert len(store.latest()) == len(kept)
    store.close()


def test_teaching_changes_the_links_when_it_is_used(
    start_service: Start, own_kb: Path, tmp_path: Path
) -> None:
    taught = tmp_path / "reviews.db.taught"
    taught.mkdir(mode=0o755)  # as an older version has made it
    mode = stat.S_IMODE((own_kb / "v1" / "concepts.db").stat().st_mode)
    client = start_service(own_kb, "--reviews", tmp_path / "reviews.db")
    body = {"mentions": ["vwkj zzz"]}
    before = client.post("/mentions", body).json()["mentions"][0]
    for number in range(12):
        note = {"name": str(number), "text": f"vwkj zzz and fever {number}"}
        document = client.post("/reviews/documents", note).json()["document"]
        place = {"start": 0, "end": 8, "chosen": "C0000008"}
        assert decide(client, document, f"first-{number:03}", **place).status == 200
        place = {"start": 13, "end": 18, "chosen": "C0000004"}
        assert decide(client, document, f"second-{number:03}", **place).status == 200
    assert client.post("/reviews/switch", {"number": 1}).code == "E469"
    assert client.post("/reviews/teach", {}).status == 202
    event = client.wait_for("taught")
    state = client.get("/reviews/teach").json()
    assert (event["changed"], state["state"]) == (True, "done")
    assert [one["used"] for one in state["versions"]] == [False]
    assert state["report"]["names"]["all"] > state["report"]["before"]["all"]
    assert client.post("/mentions", body).json()["mentions"][0] == before
    use_newest(client)
    after = client.post("/mentions", body).json()["mentions"][0]
    assert (before["cui"] != "C0000008", after["cui"]) == (True, "C0000008")
    assert (own_kb / "v1" / "meta.json").is_file()
    # Its names are texts of the notes. What it shares with the original has none, and
    # the original stays as it was.
    paths = [taught, *taught.rglob("*")]
    shared = {p.name for p in paths if p.is_file() and p.stat().st_nlink > 1}
    assert {"model.safetensors", "concepts.db"} <= shared
    assert taught.stat().st_mode & 0o077 == 0
    assert stat.S_IMODE((own_kb / "v1" / "concepts.db").stat().st_mode) == mode


def test_teaching_again_uses_the_decisions_that_count_now(
    start_service: Start, own_kb: Path, tmp_path: Path
) -> None:
    client = start_service(own_kb, "--reviews", tmp_path / "reviews.db")
    documents = []
    for number in range(12):
        note = {"name": str(number), "text": f"vwkj zzz, qqw {number}"}
        documents.append(client.post("/reviews/documents", note).json()["document"])

    def teach(key: str, chosen: dict[str, str | None]) -> list[str | None]:
        """Decide on both mentions of each note, teach, and link them again."""
        for number, document in enumerate(documents):
            for (start, end), cui in zip(
                ((0, 8), (10, 13)), chosen.values(), strict=True
            ):
                own = f"{key}-{number:03}-{start:03}"
                place = {"start": start, "end": end, "chosen": cui}
                assert decide(client, document, own, **place).status == 200
        assert client.post("/reviews/teach", {"force": True}).status == 202
        client.wait_for("taught")
        use_newest(client)
        body = {"mentions": [*chosen], "threshold": -1}
        found = client.post("/mentions", body).json()["mentions"]
        return [one["candidates"][0]["alias"] for one in found]

    first = teach("first", {"vwkj zzz": "C0000008", "qqw": "C0000004"})
    assert first == ["vwkj zzz", "qqw"]
    again = teach("again", {"vwkj zzz": "C0000005", "qqw": None})
    # The other decision was withdrawn, and is not a name any more.
    assert (again[0], again[1] != "qqw") == ("vwkj zzz", True)
    body = {"mentions": ["vwkj zzz"]}
    assert client.post("/mentions", body).json()["mentions"][0]["cui"] == "C0000005"
    assert "vwkj zzz" not in json.dumps(client.get("/concepts/C0000008").json())


def test_teaching_without_decisions_is_an_error_with_a_code(
    start_service: Start, sample_kb: Path, tmp_path: Path
) -> None:
    client = start_service(sample_kb, "--reviews", tmp_path / "reviews.db")
    client.post("/reviews/teach", {"force": True})
    assert client.wait_for("not_taught")["code"] == "E362"
    assert client.get("/reviews/teach").json()["error"]["code"] == "E362"


class HeldTeaching:
    """Holds the first teaching when its version is written, and not yet published."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written, self.released = threading.Event(), threading.Event()
        teach = taught.teach_documents

        def teach_and_wait(*args: Any, **options: Any) -> Any:
            result = teach(*args, **options)
            self.written.set()
            assert self.released.wait(60)
            return result

        monkeypatch.setattr(taught, "teach_documents", teach_and_wait)


def add_notes(client: LocalClient, word: str, cui: str) -> list[str]:
    """Add twelve notes with decisions, the last of them on a word of its own."""
    documents = []
    for number in range(12):
        text = f"{word if number == 11 else 'vwkj zzz'}, fever {number}"
        note = {"name": str(number), "text": text}
        document = client.post("/reviews/documents", note).json()["document"]
        place = {"start": 0, "end": len(word), "chosen": cui}
        assert decide(client, document, f"key-{number:05}", **place).status == 200
        documents.append(document)
    return documents


def find_files(folder: Path, word: str) -> list[str]:
    """The files of a folder that have a word in them."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if word.encode() in path.read_bytes()]


@pytest.mark.parametrize("used", [False, True], ids=["unused", "used"])
def test_a_note_that_is_deleted_during_a_teaching_is_not_taught(
    open_local: OpenLocal,
    own_kb: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    used: bool,
) -> None:
    store = ReviewStore(tmp_path / "reviews.db")
    client = open_local(own_kb, store)
    word = "qxkw zzz"
    *others, deleted = add_notes(client, word, "C0000008")
    if used:
        client.post("/reviews/teach", {"force": True})
        wait_for_teaching(client)
        use_newest(client)
        # The links of the other notes may have the word as a name of their candidates.
        link_all(client)
    held = HeldTeaching(monkeypatch)
    assert client.post("/reviews/teach", {"force": True}).status == 202
    assert held.written.wait(60)
    answer = client.send("DELETE", f"/reviews/documents/{deleted}")
    held.released.set()
    assert answer.json()["versions"] >= used
    state = wait_for_teaching(client)
    assert [one["report"]["counts"]["documents"] for one in state["versions"]] == [
        len(others)
    ]
    use_newest(client)
    store.close()
    assert find_files(tmp_path, word) == []
    again = open_local(own_kb, ReviewStore(tmp_path / "reviews.db"))
    body = {"mentions": [word, "vwkj zzz"], "threshold": -1}
    found, other = again.post("/mentions", body).json()["mentions"]
    assert other["candidates"][0]["alias"] == "vwkj zzz"  # it has learned the others
    assert word not in [one["alias"] for one in found["candidates"]]
    assert word not in again.get("/search", {"q": word}).body.decode()


def test_the_report_of_a_teaching_forgets_a_deleted_note(
    open_local: OpenLocal, own_kb: Path, tmp_path: Path
) -> None:
    client = open_local(own_kb, ReviewStore(tmp_path / "reviews.db"))
    word = "qxkw zzz"
    *_, deleted = add_notes(client, word, "C0000008")
    note = {"name": "other", "text": f"{word} means something else"}
    other = client.post("/reviews/documents", note).json()["document"]
    place = {"start": 0, "end": len(word), "chosen": "C0000005"}
    assert decide(client, other, "key-other", **place).status == 200
    client.post("/reviews/teach", {"force": True})
    (contradiction,) = wait_for_teaching(client)["report"]["contradictions"]
    assert contradiction["mention"] == word
    assert client.send("DELETE", f"/reviews/documents/{other}").status == 200
    assert client.send("DELETE", f"/reviews/documents/{deleted}").status == 200
    assert word not in client.get("/reviews/teach").body.decode()


def test_what_a_killed_teaching_left_is_removed(
    open_local: OpenLocal, own_kb: Path, tmp_path: Path
) -> None:
    """It may have texts of notes that were deleted since, whatever its number."""
    folder = tmp_path / "reviews.db.taught"
    for name in ("3", ".7.abcd.tmp"):  # not described yet, not whole
        (folder / name).mkdir(parents=True)
        (folder / name / "taught.jsonl").write_text("a text")
    open_local(own_kb, ReviewStore(tmp_path / "reviews.db"))
    assert [*folder.iterdir()] == []


def read_keys(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    sql = "SELECT key FROM decisions ORDER BY number"
    keys = [key for (key,) in connection.execute(sql)]
    connection.close()
    return keys


def make_decision(
    key: str,
    reviewer: str,
    document: str,
    start: int,
    end: int,
    chosen: str | None,
    *,
    settles: bool = False,
) -> NewDecision:
    return NewDecision(
        key=key,
        reviewer=reviewer,
        document=document,
        start=start,
        end=end,
        chosen=chosen,
        settles=settles,
    )


def add_decisions(store: ReviewStore, *keys: str) -> None:
    (document,) = store.add_documents([NewNote("a", "fever")]).documents
    for key in keys:
        store.add_decisions([make_decision(key, "A", document, 0, 5, "C1")])


def test_a_copy_of_the_open_file_has_all_decisions(tmp_path: Path) -> None:
    path, copy = tmp_path / "reviews.db", tmp_path / "copy.db"
    store = ReviewStore(path)
    for number in range(3):
        add_decisions(store, f"key-{number:04}")
        copy.write_bytes(path.read_bytes())
        assert len(read_keys(copy)) == number + 1
    store.close()


def test_a_file_with_a_write_ahead_log_becomes_one_file(tmp_path: Path) -> None:
    path, copy = tmp_path / "reviews.db", tmp_path / "copy.db"
    store = ReviewStore(path)
    add_decisions(store, "key-first")
    store.close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode = WAL").fetchall() == [("wal",)]
    connection.close()
    store = ReviewStore(path)
    add_decisions(store, "key-second")
    copy.write_bytes(path.read_bytes())
    assert read_keys(copy) == ["key-first", "key-second"]
    assert [one.name for one in tmp_path.glob("reviews.db*")] == ["reviews.db"]
    store.close()


def test_a_decision_that_is_sent_again_is_written_once(store: ReviewStore) -> None:
    (document,) = store.add_documents([NewNote("a", "fever")]).documents
    for key, chosen in (("first", "C1"), ("second", "C2"), ("first", "C1")):
        one = make_decision(f"{key}-key", "A", document, 0, 5, chosen)
        store.add_decisions([one])
    assert [one.chosen for one in store.latest()] == ["C2"]


def test_a_decision_keeps_what_the_reviewer_saw(store: ReviewStore) -> None:
    (document,) = store.add_documents([NewNote("a", "fever")]).documents
    shown = [Shown(cui="C1", score=0.5), Shown(cui="C2")]
    one = make_decision("key-shown", "A", document, 0, 5, "C1")
    store.add_decisions([one.model_copy(update={"shown": shown, "kb": "digest"})])
    ((seen, kb),) = store.query("SELECT shown, kb FROM decisions")
    assert json.loads(seen) == [one.model_dump() for one in shown]
    assert kb == "digest"


@pytest.mark.parametrize(
    "content", [b"no database at all" * 100, "other tables", "other version"]
)
def test_another_file_is_no_file_of_reviews(tmp_path: Path, content: Any) -> None:
    """Nor is one of another version: none was released."""
    path = tmp_path / "reviews.db"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content == "other tables":
        sqlite3.connect(path).execute("CREATE TABLE other (x)").connection.close()
    else:
        store = ReviewStore(path)
        store.query("PRAGMA user_version = 1")
        store.close()
    with pytest.raises(SapbertError, match="E466"):
        ReviewStore(path)


@pytest.mark.parametrize(
    ("one", "other"),
    [("AABBC", "AABBC"), ("AABBC", "ABABC"), ("AB", "BA"), ("AABB", "AAAA")],
)
def test_kappa_is_that_of_scikit_learn(one: str, other: str) -> None:
    expected = cohen_kappa_score([*one], [*other])
    assert compute_kappa(one, other) == pytest.approx(expected)


def test_kappa_of_nothing_or_of_one_concept_is_none() -> None:
    assert compute_kappa("", "") is None
    assert compute_kappa("AA", "AA") is None


def test_reviewers_are_compared_in_pairs() -> None:
    decisions = [
        make_decision(f"{name}-key-{n:04}", name, "d", n, n + 1, chosen)
        for name, chosen_ones in {"A": "xy", "B": "xx", "C": "yy"}.items()
        for n, chosen in enumerate(chosen_ones)
    ]
    pairs = compare_reviewers(decisions)
    assert [pair.reviewers for pair in pairs] == [("A", "B"), ("A", "C"), ("B", "C")]
    assert [pair.agree for pair in pairs] == [1, 1, 0]
