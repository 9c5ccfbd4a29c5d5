from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.corpus import read_corpus

TABLE = "doc\tstart\tend\ttype\tmention\tids\n"


def test_read_corpus_of_an_unknown_format_is_an_error() -> None:
    with pytest.raises(SapbertError, match="E110.*pubtator.*tsv.*'bioc'"):
        read_corpus(Path("nowhere"), "bioc")


def test_read_corpus_with_an_unknown_option_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match="brat .none.*--split-composites"):
        read_corpus(tmp_path, "brat", split_composites=True)


def test_read_corpus_changes_prefixes(tmp_path: Path) -> None:
    path = tmp_path / "gold.tsv"
    path.write_text(f"{TABLE}d\t\t\t\tboth\tA|X:B+UMLS:C\n", "utf8")
    (document,) = read_corpus(path, "tsv", prefix="Y:", drop_prefix="UMLS:")
    assert document.mentions[0].parts == [["Y:A", "X:B"], ["Y:C"]]


def test_read_corpus_without_a_mention_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("1|t|A title.\n1|a|\n", "utf8")
    with pytest.raises(SapbertError, match="E106"):
        list(read_corpus(path, "pubtator"))


def test_read_annotated_csv_keeps_apostrophes(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text("id,text,cui\nd1,'tis,C1\nd1,'=1+1,C2\nd1,'-itis,C3\n")
    (document,) = read_corpus(path)
    assert [mention.mention for mention in document.mentions] == [
        "'tis",
        "=1+1",
        "-itis",
    ]
