"""Decisions: kept through kill -9, exported, compared, taught."""

import base64
import json
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.kb.knowledge_base import KnowledgeBase
from spacy_sapbert.serve.reviews.agreement import (
    find_differences,
    judge_places,
)
from spacy_sapbert.serve.reviews.decisions import NO_MENTION, OPEN, NewDecision, Shown
from spacy_sapbert.serve.reviews.export import annotate_reviews, export_reviews
from spacy_sapbert.serve.reviews.imports import import_paths
from spacy_sapbert.serve.reviews.quality import (
    list_mentions,
)
from spacy_sapbert.serve.reviews.store import NewNote, ReviewStore

from .conftest import LocalClient

NOTE = "Fever, no qqxx. MI?"


FEVER, INFARCT, MITRAL = "C0000004", "C0000001", "C0000002"
WORD = "C0000008"
TEXT = "Fever, heart failure, MI."
ONE, TWO, WIDE, PART, MI = (0, 5), (7, 12), (7, 20), (13, 20), (22, 24)


Said = tuple[str, tuple[int, int], str | None]  # who, where and what


def say(store: ReviewStore, note: str, *said: Said, settles: bool = False) -> None:
    (number,) = store.query("SELECT count(*) FROM decisions")[0]
    store.add_decisions(
        make_decision(f"key-{number + at:05}", who, note, *span, chosen, settles)
        for at, (who, span, chosen) in enumerate(said)
    )


def add_note(store: ReviewStore, text: str = TEXT, name: str = "note") -> str:
    (id,) = store.add_documents([NewNote(name, text)]).documents
    return id


def make_decision(
    key: str,
    reviewer: str,
    document: str,
    start: int,
    end: int,
    chosen: str | None,
    settles: bool = False,
) -> NewDecision:
    place = {"document": document, "start": start, "end": end}
    said = {"reviewer": reviewer, "chosen": chosen, "settles": settles}
    return NewDecision(key=key, **place, **said)


def decide(client: LocalClient, document: str, key: str, /, **fields: Any) -> Any:
    decision = make_decision(key, "Ada", document, *ONE, FEVER).model_dump() | fields
    return client.post("/reviews/decisions", {"decisions": [decision]})


def test_an_export_is_read_as_it_was_decided(open_local, sample_kb, store, tmp_path):
    note, client = add_note(store, NOTE), open_local(sample_kb, store)
    fever, word, mi = (0, 5), (10, 14), (16, 18)
    say(store, note, ("Ada", fever, FEVER), ("Ada", word, WORD), ("Ada", word, "NIL"))
    say(store, note, ("Ada", mi, INFARCT), ("Ben", mi, MITRAL))
    for format in ("jsonl", "brat"):
        answer = client.get(f"/reviews/export?format={format}&reviewer=Ada")
        assert "attachment" in answer.headers["content-disposition"]
        path = tmp_path / answer.headers["content-disposition"].split('"')[1]
        path.write_bytes(answer.body)
        if format == "brat":
            shutil.unpack_archive(path, tmp_path / "brat")
            path = tmp_path / "brat"
        (document,) = read_corpus(path, format)
        mentions = [(mention.mention, mention.parts) for mention in document.mentions]
        expected = [("Fever", [["C0000004"]]), ("qqxx", []), ("MI", [["C0000001"]])]
        assert mentions == expected


def test_a_decision_is_refused_while_its_file_is_not_at_its_path(
    open_local, sample_kb, tmp_path
):
    path = tmp_path / "reviews.db"
    client = open_local(sample_kb, ReviewStore(path))
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


def test_a_copy_of_the_open_file_has_all_decisions(store, tmp_path):
    copy, note = tmp_path / "copy.db", add_note(store)
    for number in range(1, 4):
        say(store, note, ("Anna", ONE, FEVER))
        copy.write_bytes(Path(store.path).read_bytes())
        with closing(sqlite3.connect(copy)) as connection:
            found = connection.execute("SELECT count(*) FROM decisions").fetchall()
        assert found == [(number,)]


def test_a_decision_that_is_sent_again_is_written_once(store):
    note = add_note(store)
    for key, chosen in (("first", "C1"), ("second", "C2"), ("first", "C1")):
        store.add_decisions([make_decision(f"{key}-key", "A", note, *ONE, chosen)])
    assert [one.chosen for one in store.latest()] == ["C2"]


def test_a_decision_keeps_what_the_reviewer_saw(store):
    shown = [Shown(cui="C1", score=0.5), Shown(cui="C2")]
    one = make_decision("key-shown", "A", add_note(store), *ONE, "C1")
    store.add_decisions([one.model_copy(update={"shown": shown, "kb": "digest"})])
    ((seen, kb),) = store.query("SELECT shown, kb FROM decisions")
    assert json.loads(seen) == [one.model_dump() for one in shown]
    assert kb == "digest"


@pytest.mark.parametrize(
    "content", [b"no database at all" * 100, "other tables", "other version"]
)
def test_another_file_is_no_file_of_reviews(tmp_path, content):
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


def count_open(store: ReviewStore, kb: KnowledgeBase) -> int:
    return sum(one.agreed is None for one in find_differences(store, kb).places)


def find_agreed(store: ReviewStore) -> dict[tuple[int, int], str | None]:
    ((_, judged),) = judge_places(store.latest(), store.done())
    return {(one.start, one.end): agreed for one, _, agreed, _ in judged}


def check_everywhere(
    store: ReviewStore, kb: KnowledgeBase, expected: Iterable[tuple[str, str]]
) -> None:
    """Check that export, teaching and quality have what is agreed, and no more."""
    expected = sorted(expected)
    lines = export_reviews(store, kb, "jsonl", "agreed").splitlines()
    entities = [one for line in lines for one in json.loads(line)["entities"]]
    assert sorted((one["text"], one["cui"]) for one in entities) == expected
    taught = [one for gold in annotate_reviews(store) for one in gold.mentions]
    assert sorted((one.mention, one.parts[0][0]) for one in taught) == expected
    counted = [(one.text, one.chosen) for one in list_mentions(store, kb)]
    assert sorted(one for one in counted if one[1] != NO_MENTION) == expected


def test_a_mention_that_another_has_not_in_a_done_note_is_not_agreed(store, kb):
    """It was listed as a difference, and all the same exported and taught."""
    note = add_note(store)
    say(store, note, ("Anna", ONE, FEVER), ("Ben", ONE, FEVER), ("Ben", WIDE, INFARCT))
    check_everywhere(store, kb, [("Fever", FEVER), ("heart failure", INFARCT)])
    store.set_done(note, "Anna", True)  # without heart failure
    assert find_agreed(store) == {ONE: FEVER, WIDE: None}
    (difference,) = find_differences(store, kb).places
    assert difference.choices == {"Anna": None, "Ben": INFARCT}
    check_everywhere(store, kb, [("Fever", FEVER)])
    store.set_done(note, "Anna", False)
    check_everywhere(store, kb, [("Fever", FEVER), ("heart failure", INFARCT)])


def test_two_spans_of_one_mention_are_a_difference_and_settled_by_one_key(store, kb):
    note = add_note(store)
    say(store, note, ("Anna", TWO, INFARCT), ("Ben", WIDE, INFARCT))
    assert find_agreed(store) == {TWO: None, WIDE: None}
    check_everywhere(store, kb, [])
    say(store, note, ("Lead", WIDE, MITRAL), settles=True)  # a third answer
    assert find_agreed(store) == {TWO: NO_MENTION, WIDE: MITRAL}
    assert count_open(store, kb) == 0
    choices = [one.choices for one in find_differences(store, kb).places]
    assert not [one for one in choices if "Lead" in one]
    check_everywhere(store, kb, [("heart failure", MITRAL)])
    say(store, note, ("Lead", WIDE, None), settles=True)  # undo
    assert count_open(store, kb) == 2
    check_everywhere(store, kb, [])


def test_a_mention_in_another_is_agreed_if_both_have_it(store, kb):
    note = add_note(store)
    say(store, note, ("Anna", WIDE, INFARCT), ("Anna", PART, MITRAL))
    say(store, note, ("Ben", WIDE, INFARCT), ("Ben", PART, MITRAL))
    check_everywhere(store, kb, [("heart failure", INFARCT), ("failure", MITRAL)])


def test_a_changed_span_is_no_answer_to_the_old_one_of_another(store):
    """Ben says that "heart failure" is not a mention, and nothing of "heart"."""
    note = add_note(store)
    say(store, note, ("Anna", TWO, INFARCT), ("Ben", WIDE, NO_MENTION))
    assert find_agreed(store) == {TWO: INFARCT, WIDE: NO_MENTION}


def test_an_open_mark_is_no_answer_and_keeps_a_note_from_being_agreed(store, kb):
    note = add_note(store)
    say(store, note, ("Anna", ONE, FEVER), ("Ben", MI, OPEN))
    assert find_agreed(store) == {ONE: None}  # Ben is at work
    assert find_differences(store, kb).total == 0
    check_everywhere(store, kb, [])
    assert store.documents()[0].decisions == 1
    assert export_reviews(store, kb, "jsonl", "Ben") == b""  # nothing yet
    say(store, note, ("Ben", ONE, FEVER))
    check_everywhere(store, kb, [("Fever", FEVER)])
    say(store, note, ("Ben", MI, None))
    say(store, note, ("Ben", ONE, None))
    check_everywhere(store, kb, [("Fever", FEVER)])


def test_a_note_that_is_done_without_mentions_is_exported_unless_marked(store, kb):
    note = add_note(store)
    store.set_done(note, "Anna", True)
    for who in ("agreed", "Anna"):
        (line,) = export_reviews(store, kb, "jsonl", who).splitlines()
        assert json.loads(line)["entities"] == []
    say(store, note, ("Anna", MI, OPEN))
    assert export_reviews(store, kb, "jsonl", "agreed") == b""


def test_notes_beside_a_filter_are_linked_to_a_part_of_the_vocabulary(
    open_local, own_kb, tmp_path
):
    client = open_local(own_kb, ReviewStore(tmp_path / "reviews.db"))

    def encode(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    def send(**files: str) -> Any:
        sent = [{"name": n, "content": encode(text)} for n, text in files.items()]
        return client.post("/reviews/import", {"files": sent})

    text = "Heart attack, fever."
    limited = {"drugs/filter.json": '{"types": ["T121"]}', "drugs/sub/a.txt": text}
    added = send(**limited, **{"b.txt": text}).json()
    assert (added["read"], added["equal_texts"]) == (2, 1)
    while client.post("/reviews/prepare", {}).json()["left"]:
        pass
    one, other = (
        client.get(f"/reviews/documents/{id}").json() for id in added["documents"]
    )
    first, second = sorted((one, other), key=lambda each: each["name"])
    assert (first["filter"], second["filter"]) == ({}, {"types": ["T121"]})
    assert [m["cui"] for m in first["mentions"]] == ["C0000001", "C0000004"]
    assert [m["cui"] for m in second["mentions"]] == [None, None]
    types = {t for m in second["mentions"] for c in m["candidates"] for t in c["types"]}
    assert types <= {"T121"}
    # The filter of the next import holds.
    send(**{**limited, "drugs/filter.json": '{"types": ["T047"]}'})
    again = client.get(f"/reviews/documents/{second['id']}").json()
    assert [m["cui"] for m in again["mentions"]] == ["C0000001", None]
    for wrong, code in (
        ("[1]", "E117"),
        ('{"type": []}', "E333"),
        ('{"types": ["T999"]}', "E332"),
    ):
        refused = send(**{"x/filter.json": wrong, "x/c.txt": text})
        assert (refused.status, refused.code) == (422, code)
    folder = tmp_path / "notes" / "drugs"
    folder.mkdir(parents=True)
    (folder / "filter.json").write_text('{"types": ["T121"]}')
    (folder / "d.txt").write_text(text)
    store = ReviewStore(tmp_path / "other.db")
    (id,) = import_paths(store, [tmp_path / "notes"]).documents
    document = store.document(id)
    assert document is not None
    assert document.filter == '{"types": ["T121"]}'
