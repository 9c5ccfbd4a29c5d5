import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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

NAMES = [
    "Myocardial infarction",
    "heart attack",
    "Sjögren's syndrome",
    "SJÖGREN",
    "BRCA1",
    "BRCA2",
    "heart attack",
    "a",
    "",
    " - ",
    "banana banana",
    "頭痛",
    "ﬁbrosis",
]


def list_paths(folder: Path) -> dict[str, Path]:
    return {name: folder / f"{name}.npy" for name in FILES}


def load(folder: Path, *, english: bool = False) -> Postings:
    return load_ngrams(list_paths(folder), english=english)


def write(
    names: Sequence[str], folder: Path, *, foreign: Collection[str] = ()
) -> Callable[..., NgramIndex]:
    """Index names; the result loads them."""
    write_ngrams(((name, name not in foreign) for name in names), folder)
    return lambda english: NgramIndex(load(folder, english=english))


def all_cosines(index: NgramIndex, text: str, rows: int) -> np.ndarray:
    return index.unite([text], [np.arange(rows)], 1)[0][1]


def search(
    index: NgramIndex, text: str, k: int, **options: Any
) -> tuple[list[int], list[float]]:
    """The most similar names and their cosines, best first, equal ones by row."""
    rows, cosines = index.unite([text], [np.zeros(0, dtype=int)], k, **options)[0]
    order = np.lexsort((rows, -cosines))
    return rows[order].tolist(), cosines[order].tolist()


def test_search_equals_scikit_learn(tmp_path):
    text = pytest.importorskip("sklearn.feature_extraction.text")
    vectorizer = text.TfidfVectorizer(
        analyzer="char_wb", ngram_range=(3, 3), strip_accents="unicode"
    )
    matrix = vectorizer.fit_transform(NAMES)
    mentions = ["hart atack", "sjogren", "brca", "banana", "infarct", "zzz", "", "痛"]
    expected = (vectorizer.transform(mentions) @ matrix.T).toarray()
    index = write(NAMES, tmp_path)(english=False)
    for number, mention in enumerate(mentions):
        found = all_cosines(index, mention, len(NAMES))
        assert found == pytest.approx(expected[number], abs=1e-6)
        order = np.lexsort((np.arange(len(NAMES)), -found))
        order = order[found[order] > 0]
        best = order.tolist(), found[order].tolist()
        assert search(index, mention, len(NAMES)) == best


def count_grams(name: str) -> Counter[str]:
    """How often each 3-gram is in a name, computed without arrays."""
    words = [f" {word} " for word in fold_letters(name).split()]
    return Counter(w[at : at + 3] for w in words for at in range(len(w) - 2))


def test_3_grams_of_an_overlay_weigh_as_if_they_had_been_built(tmp_path):
    built = ["heart attack", "heart pain", "Herz", "fever"]
    added = ["heart burn", "burn burn", "", "Brand", "zz zz"]
    write(built, tmp_path / "built", foreign=["Herz"])
    write(added, tmp_path / "added", foreign=["Brand"])
    folders = tmp_path / "built", tmp_path / "added"
    for english, foreign in ((True, {"Herz", "Brand"}), (False, set())):
        layers = (load(folder, english=english) for folder in folders)
        index = NgramIndex(*layers)
        old = [name for name in built if name not in foreign]
        new = [name for name in added if name not in foreign]
        weights: dict[str, float] = {}
        # Of a 3-gram that was built in, the weight stays. A name without one counts in
        # what was built, and not in an overlay.
        for names, total in ((new, len(old) + len(new) - 1), (old, len(old))):
            numbers = Counter(gram for name in names for gram in count_grams(name))
            for gram, number in numbers.items():
                weights[gram] = math.log((1 + total) / (1 + number)) + 1
        vectors = [
            {g: n * weights.get(g, 0) for g, n in count_grams(name).items()}
            for name in ("heart burns", *built, *added)
        ]
        lengths = [math.hypot(*vector.values()) for vector in vectors]
        expected = [
            sum(
                vectors[0][gram] * value
                for gram, value in vector.items()
                if gram in vectors[0]
            )
            / (length * lengths[0] or 1)
            * (name not in foreign)
            for name, vector, length in zip(
                [*built, *added], vectors[1:], lengths[1:], strict=True
            )
        ]
        assert all_cosines(index, "heart burns", 9) == pytest.approx(expected, abs=1e-6)


def test_the_names_of_rows_that_are_indexed(make_kb, tmp_path, monkeypatch):
    """Of names on one row, the first by concept; English if one of them may be."""
    concepts = [
        Concept("C2", ["MI", "fever"], languages={"ENG": [0]}),
        Concept("C1", ["mi", "fiebre", "pain"], languages={"SPA": [0, 1]}),
    ]
    store = load_kb(make_kb(tmp_path, concepts)).store
    named = [("mi", True), ("fever", True), ("fiebre", False), ("pain", True)]
    write_ngrams(named[1:], tmp_path / "written")
    sizes: list[int] = []  # of blocks, for each of which it needs memory
    extract = ngrams.extract_ngrams

    def count(names: list[str]) -> object:
        sizes.append(len(names))
        return extract(names)

    monkeypatch.setattr(ngrams, "extract_ngrams", count)
    monkeypatch.setattr(ngrams, "NAMES_AT_ONCE", 2)
    assert [*iter_names(store, range(4))] == named
    build_ngrams(store, range(1, 4), tmp_path / "built")
    assert sizes == [2, 1]
    for path in (tmp_path / "written").iterdir():
        assert (tmp_path / "built" / path.name).read_bytes() == path.read_bytes()
