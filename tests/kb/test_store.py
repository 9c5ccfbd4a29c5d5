import tracemalloc
from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.building.store_writer import create_store
from spacy_sapbert.kb.database import Database
from spacy_sapbert.kb.folder.layout import STORE_FILE
from spacy_sapbert.kb.folder.versions import read_version
from spacy_sapbert.kb.store import Store
from spacy_sapbert.linking.text import name_keys
from spacy_sapbert.vocabularies.concepts import Concept


@pytest.fixture
def store(sample_kb: Path) -> Store:
    version = read_version(sample_kb)
    return Store(Database(version.path(STORE_FILE)), version.manifest.counts)


def test_store_returns_every_concept(store: Store, few_concepts: list[Concept]) -> None:
    assert list(store.concepts()) == few_concepts
    assert store.concept("C9999999") == few_concepts[0]
    assert store.concept("C7777777") is None


def test_store_finds_types_and_parents(store: Store) -> None:
    assert store.types(["C0000004", "C0000007"]) == {"C0000004": ["T184"]}
    assert store.parents(["C0000001", "C0000003"]) == {"C0000001": ["C0000003"]}


def test_store_finds_names_by_their_keys(store: Store) -> None:
    keys = {
        text: name_keys(text, "english")[0]
        for text in ("fever", "myocardial infarctions", "no")
    }
    names = store.names_of_keys(keys.values())
    assert {key: [name.alias for name in some] for key, some in names.items()} == {
        keys["fever"]: ["FEVER", "Fever"],
        # in whatever order their words are
        keys["myocardial infarctions"]: [
            "Infarction, Myocardial",
            "Myocardial infarction",
        ],
    }
    assert {name.concept for name in names[keys["myocardial infarctions"]]} == {0}
    aliases = [alias for alias, _, _ in store.names_of_concept(0)]
    assert aliases == store.read_concept(0).aliases


def test_store_yields_the_keys_and_the_words_of_all_names(store: Store) -> None:
    names = [*store.names_by_concept()]
    assert len(names) == len([*store.names_with_types()])
    expected = {key for _, name, _ in names for key in name_keys(name, "english")}
    assert {*store.keys()} == expected
    assert [number for number, *_ in names] == sorted(number for number, *_ in names)


def test_store_handles_more_values_than_one_statement(store: Store) -> None:
    found = store.entries(range(5000))
    assert sorted(found) == list(range(21))
    assert sum(map(len, found.values())) == 23  # all aliases but the unreadable one


def test_build_store_repeated_concept_is_an_error(
    few_concepts: list[Concept], tmp_path: Path
) -> None:
    with create_store(tmp_path / STORE_FILE) as writer:
        writer.add(few_concepts[0], [0, 1, 2, 3])
        with pytest.raises(SapbertError, match="C0000001 comes twice"):
            writer.add(few_concepts[0], [0, 1, 2, 3])


def test_store_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(SapbertError, match=r"E004.*missing"),
        create_store(tmp_path / "missing" / STORE_FILE),
    ):
        pass


def test_store_is_read_only(store: Store) -> None:
    with pytest.raises(SapbertError, match="E306.*readonly"):
        store.query("DELETE FROM concepts")


def test_store_numbers_need_few_bytes_each(store: Store) -> None:
    """Tuples of Python took 97 bytes a row: Spanish names of UMLS are nine million."""
    many = (
        "WITH RECURSIVE n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n "
        "WHERE x < 199999) SELECT x FROM n"
    )
    tracemalloc.start()
    try:
        numbers = store.numbers(many, [])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert numbers.tolist() == [*range(200_000)]
    assert peak < 50 * len(numbers)
