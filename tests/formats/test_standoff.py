"""brat, and the BioNLP shared tasks: byte order marks, and ids in notes."""

from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.corpus import open_corpus, read_corpus
from spacy_sapbert.formats.gold import GoldDocument
from tests.commands import invoke


def write(folder: Path, text: bytes, lines: str, ending: str = ".ann") -> Path:
    path = folder / f"note{ending}"
    path.write_text(lines, "utf8")
    path.with_suffix(".txt").write_bytes(text)
    return path


def read(path: Path) -> GoldDocument:
    [document] = open_corpus(path)
    return document


MARKED = b"\xef\xbb\xbfFever today\n"


@pytest.mark.parametrize("ending", [".ann", ".a1"])
@pytest.mark.parametrize(
    ("lines", "mentions"),
    [
        ("T1\tD 1 6\tFever\n", [(0, 5, "Fever")]),  # as brat counts
        ("T1\tD 0 5\tFever\n", [(0, 5, "Fever")]),
        ("T1\tD 1 6;7 12\tFever today\n", [(0, 11, "Fever today")]),
        (
            "T1\tD 0 6\t\ufeffFever\nT2\tD 7 12\ttoday\n",
            [(0, 5, "Fever"), (6, 11, "today")],
        ),
    ],
)
def test_a_byte_order_mark_is_a_character_for_some(lines, mentions, ending, tmp_path):
    document = read(write(tmp_path, MARKED, lines, ending))
    assert document.text == "Fever today\n"
    assert [(m.start, m.end, m.mention) for m in document.mentions] == mentions


def test_offsets_that_fit_in_neither_way_are_an_error(tmp_path):
    both = "T1\tD 1 6\tFever\nT2\tD 6 11\ttoday\n"
    with pytest.raises(SapbertError, match=r"E117.*note\.ann:2: .* 6 to 11"):
        read(write(tmp_path, MARKED, both))


TEXT = b"Adenocarcinoma, fever and pain"
ENTITIES = "T1\tD 0 14\tAdenocarcinoma\nT2\tD 16 21\tfever\nT3\tD 26 30\tpain\n"


@pytest.mark.parametrize(
    ("note", "id"),
    [
        *((id, id) for id in ("8140/3", "8140/3/H", "C0027051", "I21.9", "22298006")),
        *((id, id) for id in ("MESH:D001241", "http://snomed.info/id/22298006")),
        *(
            (note, "")
            for note in ("check this", "2nd", "50mg", "10", "see I21.9", "p53")
        ),
    ],
)
def test_a_whole_note_with_the_form_of_an_id_is_one(note, id, tmp_path):
    lines = f"{ENTITIES}#1\tAnnotatorNotes T2\t{note}\n#2\tAnnotatorNotes T9\t8140/3\n"
    found = [m.parts for m in read(write(tmp_path, TEXT, lines)).mentions]
    assert found == [[], [[id]] if id else [], []]


def test_notes_are_no_ids_beside_references_and_counted(tmp_path):
    notes = "#1\tAnnotatorNotes T1\t8140/3\n#2\tAnnotatorNotes T2\tsure\n"
    lines = f"{ENTITIES}{notes}N1\tReference T2 UMLS:C0015967\tFever\n"
    path = write(tmp_path, TEXT, lines)
    with pytest.warns(UserWarning, match="W540.*left out 1 notes that look like ids"):
        document = read(path)
    assert [m.parts for m in document.mentions] == [[], [["UMLS:C0015967"]], []]


def test_codes_in_notes_are_measured(sample_kb, tmp_path):
    lines = f"{ENTITIES}#1\tAnnotatorNotes T2\tC0000004\n"
    path = write(tmp_path, TEXT, lines)
    assert [m.parts for d in read_corpus(path) for m in d.mentions][1] == [["C0000004"]]
    assert "1" in invoke("evaluate", sample_kb, path, code=0).output
