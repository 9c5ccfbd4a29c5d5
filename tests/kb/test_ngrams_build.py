from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb import ngrams
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.ngrams import (
    FILES,
    NgramIndex,
    Postings,
    build_ngrams,
    iter_names,
    load_ngrams,
    write_ngrams,
)
from spacy_sapbert.linking.text import fold_letters
from spacy_sapbert.vocabularies.concepts import Concept

NAMES = ["Heart attack", "heart", "", "attack attack", "フィーバー", "Heart attack"] * 3


def write(names: Iterable[str], folder: Path) -> None:
    write_ngrams(((name, name.isascii()) for name in names), folder)


def list_paths(folder: Path) -> dict[str, Path]:
    return {name: folder / f"{name}.npy" for name in FILES}


def load(folder: Path, rows: int) -> Postings:
    return load_ngrams(list_paths(folder), rows=rows, english=False)


def read_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_build_ngrams_counts_and_leaves_nothing_but_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "kb" / "ngrams"
    write(iter(["ab", "ab c", "", "aaaaa"]), folder)
    index = load(folder, 4)
    # " ab", "ab " twice, " c ", " aa", "aaa" three times, "aa "
    assert (len(index.grams), len(index.rows)) == (6, 10)
    assert {path.name for path in folder.iterdir()} == {f"{name}.npy" for name in FILES}


def test_build_ngrams_lists_a_row_as_often_as_its_name_has_the_3_gram(
    tmp_path: Path,
) -> None:
    write(["aaaaa", "xaaay", "b"], tmp_path)
    index = load(tmp_path, 3)
    lists = [
        index.rows[start:end].tolist()
        for start, end in zip(index.starts, index.starts[1:], strict=False)
    ]
    # " aa" | "aaa" | "aa " | " xa", "xaa", "aay", "ay " | " b "
    assert sorted(lists) == [[0], [0], [0, 0, 0, 1], [1], [1], [1], [1], [2]]


def test_build_ngrams_does_not_depend_on_the_size_of_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(NAMES, tmp_path / "one")
    for size in (1, 4, 7):
        monkeypatch.setattr(ngrams, "NAMES_AT_ONCE", size)
        write(NAMES, tmp_path / str(size))
        assert read_bytes(tmp_path / str(size)) == read_bytes(tmp_path / "one")


@pytest.mark.parametrize("names", [[], [""], ["", "   "]])
def test_build_ngrams_without_names_is_empty(tmp_path: Path, names: list[str]) -> None:
    write(names, tmp_path)
    index = load(tmp_path, len(names))
    assert (len(index.grams), len(index.rows)) == (0, 0)
    assert index.scales.tolist() == [0] * len(names)


def test_build_ngrams_needs_memory_for_one_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ngrams, "NAMES_AT_ONCE", 10)
    sizes: list[int] = []
    extract = ngrams.extract_ngrams

    def count(names: list[str]) -> object:
        sizes.append(len(names))
        return extract(names)

    monkeypatch.setattr(ngrams, "extract_ngrams", count)
    write((f"name {number}" for number in range(25)), tmp_path)
    assert sizes == [10, 10, 5]


def test_iter_names_returns_one_alias_of_each_row(
    sample_kb: Path, few_concepts: list[Concept], monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = load_kb(sample_kb)
    rows = kb.manifest.counts.rows
    monkeypatch.setattr(ngrams, "NAMES_AT_ONCE", 4)
    names = list(iter_names(kb.store, range(rows)))
    entries = kb.entries(range(rows))
    assert names == [(entries[row][0].alias, True) for row in range(rows)]
    aliases = {fold_letters(a) for concept in few_concepts for a in concept.aliases}
    assert {fold_letters(name) for name, _ in names} <= aliases


def test_iter_names_says_which_rows_may_be_english(
    make_kb: Callable[..., Path], tmp_path: Path
) -> None:
    """A row with the names of several concepts is English if one of them may be."""
    concepts = [
        Concept("C1", ["fever", "Fieber"], languages={"ENG": [0], "GER": [1]}),
        Concept("C2", ["FIEBER", "Kopfweh"], languages={"GER": [1]}),
    ]
    store = load_kb(make_kb(tmp_path, concepts)).store
    names = {
        fold_letters(name): english for name, english in iter_names(store, range(3))
    }
    assert names == {"fever": True, "fieber": True, "kopfweh": False}


def test_build_ngrams_of_a_knowledge_base_finds_its_misspelled_names(
    sample_kb: Path, tmp_path: Path
) -> None:
    kb = load_kb(sample_kb)
    rows = kb.manifest.counts.rows
    build_ngrams(kb.store, range(rows), tmp_path)
    index = NgramIndex(load(tmp_path, rows))
    mentions = ["apendectomy", "acetylsalicilic acid", "diabetis"]
    united = index.unite(mentions, [np.zeros(0, dtype=int)] * len(mentions), 1)
    found = [kb.entries(best)[best[0]][0].cui for best, _ in united]
    assert found == ["C0000008", "C0000006", "C0000005"]
    assert min(scores[0] for _, scores in united) > 0.5


@pytest.mark.parametrize("name", ["rows", "weights"])
def test_ngrams_whose_files_contradict_each_other_are_a_named_error(
    name: str, tmp_path: Path
) -> None:
    """As of two builds: every file is whole, and sha256 fits to each."""
    write(["heart attack", "heart pain"], tmp_path)
    path = list_paths(tmp_path)[name]
    array = np.load(path)
    np.save(path, array[:2] if name == "weights" else array + 1_000_000)
    index = NgramIndex(load(tmp_path, 2))
    with pytest.raises(SapbertError, match="E306.*contradict"):
        index.unite(["heart"], [np.zeros(0, dtype=int)], 2)
