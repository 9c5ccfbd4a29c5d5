"""Pairs of names, of translations, of mentions, and names held out."""

import zipfile
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.gold import GoldMention
from spacy_sapbert.vocabularies.concepts import (
    Concept,
    read_concepts,
    write_concepts,
)
from tests.commands import invoke
from training.__main__ import app
from training.data.pairs import (
    nth_combination,
    read_pairs,
    sample_pairs,
)
from training.data.sample import sample_concepts
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


def test_sample_concepts_are_those_of_gold_mentions_and_some_others():
    concepts = [Concept(f"C{n}", [f"name {n}"]) for n in range(1000)]
    concepts[7] = Concept("C7", ["name 7"], retired=["OLD"])
    ids = [[["C1", "C2"], ["C3"]], [["OLD"]], [["ALIAS"]], [["C9999"]]]
    golds = [GoldMention(-1, -1, "", "mention", parts, 0) for parts in ids]
    aliases = {"ALIAS": "C5", "C6": "C5"}
    gold = {"C1", "C2", "C3", "C5", "C6", "C7"}
    draws = [[*sample_concepts(concepts, golds, aliases, size)] for size in (50, 50)]
    cuis = [concept.cui for concept in draws[0]]
    assert draws[0] == draws[1]
    assert gold < {*cuis}
    assert len(cuis) == len(gold) + 50
    assert cuis == sorted(cuis, key=lambda cui: int(cui[1:]))
    middle = [int(cui[1:]) for cui in cuis if cui not in gold]
    assert 350 < sum(middle) / len(middle) < 650  # from the whole file
    assert sample_concepts(concepts, golds, aliases, 0) is concepts
    assert [*sample_concepts(concepts, golds, aliases, 10_000)] == concepts


def write_names(folder) -> None:
    """Twenty concepts, each with a preferred name and two synonyms."""
    concepts = [
        Concept(f"C{n}", [f"name {n}", f"other {n}", f"more {n}"]) for n in range(20)
    ]
    write_concepts(folder / "concepts.jsonl", concepts)


def read_names(path) -> set[str]:
    lines = path.read_text("utf8").splitlines()
    return {line.partition("\t")[0] for line in lines[1:]}


def test_held_out_names_and_those_of_a_validation_are_halves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_names(tmp_path)
    words = "hold-out-names concepts.jsonl trained.jsonl held_out.tsv --share 0.5"
    invoke(*words.split(), app=app, code=0)
    all_names = read_names(tmp_path / "held_out.tsv")
    invoke(*words.split(), "--validation", "own.tsv", "--force", app=app, code=0)
    first, second = (read_names(tmp_path / f) for f in ("held_out.tsv", "own.tsv"))
    assert first | second == all_names
    assert not first & second
    assert abs(len(first) - len(second)) <= 1
    trained = {n for c in read_concepts(tmp_path / "trained.jsonl") for n in c.aliases}
    assert not trained & all_names


@pytest.mark.parametrize(("count", "is_warned"), [(49, True), (50, False)])
def test_few_held_out_names_say_little(tmp_path, monkeypatch, count, is_warned):
    monkeypatch.chdir(tmp_path)
    names = [Concept(f"C{n}", [f"name {n}", f"other {n}"]) for n in range(count)]
    write_concepts(tmp_path / "concepts.jsonl", names)
    words = "hold-out-names concepts.jsonl trained.jsonl held_out.tsv --share 1"
    shown = " ".join(invoke(*words.split(), app=app, code=0).output.split())
    assert f"Wrote {count} held-out names" in shown
    assert ("50 or more names to compare encoders with" in shown) == is_warned


def test_a_share_is_shown_as_it_was_written(tmp_path, monkeypatch):
    """weasel passes 0.30000000000000004 for 0.3."""
    monkeypatch.chdir(tmp_path)
    write_concepts(tmp_path / "concepts.jsonl", [Concept("C1", ["fever"])])
    words = "hold-out-names concepts.jsonl a.jsonl b.tsv --share 0.30000000000000004"
    assert "`--share 0.3`" in invoke(*words.split(), app=app, code=1).output


def test_sample_has_the_concepts_of_each_file_of_mentions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_names(tmp_path)
    for name, id in [("a", "C3"), ("b", "C7"), ("c", "MESH:C7")]:
        Path(f"{name}.tsv").write_text(f"mention\tids\nname\t{id}\n", "utf8")
    words = ["sample", "concepts.jsonl", "sample.jsonl", "a.tsv", "b.tsv"]
    invoke(*words, "--others", 4, app=app, code=0)
    cuis = {concept.cui for concept in read_concepts(Path("sample.jsonl"))}
    assert {"C3", "C7"} < cuis
    assert len(cuis) == 6
    shown = invoke(*words, "c.tsv", "--force", app=app, code=1).output
    assert "[E106]" in shown
    assert "c.tsv" in shown
