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
from spacy_sapbert.system import reading
from training.data.tokenized_pairs import number_pairs
from training.data.translation_pairs import find_languages, write_translation_pairs

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
    ((labels, ends, names),) = number_pairs(tmp_path / "pairs.tsv", lowercase=True)
    assert len(set(labels.tolist())) == 2
    assert ends.shape == (2, 2)
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


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("en-fi.txt", ("en", "fi")),
        ("en-fi.0-5000.txt", ("en", "fi")),
        ("xling-eval-en.zip/bli/en-fr/yacle.test.freq.2k.fr-en.tsv", ("fr", "en")),
        ("fi-bg/fi-bg.train.5000.cc.trans", ("fi", "bg")),
        ("en-fi/words.tsv", ("en", "fi")),
        ("parallel-titles.tsv", None),
    ],
)
def test_find_languages_of_a_file_or_its_folder(
    path: str, expected: tuple[str, str] | None
) -> None:
    assert find_languages(Path(path)) == expected


@pytest.fixture
def zipped(tmp_path: Path) -> Path:
    path = tmp_path / "lists.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("lists")
        archive.writestr("lists/en-fi.train.tsv", "fever\tkuume\npain\tkipu\n")
        archive.writestr("lists/en-fi.test.tsv", "fever\tkuume\nlung\tkeuhko\n")
        archive.writestr("lists/en-de.train.tsv", "fever\tFieber\n")
        archive.writestr("__MACOSX/lists/._en-fi.train.tsv", b"\x00\xff")
        archive.writestr("lists/.DS_Store", b"\x00\xff")
    return path


def test_list_files_reads_a_zip_as_its_files(zipped: Path, tmp_path: Path) -> None:
    assert write_pairs([zipped], tmp_path / "pairs.tsv").concepts == 4
    with zipfile.ZipFile(zipped) as archive:
        archive.extractall(tmp_path / "unpacked")
    names = ["en-fi.train.tsv", "en-fi.test.tsv", "en-de.train.tsv"]
    paths = [tmp_path / "unpacked" / "lists" / name for name in names]
    write_pairs(paths, tmp_path / "same.tsv")
    assert (tmp_path / "same.tsv").read_bytes() == (tmp_path / "pairs.tsv").read_bytes()


def test_list_files_selects_members_and_languages(zipped: Path, tmp_path: Path) -> None:
    output = tmp_path / "pairs.tsv"
    train = write_pairs([zipped], output, members="*.train.*")
    assert train.concepts == 3
    report = write_pairs([zipped], output, languages="en,fi")
    assert report.concepts == 3
    assert report.dropped == {"files of other languages": 1, "repeated pairs": 1}
    with pytest.raises(SapbertError, match=r"\(de, en, fi\), but got sv"):
        write_pairs([zipped], output, languages="en, sv")
    with pytest.raises(SapbertError, match="--members"):
        write_pairs([zipped], output, members="none")
    unnamed = write_file(tmp_path / "words.txt", "fever kuume\n")
    with pytest.raises(SapbertError, match=r"words\.txt: .*en-fi"):
        write_pairs([unnamed], output, languages="en,fi")


def test_list_files_with_a_zip_bomb_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lists.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("en-fi.txt", b"\n" * (1 << 21))
    monkeypatch.setattr(reading, "UNPACKED_BYTES", 1 << 20)
    with pytest.raises(SapbertError, match=r"E011.*lists\.zip/en-fi\.txt"):
        write_pairs([path], tmp_path / "pairs.tsv")


def test_list_files_with_a_damaged_zip_is_an_error(
    zipped: Path, tmp_path: Path
) -> None:
    data = bytearray(zipped.read_bytes())
    start = data.index(b"en-fi.train.tsv") + len("en-fi.train.tsv")
    data[start : start + 8] = b"\xff" * 8
    (tmp_path / "garbled.zip").write_bytes(data)
    (tmp_path / "cut.zip").write_bytes(zipped.read_bytes()[:200])
    for name in ("garbled.zip", "cut.zip"):
        with pytest.raises(SapbertError, match=rf"{name}.*whole zip"):
            write_pairs([tmp_path / name], tmp_path / "pairs.tsv")
    assert not (tmp_path / "pairs.tsv").exists()


def test_sample_translations_depends_on_the_seed_only(tmp_path: Path) -> None:
    lines = [f"word{n} sana{n}\n" for n in range(60)]
    one = write_file(tmp_path / "one.txt", "".join(lines))
    other = write_file(tmp_path / "other.txt", "".join(reversed(lines)))

    def draw(path: Path, seed: int) -> list[str]:
        report = write_pairs([path], tmp_path / "pairs.tsv", sample=7, seed=seed)
        assert (report.concepts, report.dropped["pairs not drawn"]) == (7, 53)
        text = (tmp_path / "pairs.tsv").read_text("utf8")
        return [line.partition("\t")[2] for line in text.splitlines()]

    first = draw(one, 1)
    assert [f"{line.split()[0]}" for line in first] == sorted(
        (line.split()[0] for line in first), key=lambda word: int(word[4:])
    )
    assert draw(other, 1) == first[::-1]
    assert draw(one, 2) != first
    assert write_pairs([one], tmp_path / "pairs.tsv", sample=99).concepts == 60


def test_write_translation_pairs_without_pairs_is_an_error(tmp_path: Path) -> None:
    path = write_file(tmp_path / "words.txt", "radio radio\n")
    with pytest.raises(SapbertError, match="1 pairs of equal words"):
        write_pairs([path], tmp_path / "pairs.tsv")
    assert not (tmp_path / "pairs.tsv").exists()


def test_translation_pairs_prints_counts(
    invoke: Callable[..., Any], zipped: Path, tmp_path: Path
) -> None:
    output = tmp_path / "pairs.tsv"
    options = ["--output", output, "--languages", "en,fi", "--members", "*.train.*"]
    shown = invoke("translation-pairs", zipped, *options).output
    assert "files of other languages" in shown
    assert len(output.read_text("utf8").splitlines()) == 2


@pytest.mark.parametrize(
    ("name", "languages", "lines"),
    [("xling-eval-en.zip", "en,ru", 11_500), ("panlex-fi-l2.zip", "all", 147_000)],
)
def test_read_translations_of_published_word_lists(
    name: str,
    languages: str,
    lines: int,
    data_file: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    path = data_file(f"crosslingual/{name}")
    report = write_pairs([path], tmp_path / "pairs.tsv", languages=languages)
    assert sum(report.rows.values()) == lines
    # the shorter lists are parts of the longer ones
    assert report.dropped["repeated pairs"] > lines / 3
    dropped = sum(n for what, n in report.dropped.items() if "files" not in what)
    assert report.concepts + dropped == lines
