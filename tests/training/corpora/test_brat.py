from pathlib import Path
from typing import List

import pytest

from spacy_sapbert.errors import SapbertError
from training.corpora import GoldDocument, GoldSpan
from training.corpora.brat import read_brat

TEXT = "Pain in left\nand right knee, 38° fever.\n"
FEVER = "T1\tSymptom 33 38\tfever\n"


def write(folder: Path, annotations: str, text: str = TEXT) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "note.txt").write_bytes(text.encode("utf8"))
    (folder / "note.ann").write_bytes(annotations.encode("utf8"))
    return folder


def read_one(folder: Path) -> List[GoldSpan]:
    (document,) = read_brat(folder)
    return document.spans


def test_a_text_and_its_annotations_are_a_document(tmp_path: Path) -> None:
    notes = "#1\tAnnotatorNotes T1\tsure\nR1\tHas Arg1:T1 Arg2:T1\nA1\tSure T1\n"
    reference = "N1\tReference T1 HP:0001945\tFever\n"
    folder = write(tmp_path / "ward" / "a", FEVER + notes + reference)
    assert list(read_brat(tmp_path)) == [
        GoldDocument(
            "ward/a/note",
            TEXT,
            [GoldSpan(33, 38, "Symptom", "fever", [["HP:0001945"]], 1)],
        )
    ]
    assert list(read_brat(folder))[0].id == "note"


def test_several_references_are_alternatives(tmp_path: Path) -> None:
    lines = [f"N{i}\tReference T1 X:{cui}\tFever\n" for i, cui in enumerate("ABA")]
    (span,) = read_one(write(tmp_path, FEVER + "".join(lines)))
    assert span.parts == [["X:A", "X:B"]]


def test_a_mention_without_a_reference_has_no_id(tmp_path: Path) -> None:
    assert read_one(write(tmp_path, FEVER))[0].parts == []


def test_a_mention_may_have_gaps_and_line_ends(tmp_path: Path) -> None:
    annotations = (
        "T1\tPart 8 12;23 27\tleft knee\nT2\tPart 0 22\tPain in left and right\n"
    )
    spans = read_one(write(tmp_path, annotations))
    assert [span[:4] for span in spans] == [
        (8, 27, "Part", "left knee"),
        (0, 22, "Part", "Pain in left and right"),
    ]


def test_offsets_count_line_ends_as_the_text_has_them(tmp_path: Path) -> None:
    annotations = "T1\tSymptom 34 39\tfever\r\n"
    folder = write(tmp_path, annotations, TEXT.replace("\n", "\r\n"))
    assert read_one(folder)[0].mention == "fever"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("T2\tSymptom 32 37\tfever", "E713"),
        ("T2\tSymptom 33 38\tFever", "E713"),
        ("T2\tPart 23 27;8 12\tknee left", "E713"),
        ("T2\tSymptom 33\tfever", "E714"),
        ("T2\tSymptom\tfever", "E714"),
        ("T2\tSymptom 33 38;\tfever", "E714"),
        ("T2\tSymptom -1 -1\tfever", "E714"),
        ("T2\tSymptom 33 38", "E719"),
        ("T2\tSymptom 33 38\t ", "E704"),
        ("T1\tSymptom 33 38\tfever", "E721"),
        ("fever", "E719"),
        ("N1\tReference T1", "E719"),
        ("N1\tReference T1 X:A|X:B\tfever", "E719"),
        ("N1\tReference T2 X:A\tfever", "E720"),
    ],
)
def test_a_bad_line_is_named_and_not_quoted(
    tmp_path: Path, line: str, code: str
) -> None:
    folder = write(tmp_path, f"{FEVER}{line}\n")
    with pytest.raises(SapbertError, match=code) as error:
        read_one(folder)
    assert f"{folder / 'note.ann'}:2:" in str(error.value)
    assert "fever" not in str(error.value).lower()


def test_a_text_that_is_missing_is_named(tmp_path: Path) -> None:
    (write(tmp_path, FEVER) / "note.txt").unlink()
    with pytest.raises(SapbertError, match="E001.*note.txt"):
        read_one(tmp_path)


def test_a_folder_without_annotations_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match="E108"):
        read_one(tmp_path)
