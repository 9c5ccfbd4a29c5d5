"""The first row of a table in an error, and the line ends of tables."""

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.corpus import read_corpus
from spacy_sapbert.formats.documents import raise_error
from spacy_sapbert.formats.inputs.rows import Columns, read_csv_rows
from spacy_sapbert.io.tables.delimited import end_lines
from spacy_sapbert.io.tables.files import fit_rows, open_rows, read_header, read_rows
from spacy_sapbert.io.tables.headers import describe_header, find_columns
from spacy_sapbert.vocabularies.report import Report
from spacy_sapbert.vocabularies.tables.delimited import read_columns

TEXT = "Jane Doe has fever"
HIDDEN = "not shown here since they may be texts"


@pytest.mark.parametrize(
    ("header", "is_header", "expected"),
    [
        ([], False, "no columns"),
        (["note_id", "ConceptName", "Ward (code)"], False, "the columns note_id, "),
        (["id", "Doe"], True, "the columns id, Doe"),
        (["id", "Doe", "fever"], False, "3 cells in the first row, id and others, "),
        (["Doe", "fever"], False, f"2 cells in the first row, {HIDDEN}"),
        (["age 84"], False, f"1 cell in the first row, {HIDDEN}"),
        (["", "-"], False, f"2 cells in the first row, {HIDDEN}"),
        (["id", f"{TEXT} " * 3], True, "2 cells in the first row, id and others, "),
        (["id", f"x\r{TEXT}"], True, "2 cells in the first row, id and others, "),
        (["id", *map(str, range(100))], True, "101 cells in the first row, id and "),
    ],
)
def test_an_error_shows_columns_and_no_texts(header, is_header, expected):
    shown = describe_header(header, is_header=is_header)
    assert shown.startswith(expected)
    assert "Jane" not in shown


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a,b\r1,2\r", b"a,b\n1,2\n"),
        (b"\r\na,b\r1,2\n", b"\n\na,b\n1,2\n"),
        (b"a,b\r\n1,x\r2\r\n", b"a,b\r\n1,x\r2\r\n"),
        (b'a,"b\r"\r\n1,2\r', b'a,"b\r"\r\n1,2\r'),
        (b"a,b\r", b"a,b\r"),
        (b"", b""),
    ],
)
def test_carriage_returns_end_the_lines_of_a_table(data, expected):
    assert b"".join(end_lines([data])) == expected


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_tables_of_any_line_end_are_read_and_not_shown(tmp_path, end):
    path = tmp_path / "a.csv"
    rows = ["id,text", f"1,{TEXT}", f"2,{TEXT}"]
    path.write_bytes("".join(row + end for row in rows).encode())
    found = [*read_csv_rows(path, Columns(), on_error=raise_error)]
    assert found == [(n, {"id": str(n - 1), "text": TEXT}) for n in (2, 3)]
    assert [*read_rows(path)] == [row.split(",") for row in rows]
    found = [*read_csv_rows(path, Columns("TEXT", "Id"), on_error=raise_error)]
    assert found == [(n, {"Id": str(n - 1), "TEXT": TEXT}) for n in (2, 3)]
    report = Report()
    columns = [*read_columns(path, ["id", "text"], report, separator=",", quoted=True)]
    assert columns == [(n, [str(n - 1), TEXT]) for n in (2, 3)]
    reads = [
        lambda: [*read_csv_rows(path, Columns("text", "x"), on_error=raise_error)],
        lambda: find_columns(path, read_header(read_rows(path)), ["text", "x"]),
        lambda: [*read_columns(path, ["id", "x"], report, separator=",", quoted=True)],
        lambda: [*read_corpus(path, "csv")],
    ]
    for read in reads:
        with pytest.raises(SapbertError, match="E410") as caught:
            read()
        assert "Jane" not in str(caught.value)
        assert "columns id, text" in str(caught.value)


def test_a_row_has_the_fields_of_the_first_and_empty_ones(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f'"id,no";text\n1;{TEXT};;\n2;{TEXT};x\n3\n', "utf8")
    rows, errors = [*open_rows(path)], list[SapbertError]()
    assert rows[0] == (1, ["id,no", "text"])
    whole = (2, ["1", TEXT])
    assert [*fit_rows(path, rows[1:], 2, on_error=errors.append)] == [whole]
    assert [str(error).partition(" Correct")[0] for error in errors] == [
        f"[E117] {path}:{n}: Expected 2 fields, as the first line has, but got {got} "
        "fields."
        for n, got in ((3, 3), (4, 1))
    ]
    del rows[2]
    assert [*fit_rows(path, rows[1:], 2, least=1)] == [whole, (4, ["3", ""])]
    path.write_text("// a;b;c;d\nid,text\n", "utf8")
    assert [*open_rows(path, comment="//")] == [(2, ["id", "text"])]


def test_texts_of_documents_keep_their_carriage_returns(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'id,text\r\n1,"a\r\nb\rc"\r\n2,d\r\n3,"e\r"\r')
    found = read_csv_rows(path, Columns(), on_error=raise_error)
    assert [row["text"] for _, row in found] == ["a\r\nb\rc", "d", "e\r"]
