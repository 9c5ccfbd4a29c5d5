import threading
from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.store import FILE, Store
from spacy_sapbert.kb.store_writer import create_store
from spacy_sapbert.vocabularies.concepts import Concept


@pytest.fixture
def store(few_concepts: list[Concept], tmp_path: Path) -> Store:
    row = 0
    with create_store(tmp_path / FILE) as writer:
        for concept in few_concepts:
            rows = list(range(row, row + len(concept.aliases)))
            writer.add(concept, rows)
            row += len(rows)
        writer.finish(bytes([number]) for number in range(row))
    return Store(tmp_path)


def test_store_returns_every_concept(store: Store, few_concepts: list[Concept]) -> None:
    assert list(store.concepts()) == few_concepts


def test_store_concept_by_id_and_retired_id(
    store: Store, few_concepts: list[Concept]
) -> None:
    assert store.concept("C0000001") == few_concepts[0]
    assert store.concept("C9999999") == few_concepts[0]
    assert store.concept("C7777777") is None


def test_store_finds_entries_keys_types_and_spellings(store: Store) -> None:
    entries = store.entries([2, 5])
    assert [(e.cui, e.alias, e.preferred) for e in entries[2]] == [
        ("C0000001", "MI", False)
    ]
    assert entries[5][0].name == "Mitral insufficiency"
    assert store.rows_of_keys([b"\x03", b"\xff"]) == {b"\x03": 3}
    assert store.types(["C0000004", "C0000007"]) == {"C0000004": ["T184"]}
    assert store.spellings(["fever", "infarction , myocardial", "no"]) == {
        "fever": ["FEVER", "Fever"],
        "infarction , myocardial": ["Infarction, Myocardial"],
    }


def test_store_finds_codes_and_hierarchy_in_both_directions(store: Store) -> None:
    assert store.codes(["C0000001", "C0000002"]) == {"C0000001": {"ICD10CM": ["I21"]}}
    assert store.cuis_of_code("ICD10CM", "I21") == ["C0000001"]
    assert store.cuis_of_code("ICD10", "I21") == []
    assert store.parents(["C0000001", "C0000003"]) == {"C0000001": ["C0000003"]}
    assert store.children("C0000003") == ["C0000001"]


def test_store_handles_more_values_than_one_statement(store: Store) -> None:
    assert len(store.entries(range(5000))) == 24


def test_store_works_in_several_threads(store: Store) -> None:
    found: list[object] = []

    def ask() -> None:
        found.append(store.concept("C0000001"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert None not in found


def test_build_store_repeated_concept_is_an_error(
    few_concepts: list[Concept], tmp_path: Path
) -> None:
    with create_store(tmp_path / FILE) as writer:
        writer.add(few_concepts[0], [0, 1, 2, 3])
        with pytest.raises(SapbertError, match="C0000001 comes twice"):
            writer.add(few_concepts[0], [0, 1, 2, 3])


def test_store_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(SapbertError, match=r"E004.*missing"),
        create_store(tmp_path / "missing" / FILE),
    ):
        pass


def test_store_is_read_only(store: Store) -> None:
    with pytest.raises(Exception, match="readonly"):
        store.query("DELETE FROM concepts")
