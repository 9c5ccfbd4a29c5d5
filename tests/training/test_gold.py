from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from training.gold import check_names, make_resolver
from training.mentions import GoldMention

IDS = {"C1": "C1", "C2": "C2", "C9": "C1"}


def test_resolver_gives_the_concepts_of_each_part() -> None:
    resolve = make_resolver(IDS.get, {"A1": "C2"})
    gold = GoldMention(2, "", "x", [["C9", "A1"], ["C7"]])
    assert resolve(gold) == [{"C1", "C2"}, set()]


def test_check_names_refuses_two_files_of_one_name() -> None:
    check_names([Path("a/dev.tsv"), Path("a/test.tsv")])
    with pytest.raises(SapbertError, match=r"E740.*dev\.tsv"):
        check_names([Path("a/dev.tsv"), Path("b/dev.tsv")])
