import json
from pathlib import Path
from typing import Any

import pytest
from spacy.tokens import Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.brat import file_name, read_gold
from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from spacy_sapbert.formats.registry import write_linked
from tests.pipelines import NLP

TEXT = "Pain in left\nand right knee, 38° fever.\n"
FEVER = "T1\tSymptom 33 38\tfever\n"


def write(folder: Path, annotations: str, text: str = TEXT) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "note.txt").write_bytes(text.encode("utf8"))
    (folder / "note.ann").write_bytes(annotations.encode("utf8"))
    return folder


def read_one(folder: Path) -> list[GoldMention]:
    (document,) = read_gold(folder)
    return document.mentions


def test_brat_a_text_and_its_annotations_are_a_document(tmp_path: Path) -> None:
    notes = "#1\tAnnotatorNotes T1\tsure\nR1\tHas Arg1:T1 Arg2:T1\nA1\tSure T1\n"
    reference = "N1\tReference T1 HP:0001945\tFever\n"
    folder = write(tmp_path / "ward" / "a", FEVER + notes + reference)
    assert list(read_gold(tmp_path)) == [
        GoldDocument(
            "ward/a/note",
            TEXT,
            [GoldMention(33, 38, "Symptom", "fever", [["HP:0001945"]], 1)],
        )
    ]
    assert list(read_gold(folder))[0].id == "note"


def test_brat_several_references_are_alternatives(tmp_path: Path) -> None:
    lines = [f"N{i}\tReference T1 X:{cui}\tFever\n" for i, cui in enumerate("ABA")]
    (span,) = read_one(write(tmp_path, FEVER + "".join(lines)))
    assert span.parts == [["X:A", "X:B"]]


def test_brat_a_mention_without_a_reference_has_no_id(tmp_path: Path) -> None:
    assert read_one(write(tmp_path, FEVER))[0].parts == []


def test_brat_a_mention_may_have_gaps_and_line_ends(tmp_path: Path) -> None:
    annotations = (
        "T1\tPart 8 12;23 27\tleft knee\nT2\tPart 0 22\tPain in left and right\n"
    )
    spans = read_one(write(tmp_path, annotations))
    assert [span[:4] for span in spans] == [
        (8, 27, "Part", "left knee"),
        (0, 22, "Part", "Pain in left and right"),
    ]
    (span,) = read_one(write(tmp_path, "T1\tPart 8 12;23 27\tleftknee\n"))
    assert (span.start, span.end, span.mention) == (8, 27, "leftknee")


def test_brat_offsets_count_line_ends_as_the_text_has_them(tmp_path: Path) -> None:
    annotations = "T1\tSymptom 34 39\tfever\r\n"
    folder = write(tmp_path, annotations, TEXT.replace("\n", "\r\n"))
    assert read_one(folder)[0].mention == "fever"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("T2\tSymptom 32 37\tfever", "E117"),
        ("T2\tSymptom 33 38\tFever", "E117"),
        ("T2\tPart 23 27;8 12\tknee left", "E117"),
        ("T2\tSymptom 33\tfever", "E117"),
        ("T2\tSymptom\tfever", "E117"),
        ("T2\tSymptom 33 38;\tfever", "E117"),
        ("T2\tSymptom -1 -1\tfever", "E117"),
        ("T2\tSymptom 33 38", "E117"),
        ("T2\tSymptom 33 38\t ", "E117"),
        ("T1\tSymptom 33 38\tfever", "E117"),
        ("fever", "E117"),
        ("N1\tReference T1", "E117"),
        ("N1\tReference T1 X:A|X:B\tfever", "E117"),
        ("N1\tReference T2 X:A\tfever", "E117"),
    ],
)
def test_brat_a_bad_line_is_named_and_not_quoted(
    tmp_path: Path, line: str, code: str
) -> None:
    folder = write(tmp_path, f"{FEVER}{line}\n")
    with pytest.raises(SapbertError, match=code) as error:
        read_one(folder)
    assert f"{folder / 'note.ann'}:2:" in str(error.value)
    assert "fever" not in str(error.value).lower()


def test_brat_a_text_that_is_missing_is_named(tmp_path: Path) -> None:
    (write(tmp_path, FEVER) / "note.txt").unlink()
    with pytest.raises(SapbertError, match="E001.*note.txt"):
        read_one(tmp_path)


def test_brat_a_folder_without_annotations_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match="E108"):
        read_one(tmp_path)


def test_brat_an_id_of_no_source_is_read_without_the_word_for_it(
    tmp_path: Path,
) -> None:
    (span,) = read_one(write(tmp_path, FEVER + "N1\tReference T1 KB:C0015967\t\n"))
    assert span.parts == [["C0015967"]]


def write_docs(path: Path, *docs: tuple[Any, str], ents: Any = ()) -> list[str]:
    pairs = [(number, NLP(text)) for number, text in docs]
    for _, doc in pairs:
        doc.spans["sc"] = [Span(doc, *places, label=label) for *places, label in ents]
    write_linked(pairs, path, format="brat", spans_key="sc")
    files = (file for file in path.rglob("*") if file.is_file())
    return sorted(file.relative_to(path).as_posix() for file in files)


def test_brat_a_document_is_written_as_two_files(tmp_path: Path) -> None:
    doc = NLP("Took aspirin\r\ntoday")
    doc.ents = [Span(doc, 1, 4, label="DRUG NAME"), Span(doc, 0, 1, label="A\u00a0B")]
    late = doc.ents[1]
    late._.cui = "C0004057"
    late._.candidates = [
        {
            "cui": "C0004057",
            "name": "Aspirin\tpills",
            "score": 0.5,
            "types": ["T109"],
            "codes": {"MSH": ["\u2028"]},
        }
    ]
    late._.link_note = "truncated"
    with pytest.warns(UserWarning, match="W520.*2 labels changed"):
        write_linked([("ward/note.txt", doc)], tmp_path / "out", format="brat")
    assert (tmp_path / "out/ward/note.txt").read_bytes() == doc.text.encode()
    lines = (tmp_path / "out/ward/note.ann").read_text("utf8").splitlines()
    note = lines.pop()
    assert lines == [
        "T1\tA_B 0 4\tTook",
        "T2\tDRUG_NAME 5 12;14 19\taspirin today",
        "N2\tReference T2 KB:C0004057\tAspirin pills",
    ]
    assert note.startswith("#2\tAnnotatorNotes T2\t{")
    assert json.loads(note.split("\t")[2]) == {
        "score": 0.5,
        "types": ["T109"],
        "codes": {"MSH": ["\u2028"]},
        "note": "truncated",
    }


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (7, "7"),
        ("note.txt", "note"),
        ("note.txt.gz", "note"),
        ("notes.jsonl:3", "notes.jsonl_3"),
        ("../../etc/passwd", "etc/passwd"),
        ("/a//b/", "a/b"),
        ("a.txt/b", "a.txt_/b"),
        ("", "_"),
        ("a\0\n\\b. ", "a__ b".replace(" ", "_")),
        ("é" * 200, "é" * 100),
        ("a/" * 3000 + "b", "a/a/a/a/a/a/a/b"),
    ],
)
def test_brat_an_id_makes_a_name_that_every_system_takes(
    number: Any, name: str
) -> None:
    assert file_name(number) == name


def test_brat_documents_of_one_name_are_numbered(tmp_path: Path) -> None:
    docs = [("a", "1"), ("a.txt", "2"), ("a", "3"), ("a-2", "4")]
    with pytest.warns(UserWarning, match="W520.*3 documents of one name numbered"):
        files = write_docs(tmp_path / "out", *docs)
    names = ["a", "a-2", "a-2-2", "a-3"]
    assert files == sorted(f"{n}.{end}" for n in names for end in ("ann", "txt"))


def test_brat_a_byte_order_mark_in_a_text_moves_nothing(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="1 byte order marks"):
        write_docs(tmp_path / "out", ("a", "\ufeff fever"), ents=[(1, 2, "L")])
    (span,) = read_one(tmp_path / "out")
    assert (span.start, span.mention) == (2, "fever")


def test_brat_a_folder_that_was_written_before_is_replaced(tmp_path: Path) -> None:
    write_docs(tmp_path / "out", ("a", "1"))
    assert write_docs(tmp_path / "out", ("b", "2")) == ["b.ann", "b.txt"]


@pytest.mark.parametrize("other", ["a.txt", "a.ann", "letter.doc", "x/y.txt"])
def test_brat_a_folder_with_other_files_is_never_replaced(
    tmp_path: Path, other: str
) -> None:
    (tmp_path / "out" / other).parent.mkdir(parents=True)
    (tmp_path / "out" / other).write_text("mine")
    with pytest.raises(SapbertError, match="E522"):
        write_docs(tmp_path / "out", ("b", "2"))
    assert (tmp_path / "out" / other).read_text() == "mine"


def test_brat_a_file_in_the_place_of_the_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(SapbertError, match="E522.*a file"):
        write_docs(tmp_path / "out", ("b", "2"))
