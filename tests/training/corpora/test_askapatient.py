from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from training.corpora.askapatient import read_askapatient
from training.corpora.registry import GoldDocument, GoldSpan

LINE = "271782001\tDrowsy\tbit drowsy\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf8")
    return path


def test_read_askapatient_a_line_is_a_document_without_text(tmp_path: Path) -> None:
    path = write(tmp_path / "AskAPatient.fold-0.test.txt", f"\n{LINE}")
    span = GoldSpan(-1, -1, "", "bit drowsy", [["271782001"]], 2)
    assert list(read_askapatient(path)) == [GoldDocument("2", "", [span])]


def test_read_askapatient_fold_and_split_choose_the_file(tmp_path: Path) -> None:
    write(tmp_path / "AskAPatient.fold-0.test.txt", LINE)
    write(tmp_path / "AskAPatient.fold-9.train.txt", LINE * 3)
    assert len(list(read_askapatient(tmp_path))) == 1
    assert len(list(read_askapatient(tmp_path, fold=9, split="train"))) == 3


def test_read_askapatient_a_missing_fold_is_named(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match="fold-3.validation.txt"):
        list(read_askapatient(tmp_path, fold=3, split="validation"))


def test_read_askapatient_unknown_folds_and_splits_are_errors(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match="E605.*fold"):
        list(read_askapatient(tmp_path, fold=10))
    with pytest.raises(SapbertError, match="E605.*'dev'"):
        list(read_askapatient(tmp_path, split="dev"))


@pytest.mark.parametrize(
    ("line", "code"), [("1\tDrowsy", "E703"), ("1\tDrowsy\t ", "E704")]
)
def test_read_askapatient_a_bad_line_is_named_and_not_quoted(
    tmp_path: Path, line: str, code: str
) -> None:
    path = write(tmp_path / "AskAPatient.fold-0.test.txt", f"{LINE}{line}\n")
    with pytest.raises(SapbertError, match=code) as error:
        list(read_askapatient(tmp_path))
    assert f"{path}:2:" in str(error.value)
    assert "Drowsy" not in str(error.value)
