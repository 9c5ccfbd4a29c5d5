"""Columns of terms that are kept: choices, reviewers, and what is refused."""

import http.client
import secrets
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert import load_kb
from spacy_sapbert.kb.edits.change import remove_concepts
from spacy_sapbert.serve.reviews.kept_columns import latest_choices
from spacy_sapbert.serve.reviews.store import ReviewStore
from spacy_sapbert.serve.settings import Limits

from .conftest import Sender

FEVER, INFARCT, RETIRED = "C0000004", "C0000001", "C9999999"
SECRET = "Zqxwvut fever"
TERMS = [SECRET, "MI"]


def make_column(client: Sender, **changed: Any) -> dict[str, Any]:
    """Map terms, and return what is sent to keep them."""
    found = client.post("/column/map", {"terms": TERMS, "k": 2}).json()
    rows = [[1.5, SECRET], [{"date": "2026-01-02"}, "MI"], [None, SECRET]]
    verdicts: list[Any] = [[{"id": "X", "verdict": "wrong", "why": "Not so."}], []]
    terms = [
        {"term": term, "found": one, "verdicts": said}
        for term, one, said in zip(TERMS, found["found"], verdicts, strict=True)
    ]
    sheet = {"header": ["n", "term"], "rows": rows, "place": 1, "subject": "n"}
    return {
        "name": "t.csv",
        "kb": found["kb"],
        "sheet": sheet,
        "terms": terms,
    } | changed


def choose(client: Sender, id: str, term: int, chosen: Any, **more: Any) -> Any:
    one = {"key": secrets.token_hex(8), "reviewer": "Ada", "term": term} | more
    body = {"decisions": [one | {"chosen": chosen}]}
    return client.post(f"/reviews/columns/{id}/choices", body)


def read(client: Sender, id: str, reviewer: str = "Ada") -> dict[str, Any]:
    found: dict[str, Any] = client.get(
        f"/reviews/columns/{id}", {"reviewer": reviewer}
    ).json()
    return found


def test_a_column_is_kept_as_it_was_mapped_with_the_choices_of_each_reviewer(
    open_local, sample_kb, store, tmp_path
):
    client = open_local(sample_kb, store)
    sent = make_column(client)
    id = client.post("/reviews/columns", sent).json()
    assert client.post("/reviews/columns", sent).json() == id  # the same, sent again
    assert choose(client, id, 0, INFARCT, predicate="exact").status == 200
    same = {"key": "k" * 12, "predicate": "broad"}
    for _ in range(2):  # the request is repeated
        assert choose(client, id, 0, RETIRED, **same).status == 200
    assert choose(client, id, 1, "NIL").status == 200
    assert choose(client, id, 1, None).status == 200  # it is taken back
    more = {"reviewer": "Ben", "in_bulk": True}
    assert choose(client, id, 1, FEVER, **more).status == 200
    again = open_local(sample_kb, ReviewStore(store.path))  # after a start
    for one in (client, again):
        found = read(one, id)
        assert {name: found[name] for name in sent} == sent
        choice = {"reviewer": "Ada", "term": 0, "chosen": RETIRED, "predicate": "broad"}
        assert found["decisions"] == [{**choice, "in_bulk": False}]
        names = [(c["cui"], c["name"]) for c in found["concepts"]]
        assert names == [(RETIRED, "Myocardial infarction")]
        (other,) = read(one, id, "Ben")["decisions"]
        assert (other["chosen"], other["in_bulk"]) == (FEVER, True)
        (listed,) = one.get("/reviews/columns", {"reviewer": "Ada"}).json()
        assert (listed["id"], listed["name"]) == (id, "t.csv")
        assert (listed["terms"], listed["decisions"]) == (2, 1)
    assert client.send("DELETE", f"/reviews/columns/{id}").json() == id
    for answer in (
        client.get(f"/reviews/columns/{id}"),
        client.send("DELETE", f"/reviews/columns/{id}"),
        choose(client, id, 0, FEVER),
    ):
        assert answer.status == 404
    assert client.get("/reviews/columns").json() == []
    assert SECRET.encode() not in Path(store.path).read_bytes()


def test_what_is_accepted_in_bulk_replaces_no_choice_of_a_person(
    open_local, sample_kb, store
):
    """A tab that has not seen it, of another browser, accepts all that is sure."""
    client = open_local(sample_kb, store)
    id = client.post("/reviews/columns", make_column(client)).json()
    assert choose(client, id, 0, "NIL").status == 200
    for term in (0, 1):
        assert choose(client, id, term, FEVER, in_bulk=True).status == 200
    assert [o["chosen"] for o in read(client, id)["decisions"]] == ["NIL", FEVER]
    assert choose(client, id, 0, FEVER, in_bulk=True, reviewer="Ben").status == 200
    assert len(read(client, id, "Ben")["decisions"]) == 1
    assert choose(client, id, 1, INFARCT).status == 200  # a person decides after it
    assert choose(client, id, 0, None).status == 200  # and undo brings it back
    assert choose(client, id, 0, FEVER, in_bulk=True).status == 200
    assert [o["chosen"] for o in read(client, id)["decisions"]] == [FEVER, INFARCT]


def test_a_choice_that_is_not_possible_is_refused_and_nothing_is_written(
    open_local, sample_kb, store
):
    client = open_local(sample_kb, store)
    id = client.post("/reviews/columns", make_column(client)).json()
    key = secrets.token_hex(8)
    for term, chosen, status in (
        (2, FEVER, 404),
        (-1, FEVER, 422),
        (0, "C0", 404),
        (0, "OPEN", 404),
        (0, "", 422),
    ):
        good = {"key": key, "reviewer": "Ada", "term": 1, "chosen": FEVER}
        bad = {**good, "key": key[::-1], "term": term, "chosen": chosen}
        answer = client.post(
            f"/reviews/columns/{id}/choices", {"decisions": [good, bad]}
        )
        assert answer.status == status, answer.body
    assert read(client, id)["decisions"] == []


def test_a_candidate_can_be_chosen_after_its_concept_was_removed(
    open_local, own_kb, store
):
    """As it was shown; it has no name any more."""
    client = open_local(own_kb, store)
    sent = make_column(client)
    id = client.post("/reviews/columns", sent).json()
    cui = sent["terms"][0]["found"]["candidates"][1]["cui"]
    remove_concepts(load_kb(own_kb), [cui])
    newer = open_local(own_kb, store)
    assert choose(newer, id, 0, cui).status == 200
    assert read(newer, id)["concepts"] == []
    assert choose(newer, id, 1, "C1234567").status == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"terms": []},
        {"sheet": {"header": ["a"], "rows": [["b", "c"]], "place": 0}},
        {"sheet": {"header": ["a"], "rows": [["b"]], "place": 1}},
        {"sheet": {"header": ["a"], "rows": [["b"]], "place": 0, "subject": "b"}},
        {"sheet": {"header": ["a"], "rows": [["b"]] * 20_001, "place": 0}},
        "twice",
    ],
)
def test_what_is_no_column_is_refused(open_local, sample_kb, store, wrong):
    client = open_local(sample_kb, store)
    sent = make_column(client)
    sent |= {"terms": sent["terms"] * 2} if wrong == "twice" else wrong
    answer = client.post("/reviews/columns", sent)
    assert (answer.status, answer.code) == (422, "E457")
    assert b"Zqxwvut" not in answer.body
    assert client.get("/reviews/columns").json() == []


def test_columns_and_documents_are_at_most_as_many_as_are_kept(
    open_local, sample_kb, tmp_path
):
    store = ReviewStore(tmp_path / "reviews.db", most_documents=2)
    client = open_local(sample_kb, store, limits=Limits(kept=2))
    sent = make_column(client)
    note = {"name": "note", "text": "Fever."}
    assert client.post("/reviews/documents", note).status == 200
    assert client.post("/reviews/columns", sent).status == 200
    for path, body in (
        ("/reviews/columns", {**sent, "name": "other"}),
        ("/reviews/documents", {**note, "name": "other"}),
    ):
        answer = client.post(path, body)
        assert (answer.status, answer.code) == (507, "E488")
    assert client.post("/reviews/columns", sent).status == 200  # it is kept already
    assert len(client.get("/reviews/columns").json()) == 1
    store.close()


def test_choices_that_were_answered_outlive_a_kill(
    start_service, exported_kb, tmp_path
):
    path = tmp_path / "reviews.db"
    client = start_service(exported_kb, "--reviews", path)
    sent = make_column(client)
    sent["terms"] = [
        {**sent["terms"][0], "term": f"term {number}"} for number in range(5_000)
    ]
    id = client.post("/reviews/columns", sent).json()
    answered = []

    def decide() -> None:
        for number in range(len(sent["terms"])):
            try:
                answer = choose(client, id, number, "NIL")
            except (OSError, http.client.HTTPException):
                return
            assert answer.status == 200
            answered.append(number)

    thread = threading.Thread(target=decide)
    thread.start()
    while len(answered) < 20:
        time.sleep(0.001)
    client.stop(signal.SIGKILL)
    thread.join()
    kept = [one.term for one in latest_choices(ReviewStore(path), id, "Ada")]
    assert kept[: len(answered)] == answered
    assert len(kept) <= len(answered) + 1  # one that was not answered
    assert len(kept) < 5_000
