"""Which parts of a text may be names, compared with all parts of it."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.linking.name_index import NameIndex, find_places
from spacy_sapbert.linking.text import is_written, name_keys, split_pieces


def find(names: list[str], text: str, max_tokens: int = 8) -> list[str]:
    index = NameIndex.from_keys(k for name in names for k in name_keys(name, "english"))
    windows = index.find_windows(text, ["english"], max_tokens)
    places = dict.fromkeys((start, end) for start, end, _ in windows)
    return [text[start:end] for start, end in places]


def test_windows_start_and_end_with_words() -> None:
    assert find(["heart-attack"], "(a heart-attack)") == ["heart-attack"]


def test_windows_have_a_letter_and_two_characters() -> None:
    assert find(["4.5", "12", "x", "y1"], "4.5 12 x y1") == ["y1"]


def test_windows_have_a_maximal_length() -> None:
    names = ["red", "red two", "two blue", "red two blue"]
    assert find(names, "red two blue", 2) == ["red", "red two", "two blue"]


def test_windows_cross_a_line_but_no_blank_line() -> None:
    names = ["heart attack", "attack right", "right away"]
    text = "heart\nattack\n \nright away"
    assert find(names, text) == ["heart\nattack", "right away"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Crohn disease", "Crohn's disease"),
        ("Ménière's disease", "Meniere’s disease"),
        ("Guillain-Barré syndrome", "Guillain\u2013Barre syndrome"),
        ("hypertension", "hyper\u00adtension"),
        ("metastasis", "metasta-ses"),
        ("sacro-iliitis", "sacroiliitis"),
        ("carcinoma", "carcinomata"),
        ("haemolytic anaemia", "hemolytic anemia"),
        ("tumor, small cell", "small cell tumour"),
        ("type 8 collagen", "type VIII collagen"),
    ],
)
def test_windows_are_found_in_other_ways_to_write_them(name: str, text: str) -> None:
    assert text in find([name], f"no {text}, since then")


def test_a_possessive_is_no_part_of_a_name() -> None:
    assert find(["patient"], "the patient's fever") == ["patient"]


def test_index_without_names_or_of_an_empty_text_finds_nothing() -> None:
    assert find([], "heart attack") == []
    assert find(["heart"], "") == []
    assert find(["-", "'s"], "- 's a-b") == []


def test_windows_of_a_text_with_a_lone_surrogate() -> None:
    assert find(["heart"], "a\ud800b, heart") == ["heart"]


def test_places_of_hashes() -> None:
    table = np.array([3, 5, 9], dtype=np.uint64)
    places, known = find_places(table, np.array([9, 10, 3], dtype=np.uint64))
    assert places[known].tolist() == [2, 0]
    assert known.tolist() == [True, False, True]


WORDS = st.sampled_from(
    ["acute", "small", "non", "cell", "lung", "cancers", "cancer", "tumour", "tumor"]
    + ["haemo", "hemo", "metastases", "crohn", "s", "of", "2", "-", "/", "'", ","]
    + ["o", "estrogen", "ses", "ies", "rays", "\n\n", "型", "糖", "VIII", "eight"]
)
PARTS = st.lists(st.tuples(WORDS, st.sampled_from([" ", " ", ""])), max_size=12)
JOINED = PARTS.map(lambda parts: "".join(word + blank for word, blank in parts))


@given(JOINED, st.lists(JOINED, max_size=6))
def test_windows_include_all_parts_that_are_names(text: str, names: list[str]) -> None:
    names += [text, text.replace("-", " "), text.replace("-", ""), text.lower()[:-1]]
    names += [text.replace("'s", ""), text.replace("tumour", "tumor")]
    found = {*find(names, text, 100)}
    pieces = split_pieces(text, "english")
    for first, last in combinations(range(len(pieces) + 1), 2):
        start, end = pieces[first].start, pieces[last - 1].end
        part = text[start:end]
        is_long = end - start > 1 and any(map(str.isalpha, part))
        if is_long and "\n\n" not in part and not part.isdigit():
            words = [piece.word for piece in pieces[first:last]]
            written = any(is_written(part, name, "english") for name in names)
            if written and not all(map(str.isdigit, words)):
                assert part in found


@given(st.text(max_size=60), st.integers(1, 9))
def test_windows_of_any_text_are_parts_of_it(text: str, most: int) -> None:
    index = NameIndex.from_keys(name_keys(text, "english"))
    for start, end, _ in index.find_windows(text, ["english", "other"], most):
        assert 0 <= start < end - 1 < len(text)
