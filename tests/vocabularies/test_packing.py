"""Releases as they are packed: files, folders and `.zip`, for every reader."""

import errno
import gzip
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io import reading
from spacy_sapbert.vocabularies import locate
from spacy_sapbert.vocabularies.concepts import concept_to_json
from spacy_sapbert.vocabularies.locate import has_name
from spacy_sapbert.vocabularies.reader_table import (
    READERS,
    guess_format,
    read_vocabularies,
    read_vocabulary,
)
from spacy_sapbert.vocabularies.report import Report
from tests.golden import read_cases
from tests.vocabularies.test_examples import FOLDER, copy_example
from tests.vocabularies.test_reader_table import EXAMPLES
from tests.vocabularies.whole import fail, read

JUNK = {
    **{"__MACOSX/._a.obo": b"\0", ".DS_Store": b"\0", "LICENSE": b"Free."},
    **{"readme.txt": b"Read me", "Licence.PDF": b"%PDF", "~$a.xlsx": b"\0"},
    "icd10cm_order_addenda_2026.txt": b"Add: 1\n",
}
Files = Mapping[str, bytes]


def write(folder: Path, files: Files) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def write_zip(path: Path, files: Files) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def deep(files: Files) -> Files:
    return {f"Release 2026/été/x/{name}": data for name, data in files.items()}


PACKED = {
    "folder": lambda to, files: write(to, files),
    "folders": lambda to, files: write(to, deep(files)),
    "zip": lambda to, files: write_zip(to / "a.zip", files),
    "ZIP of folders": lambda to, files: write_zip(to / "a.ZIP", deep(files)),
    "gz in a zip": lambda to, files: write_zip(
        to / "a.zip", {f"{name}.gz": gzip.compress(files[name]) for name in files}
    ),
    "zip in a folder": lambda to, files: write_zip(to / "x/a.zip", files).parent,
    "capitals": lambda to, files: write(
        to, {name.upper(): data for name, data in deep(files).items()}
    ),
    "small letters": lambda to, files: write(
        to, {name.lower(): data for name, data in deep(files).items()}
    ),
}


def list_releases() -> list[Any]:
    """Return the cases of the examples of every reader that read one path."""
    found = {}
    for name in READERS:
        for case, concepts in read_cases(FOLDER / name):
            if isinstance(case["read"], str) and not case.get("xrefs"):
                id = f"{name}: {case['read']}"
                found.setdefault(id, pytest.param(name, case, concepts, id=id))
    assert {id.partition(":")[0] for id in found} == {*READERS}
    return [*found.values()]


@pytest.mark.parametrize("pack", PACKED.values(), ids=[*PACKED])
@pytest.mark.parametrize(("name", "case", "expected"), list_releases())
def test_release_is_read_the_same_however_it_is_packed(
    name, case, expected, pack, tmp_path
):
    copy = copy_example(name, tmp_path, case.get("without", []))
    top = copy / Path(case["read"]).parts[0]  # a file, or the folder of a release
    paths = [path for path in (top, *top.rglob("*")) if path.is_file()]
    top = top if top.is_dir() else copy
    files = {path.relative_to(top).as_posix(): path.read_bytes() for path in paths}
    packed = pack(tmp_path / "packed", {**JUNK, **files})
    format, options = case.get("format"), case.get("options", {})
    concepts, report = read(packed, format, **options)
    assert [concept_to_json(concept) for concept in concepts] == expected
    (before,) = case["reports"]
    after = report.to_json()
    assert after.pop("path") == str(packed)
    rows = {
        file.lower().removesuffix(".gz"): n for file, n in after.pop("rows").items()
    }
    assert rows == {file.lower(): n for file, n in before["rows"].items()}
    assert after == {key: value for key, value in before.items() if key != "rows"}


@pytest.mark.parametrize("format", [*READERS])
def test_error_of_a_file_in_a_zip_names_the_zip_and_the_file(format, tmp_path):
    folder, example = tmp_path / "a", EXAMPLES.get(format)
    folder.mkdir()
    if example is None:
        assert format == "rdf"  # a file of it has no records
        write(folder, {"x.ttl": b"no ontology"})
    else:
        example.write(folder, example.good, example.bad[0])
    packed = Path(shutil.make_archive(str(tmp_path / "b"), "zip", folder))
    expected = fail(folder, format).replace(str(folder), str(packed))
    assert fail(packed, format) == fail(packed) == expected
    assert f"{packed}/" in expected


def test_file_of_a_zip_may_be_named(tmp_path):
    files = {"x/a.obo": b"[Term]\nid: A:1\nname: fever\n", "x/b.obo": b"bad\n"}
    packed = write_zip(tmp_path / "two.zip", {**files, "notes.dat": b"?"})
    error = fail(packed)
    assert error.startswith(f"[E110] Expected one file to read in {packed}")
    assert f"{packed}/x/a.obo, {packed}/x/b.obo" in error
    assert read(packed / "x" / "a.obo")[0][0].aliases == ["fever"]
    assert fail(packed / "c.obo").startswith(
        f"[E001] Expected a file at {packed}/c.obo"
    )
    assert "E110" in fail(packed / "notes.dat")
    assert read(packed / "x" / "a.obo", "obo")[0][0].aliases == ["fever"]


def test_format_that_is_named_needs_no_name_of_a_file(tmp_path):
    folder = write(tmp_path / "a", {"codes.dat": b"id,name\nX:1,fever\n"})
    assert read(folder, "table")[0][0].aliases == ["fever"]
    assert "E110" in fail(folder)
    write(folder, {"more.dat": b""})
    assert "several" in fail(folder, "table")
    (tmp_path / "b").mkdir()
    for format in ("table", "rrf", "mesh"):
        assert fail(tmp_path / "b", format).startswith("[E108]")


ICD10CM = {
    "icd10cm_order_2026.txt": b"00001 A00     0 Cholera"
    + b" " * 54
    + b"Cholera\n00002 A000    1 Cholera due to x"
    + b" " * 43
    + b"Cholera due to x\n",
    "icd10cm_codes_2026.txt": b"A000    Cholera due to x\n",
    "icd10cm_codes_addenda_2026.txt": b"Add:         A000    Cholera due to x\n",
    "icd10OrderFiles.pdf": b"%PDF",
}
TABULAR = {
    "icd10cm_tabular_2026.xml": b"<ICD10CM.tabular><chapter><name>1</name>"
    b"<desc>Infectious diseases (A00-B99)</desc><section id='A00-A09'><desc>x "
    b"(A00-A09)</desc><diag><name>A00</name><desc>Cholera</desc></diag></section>"
    b"</chapter></ICD10CM.tabular>",
    "icd10cm_index_2026.xml": b"<ICD10CM.index/>",
}
MESH = {
    "desc2026.xml": (FOLDER / "mesh" / "desc2024.xml").read_bytes(),
    "desc2026.dtd": b"<!ELEMENT a>",
    "qual2026.gz": b"",
    "supp2026.gz": b"",
}
HP = {
    "hp.json": b"{}",
    "hp.obo": b"[Term]\nid: HP:1\nname: fever\n",
    "hp.owl": b"<rdf:RDF",
}
RELEASES = [
    (ICD10CM, "icd10cm_list", "icd10cm_order_2026.txt", "icd10cm_codes_2026.txt"),
    ({**ICD10CM, **TABULAR}, "icd10cm", "icd10cm_tabular_2026.xml", ""),
    (
        # as the NCHS writes them since 2023
        {f"x 2027/{name.replace('_', '-')}": ICD10CM[name] for name in ICD10CM},
        *("icd10cm_list", "icd10cm-order-2026.txt", "icd10cm-codes-2026.txt"),
    ),
    (MESH, "mesh", "desc2026.xml", "supp2026.gz"),
    (HP, "obo", "hp.obo", ""),
]


@pytest.mark.parametrize(("files", "format", "name", "other"), RELEASES)
def test_one_file_of_several_is_read_by_the_order_of_formats(
    files, format, name, other, tmp_path
):
    for path in (write(tmp_path / "a", files), write_zip(tmp_path / "a.zip", files)):
        concepts, report = read(path)
        assert concepts
        assert name in report.rows
        assert guess_format(path) == report.format == format
        notes = [f"{name} is read, not {other}."] if other else []
        assert report.notes == notes


def test_zip_of_snomed_without_a_snapshot_is_an_error_that_says_so(tmp_path):
    files = {"S/Full/Terminology/sct2_Concept_Full_INT_2026.txt": b"id\n"}
    files |= {"S/Delta/Terminology/sct2_Description_Delta-en_INT_2026.txt": b"id\n"}
    for path in (write(tmp_path / "a", files), write_zip(tmp_path / "a.zip", files)):
        for format in (None, "snomed"):
            error = fail(path, format)
            assert error.startswith("[E108] Expected the snapshot of a release of SNOM")
            assert f"got {path} with sct2_" in error


def test_parts_of_a_split_table_may_be_at_any_depth(tmp_path):
    row = EXAMPLES["rrf"].good.encode()
    names = {"MRCONSO.RRF.aa": row[:20], "MRCONSO.RRF.ab": row[20:]}
    files = {f"2026AA/META/{name}": data for name, data in names.items()}
    files |= {"2026AA/META/MRCONSO.CTL": b"", "2026AA/NET/SRDEF": b""}
    for path in (write(tmp_path / "a", files), write_zip(tmp_path / "a.zip", files)):
        (concept,), report = read(path)
        assert (concept.aliases, report.format) == (["pain"], "rrf")


def test_cross_references_and_retired_ids_may_be_packed(tmp_path):
    own = write(tmp_path, {"own.csv": b"id,name\nMESH:D000001,fever\n"}) / "own.csv"
    obo = b"[Term]\nid: D:1\nname: pyrexia\nxref: MESH:D000001\n"
    xref = write_zip(tmp_path / "x.zip", {**JUNK, "a/doid.obo": obo})
    retired = write_zip(
        tmp_path / "r.zip", {**JUNK, "a/old.tsv": b"D000009\tD000001\n"}
    )
    reports = [Report(), Report(), Report()]
    (concept,) = read_vocabularies(
        [own], xrefs=[xref], retired=[retired], reports=reports
    )
    assert concept.aliases == ["fever", "pyrexia"]
    assert concept.retired == ["MESH:D000009"]
    assert [report.path for report in reports] == [str(own), str(xref), str(retired)]
    write_zip(retired, {"a/old.tsv": b"D9\n"})
    with pytest.raises(SapbertError, match=r"r\.zip/a/old\.tsv:1"):
        list(read_vocabularies([own], retired=[retired]))
    write_zip(retired, {"a/old.tsv": b"D9\n", "a/older.tsv": b""})
    with pytest.raises(SapbertError, match=r"E110.*r\.zip/a/old\.tsv, "):
        list(read_vocabularies([own], retired=[retired]))
    write_zip(retired, {})
    with pytest.raises(SapbertError, match="E108"):
        list(read_vocabularies([own], retired=[retired]))


def test_nothing_of_a_zip_stays(tmp_path, monkeypatch):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    path = write_zip(tmp_path / "x.zip", {"x.obo": b"[Term]\nid: X:1\nname: fever\n"})
    concepts = read_vocabulary(path)
    assert next(concepts).aliases == ["fever"]
    assert [*concepts] == []
    assert [*temporary.iterdir()] == []
    assert guess_format(path) == "obo"
    for option in ("scopes", "trade_names"):  # an error before, or while it is read
        write_zip(path, {"x.obo": b"[Term]\nfever\n"})
        with pytest.raises(SapbertError):
            list(read_vocabulary(path, **{option: ["BROAD"]}))
    del concepts
    assert [*temporary.iterdir()] == []


def test_damaged_zip_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "UNPACKED_BYTES", 1 << 20)
    path = tmp_path / "x.zip"
    path.write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(SapbertError, match=r"E150.*x\.zip"):
        read_vocabulary(path)
    write_zip(path, {"x.obo": b"\0" * ((1 << 20) + 1)})
    with pytest.raises(SapbertError, match="E007"):
        read_vocabulary(path)
    write_zip(path, {"x.obo": b"a", "x.obo/y.obo": b"a"})
    with pytest.raises(SapbertError, match="E150"):
        read_vocabulary(path)
    write_zip(path, {"é.obo": b"a"})
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xe9a"))
    with pytest.raises(SapbertError, match=r"E150.*\(UnicodeDecodeError\)"):
        read_vocabulary(path)
    write_zip(path, {"x.obo": b"a"})

    def write_all(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "extractall", write_all)
    with pytest.raises(SapbertError, match="E004.*No space left"):
        read_vocabulary(path)


def test_folder_with_too_many_files_is_an_error(tmp_path, monkeypatch):
    write(tmp_path, {f"a/{number}.txt": b"" for number in range(3)})
    write(tmp_path, {"a/own.csv": b"id,name\n1,fever\n"})
    assert len(read(tmp_path)[0]) == 1
    monkeypatch.setattr(locate, "MOST_FILES", 4)
    assert fail(tmp_path).startswith(f"[E007] {tmp_path}: Expected the folder of a re")


def test_zips_in_each_other_are_unpacked_three_times(tmp_path):
    data = b"[Term]\nid: X:1\nname: fever\n"
    name = "x.obo"
    for number in range(4):
        path = write_zip(tmp_path / f"{number}.zip", {f"a/{name}": data})
        name, data = path.name, path.read_bytes()
        if number < 3:
            assert read(path)[0][0].aliases == ["fever"]
        else:
            assert fail(path).startswith("[E110] Expected a file name of a known for")
    path.write_bytes(data)
    write_zip(tmp_path / "2.zip", {"a/1.zip": b"x"})
    assert fail(tmp_path / "2.zip").startswith(f"[E150] {tmp_path}/2.zip/a/1.zip: ")


def test_names_match_in_any_case_with_or_without_gz():
    assert has_name(Path("a/DESC2026.GZ"), "desc[0-9]*.gz")
    assert has_name(Path("a/Loinc.CSV.gz"), "loinc.csv")
    assert not has_name(Path("a/Loinc.csv.old"), "Loinc.csv")
