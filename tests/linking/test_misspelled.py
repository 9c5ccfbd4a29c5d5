"""Words that are written wrong, corrected by the names that are near."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.linking.misspelled import correct_words, list_words

NAMES = ["Myocardial Infarction", "Infarct", "Anderson syndrome", "Andreson", "type 2b"]


def test_list_words_leaves_out_short_ones() -> None:
    assert list_words("Andersn's DMD, type 2b") == ["andersn", "type"]


@pytest.mark.parametrize(
    ("text", "words", "expected", "kept"),
    [
        # one letter of 22 is changed
        (
            "acute myocardial infraction",
            ["infraction"],
            "acute myocardial Infarction",
            1,
        ),
        # two letters
        (
            "miocardial infarctin",
            ["miocardial", "infarctin"],
            "Myocardial Infarction",
            2,
        ),
        # three letters: too many
        ("infakkkn", ["infakkkn"], None, 0),
        # a word of a name stays, although it is nearly another one
        ("andreson syndrome", ["andreson"], None, 0),
        # the first of two names that are equally near
        ("Andersen", ["andersen"], "Anderson", 1),
        # four letters may be five of a word, but not another four
        ("tyoe infarc", ["tyoe"], None, 0),
        ("tpe2 nfarct", ["nfarct"], "tpe2 Infarct", 1),
        # not listed: known from elsewhere
        ("miocardial", [], None, 0),
    ],
)
def test_correct_words(
    text: str, words: list[str], expected: str | None, kept: int
) -> None:
    corrected = correct_words(text, dict.fromkeys(words, 2), NAMES)
    if expected is None:
        assert corrected is None
    else:
        assert corrected is not None
        assert corrected.text == expected
        longest = max(len(text), len(expected))
        assert corrected.kept == pytest.approx(1 - kept / longest)


def test_correct_words_changes_as_many_letters_as_allowed() -> None:
    name = ["neurotoxic"]  # two letters differ
    assert correct_words("nephrotoxic", {"nephrotoxic": 1}, name) is None
    assert correct_words("nephrotoxic", {"nephrotoxic": 2}, name) is not None


def test_correct_words_keeps_codes() -> None:
    assert correct_words("HNPCC", {"hnpcc": 1}, ["HNPCC1"]) is None


@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=4))
def test_correct_words_takes_any_text(text: str, names: list[str]) -> None:
    corrected = correct_words(text, dict.fromkeys(list_words(text), 2), names)
    if corrected is not None:
        assert corrected.text != text
        assert 0 <= corrected.kept < 1
