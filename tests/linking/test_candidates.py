import pytest

from spacy_sapbert.linking.candidates import RankedEntry
from spacy_sapbert.linking.ranking import (
    Entry,
    Evidence,
    break_ties,
    has_text,
    order_entries,
    rank_concepts,
)

ENTRIES = {
    0: [Entry(0, "C2", "Mitral insufficiency", "MI", False)],
    1: [
        Entry(1, "C3", "Cold", "Cold", True),
        Entry(1, "C1", "Common cold", "Cold", False),
    ],
    2: [Entry(2, "C2", "Mitral insufficiency", "Mitral insufficiency", True)],
}


def test_order_entries_puts_preferred_names_first_then_smaller_ids() -> None:
    entries = {
        5: [Entry(5, "C9", "x", "cold", True), Entry(5, "C4", "y", "cold", False)],
        6: [Entry(6, "C2", "z", "COLD", False), Entry(6, "C3", "w", "COLD", False)],
    }
    ranked = order_entries([6, 5], [0.9, 0.9 + 1e-8], entries)
    assert [hit.entry.cui for hit in ranked] == ["C9", "C2", "C3", "C4"]


def test_rank_concepts_has_each_concept_once_by_its_best_alias() -> None:
    ranked = rank_concepts(order_entries([0, 1, 2], [0.8, 0.7, 0.9], ENTRIES))
    assert [(hit.entry.cui, hit.entry.alias, hit.score) for hit in ranked] == [
        ("C2", "Mitral insufficiency", 0.9),
        ("C3", "Cold", 0.7),
        ("C1", "Cold", 0.7),
    ]


@pytest.mark.parametrize(
    ("k", "cuis"), [(1, ["C2"]), (2, ["C2", "C3", "C1"]), (3, ["C2", "C3", "C1"])]
)
def test_rank_concepts_keeps_k_and_all_that_equal_the_last(k: int, cuis: list) -> None:
    ranked = order_entries([0, 1, 2], [0.8, 0.7, 0.9], ENTRIES)
    assert [hit.entry.cui for hit in rank_concepts(ranked, k=k)] == cuis


def test_order_entries_of_a_row_without_aliases_is_empty() -> None:
    assert list(order_entries([9], [1.0], ENTRIES)) == []


def test_order_entries_accepts_other_orders() -> None:
    ranked = order_entries([0, 2], [0.8, 0.9], ENTRIES, orders=[0.5, 0.25])
    assert [(hit.entry.alias, hit.score) for hit in ranked] == [
        ("MI", 0.8),
        ("Mitral insufficiency", 0.9),
    ]


def make_hit(cui: str, order: float, *, preferred: bool = False) -> RankedEntry:
    return RankedEntry(order, Entry(0, cui, cui, "cold", preferred), order)


PREFERRED: Evidence = [("preferred", lambda entry: not entry.preferred)]
LAST_DIGIT: Evidence = [("digit", lambda entry: -int(entry.cui[-1]))]


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ([], [("C1", "id"), ("C2", "id"), ("C3", "id"), ("C4", None)]),
        (
            PREFERRED,
            [("C2", "preferred"), ("C1", "id"), ("C3", "id"), ("C4", None)],
        ),
        (
            [*PREFERRED, *LAST_DIGIT],
            [("C2", "preferred"), ("C3", "digit"), ("C1", "digit"), ("C4", None)],
        ),
        (
            [*LAST_DIGIT, *PREFERRED],
            [("C3", "digit"), ("C2", "digit"), ("C1", "digit"), ("C4", None)],
        ),
    ],
)
def test_break_ties_orders_by_evidence_and_returns_it(
    evidence: Evidence, expected: list
) -> None:
    hits = [
        make_hit("C1", 1),
        make_hit("C2", 1, preferred=True),
        make_hit("C3", 1),
        make_hit("C4", 0.5),
    ]
    settled = break_ties(hits, evidence)
    assert [(hit.entry.cui, tie) for hit, tie in settled] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),
        (" \n\t ", False),
        ("...", False),
        ("\u200b", False),
        ("😀", False),
        ("5", True),
        ("頭", True),
        ("-a-", True),
    ],
)
def test_has_text_by_hand(text: str, expected: bool) -> None:
    assert has_text(text) == expected
