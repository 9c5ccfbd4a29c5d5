from typing import Optional

import pytest

from spacy_sapbert.candidates import (
    describe_text,
    make_candidate,
    rank_concepts,
    rank_entries,
)
from spacy_sapbert.store import Entry

ENTRIES = {
    0: [Entry(0, "C2", "Mitral insufficiency", "MI", False)],
    1: [
        Entry(1, "C3", "Cold", "Cold", True),
        Entry(1, "C1", "Common cold", "Cold", False),
    ],
    2: [Entry(2, "C2", "Mitral insufficiency", "Mitral insufficiency", True)],
}


def test_rank_entries_puts_preferred_names_first_then_smaller_ids() -> None:
    entries = {
        5: [Entry(5, "C9", "x", "cold", True), Entry(5, "C4", "y", "cold", False)],
        6: [Entry(6, "C2", "z", "COLD", False), Entry(6, "C3", "w", "COLD", False)],
    }
    ranked = rank_entries([6, 5], [0.9, 0.9 + 1e-8], entries)
    assert [entry.cui for _, entry in ranked] == ["C9", "C2", "C3", "C4"]


def test_rank_concepts_takes_each_concept_once_by_its_best_alias() -> None:
    ranked = rank_concepts([0, 1, 2], [0.8, 0.7, 0.9], ENTRIES)
    assert [(entry.cui, entry.alias, score) for score, entry in ranked] == [
        ("C2", "Mitral insufficiency", 0.9),
        ("C3", "Cold", 0.7),
        ("C1", "Cold", 0.7),
    ]


@pytest.mark.parametrize(("k", "cuis"), [(1, ["C2"]), (2, ["C2", "C3"])])
def test_rank_concepts_stops_at_k(k: int, cuis: list) -> None:
    ranked = rank_concepts([0, 1, 2], [0.8, 0.7, 0.9], ENTRIES, k=k)
    assert [entry.cui for _, entry in ranked] == cuis


def test_rank_concepts_of_a_row_without_aliases_is_empty() -> None:
    assert rank_concepts([9], [1.0], ENTRIES) == []


def test_make_candidate_has_plain_json_types() -> None:
    candidate = make_candidate(0.5, ENTRIES[0][0], ["T047"])
    assert candidate == {
        "cui": "C2",
        "name": "Mitral insufficiency",
        "alias": "MI",
        "score": 0.5,
        "types": ["T047"],
    }


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("", "blank"),
        (" \n\t ", "blank"),
        ("...", "punctuation"),
        ("\u200b", "punctuation"),
        ("😀", "punctuation"),
        ("5", None),
        ("頭", None),
        ("-a-", None),
    ],
)
def test_describe_text(text: str, note: Optional[str]) -> None:
    assert describe_text(text) == note
