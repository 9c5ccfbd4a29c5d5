"""Tables of one's own: CSV, TSV and Excel."""

import csv
import re
import shutil
from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.reader_table import guess_format
from tests.io.test_spreadsheets import write_book
from tests.vocabularies.test_examples import FOLDER
from tests.vocabularies.whole import read


def write(folder: Path, text: str, name: str = "codes.csv") -> Path:
    path = folder / name
    path.write_text(text, "utf8")
    return path


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("concept_id,prefLabel,altLabel", {"id": 0, "name": 1, "synonyms": 2}),
        ("id,label,description", {"id": 0, "name": 1, "definition": 2}),
        ("name,synonym1,synonym 2,code", {"name": 0, "synonyms": 1, "id": 3}),
        ("id,description", {"id": 0, "name": 1}),
    ],
)
def test_read_table_guesses_common_headers(header, expected, tmp_path):
    fields = ",".join(f"x{place}" for place in range(header.count(",") + 1))
    _, report = read(write(tmp_path, f"{header}\n{fields}\n"))
    names = header.split(",")
    for role, place in expected.items():
        assert f"{role}={names[place]}" in report.notes[0]


@pytest.mark.parametrize(
    ("header", "columns", "code"),
    [
        ("code,words", None, "E410.*the columns code, words"),
        ("#tax_id,GeneID\n1,2", None, "E410.*csv:1: .*the columns tax_id, Gene"),
        # no column has the ids because it is the only one with codes
        ("ICD10,name", None, "E410.*the columns ICD10, name\\. .*id=ICD10,name=name`"),
        ("symbol,term,omim_id", None, "E410.*--columns name=term,id=omim_id`"),
        ('words,"a, b",label', None, "E410.*--columns id=words,name=label`"),
        ("a,b", "id=a", "E331"),
        ("a,b", "id=a,name=c", "E410.*the columns a, b"),
        ("a,b,b", "id=a,name=b", "E410"),
        ("a,b", "id=a,colour=b", "E331"),
        ("a,b", "", "E331"),
        ("a,b", '"id', "E331"),
        ("a,b", "id=a,id=b,name=b", "E331.*several"),
        *(("a,b", f"id=a,{more}", "E331") for more in ("name.X=b", "name=")),
        *(("a,b", f"id=a,name=b,{more}", "E331") for more in ("codes.=b", "codes.X")),
        *(("a,b", f"id={id},name={name}", "E410") for id, name in ("01", "13")),
    ],
)
def test_read_table_wrong_columns_are_an_error(header, columns, code, tmp_path):
    path = write(tmp_path, f"{header}\n1,2\n")
    with pytest.raises(SapbertError, match=code):
        read(path, columns=columns)


@pytest.mark.parametrize("columns", [None, "id=code,name=term", "id=1,name=9"])
def test_read_table_without_header_does_not_show_its_first_row(columns, tmp_path):
    path = write(tmp_path, "17,Zqxwvut,fever\n18,Patientname,asthma\n")
    with pytest.raises(SapbertError, match="E410.*3 cells") as caught:
        read(path, columns=columns)
    assert not re.search("Zqxwvut|Patientname|fever|asthma", str(caught.value))


def test_read_table_encoding_is_assumed_or_named(tmp_path):
    path = tmp_path / "codes.csv"
    path.write_bytes("id,name\nX,Übelkeit\n".encode("cp1252"))
    with pytest.raises(SapbertError, match=r"E009.*codes\.csv:2"):
        read(path)
    with pytest.raises(SapbertError, match="E009"):
        read(path, encoding="ascii")
    for name in ("zip", "nonsense", "\0"):
        with pytest.raises(SapbertError, match="E331"):
            read(path, encoding=name)


def test_read_table_quote_that_never_ends_is_an_error(tmp_path):
    text = 'id,name\nX,"fever\n' + "".join(f"Y{n},cough {n}\n" for n in range(3000))
    path = write(tmp_path, text)
    for on_error in ("fail", "skip"):
        with pytest.raises(SapbertError, match=r"E117.*codes\.csv:2: .*1,000 lines"):
            read(path, on_error=on_error)


def test_read_table_that_has_only_the_name_of_a_known_one(tmp_path):
    text = 'id\tname\tsynonyms\nW1\t"Blue" fever\tazure fever\n'
    (concept,), _ = read(write(tmp_path, text, "my thesaurus.txt"))
    assert (concept.cui, concept.aliases[1]) == ("W1", "azure fever")


def test_read_table_of_excel(tmp_path):
    path = write_book(
        tmp_path / "codes.xlsx",
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


@pytest.mark.parametrize(
    "name",
    ["SimpleTabulation-ICD-11-MMS-en.txt", "LinearizationMiniOutput-MMS-en.txt"],
)
def test_read_icd11_of_excel_is_as_its_text(name, tmp_path):
    text = FOLDER / "icd11" / name
    with text.open(encoding="utf-8-sig", newline="") as file:
        rows = [[cell or None for cell in row] for row in csv.reader(file, "excel-tab")]
    path = write_book(tmp_path / f"{text.stem}.xlsx", *rows)
    assert guess_format(path) == "icd11"
    assert read(path)[0] == read(text)[0]


def test_read_omop_and_rxnorm_errors_of_tables_and_filters(tmp_path):
    omop, rxnorm = (FOLDER / name / "release" for name in ("omop", "rxnorm"))
    for path, source in ((omop, "ATCC"), (rxnorm, "ATX")):
        with pytest.raises(SapbertError, match=f"E105.*{source}.*Did you mean ATC"):
            read(path, sources=[source])
    (tmp_path / "CONCEPT.csv").write_text("concept_id\tconcept_name\n1\tfever\n")
    with pytest.raises(SapbertError, match=r"E410.*CONCEPT\.csv:1.*domain_id"):
        read(tmp_path)
    copy = Path(shutil.copytree(rxnorm, tmp_path / "rxnorm"))
    (copy / "rrf" / "RXNSTY.RRF").write_text("20|T121\n")
    with pytest.raises(SapbertError, match=r"E117.*RXNSTY\.RRF:1"):
        read(copy)
    _, report = read(copy, on_error="skip")
    assert report.dropped["rows of RXNSTY with a wrong number of fields"] == 1
