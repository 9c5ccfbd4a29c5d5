"""What the readers of all formats have in common, and several vocabularies as one."""

import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.reader_table import (
    READERS,
    guess_format,
    read_vocabularies,
    read_vocabulary,
)
from tests.vocabularies.whole import fail, read

SAMPLE = Path(__file__).parents[2] / "assets" / "sample"
NO_WORD = "1 names without a letter or digit"
NOT_UTF8 = "lines that are not UTF-8"


class Example(NamedTuple):
    """A file of one concept, whose only name is "pain", with lines to break it.

    They are in `records.json`.

    Attributes:
        name: A file name of the format.
        good: A record.
        bad: Invalid records; the name "fever" in them must not be shown.
        rule: How those are counted.
        not_utf8: How bytes that are not UTF-8 are counted; empty = always an error.
        text: The file; `{}` stands for its records.
        between: What separates records.
        beside: Other files, by name.
    """

    name: str
    good: str
    bad: list[str]
    rule: str = "bad lines"
    not_utf8: str = NOT_UTF8
    text: str = "{}"
    between: str = ""
    beside: Mapping[str, str] = {}

    def write(self, folder: Path, *records: str) -> Path:
        path = folder / self.name
        for name, text in self.beside.items():
            (folder / name).write_text(text, "utf8")
        text = self.text.replace("{}", self.between.join(records))
        path.write_bytes(text.encode())
        return path


RECORDS = json.loads(Path(__file__).with_name("records.json").read_text("utf8"))
EXAMPLES = {name: Example(**record) for name, record in RECORDS.items()}
# a file of RDF has no records of which one could be invalid: see `test_ontologies.py`
every_format = pytest.mark.parametrize("format", [*EXAMPLES])
every_on_error = pytest.mark.parametrize("on_error", ["fail", "skip"])


@every_format
def test_read_vocabulary_file_may_be_compressed(format, tmp_path):
    folder = tmp_path / "été 2024 ü"
    folder.mkdir()
    path = EXAMPLES[format].write(folder, EXAMPLES[format].good)
    ((concept,), report) = read(path, format)
    assert concept.aliases == ["pain"]
    assert (report.path, report.format, report.concepts) == (str(path), format, 1)
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read(packed, format)[0] == [concept]
    assert guess_format(path) == guess_format(packed) == format


@every_format
@every_on_error
def test_read_vocabulary_truncated_gzip_is_an_error(format, on_error, tmp_path):
    path = EXAMPLES[format].write(tmp_path, EXAMPLES[format].good)
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes())[:-12])
    assert fail(packed, format, on_error=on_error).startswith(f"[E150] {packed}:")
    packed.write_bytes(path.read_bytes())  # not packed at all
    assert fail(packed, format, on_error=on_error).startswith(f"[E150] {packed}:")


BAD = [
    pytest.param(name, bad, id=f"{name}-{number}")
    for name, example in EXAMPLES.items()
    for number, bad in enumerate(example.bad)
]
BAD.append(pytest.param("scispacy", "[" * 100_000 + "\n", id="scispacy-nested"))


@pytest.mark.parametrize(("format", "bad"), BAD)
def test_read_vocabulary_invalid_record_is_an_error_or_counted(format, bad, tmp_path):
    example = EXAMPLES[format]
    path = example.write(tmp_path, example.good, bad)
    error = fail(path, format)
    line = path.read_text("utf8").partition(bad)[0].count("\n") + 1
    is_json = format in ("obographs", "fhir")
    assert error.startswith(f"[E117] {path}:{'' if is_json else line}")
    assert "Expected" in error
    assert not is_json or re.search("but (node|concept) 2 has", error)
    assert "fever" not in error
    (concept,), report = read(path, format, on_error="skip")
    assert concept.aliases == ["pain"]
    assert report.to_json()["dropped"] == {example.rule: 1}


@every_format
def test_read_vocabulary_bytes_that_are_not_utf8_are_an_error_or_counted(
    format, tmp_path
):
    example = EXAMPLES[format]
    path = example.write(tmp_path, example.good, example.good.replace("pain", "p%"))
    path.write_bytes(path.read_bytes().replace(b"%", b"\xff"))
    assert fail(path, format).startswith(("[E009]", "[E150]", "[E117]"))
    if example.not_utf8:
        concepts, report = read(path, format, on_error="skip")
        assert concepts[0].aliases == ["pain"]
        assert report.dropped[example.not_utf8] == 1
    else:
        assert fail(path, format, on_error="skip") == fail(path, format)


@every_format
def test_read_vocabulary_without_a_concept_is_an_error_with_the_counts(
    format, tmp_path
):
    example = EXAMPLES[format]
    error = fail(example.write(tmp_path), format)
    assert error.startswith("[E105]" if format == "rrf" else "[E106]")
    if format not in ("icd10cm", "snomed"):  # an invalid record; in another file
        path = example.write(tmp_path, example.good.replace("pain", "--"))
        assert NO_WORD in fail(path, format)


@every_format
@every_on_error
def test_read_vocabulary_utf16_is_an_error(format, on_error, tmp_path):
    path = EXAMPLES[format].write(tmp_path, EXAMPLES[format].good)
    path.write_bytes(path.read_text("utf8").encode("utf-16"))
    assert "iconv -f utf-16" in fail(path, format, on_error=on_error)


@every_format
def test_read_vocabulary_byte_order_mark_and_carriage_returns_are_removed(
    format, tmp_path
):
    path = EXAMPLES[format].write(tmp_path, EXAMPLES[format].good)
    expected = read(path, format)[0]
    text = path.read_text("utf8").replace("\n", "\r\n")
    path.write_bytes(text.encode("utf-8-sig"))
    assert read(path, format)[0] == expected


@every_format
def test_read_vocabulary_missing_file_is_an_error(format, tmp_path):
    assert fail(tmp_path / EXAMPLES[format].name, format)[:6] in ("[E001]", "[E108]")


# --- several vocabularies ---


@pytest.mark.parametrize(
    ("format", "options", "error"),
    [
        ("word", {}, "E110.*'word'"),
        (None, {"multi_xref": "all"}, "E113.*rrf.*--multi-xref"),
    ],
)
def test_read_vocabularies_unknown_format_or_option_is_an_error_at_once(
    format, options, error
):
    with pytest.raises(SapbertError, match=error):
        read_vocabulary(SAMPLE, format, **options)


# --- file names ---


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("MRCONSO.RRF.aa.gz", b"", "rrf"),
        ("supp2024.gz", b"", "mesh"),
        # by the root element or the first key
        ("a.xml", b"<?xml version='1.0'?>\n<rdf:RDF xmlns:rdf='x'/>", "rdf"),
        ("b.xml", b"<ICD10CM.tabular/>", "icd10cm"),
        ("c.xml", b"<DescriptorRecordSet/>", "mesh"),
        ("kb.json", b'[\n {"concept_id": "C1", "canonical_name": "a"}]', "scispacy"),
        ("graph.json", b'{"graphs": []}', "obographs"),
        ("valueset.json", b'{"id": "x",\n "resourceType" : "ValueSet"}', "fhir"),
    ],
)
def test_guess_format_uses_the_file_name_or_its_beginning(
    name, content, format, tmp_path
):
    with pytest.raises(SapbertError, match="E110.*--format"):
        guess_format(tmp_path)  # empty
    (tmp_path / name).write_bytes(content)
    assert guess_format(tmp_path / name) == format
    if name.startswith("MRCONSO"):
        assert guess_format(tmp_path) == format


def test_examples_have_all_formats_but_rdf():
    assert {*READERS} - {*EXAMPLES} == {"rdf"}


# --- releases ---


OMOP_ROWS = """concept_id,concept_name,domain_id,vocabulary_id,standard_concept,\
concept_code,invalid_reason
437663,"Fever, high",Condition,SNOMED,S,386661006,
"""


def test_omop_may_have_commas(tmp_path):
    (tmp_path / "concept.csv").write_text(OMOP_ROWS)  # as others export it
    ((concept,), report) = read(tmp_path)
    assert (concept.cui, concept.aliases) == ("OMOP:437663", ["Fever, high"])
    assert report.format == "omop"


def test_scispacy_may_be_one_list_with_an_invalid_line(tmp_path):
    path = tmp_path / "kb.json"
    path.write_text(
        '[{"concept_id": "C0000001", "canonical_name": "Alpha"},\n{"concept_id": 3}]'
    )
    assert len(read(path, on_error="skip")[0]) == 1
    assert "kb.json:2" in fail(path)


def test_fhir_of_xml_or_without_codes_is_an_error_that_says_so(tmp_path):
    path = tmp_path / "codesystem.xml"
    path.write_text('<?xml version="1.0"?>\n<CodeSystem xmlns="http://hl7.org/fhir">')
    assert fail(path).startswith(f"[E110] {path}: Expected FHIR in JSON, but got XML.")
    path = tmp_path / "patient.json"
    path.write_text('{"resourceType": "Patient", "name": [{"text": "Anna Smith"}]}')
    error = fail(path)
    assert error.startswith(f"[E117] {path}: Expected a CodeSystem, ValueSet, Concept")
    assert "Smith" not in error
    path.write_text('{"resourceType": "CodeSystem", "concept": [{"code": "1"}]}')
    assert fail(path).startswith(f"[E117] {path}: ")  # no address
    assert "E106" in fail(path, on_error="skip")


def test_fhir_bad_element_of_a_concept_map_is_an_error_or_counted(tmp_path):
    path = tmp_path / "map.json"
    target = {"code": "2", "relationship": "equivalent"}
    good = {"code": "1", "display": "a", "target": [target]}
    group = {"source": "http://x/A", "target": "http://x/B"}
    for bad in (None, {"target": ["fever"]}, {"code": "1", "target": 5}):
        groups = [{**group, "element": [good, bad]}, {"source": "fever"}, "fever"]
        path.write_text(json.dumps({"resourceType": "ConceptMap", "group": groups}))
        assert "but element 2 of a group has: something else" in fail(path)
        (concept,), report = read(path, on_error="skip")
        assert (concept.cui, concept.codes) == ("A:1", {"B": ["2"]})
        assert report.dropped["bad records"] == 3
        own = tmp_path / "own.csv"
        own.write_text("id,name\nB:2,fever\n")
        (found,) = read_vocabularies([own], xrefs=[path], on_error="skip")
        assert found.codes == {"A": ["1"]}
        with pytest.raises(SapbertError, match="E117"):
            list(read_vocabularies([own], xrefs=[path]))
