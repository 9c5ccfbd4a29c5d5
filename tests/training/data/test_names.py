"""Pairs of names, of translations, of mentions, and names held out."""

import zipfile
from functools import partial
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept
from training.data.pairs import (
    nth_combination,
    read_pairs,
    sample_pairs,
)
from training.data.translation_pairs import write_translation_pairs


@given(st.integers(2, 40))
def test_nth_combination_counts_through_all_pairs(n):
    total = n * (n - 1) // 2
    found = [nth_combination(n, index) for index in range(total)]
    assert found == list(combinations(range(n), 2))


def test_sample_pairs_are_fifty_from_eleven_names_on():
    names = [f"name {number}" for number in range(11)]
    assert len(list(sample_pairs(Concept("C1", names[:10])))) == 45
    assert len(list(sample_pairs(Concept("C1", names)))) == 50
    huge = Concept("C1", [f"name {number}" for number in range(3000)])
    assert len(list(sample_pairs(huge))) == 50  # 4,498,500 are not enumerated


def test_read_pairs_of_the_authors_have_bars(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("C01||fever||pyrexia\nC02||pain||ache\n", "utf8")
    assert [*read_pairs(path)] == [["C01", "fever", "pyrexia"], ["C02", "pain", "ache"]]


write_translations = partial(write_translation_pairs, force=True, quiet=True)


@pytest.mark.parametrize("bad", ["alone", "a\t ", "na\xefve\tsinisilm\xe4inen"])
def test_read_translations_names_or_counts_a_bad_line(bad, tmp_path):
    path = tmp_path / "words.tsv"  # the last one is not UTF-8
    path.write_bytes(f"fever\tkuume\n{bad}\npain\tkipu\n".encode("latin1"))
    with pytest.raises(SapbertError, match=r"words\.tsv:2: ") as raised:
        write_translations([path], tmp_path / "pairs.tsv")
    assert "alone" not in str(raised.value)
    assert not (tmp_path / "pairs.tsv").exists()
    report = write_translations([path], tmp_path / "pairs.tsv", on_error="skip")
    assert (report.concepts, sum(report.dropped.values())) == (2, 1)


def test_read_translations_of_published_word_lists(data_file, tmp_path):
    with zipfile.ZipFile(data_file("crosslingual/xling-eval-en.zip")) as archive:
        archive.extractall(tmp_path)
    paths = [
        path
        for path in sorted(tmp_path.rglob("**/en-ru/*"))
        if path.is_file()
        and not path.name.startswith(".")
        and "MACOSX" not in str(path)
    ]
    report = write_translations(paths, tmp_path / "pairs.tsv")
    assert sum(report.rows.values()) == 11_500
    # the shorter lists are parts of the longer ones
    assert report.dropped["repeated pairs"] > 11_500 / 3
    assert report.concepts + sum(report.dropped.values()) == 11_500
