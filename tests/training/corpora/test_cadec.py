from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from training.corpora.cadec import read_cadec, split_concepts

TEXT = "I feel a bit drowsy & my arms\nand legs ache with Zomorph.\n"
ORIGINAL = (
    "T1\tADR 9 19\tbit drowsy\n"
    "#1\tAnnotatorNotes T1\tsure\n"
    "T2\tADR 25 29;39 43\tarms ache\n"
    "T4\tDrug 49 56\tZomorph\n"
)
CONCEPTS = (
    "TT1\t271782001 | Drowsy | 9 19\tbit drowsy\n"
    "#1\tAnnotatorNotes TT1\tsure\n"
    "TT2\t102556003|Pain in upper limb| or 53057004 | Hand pain | 25 29;39 43\t"
    "arms ache\n"
)


def write(folder: Path, concepts: str) -> Path:
    files = {
        "text/Z.1.txt": TEXT,
        "original/Z.1.ann": ORIGINAL,
        "sct/Z.1.ann": concepts,
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, "utf8")
    return folder


def test_read_cadec_has_the_concepts_of_each_mention(tmp_path: Path) -> None:
    arms = [["102556003", "53057004"]]
    assert list(read_cadec(write(tmp_path, CONCEPTS))) == [
        GoldDocument(
            "Z.1",
            TEXT,
            [
                GoldMention(9, 19, "ADR", "bit drowsy", [["271782001"]], 1),
                GoldMention(25, 43, "ADR", "arms ache", arms, 3),
                GoldMention(49, 56, "Drug", "Zomorph", [], 4),
            ],
        )
    ]


@pytest.mark.parametrize(
    ("field", "parts"),
    [
        ("271782001 | Drowsy |", [["271782001"]]),
        ("271782001", [["271782001"]]),
        ("271782001 | Drowsy", [["271782001"]]),
        ("123456 | A or B + C | + 234567|D|", [["123456"], ["234567"]]),
        ("123456 | A | or 234567 | B | + 345678", [["123456", "234567"], ["345678"]]),
        ("CONCEPT_LESS", []),
        ("concept_less |", []),
    ],
)
def test_split_concepts_of_or_and_plus(field: str, parts: list[list[str]]) -> None:
    assert split_concepts(Path("a.ann"), 1, field) == parts


@pytest.mark.parametrize(
    "field", ["", "Drowsy", "123456 | A | 234567 | B |", "123456 or", "123456 +x"]
)
def test_split_concepts_refuses_anything_else(field: str) -> None:
    with pytest.raises(SapbertError, match="E117"):
        split_concepts(Path("a.ann"), 1, field)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("TT4\t123456 | Zomorph | 48 55\tZomorph", "E117"),
        ("TT4\t123456 | Zomorph | 56 49\tZomorph", "E117"),
        ("TT4\t123456 | Zomorph |\tZomorph", "E117"),
        ("TT4\tZomorph 49 56\tZomorph", "E117"),
        ("T4\t123456 | Zomorph | 49 56\tZomorph", "E117"),
        ("TT4\t123456 | Zomorph | 49 56", "E117"),
        ("TT3\t123456 | Zomorph | 49 56\tZomorph", "E117"),
        ("TT1\t123456 | Zomorph | 49 56\tZomorph", "E117"),
    ],
)
def test_read_cadec_with_a_bad_line_names_it_without_its_text(
    tmp_path: Path, line: str, code: str
) -> None:
    folder = write(tmp_path, f"{CONCEPTS}{line}\n")
    with pytest.raises(SapbertError, match=code) as error:
        list(read_cadec(folder))
    assert f"{folder / 'sct' / 'Z.1.ann'}:4:" in str(error.value)
    assert "Zomorph" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "code"),
    [("text/Z.1.txt", "E001"), ("sct/Z.1.ann", "E001"), ("original/Z.1.ann", "E108")],
)
def test_read_cadec_names_a_missing_file(tmp_path: Path, name: str, code: str) -> None:
    folder = write(tmp_path, CONCEPTS)
    (folder / name).unlink()
    with pytest.raises(SapbertError, match=code):
        list(read_cadec(folder))
