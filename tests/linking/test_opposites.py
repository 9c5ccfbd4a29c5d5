"""Words that exclude each other, and names that do not."""

import gzip
from collections import Counter

import pytest

from spacy_sapbert.linking.features import excludes, says_more, split_words
from spacy_sapbert.linking.opposites import list_doubtful_opposites, list_opposites
from spacy_sapbert.linking.text import fold_english, list_words


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("hypokalemia", "hyperkalemia"),
        ("neutropenia", "neutrocytosis"),
        ("unstable", "stable"),
        ("nephrotoxic", "hepatotoxic"),
        ("left", "right"),
        ("acidosis", "alkalosis"),
    ],
)
def test_opposites_exclude_each_other(word, other):
    word, other = fold_english(word), fold_english(other)
    assert other in list_opposites(word)
    assert word in list_opposites(other)


def test_one_letter_makes_a_doubtful_opposite():
    assert list_doubtful_opposites("typical") == ("atypical",)
    assert "typical" in list_doubtful_opposites("atypical")
    assert "atypical" not in list_opposites("typical")


@pytest.mark.parametrize(
    ("mention", "name", "expected"),
    [
        ("factor 8 deficiency", "factor X deficiency", True),
        ("factor 8 deficiency", "factor VIII deficiency", False),
        ("type 2 diabetes, stage 3", "type 2 diabetes", False),
        ("interleukin 1 receptor type 1", "interleukin 1 receptor type 2", True),
        ("hepatitis B", "hepatitis", False),
        ("alpha thalassemia", "beta thalassemia", True),
        ("a fever", "fever", False),
        ("pain without fever", "pain with fever", True),
        ("left and right arm", "right arm", False),
        ("hypokalemia", "hyperkalemia", True),
        ("hypokalemia", "hypokalaemias", False),
        ("renal function", "renal dysfunction", True),
        ("impaired renal function", "renal dysfunction", False),
        ("decreased glucose tolerance", "glucose intolerance", False),
        ("impaired renal function", "impaired renal dysfunction", True),
        ("reversible loss of sight", "irreversible blindness", True),
    ],
)
def test_names_exclude_a_mention(mention, name, expected):
    assert excludes(split_words(mention), split_words(name)) is expected
    assert excludes(split_words(name), split_words(mention)) is expected


@pytest.mark.parametrize(
    ("mention", "name", "expected"),
    [
        ("malignant neoplasms", "neoplasm", True),
        ("type IId von Willebrand disease", "type 2 von Willebrand disease", True),
        ("neoplasm", "neoplasms", False),  # no more is said
        ("deafness gene", "deafness", False),  # a gene
        ("no deafness", "deafness", False),
    ],
)
def test_mention_says_more_than_a_name(mention, name, expected):
    assert says_more(split_words(mention), split_words(name)) is expected


@pytest.mark.slow
def test_opposites_are_rarely_two_names_of_one_concept(data_file):
    # A pair counts for its first word, in alphabetical order.
    names: dict[tuple[str, ...], set[str]] = {}
    with gzip.open(data_file("open-rrf/MRCONSO.RRF.gz"), "rt") as lines:
        for fields in (line.split("|") for line in lines):
            if fields[1] == "ENG":
                words = tuple(sorted(list_words(fields[14], "english")))
                names.setdefault(words, set()).add(fields[0])
    same, apart = Counter(), Counter()
    for words, cuis in names.items():
        for place, word in enumerate(words):
            for other in list_opposites(word):
                if word < other:
                    changed = (*words[:place], other, *words[place + 1 :])
                    theirs = names.get(tuple(sorted(changed)), set())
                    same[word, other] += bool(cuis & theirs)
                    apart[word, other] += bool(theirs - cuis)
    assert apart.total() > 2 * same.total()
    assert [p for p, n in same.items() if n > 5 and n > apart[p]] == []
