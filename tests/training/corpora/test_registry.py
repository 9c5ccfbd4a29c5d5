from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from training.corpora.registry import FORMATS, change_prefix, load_reader, read_corpus

TABLE = "doc\tstart\tend\ttype\tmention\tids\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf8")
    return path


@pytest.mark.parametrize("format", FORMATS)
def test_load_reader_of_every_format_has_a_docstring(format: str) -> None:
    reader = load_reader(format)
    assert reader.__doc__
    assert "SOURCE" in reader.__doc__ or format == "tsv"


def test_read_corpus_of_an_unknown_format_is_an_error() -> None:
    with pytest.raises(SapbertError, match="tsv, pubtator.*'bioc'"):
        read_corpus(Path("nowhere"), "bioc")


def test_read_corpus_with_an_unknown_option_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match="xlbel has .none.*--split-composites"):
        read_corpus(tmp_path, "xlbel", split_composites=True)


@pytest.mark.parametrize(
    ("cui", "expected"),
    [
        ("D003924", "MESH:D003924"),
        ("OMIM:125853", "OMIM:125853"),
        ("UMLS:C0011860", "MESH:C0011860"),
    ],
)
def test_change_prefix(cui: str, expected: str) -> None:
    assert change_prefix(cui, prefix="MESH:", drop_prefix="UMLS:") == expected


def test_read_corpus_changes_prefixes(tmp_path: Path) -> None:
    path = write(tmp_path / "gold.tsv", TABLE + "d\t\t\t\tboth\tA|X:B+C\n")
    (document,) = read_corpus(path, "tsv", prefix="Y:")
    assert document.spans[0].parts == [["Y:A", "X:B"], ["Y:C"]]


def test_read_corpus_without_a_mention_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "corpus.txt", "1|t|A title.\n1|a|\n")
    with pytest.raises(SapbertError, match="E707"):
        list(read_corpus(path, "pubtator"))
