"""Which parts of a text may be names, compared with all parts of it."""

from unicodedata import category

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.linking.name_index import (
    NameIndex,
    PartHashes,
    find_places,
    read_codes,
)
from spacy_sapbert.linking.name_variants import list_text_variants
from spacy_sapbert.linking.surface_forms import (
    CHARACTERS_A_WORD,
    UNSPACED_CHARACTER,
    Window,
    name_form,
    split_unspaced,
)


def list_windows(text: str, max_tokens: int) -> list[Window]:
    """Return the parts of a text that could be a name of some knowledge base."""
    pieces = split_unspaced(text)
    forms, spans = pieces.forms, pieces.spans
    windows: list[Window] = []
    for first, (start, stop) in enumerate(spans):
        size = 0.0
        for last in range(first, len(forms) if forms[first][0].isalnum() else first):
            piece, (begin, end) = forms[last], spans[last]
            size += 1 / CHARACTERS_A_WORD if UNSPACED_CHARACTER.match(piece) else 1
            if size > max_tokens + 1e-6 or text.count("\n", stop, begin) > 1:
                break
            stop = end
            form, _, _ = pieces.join(first, last)
            is_end = piece[0].isalnum() or category(piece[-1])[0] == "M"
            if is_end and end - start > 1 and any(map(str.isalpha, form)):
                windows.append((form, start, end))
    return windows


def list_written(windows: list[Window], names: list[str]) -> set[Window]:
    """Return the parts that are a name, or of which an English variant is one."""
    forms = {name_form(name) for name in names}
    return {
        window
        for window in windows
        if not forms.isdisjoint([window[0], *list_text_variants(window[0], "en")])
    }


def find(names: list[str], text: str, max_tokens: int = 8) -> list[str]:
    index = NameIndex.from_forms(map(name_form, names))
    return [text[start:end] for _, start, end in index.find_windows(text, max_tokens)]


def test_windows_start_and_end_with_words() -> None:
    assert find(["heart-attack", "(heart", "attack)"], "(a heart-attack)") == [
        "heart-attack"
    ]


def test_windows_have_a_letter_and_two_characters() -> None:
    assert find(["4.5", "12", "x", "y1"], "4.5 12 x y1") == ["y1"]


def test_windows_have_a_maximal_length() -> None:
    names = ["one", "one two", "two", "one two three"]
    assert find(names, "one two three", 2) == ["one", "one two", "two"]


def test_windows_cross_a_line_but_no_blank_line() -> None:
    names = ["heart attack", "attack right", "right away"]
    text = "heart\nattack\n \nright away"
    assert find(names, text) == ["heart\nattack", "right away"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Crohn disease", "Crohn's disease"),
        ("Alzheimer related", "Alzheimer's-related"),
        ("metastasis", "metasta-ses"),
        ("metastasis", "metastas-es"),
        ("estrogen", "o-estrogen"),
        ("s disease", "s disease"),
        ("carcinoma", "carcinomata"),
        ("haemolytic anaemia", "haemolytic anaemia"),
        ("tumor, small cell", "small cell tumor"),
        ("cell, tumor, small", "small tumor cells"),
    ],
)
def test_windows_are_found_in_other_ways_to_write_them(name: str, text: str) -> None:
    assert text in find([name], f"no {text}, since then")


def test_windows_after_a_possessive_can_start_with_its_s() -> None:
    text = "Crohn's disease"
    assert find(["s disease", "disease"], text) == ["s disease", "disease"]


def test_index_without_names_or_of_an_empty_text_finds_nothing() -> None:
    assert find([], "heart attack") == []
    assert find(["heart"], "") == []
    assert find(["-", "'s"], "- 's a-b") == []


def test_windows_of_a_text_with_a_lone_surrogate() -> None:
    assert find(["heart", "a ! b"], "a\ud800b, heart") == ["heart"]


def test_hashes_of_parts_do_not_depend_on_the_text_around() -> None:
    text = "heart attack, heart"
    starts, ends = np.array([0, 14, 6]), np.array([5, 19, 12])
    first, second, other = PartHashes(read_codes(text)).find(starts, ends)
    assert first == second == PartHashes(read_codes("heart")).sums[-1] != other


def test_places_of_hashes() -> None:
    table = np.array([3, 5, 9], dtype=np.uint64)
    places, known = find_places(table, np.array([9, 10, 3], dtype=np.uint64))
    assert places[known].tolist() == [2, 0]
    assert known.tolist() == [True, False, True]


WORDS = st.sampled_from(
    ["acute", "small", "non", "cell", "lung", "cancers", "cancer", "tumour", "tumor"]
    + ["haemo", "hemo", "metastases", "crohn", "s", "of", "2", "-", "/", "'", ","]
    + ["o", "estrogen", "ses", "ies", "rays", "\n\n", "型", "糖"]
)
PARTS = st.lists(st.tuples(WORDS, st.sampled_from([" ", " ", ""])), max_size=12)
JOINED = PARTS.map(lambda parts: "".join(word + blank for word, blank in parts))


@given(JOINED, st.lists(JOINED, max_size=6), st.integers(1, 9))
def test_windows_include_all_parts_that_are_names(
    text: str, names: list[str], most: int
) -> None:
    # Names that are a part of the text, written in another way, are among them.
    names += [text, text.replace("-", " "), text.replace("-", ""), text.lower()[:-1]]
    names += [text.replace("'s", ""), text.replace("tumour", "tumor")]
    windows = list_windows(text, most)
    found = {*NameIndex.from_forms(map(name_form, names)).find_windows(text, most)}
    assert list_written(windows, names) <= found <= {*windows}


@given(st.text(max_size=60), st.integers(1, 9))
def test_windows_of_any_text_are_parts_of_it(text: str, most: int) -> None:
    windows = list_windows(text, most)
    forms = [form for form, _, _ in windows]
    assert [*NameIndex.from_forms(forms).find_windows(text, most)] == windows
