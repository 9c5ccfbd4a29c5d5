"""Tables of one's own: CSV, TSV and Excel."""

import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.registry import guess_format
from tests.vocabularies.whole import read

TABLE = """Code;Preferred Term;Synonyms;Semantic Type;Parent;ICD-10-CM;Remark
A1;Fever;"pyrexia|hot; body";T184;A0;R50.9;x
A2;"Cough
dry";;T184;A0;R05|R05.1;
A0;Sign;;;;;
"""


def write(folder: Path, text: str, name: str = "codes.csv") -> Path:
    path = folder / name
    path.write_text(text, "utf8")
    return path


def write_book(folder: Path, *rows: list[Any]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.create_sheet("notes")
    path = folder / "codes.xlsx"
    book.save(path)
    return path


def test_read_table_columns_are_known_by_their_names_and_shown(tmp_path: Path) -> None:
    concepts, report = read(write(tmp_path, TABLE))
    assert concepts == [
        Concept("A0", ["Sign"]),
        Concept(
            "A1",
            ["Fever", "pyrexia", "hot; body"],
            types=["T184"],
            codes={"ICD10CM": ["R50.9"]},
            parents=["A0"],
        ),
        Concept(
            "A2",
            ["Cough dry"],
            types=["T184"],
            codes={"ICD10CM": ["R05", "R05.1"]},
            parents=["A0"],
        ),
    ]
    assert report.notes == [
        "Columns: id=Code,name=Preferred Term,synonyms=Synonyms,type=Semantic Type,"
        "parent=Parent,codes.ICD10CM=ICD-10-CM; not read: Remark."
    ]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("concept_id,prefLabel,altLabel", {"id": 0, "name": 1, "synonyms": 2}),
        ("ICD10,description", {"id": 0, "name": 1}),
        ("id,label,description", {"id": 0, "name": 1, "definition": 2}),
        ("name,synonym1,synonym 2,code", {"name": 0, "synonyms": 1, "id": 3}),
        ("Kode,Bezeichnung,Sprache", {"id": 0, "name": 1, "language": 2}),
    ],
)
def test_read_table_guesses_common_headers(
    header: str, expected: dict[str, int], tmp_path: Path
) -> None:
    fields = ",".join(f"x{place}" for place in range(header.count(",") + 1))
    _, report = read(write(tmp_path, f"{header}\n{fields}\n"))
    names = header.split(",")
    for role, place in expected.items():
        assert f"{role}={names[place]}" in report.notes[0]


def test_read_table_rows_of_one_id_are_one_concept(tmp_path: Path) -> None:
    text = "id\tname\tlang\nX\tfever\ten\nX\tFieber\tde-DE\nX\tfever\ten\n"
    (concept,), report = read(write(tmp_path, text, "codes.tsv"))
    assert concept.aliases == ["fever", "Fieber"]
    assert concept.languages == {"ENG": [0], "GER": [1]}
    assert report.dropped["repeated names"] == 1


def test_read_table_columns_option_names_columns_and_codes(tmp_path: Path) -> None:
    text = 'K,"Term, long",Other,MyICD\nX,fever,hot/warm,R50\n'
    choice = 'id=K,"name=Term, long",synonyms=Other,codes.ICD10=MyICD'
    (concept,), _ = read(write(tmp_path, text), columns=choice, separator="/")
    assert concept.aliases == ["fever", "hot", "warm"]
    assert concept.codes == {"ICD10": ["R50"]}


def test_read_table_columns_by_place_have_no_header(tmp_path: Path) -> None:
    path = write(tmp_path, "X,fever\nY,cough\n")
    concepts, _ = read(path, columns="id=1,name=2")
    assert [each.aliases for each in concepts] == [["fever"], ["cough"]]


@pytest.mark.parametrize(
    ("header", "columns", "code"),
    [
        ("a,b", None, "E410"),
        ("code,words", None, "E410.*the columns code, words"),
        ("a,b", "id=a", "E331"),
        ("a,b", "id=a,name=c", "E410.*the columns a, b"),
        ("a,b", "id=1,name=3", "E410"),
        ("a,b,b", "id=a,name=b", "E410"),
        ("a,b", "id=a,name=a,name=b", "E331"),
        ("a,b", "id=a,colour=b", "E331"),
        ("a,b", "", "E331"),
    ],
)
def test_read_table_wrong_columns_are_an_error(
    header: str, columns: str | None, code: str, tmp_path: Path
) -> None:
    path = write(tmp_path, f"{header}\n1,2\n")
    with pytest.raises(SapbertError, match=code):
        read(path, columns=columns)


@pytest.mark.parametrize("columns", [None, "id=code,name=term", "id=1,name=9"])
def test_read_table_without_header_does_not_show_its_first_row(
    columns: str | None, tmp_path: Path
) -> None:
    path = write(tmp_path, "17,Zqxwvut,fever\n18,Patientname,asthma\n")
    with pytest.raises(SapbertError, match="E410.*3 cells") as caught:
        read(path, columns=columns)
    assert not re.search("Zqxwvut|Patientname|fever|asthma", str(caught.value))


def test_read_table_encoding_is_assumed_or_named(tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    path.write_bytes("id,name\nX,Übelkeit\n".encode("cp1252"))
    with pytest.raises(SapbertError, match=r"E009.*codes\.csv:2"):
        read(path)
    assert read(path, encoding="cp1252")[0][0].name == "Übelkeit"
    path.write_bytes("id\tname\nX\tÜbelkeit\n".encode("utf-16"))
    assert read(path, encoding="utf-16")[0][0].name == "Übelkeit"
    with pytest.raises(SapbertError, match="E009"):
        read(path, encoding="ascii")
    for name in ("zip", "nonsense", "\0"):
        with pytest.raises(SapbertError, match="E331"):
            read(path, encoding=name)


def test_read_table_quote_that_never_ends_is_an_error(tmp_path: Path) -> None:
    text = 'id,name\nX,"fever\n' + "".join(f"Y{n},cough {n}\n" for n in range(3000))
    path = write(tmp_path, text)
    for on_error in ("fail", "skip"):
        with pytest.raises(SapbertError, match=r"E117.*codes\.csv:2: .*1,000 lines"):
            read(path, on_error=on_error)


def test_read_table_quotes_in_a_table_with_tabs_may_be_characters(
    tmp_path: Path,
) -> None:
    text = 'id\tname\nX\t"Blue" fever\nY\t5" nail\nW\t"quo\tted"\n'
    concepts, report = read(write(tmp_path, text, "codes.tsv"))
    assert {each.cui: each.name for each in concepts} == {
        "X": '"Blue" fever',
        "Y": '5" nail',
        "W": "quo\tted".replace("\t", " "),
    }


def test_read_table_of_excel(tmp_path: Path) -> None:
    path = write_book(
        tmp_path,
        ["id", "name", "synonyms"],
        [401.0, "Fever", "hot; warm"],
        [],
        [402, "=1+1", None],
        [403, "Cough", "#N/A"],
        [None, "without id"],
    )
    assert guess_format(path) == "table"
    concepts, report = read(path, on_error="skip")
    assert [(each.cui, each.aliases) for each in concepts] == [
        ("401", ["Fever", "hot", "warm"]),
        ("403", ["Cough"]),
    ]
    # a formula without a stored result has no name
    assert report.dropped["concepts without a name"] == 1
    assert report.dropped["bad lines"] == 1
    assert report.notes[0] == "Other sheets are not read: 'notes'."


@settings(max_examples=10)
@given(place=st.floats(0, 1), extra=st.binary(min_size=1, max_size=8))
def test_read_table_of_damaged_excel_is_concepts_or_a_sapbert_error(
    place: float, extra: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write_book(Path(folder), ["id", "name"], ["X", "fever"])
        data = path.read_bytes()
        where = int(place * len(data))
        path.write_bytes(data[:where] + extra + data[where + len(extra) :])
        with suppress(SapbertError):
            concepts, _ = read(path)
            assert all(each.cui and each.aliases for each in concepts)


@given(
    text=st.text(st.sampled_from('ab",;|\t\n\r \0='), max_size=60),
    separator=st.none() | st.sampled_from("/|;,a"),
    columns=st.none() | st.text(st.sampled_from('idname=,"12.'), max_size=20),
)
def test_read_table_any_text_is_concepts_or_a_sapbert_error(
    text: str, separator: str | None, columns: str | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), "id,name\n" + text)
        with suppress(SapbertError):
            options = {"separator": separator, "columns": columns}
            concepts, _ = read(path, on_error="skip", **options)
            assert all(each.cui and each.aliases for each in concepts)


def test_read_table_of_medcat_has_the_preferred_name_and_types(tmp_path: Path) -> None:
    path = tmp_path / "cdb.csv"
    path.write_text(
        "cui,name,ontologies,name_status,type_ids\n"
        "C0027051,MI,SNOMED,A,T047|T190\n"
        "C0027051,myocardial infarction,SNOMED,P,T047|T190\n"
    )
    (concept,), _ = read(path)
    assert concept.aliases == ["myocardial infarction", "MI"]
    assert concept.types == ["T047", "T190"]
