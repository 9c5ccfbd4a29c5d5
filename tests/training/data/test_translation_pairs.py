import gzip
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from training.data.dataset import number_pairs
from training.data.translation_pairs import write_translation_pairs

write_pairs = partial(write_translation_pairs, force=True, quiet=True)


def write_file(path: Path, text: str) -> Path:
    data = text.encode("utf8")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fever kuume\npain kipu\n", ["fever\tkuume", "pain\tkipu"]),  # MUSE
        ("fever\tkuume\r\npain\tkipu", ["fever\tkuume", "pain\tkipu"]),
        ("\n \nFever\tKuume\n\n", ["Fever\tKuume"]),
        # titles; only the tab parts them
        ("Heart  attack\t Sydän\u00a0infarkti \n", ["Heart attack\tSydän infarkti"]),
        ("\ufefffever\t発熱\n", ["fever\t発熱"]),
    ],
)
def test_write_translation_pairs_has_an_id_for_each(
    text: str, expected: list[str], tmp_path: Path
) -> None:
    path = write_file(tmp_path / "words.txt", text)
    report = write_pairs([path], tmp_path / "pairs.tsv")
    lines = (tmp_path / "pairs.tsv").read_text("utf8").splitlines()
    assert lines == [f"translation:00000{n}\t{t}" for n, t in enumerate(expected, 1)]
    assert report.concepts == len(expected)


def test_write_translation_pairs_can_be_read_by_training(tmp_path: Path) -> None:
    path = write_file(tmp_path / "words.txt", "Fever Kuume\nfever feber\n")
    write_pairs([path], tmp_path / "pairs.tsv")
    ((pairs, names),) = number_pairs(tmp_path / "pairs.tsv", lowercase=True)
    assert len(set(pairs["label"].tolist())) == 2
    assert pairs["names"].shape == (2, 2)
    assert names == ["fever", "kuume", "fever", "feber"]


def test_filter_translations_counts_equal_and_repeated_pairs(tmp_path: Path) -> None:
    one = write_file(
        tmp_path / "en-fi.tsv", "radio\tRadio\n\nfever\tkuume\nFever\tkuume\n&\tja\n"
    )
    other = write_file(tmp_path / "fi-en.tsv.gz", "kuume\tfever\nkipu\tpain\n")
    report = write_pairs([one, other], tmp_path / "pairs.tsv")
    assert (tmp_path / "pairs.tsv").read_text("utf8") == (
        "translation:000001\tfever\tkuume\ntranslation:000002\tkipu\tpain\n"
    )
    assert report.dropped == {
        "pairs of equal words": 1,
        "blank lines": 1,
        "repeated pairs": 2,
        "pairs without a letter or digit": 1,
    }
    assert sum(report.rows.values()) == 7


@pytest.mark.parametrize(
    "bad", ["alone", "a\tb\tc", "a b", "a\t ", "\tb", "na\xefve\tsinisilm\xe4inen"]
)
def test_read_translations_names_or_counts_a_bad_line(bad: str, tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"  # the last one is not UTF-8
    path.write_bytes(f"fever\tkuume\n{bad}\npain\tkipu\n".encode("latin1"))
    with pytest.raises(SapbertError, match=r"words\.tsv:2: ") as raised:
        write_pairs([path], tmp_path / "pairs.tsv")
    assert "alone" not in str(raised.value)
    assert not (tmp_path / "pairs.tsv").exists()
    report = write_pairs([path], tmp_path / "pairs.tsv", on_error="skip")
    assert (report.concepts, sum(report.dropped.values())) == (2, 1)


@given(text=st.text(st.sampled_from("aäB \t\n\r\u2028&") | st.characters(codec="utf8")))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_write_translation_pairs_of_any_text(text: str, tmp_path: Path) -> None:
    path = write_file(tmp_path / "words.txt", text)
    output = tmp_path / "pairs.tsv"
    try:
        report = write_pairs([path], output, on_error="skip")
    except SapbertError:
        return
    lines = output.read_bytes().decode("utf8").split("\n")[:-1]
    assert len(lines) == report.concepts
    for line in lines:
        _, one, other = line.split("\t")
        assert one.strip()
        assert other.strip()
        assert one.lower() != other.lower()


def test_write_translation_pairs_without_pairs_is_an_error(tmp_path: Path) -> None:
    path = write_file(tmp_path / "words.txt", "radio radio\n")
    with pytest.raises(SapbertError, match="1 pairs of equal words"):
        write_pairs([path], tmp_path / "pairs.tsv")
    assert not (tmp_path / "pairs.tsv").exists()


def test_translation_pairs_prints_counts(
    invoke: Callable[..., Any], tmp_path: Path
) -> None:
    output = tmp_path / "pairs.tsv"
    path = write_file(tmp_path / "en-fi.tsv", "fever\tkuume\npain\tkipu\nno\tNO\n")
    shown = invoke("translation-pairs", path, "--output", output).output
    assert "pairs of equal words" in shown
    assert len(output.read_text("utf8").splitlines()) == 2


@pytest.mark.parametrize(
    ("name", "files", "lines"),
    [("xling-eval-en.zip", "**/en-ru/*", 11_500), ("panlex-fi-l2.zip", "*", 147_000)],
)
def test_read_translations_of_published_word_lists(
    name: str,
    files: str,
    lines: int,
    data_file: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    with zipfile.ZipFile(data_file(f"crosslingual/{name}")) as archive:
        archive.extractall(tmp_path)
    paths = [
        path
        for path in sorted(tmp_path.rglob(files))
        if path.is_file()
        and not path.name.startswith(".")
        and "MACOSX" not in str(path)
    ]
    report = write_pairs(paths, tmp_path / "pairs.tsv")
    assert sum(report.rows.values()) == lines
    # the shorter lists are parts of the longer ones
    assert report.dropped["repeated pairs"] > lines / 3
    assert report.concepts + sum(report.dropped.values()) == lines
