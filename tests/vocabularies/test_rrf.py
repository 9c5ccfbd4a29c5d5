import gzip
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.io import reading
from spacy_sapbert.vocabularies.reader_table import read_vocabulary
from spacy_sapbert.vocabularies.report import Report
from spacy_sapbert.vocabularies.rrf.tables import COLUMNS
from tests.vocabularies import whole
from tests.vocabularies.test_examples import FOLDER

HEART, FEVER, PAIN = "C0000001", "C0000002", "C0000003"


def make_row(table: str, **values: str) -> str:
    """A line of a table, by the names of its columns; the others are empty."""
    assert set(values) <= set(COLUMNS[table])
    return "".join(f"{values.get(column, '')}|" for column in COLUMNS[table])


def atom(cui: str, name: str, **values: str) -> str:
    """A line of MRCONSO; not suppressed, English, and nowhere preferred."""
    defaults = {"LAT": "ENG", "TS": "S", "STT": "VO", "ISPREF": "N", "SAB": "SRC"}
    defaults |= {"TTY": "PT", "CODE": "NOCODE", "SUPPRESS": "N"}
    return make_row("MRCONSO", **{**defaults, "CUI": cui, "STR": name, **values})


def write_table(folder: Path, table: str, *rows: str) -> Path:
    """Write a table, each row with a line feed behind it."""
    path = folder / f"{table}.RRF"
    path.write_bytes("".join(f"{row}\n" for row in rows).encode("utf8"))
    return path


def write_conso(folder: Path, *rows: str) -> Path:
    return write_table(folder, "MRCONSO", *rows)


read = partial(whole.read, format="rrf")


def names_of(path: Path, **options: Any) -> dict[str, list[str]]:
    """The names by the ids."""
    return {each.cui: each.aliases for each in read(path, **options)[0]}


fail = partial(whole.fail, format="rrf")


def test_read_rrf_unknown_filter_value_is_an_error_with_suggestions(tmp_path):
    write_conso(tmp_path, atom(HEART, "a"), atom(HEART, "b"))
    assert "MRSTY.RRF" in fail(tmp_path, types=("T047",))
    assert fail(tmp_path, cui_pattern="(").startswith("[E331]")
    write_table(tmp_path, "MRSTY", make_row("MRSTY", CUI=HEART, TUI="T023"))
    error = fail(tmp_path, languages=("EGN", "ENG"))
    assert error.startswith("[E105]")
    assert "but got EGN. " in error
    assert "Did you mean ENG" in error
    assert "Did you mean T023" in fail(tmp_path, types=("T0233",))


@pytest.mark.parametrize("how", ["plain", "each", "whole"])
def test_read_rrf_joins_parts_cut_in_the_middle_of_a_line(tmp_path, how):
    path = write_conso(tmp_path, atom(HEART, "Heart"), atom(FEVER, "Fièvre"))
    data, ending = path.read_bytes(), "" if how == "plain" else ".gz"
    path.unlink()
    data = gzip.compress(data) if how == "whole" else data
    cut = data.find("è".encode()) + 1 if how != "whole" else len(data) // 2
    for letters, part in (("aa", data[:cut]), ("ab", data[cut:])):
        part = gzip.compress(part) if how == "each" else part
        (tmp_path / f"MRCONSO.RRF.{letters}{ending}").write_bytes(part)
    expected = {HEART: ["Heart"], FEVER: ["Fièvre"]}
    assert names_of(tmp_path) == expected
    assert names_of(tmp_path / f"MRCONSO.RRF.aa{ending}") == expected
    if how == "plain":  # lines are counted through the parts
        with (tmp_path / "MRCONSO.RRF.ab").open("a") as file:
            file.write(atom(PAIN, "a|b") + "\n")
    elif how == "each":
        last = gzip.compress((atom(PAIN, "a|b") + "\n").encode())
        (tmp_path / "MRCONSO.RRF.ac.gz").write_bytes(last)
    assert how == "whole" or f"MRCONSO.RRF.*{ending}:3:" in fail(tmp_path)


def test_read_rrf_missing_part_is_an_error_that_names_it(tmp_path):
    assert fail(tmp_path).startswith("[E108]")  # nothing at all
    for letters in ("aa", "ac"):
        (tmp_path / f"MRCONSO.RRF.{letters}.gz").write_bytes(b"")
    error = fail(tmp_path)
    assert error.startswith("[E108]")
    assert "MRCONSO.RRF.ab.gz" in error


def test_read_rrf_last_line_needs_no_line_feed_but_its_fields(tmp_path):
    path = write_conso(tmp_path, atom(HEART, "Heart"), atom(FEVER, "Fever"))
    path.write_bytes(path.read_bytes()[:-1])
    assert list(names_of(tmp_path)) == [HEART, FEVER]
    path.write_bytes(path.read_bytes()[:-20])
    assert f"{path}:2: Expected 18 fields" in fail(tmp_path)


@pytest.mark.parametrize("table", ["MRSTY", "MRDEF", "MRREL", "MRCUI", "MRRANK"])
def test_read_rrf_invalid_row_beside_mrconso_is_an_error_or_counted(tmp_path, table):
    write_conso(tmp_path, atom(HEART, "Heart"))
    path = write_table(tmp_path, table, make_row(table), f"{HEART}|x|")
    assert f"{path}:2: Expected" in fail(tmp_path)
    concepts, report = read(tmp_path, on_error="skip")
    assert concepts[0].aliases == ["Heart"]
    assert report.dropped[f"rows of {table} with a wrong number of fields"] == 1
    path.write_bytes(b"\xff" + make_row(table).encode())
    assert f"[E009] {path}:1:" in fail(tmp_path)
    _, report = read(tmp_path, on_error="skip")
    assert report.dropped[f"rows of {table} that are not UTF-8"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["open-rrf", "mesh-rrf"])
def test_read_rrf_real_vocabulary_reads_to_its_counts(data_folder, name):
    total = json.loads((data_folder / name / "counts.json").read_text("utf8"))["total"]
    concepts = rows = typed = parents = 0
    report = Report()
    options: Any = {"languages": (), "cui_pattern": ".+", "report": report}
    for concept in read_vocabulary(data_folder / name, "rrf", **options):
        concepts += 1
        rows += len(concept.aliases)
        typed += bool(concept.types)
        parents += len(concept.parents)
    assert concepts == report.concepts == total["concepts"]
    assert report.rows["MRCONSO.RRF.gz"] == total["names"]
    assert rows == report.names == total["names"] - sum(report.dropped.values())
    assert typed == total["concepts with a semantic type"]
    assert parents == report.counts["parents"]


def test_read_rrf_gives_the_same_whatever_the_blocks(monkeypatch):
    path = FOLDER / "rrf" / "umls"
    expected = read(path, languages=())[0]
    monkeypatch.setattr(reading, "BLOCK_BYTES", 50)
    assert read(path, languages=())[0] == expected


def test_read_rrf_rows_that_are_dropped_may_be_broken_and_others_not(tmp_path):
    french = atom(FEVER, "Fi%", LAT="FRE")
    path = write_conso(tmp_path, atom(HEART, "Heart"), "", french)
    path.write_bytes(path.read_bytes().replace(b"%", b"\xff"))
    concepts, report = read(path)
    assert concepts[0].aliases == ["Heart"]
    assert report.to_json()["dropped"] == {
        "blank lines": 1,
        "rows in other languages": 1,
    }
    write_conso(tmp_path, atom(HEART, "Heart"), atom("C03", "Pain"))
    assert fail(path).startswith(f"[E117] {path}:2: ")
    _, report = read(path, on_error="skip")
    assert report.to_json()["dropped"] == {"rows with a malformed id": 1}
    write_conso(tmp_path, atom(FEVER, "Fever"), atom(HEART, "Heart"))
    assert fail(path, on_error="skip").startswith(f"[E104] {path}:2: ")
