from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.ngrams import (
    FILES,
    NgramIndex,
    Postings,
    extract_ngrams,
    load_ngrams,
    write_ngrams,
)
from spacy_sapbert.linking.text import fold_letters

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
TEXTS = st.text(st.sampled_from("abcdé 1-頭"), max_size=12)

Make = Callable[..., NgramIndex]


def list_paths(folder: Path) -> dict[str, Path]:
    return {name: folder / f"{name}.npy" for name in FILES}


def load(folder: Path, rows: int, *, english: bool = False) -> Postings:
    return load_ngrams(list_paths(folder), rows=rows, english=english)


def write(
    names: Sequence[str], folder: Path, *, foreign: Collection[str] = ()
) -> Callable[..., NgramIndex]:
    """Index names; the result loads them."""
    write_ngrams(((name, name not in foreign) for name in names), folder)
    return lambda english: NgramIndex(load(folder, len(names), english=english))


@pytest.fixture
def make_index(tmp_path: Path) -> Make:
    def make(names: list[str]) -> NgramIndex:
        return write(names, tmp_path / "ngrams")(english=False)

    return make


def spell(gram: int) -> str:
    return "".join(chr(gram >> shift & 0x1FFFFF) for shift in (42, 21, 0))


def all_cosines(index: NgramIndex, text: str, rows: int) -> np.ndarray:
    return index.unite([text], [np.arange(rows)], 1)[0][1]


def search(
    index: NgramIndex, text: str, k: int, **options: Any
) -> tuple[list[int], list[float]]:
    """The most similar names and their cosines, best first, equal ones by row."""
    rows, cosines = index.unite([text], [np.zeros(0, dtype=int)], k, **options)[0]
    order = np.lexsort((rows, -cosines))
    return rows[order].tolist(), cosines[order].tolist()


def test_extract_ngrams_pads_each_word() -> None:
    grams, owners = extract_ngrams(["Ab c", "", "XÝ"])
    assert [spell(gram) for gram in grams] == [" ab", "ab ", " c ", " xy", "xy "]
    assert owners.tolist() == [0, 0, 0, 2, 2]
    assert len(extract_ngrams(["x" * 2000])[0]) == 1000


def test_search_has_the_cosine_by_hand(make_index: Make) -> None:
    # 3-grams: " ab", "ab " of both names; " c " of the second alone
    index = make_index(["ab", "ab c"])
    rare = np.log(3 / 2) + 1  # of two names one has it; what both have weighs 1
    rows, scores = search(index, "ab", 2)
    assert rows == [0, 1]
    assert scores == pytest.approx([1, np.sqrt(2 / (2 + rare**2))], abs=1e-6)


def test_search_equals_scikit_learn(make_index: Make) -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    vectorizer = text.TfidfVectorizer(
        analyzer="char_wb", ngram_range=(3, 3), strip_accents="unicode"
    )
    matrix = vectorizer.fit_transform(NAMES)
    mentions = ["hart atack", "sjogren", "brca", "banana", "infarct", "zzz", "", "痛"]
    expected = (vectorizer.transform(mentions) @ matrix.T).toarray()
    index = make_index(NAMES)
    for number, mention in enumerate(mentions):
        found = all_cosines(index, mention, len(NAMES))
        assert found == pytest.approx(expected[number], abs=1e-6)
        order = np.lexsort((np.arange(len(NAMES)), -found))
        order = order[found[order] > 0]
        best = order.tolist(), found[order].tolist()
        assert search(index, mention, len(NAMES)) == best


def test_unite_without_names_or_mentions_is_empty(make_index: Make) -> None:
    assert search(make_index([]), "fever", 5) == ([], [])
    assert make_index(["", "-"]).unite([], [], 1) == []
    assert search(make_index(["", " "]), "a", 9) == ([], [])


def test_layers_have_nearly_the_cosines_of_one_index(tmp_path: Path) -> None:
    """A name that is added gets no other cosine than one that was built in."""

    def make(name: str, names: list[str]) -> NgramIndex:
        return write(names, tmp_path / name)(english=False)

    words = [
        "heart",
        "lung",
        "acute",
        "failure",
        "syndrome",
        "pain",
        "chronic",
        "liver",
    ]
    built = [
        f"{one} {two} {three}" for one in words for two in words for three in words
    ]
    added = ["heart", "QT syndrome", "zoster", "zzz", "", "heart failure"]
    texts = ["acute heart syndrome", "heart", "zoster pain", "long QT", "xyzzy", "zzzz"]
    make("base", built), make("added", added)
    layers = NgramIndex(
        load(tmp_path / "base", len(built)), load(tmp_path / "added", len(added))
    )
    one = make("one", [*built, *added])
    rows = [np.arange(len(built) + len(added))] * len(texts)
    of_layers, of_one = layers.unite(texts, rows, 1), one.unite(texts, rows, 1)
    for (some, layered), (every, whole) in zip(of_layers, of_one, strict=True):
        assert some.tolist() == every.tolist() == rows[0].tolist()
        assert layered == pytest.approx(whole, abs=0.01)
    best = dict(zip(*search(layers, "acute heart syndrome", 600), strict=True))
    assert best[len(built)] < 0.6


def test_english_cosines_do_not_depend_on_names_in_other_languages(
    tmp_path: Path,
) -> None:
    names = ["heart attack", "heart pain", "chest pain", "fever"]
    foreign = ["heart heart", "Herzschmerz", "dolor de pecho", "feverfever"]
    mixed = [name for pair in zip(names, foreign, strict=True) for name in pair]
    load = write(mixed, tmp_path / "mixed", foreign=foreign)
    alone = write(names, tmp_path / "alone")
    texts = ["hart attack", "feverish pain", "dolor", "Herz", "xyz"]
    every = [np.arange(len(mixed))] * len(texts), len(mixed)
    few = [np.arange(len(names))] * len(texts), len(names)
    for (_, cosines), (_, expected) in zip(
        load(english=True).unite(texts, *every),
        alone(english=True).unite(texts, *few),
        strict=True,
    ):
        assert cosines[::2].tolist() == expected.tolist()
        assert not cosines[1::2].any()
    # In a document in another language, all names count.
    (_, both), *_ = load(english=False).unite(["dolor"], [np.arange(8)], 1)
    assert both[5] > 0


def test_english_cosine_by_hand(tmp_path: Path) -> None:
    load = write(["ab", "ab c", "ab d"], tmp_path, foreign=["ab d"])
    rare = np.log(3 / 2) + 1  # of the two English names one has " c "
    (_, cosines), *_ = load(english=True).unite(["ab"], [np.arange(3)], 1)
    assert cosines == pytest.approx([1, np.sqrt(2 / (2 + rare**2)), 0], abs=1e-6)


def test_unite_adds_the_most_similar_names_to_rows(make_index: Make) -> None:
    index = make_index(NAMES)
    mention = "heart of brca1"
    every = all_cosines(index, mention, len(NAMES))
    best, _ = search(index, mention, 2)
    (rows, cosines), (none, _) = index.unite(
        [mention, "x"], [np.array([5, 1, 8]), np.array([], dtype=np.int64)], 2
    )
    assert rows.tolist() == sorted({5, 1, 8, *best})
    assert cosines.tolist() == every[rows].tolist()
    assert none.tolist() == []


@given(
    names=st.lists(TEXTS, min_size=1, max_size=20),
    mention=TEXTS,
    k=st.integers(1, 25),
    seed=st.integers(0, 9),
)
def test_search_equals_sorting_all_allowed_rows(
    tmp_path_factory: pytest.TempPathFactory,
    names: list[str],
    mention: str,
    k: int,
    seed: int,
) -> None:
    index = write(names, tmp_path_factory.mktemp("ngrams"))(english=False)
    allowed = np.random.default_rng(seed).random(len(names)) < 0.7
    cosines = np.where(allowed, all_cosines(index, mention, len(names)), 0)
    assert (cosines <= 1 + 1e-6).all()
    order = np.lexsort((np.arange(len(names)), -cosines))
    expected = order[cosines[order] > 0][:k]
    best = expected.tolist(), cosines[expected].tolist()
    assert search(index, mention, k, allowed=allowed) == best
    for row, name in enumerate(names):
        if name and allowed[row] and fold_letters(name) == fold_letters(mention):
            assert cosines[row] in (0, pytest.approx(1, abs=1e-6))


@pytest.mark.parametrize("english", [False, True])
def test_load_ngrams_maps_the_files(tmp_path: Path, english: bool) -> None:
    write(NAMES, tmp_path)
    index = load(tmp_path, len(NAMES), english=english)
    for name in ("grams", "starts", "rows", "weights", "scales"):
        array = getattr(index, name)
        assert isinstance(array.base, np.memmap)
        assert not array.flags.writeable


def test_load_ngrams_of_other_rows_is_an_error(
    make_index: Make, tmp_path: Path
) -> None:
    make_index(NAMES)
    with pytest.raises(SapbertError, match=r"E306.*13 numbers and not 12"):
        load_ngrams(list_paths(tmp_path / "ngrams"), rows=len(NAMES) - 1, english=False)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b"\x80\x04" + path.read_bytes()),
        lambda path: path.write_bytes(
            path.read_bytes().replace(b"'shape'", b"'shap('")
        ),
        lambda path: path.write_bytes(path.read_bytes().replace(b"<", b">", 1)),
        lambda path: np.save(path, np.load(path)[None]),
        lambda path: np.save(path, np.array([{}]), allow_pickle=True),
    ],
)
def test_load_ngrams_damaged_file_is_an_error(
    make_index: Make, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    make_index(NAMES)
    damage(tmp_path / "ngrams" / f"{name}.npy")
    with pytest.raises(SapbertError, match="E306"):
        load_ngrams(list_paths(tmp_path / "ngrams"), rows=len(NAMES), english=False)
