"""What reviewers agree on: one definition for Agree, export, teaching and quality."""

import json
from collections.abc import Iterable

from spacy_sapbert.kb.knowledge_base import KnowledgeBase
from spacy_sapbert.serve.reviews.agreement import find_differences, judge_places
from spacy_sapbert.serve.reviews.decisions import NO_MENTION, OPEN, NewDecision
from spacy_sapbert.serve.reviews.export import annotate_reviews, export_reviews
from spacy_sapbert.serve.reviews.quality import list_mentions
from spacy_sapbert.serve.reviews.store import NewNote, ReviewStore

FEVER, INFARCT, MITRAL = "C0000004", "C0000001", "C0000002"
NOTE = "Fever, heart failure, MI."
ONE, TWO, WIDE, PART, MI = (0, 5), (7, 12), (7, 20), (13, 20), (22, 24)


Said = tuple[str, tuple[int, int], str | None]  # who, where and what


def say(store: ReviewStore, note: str, *said: Said, settles: bool = False) -> None:
    (number,) = store.query("SELECT count(*) FROM decisions")[0]
    store.add_decisions(
        NewDecision(
            key=f"key-{number + place:05}",
            reviewer=who,
            document=note,
            start=start,
            end=end,
            chosen=chosen,
            settles=settles,
        )
        for place, (who, (start, end), chosen) in enumerate(said)
    )


def add_note(store: ReviewStore, text: str = NOTE, name: str = "note") -> str:
    (id,) = store.add_documents([NewNote(name, text)]).documents
    return id


def count_open(store: ReviewStore, kb: KnowledgeBase) -> int:
    return sum(one.agreed is None for one in find_differences(store, kb).places)


def find_agreed(store: ReviewStore) -> dict[tuple[int, int], str | None]:
    ((_, judged),) = judge_places(store.latest(), store.names("done"))
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


def test_a_mention_that_another_has_not_in_a_done_note_is_not_agreed(
    store: ReviewStore, kb: KnowledgeBase
) -> None:
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


def test_who_has_done_a_note_without_a_decision_says_that_it_has_no_mention(
    store: ReviewStore, kb: KnowledgeBase
) -> None:
    note = add_note(store)
    store.set_done(note, "Anna", True)
    say(store, note, ("Ben", ONE, FEVER))
    assert count_open(store, kb) == 1
    check_everywhere(store, kb, [])


def test_two_spans_of_one_mention_are_a_difference_and_settled_by_one_key(
    store: ReviewStore, kb: KnowledgeBase
) -> None:
    note = add_note(store)
    say(store, note, ("Anna", TWO, INFARCT), ("Ben", WIDE, INFARCT))
    assert find_agreed(store) == {TWO: None, WIDE: None}
    check_everywhere(store, kb, [])
    say(store, note, ("Lead", WIDE, MITRAL), settles=True)  # a third answer
    assert find_agreed(store) == {TWO: NO_MENTION, WIDE: MITRAL}
    assert count_open(store, kb) == 0
    check_everywhere(store, kb, [("heart failure", MITRAL)])
    say(store, note, ("Lead", WIDE, None), settles=True)  # undo
    assert count_open(store, kb) == 2
    check_everywhere(store, kb, [])


def test_a_mention_in_another_is_agreed_if_both_have_it(
    store: ReviewStore, kb: KnowledgeBase
) -> None:
    note = add_note(store)
    say(store, note, ("Anna", WIDE, INFARCT), ("Anna", PART, MITRAL))
    say(store, note, ("Ben", WIDE, INFARCT), ("Ben", PART, MITRAL))
    check_everywhere(store, kb, [("heart failure", INFARCT), ("failure", MITRAL)])


def test_a_changed_span_is_no_answer_to_the_old_one_of_another(
    store: ReviewStore, kb: KnowledgeBase
) -> None:
    """Ben says that "heart failure" is not a mention, and nothing of "heart"."""
    note = add_note(store)
    say(store, note, ("Anna", TWO, INFARCT), ("Ben", WIDE, NO_MENTION))
    assert find_agreed(store) == {TWO: INFARCT, WIDE: NO_MENTION}


def test_an_open_mark_is_no_answer_and_keeps_a_note_from_being_agreed(
    store: ReviewStore, kb: KnowledgeBase
) -> None:
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


def test_a_note_that_is_done_without_mentions_is_exported_unless_marked(
    store: ReviewStore, kb: KnowledgeBase
) -> None:
    note = add_note(store)
    store.set_done(note, "Anna", True)
    for who in ("agreed", "Anna"):
        (line,) = export_reviews(store, kb, "jsonl", who).splitlines()
        assert json.loads(line)["entities"] == []
    say(store, note, ("Anna", MI, OPEN))
    assert export_reviews(store, kb, "jsonl", "agreed") == b""


def test_what_is_settled_comes_after_what_is_open(
    store: ReviewStore, kb: KnowledgeBase
) -> None:
    first, second = add_note(store), add_note(store, name="other")
    say(store, first, ("Anna", ONE, FEVER), ("Ben", ONE, INFARCT))
    say(store, second, ("Carl", MI, MITRAL), ("Ben", MI, INFARCT))
    say(store, first, ("Lead", ONE, FEVER), settles=True)
    found = find_differences(store, kb).places
    assert [one.agreed for one in found] == [None, FEVER]
