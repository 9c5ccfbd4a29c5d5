import gzip
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer

import training.data.tokenized_pairs
from spacy_sapbert.errors import SapbertError
from training.data.tokenized_pairs import (
    Corpus,
    build_corpus,
    open_corpus,
    tokenizer_digest,
)

LINES = [
    ("C1", "Heart attack", "acute pain of the heart"),
    ("C1", "Heart attack", "MI"),
    ("C2", "mi", "Mitral Insufficiency"),
    ("C3", "fever", "x" * 60),
    ("C3", "FEVER", ""),
    ("C1", "MI", "heart attack"),
    ("C2", "MI", "mitral\u2028insufficiency"),
]


@pytest.fixture(scope="module")
def tokenizer(tiny_encoder: Path) -> Any:
    return AutoTokenizer.from_pretrained(tiny_encoder)


@pytest.fixture
def pairs_path(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join("\t".join(line) + "\n" for line in LINES), "utf8")
    return path


@pytest.fixture
def corpus(pairs_path: Path, tmp_path: Path, tokenizer: Any) -> Corpus:
    return build(pairs_path, tmp_path / "corpus", tokenizer)


def build(path: Path, folder: Path, tokenizer: Any, **settings: Any) -> Corpus:
    settings = {"max_length": 12, "lowercase": True, **settings}
    return build_corpus(path, folder, tokenizer, **settings)


def wordpieces(corpus: Corpus, name: int) -> list[int]:
    return corpus.ids[corpus.starts[name] : corpus.starts[name + 1]].tolist()


def assert_round_trip(corpus: Corpus, tokenizer: Any, *, lowercase: bool) -> None:
    """Every line of LINES, in order, is what the corpus holds."""
    assert len(corpus) == len(LINES)
    hashes: dict[str, int] = {}
    for number, (concept, *names) in enumerate(LINES):
        hashes.setdefault(concept, corpus.labels[number])
        assert corpus.labels[number] == hashes[concept]
        for end, text in zip(corpus.ends[number], names, strict=True):
            text = text.lower() if lowercase else text
            expected = tokenizer(text, truncation=True, max_length=12)["input_ids"]
            assert wordpieces(corpus, end) == expected
            hashes.setdefault(f"name {text}", corpus.names[end])
            assert corpus.names[end] == hashes[f"name {text}"]
    assert len(set(hashes.values())) == len(hashes)


@pytest.mark.parametrize(
    ("at_once", "names_kept", "lowercase"),
    [(1, 9, True), (2, 9, False), (3, 0, True), (5_000, 9, True), (5_000, 9, False)],
)
def test_build_corpus_holds_every_line_in_blocks_of_any_size(
    pairs_path: Path,
    tmp_path: Path,
    tokenizer: Any,
    monkeypatch: pytest.MonkeyPatch,
    at_once: int,
    names_kept: int,
    lowercase: bool,
) -> None:
    monkeypatch.setattr(training.data.tokenized_pairs, "PAIRS_PER_BLOCK", at_once)
    monkeypatch.setattr(training.data.tokenized_pairs, "NAMES_KEPT", names_kept)
    folder = tmp_path / "corpus"
    corpus = build(pairs_path, folder, tokenizer, lowercase=lowercase)
    assert_round_trip(corpus, tokenizer, lowercase=lowercase)
    assert corpus.concepts == 5
    assert corpus.labels.dtype == corpus.ends.dtype == corpus.names.dtype == np.int64


def test_build_corpus_tokenises_a_name_once_in_a_run_of_its_concept(
    corpus: Corpus,
) -> None:
    ends = [[0, 1], [0, 2], [3, 4], [5, 6], [5, 7], [8, 9], [10, 11]]
    assert corpus.ends.tolist() == ends
    assert corpus.names[2] == corpus.names[3] == corpus.names[8] == corpus.names[10]
    assert len(corpus.starts) == 13


def test_build_corpus_of_a_packed_file_is_the_same(
    corpus: Corpus, pairs_path: Path, tmp_path: Path, tokenizer: Any
) -> None:
    packed = tmp_path / "pairs.tsv.gz"
    packed.write_bytes(gzip.compress(pairs_path.read_bytes()))
    other = build(packed, tmp_path / "other", tokenizer)
    for name in ("labels", "ends", "names", "starts", "ids"):
        assert np.array_equal(getattr(corpus, name), getattr(other, name))


def test_build_corpus_takes_wider_ids_for_a_vocabulary_above_65536(
    corpus: Corpus, pairs_path: Path, tmp_path: Path, tokenizer: Any
) -> None:
    words = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    words += [f"##qq{number}" for number in range((1 << 16) + 1 - len(words))]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", "utf8")
    large = type(tokenizer)(str(tmp_path / "vocab.txt"))
    wide = build(pairs_path, tmp_path / "wide", large)
    assert corpus.ids.dtype == np.uint16
    assert wide.ids.dtype == np.int32
    assert np.array_equal(wide.ids, corpus.ids)


@pytest.mark.parametrize("line", ["C1\ta", "", "C1\ta\tb\tc"])
def test_build_corpus_names_the_bad_line(
    pairs_path: Path, tmp_path: Path, tokenizer: Any, line: str
) -> None:
    with open(pairs_path, "a", encoding="utf8") as file:
        file.write(f"{line}\nC1\ta\tb\n")
    fields = len(line.split("\t"))
    with pytest.raises(SapbertError, match=rf"pairs.tsv:8: .* {fields} fields"):
        build(pairs_path, tmp_path / "corpus", tokenizer)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]


def test_build_corpus_refuses_an_empty_or_missing_file(
    tmp_path: Path, tokenizer: Any
) -> None:
    path = tmp_path / "pairs.tsv"
    with pytest.raises(SapbertError, match="found none"):
        build(path, tmp_path / "c", tokenizer)
    path.touch()
    with pytest.raises(SapbertError, match="empty"):
        build(path, tmp_path / "c", tokenizer)
    assert not (tmp_path / "c").exists()


def test_build_corpus_is_made_again_only_if_something_changed(
    corpus: Corpus, pairs_path: Path, tmp_path: Path, tiny_encoder: Path
) -> None:
    folder = tmp_path / "corpus"
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder)

    def inode(**settings: Any) -> int:
        build(pairs_path, folder, tokenizer, **settings)
        return folder.stat().st_ino

    first = inode()
    assert inode() == first
    assert inode(max_length=11) != first
    second = inode()
    assert inode(lowercase=False) != second
    third = inode()
    tokenizer.add_tokens(["attack"])
    tokenizer.add_tokens(["pain of"])
    fourth = inode()
    assert fourth != third
    with open(pairs_path, "a", encoding="utf8") as file:
        file.write("C9\ta\tb\n")
    assert inode() != fourth
    assert len(open_corpus(folder)) == len(LINES) + 1


def test_tokenizer_digest_depends_on_the_tokenizer_not_on_its_last_call(
    tiny_encoder: Path,
) -> None:
    one, other = (AutoTokenizer.from_pretrained(tiny_encoder) for _ in range(2))
    one("fever", truncation=True, max_length=5, padding="max_length")
    assert tokenizer_digest(one) == tokenizer_digest(other)
    slow = AutoTokenizer.from_pretrained(tiny_encoder, use_fast=False)
    cased = AutoTokenizer.from_pretrained(
        tiny_encoder, use_fast=False, do_lower_case=False
    )
    assert len({tokenizer_digest(each) for each in (one, slow, cased)}) == 3


def test_build_corpus_leaves_other_folders_alone(
    pairs_path: Path, tmp_path: Path, tokenizer: Any
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "meta.json").write_text('{"format": 1}', "utf8")
    (tmp_path / "file").write_text("mine", "utf8")
    for name in ("mine", "file"):
        with pytest.raises(SapbertError, match="something else"):
            build(pairs_path, tmp_path / name, tokenizer)
    assert (tmp_path / "mine" / "meta.json").is_file()
    assert (tmp_path / "file").read_text("utf8") == "mine"
    (tmp_path / "empty").mkdir()
    build(pairs_path, tmp_path / "empty", tokenizer)


@pytest.mark.parametrize("name", ["labels", "ends", "names", "starts", "ids"])
def test_open_corpus_refuses_a_file_that_was_cut(
    corpus: Corpus, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "corpus" / f"{name}.bin"
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    expected = rf"{len(content)} bytes in .*{name}.bin, but got {len(content) - 1}"
    with pytest.raises(SapbertError, match=expected):
        open_corpus(tmp_path / "corpus")
    path.unlink()
    with pytest.raises(SapbertError, match="found none"):
        open_corpus(tmp_path / "corpus")


def test_open_corpus_needs_no_pairs_but_a_corpus(
    corpus: Corpus, pairs_path: Path, tmp_path: Path
) -> None:
    pairs_path.unlink()
    assert np.array_equal(open_corpus(tmp_path / "corpus").ends, corpus.ends)
    with pytest.raises(SapbertError, match="found none"):
        open_corpus(tmp_path / "nothing")


def test_corpus_release_frees_memory_and_keeps_the_numbers(
    tmp_path: Path, tokenizer: Any
) -> None:
    def resident(mapped: mmap.mmap) -> int:
        """Kilobytes of a mapping that count as the process's memory."""
        place = np.frombuffer(mapped, dtype=np.uint8).ctypes.data
        lines = iter(Path("/proc/self/smaps").read_text("utf8").splitlines())
        for line in lines:
            first, _, rest = line.partition("-")
            if rest and int(first, 16) <= place < int(rest.split()[0], 16):
                break
        return next(int(line.split()[1]) for line in lines if line.startswith("Rss"))

    if not Path("/proc/self/smaps").is_file():
        pytest.skip("only Linux shows what is resident")
    path = tmp_path / "pairs.tsv"
    path.write_text("C1\ta\tb\n" * 40_000, "utf8")
    corpus = build(path, tmp_path / "corpus", tokenizer)
    assert corpus.labels.any()
    assert resident(corpus.maps[0]) >= 300
    before = corpus.labels[:5].tolist()
    corpus.release()
    assert resident(corpus.maps[0]) == 0
    assert corpus.labels[:5].tolist() == before
