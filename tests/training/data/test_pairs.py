import os
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from training.data.pairs import (
    distinct_names,
    filter_languages,
    nth_combination,
    read_pairs,
    sample_pairs,
    write_pairs,
)

ROOT = Path(__file__).parents[3]


@given(st.integers(2, 40))
def test_nth_combination_counts_through_all_pairs(n: int) -> None:
    total = n * (n - 1) // 2
    found = [nth_combination(n, index) for index in range(total)]
    assert found == list(combinations(range(n), 2))


def test_nth_combination_is_exact_where_floats_are_not() -> None:
    n = 10**9
    assert nth_combination(n, n * (n - 1) // 2 - 1) == (n - 2, n - 1)
    assert nth_combination(n, n - 1) == (1, 2)


@given(st.lists(st.text("abc", min_size=1, max_size=6), min_size=1), st.integers(0, 9))
def test_sample_pairs_are_distinct_sorted_pairs_of_the_concept(
    aliases: list[str], seed: int
) -> None:
    concept = Concept("C0000001", aliases)
    names = distinct_names(concept)
    pairs = list(sample_pairs(concept, most=5, seed=seed))
    assert len(pairs) == min(5, len(names) * (len(names) - 1) // 2)
    assert pairs == sorted(set(pairs), key=lambda p: (p[1].lower(), p[2].lower()))
    assert all(one in names and other in names for _, one, other in pairs)


def test_sample_pairs_are_fifty_from_eleven_names_on() -> None:
    names = [f"name {number}" for number in range(11)]
    assert len(list(sample_pairs(Concept("C1", names[:10])))) == 45
    assert len(list(sample_pairs(Concept("C1", names)))) == 50
    huge = Concept("C1", [f"name {number}" for number in range(3000)])
    assert len(list(sample_pairs(huge))) == 50  # 4,498,500 are not enumerated


def test_sample_pairs_take_spellings_as_one_name() -> None:
    concept = Concept("C1", ["Fever", "FEVER", "  fever", "Pyrexia"])
    assert list(sample_pairs(concept)) == [("C1", "Fever", "Pyrexia")]


def test_sample_pairs_depend_on_the_seed_alone(
    tmp_path: Path, new_process: Any
) -> None:
    code = (
        "from training.data.pairs import sample_pairs;"
        "from spacy_sapbert.vocabularies.concepts import Concept;"
        "print(list(sample_pairs(Concept('C1', [f'n{i}' for i in range(40)]), seed=4)))"
    )
    outputs = {
        new_process.python(
            code, env={**os.environ, "PYTHONHASHSEED": hash_seed}, cwd=ROOT, check=True
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(outputs) == 1
    concept = Concept("C1", [f"n{number}" for number in range(40)])
    assert list(sample_pairs(concept, seed=4)) != list(sample_pairs(concept, seed=5))


def test_sample_pairs_with_noise_disturb_the_second_name_of_a_share() -> None:
    words = ("fever", "cough", "edema", "sepsis", "lesion")
    concept = Concept("C1", [f"{one} of {two}" for one in words for two in words])
    plain, half, whole = (
        list(sample_pairs(concept, most=200, noise=noise)) for noise in (0, 0.5, 1)
    )
    assert [pair[:2] for pair in plain] == [pair[:2] for pair in whole]
    counts = [
        sum(one != other for one, other in zip(plain, noisy, strict=True))
        for noisy in (half, whole)
    ]
    assert 70 < counts[0] < 130
    assert counts[1] > 180  # some noises leave some names as they are
    assert list(sample_pairs(concept, most=200, noise=1)) == whole
    assert list(sample_pairs(concept, most=200, noise=1, seed=1)) != whole
    assert all(len(text.split("\t")) == 1 and text.strip() for *_, text in whole)


def test_write_pairs_counts_and_writes_tabs(tmp_path: Path) -> None:
    concepts = [Concept("C1", ["a", "b", "c"]), Concept("C2", ["d\te"])]
    counts = write_pairs(concepts, tmp_path / "pairs.tsv")
    # concepts, distinct names, concepts with two names, trimmed to 50 pairs, pairs
    assert list(counts.values()) == [2, 4, 1, 0, 3]
    assert (tmp_path / "pairs.tsv").read_text() == "C1\ta\tb\nC1\ta\tc\nC1\tb\tc\n"


@pytest.mark.parametrize(("most", "trimmed"), [(2, 1), (3, 0)])
def test_write_pairs_counts_concepts_with_more_pairs(
    most: int, trimmed: int, tmp_path: Path
) -> None:
    concepts = [Concept("C1", ["a", "b", "c"])]
    counts = write_pairs(concepts, tmp_path / "pairs.tsv", most=most)
    assert counts[f"concepts trimmed to {most} pairs"] == trimmed
    assert counts["pairs"] == most


def test_write_pairs_without_synonyms_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match="1 concepts"):
        write_pairs([Concept("C1", ["a"])], tmp_path / "pairs.tsv")
    assert list(tmp_path.iterdir()) == []


IN_LANGUAGES = [
    Concept("C1", ["a", "b", "ä", "?"], languages={"ENG": [0, 1], "FIN": [1, 2]}),
    Concept("C2", ["c", "ö"], languages={"ENG": [0], "FIN": [1]}),
    Concept("C3", ["d", "e"], languages={"GER": [0]}),
]


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        (["ENG"], ["C1\ta\tb"]),
        (["FIN"], ["C1\tb\tä"]),
        (["FIN", "ENG"], ["C1\ta\tb", "C1\ta\tä", "C1\tb\tä", "C2\tc\tö"]),
    ],
)
def test_write_pairs_of_some_languages(
    languages: list[str], expected: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "pairs.tsv"
    write_pairs(filter_languages(IN_LANGUAGES, languages, Path("c.jsonl")), path)
    assert path.read_text("utf8").splitlines() == expected


def test_filter_languages_of_an_unknown_language_is_an_error(tmp_path: Path) -> None:
    kept = filter_languages(IN_LANGUAGES, ["ENG", "FI"], Path("c.jsonl"))
    with pytest.raises(SapbertError, match=r"c\.jsonl.*got FI\. Did you mean FIN"):
        write_pairs(kept, tmp_path / "pairs.tsv")
    assert list(tmp_path.iterdir()) == []


def test_pairs_command_takes_languages(
    invoke: Callable[..., Any], tmp_path: Path
) -> None:
    concepts, pairs = tmp_path / "concepts.jsonl", tmp_path / "pairs.tsv"
    write_concepts(concepts, IN_LANGUAGES)
    for languages, lines in (("ENG, FIN", 4), ("all", 8)):
        invoke("pairs", concepts, pairs, "--languages", languages, "--force")
        assert len(pairs.read_text("utf8").splitlines()) == lines


def test_read_pairs_of_the_authors_have_bars(tmp_path: Path) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text("C01||fever||pyrexia\nC02||pain||ache\n", "utf8")
    assert [*read_pairs(path)] == [["C01", "fever", "pyrexia"], ["C02", "pain", "ache"]]
