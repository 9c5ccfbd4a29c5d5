"""What the readers of all formats have in common, and several vocabularies as one."""

import gzip
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.plugins import load_object
from spacy_sapbert.vocabularies import registry
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from spacy_sapbert.vocabularies.facts import NAME, Fact
from spacy_sapbert.vocabularies.locate import any_case
from spacy_sapbert.vocabularies.options import ReadOptions
from spacy_sapbert.vocabularies.registry import (
    READERS,
    Reader,
    guess_format,
    read_vocabularies,
    read_vocabulary,
)
from spacy_sapbert.vocabularies.report import Report, read_good_lines
from tests.vocabularies.whole import fail, read

SAMPLE = Path(__file__).parents[2] / "assets" / "sample"
NO_WORD = "1 names without a letter or digit"
NOT_UTF8 = "lines that are not UTF-8"
ROW = "C0000001|ENG|P|L1|PF|S1|Y|A1|||D1|MSH|PT|D1|pain|0|N|256|\n"
CLAML_CLASS = (
    '<Class code="A0" kind="category"><Rubric kind="preferred"><Label>pain</Label>'
    "</Rubric></Class>"
)


class Example(NamedTuple):
    """A file of one concept, whose only name is "pain", with lines to break it.

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
    bad: tuple[str, ...]
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


def make_nodes(*changes: dict[str, Any]) -> tuple[str, ...]:
    """Nodes of OBO Graphs with invalid values."""
    return tuple(
        json.dumps({"id": "X:2", "lbl": "fever", "type": "CLASS", **change})
        for change in changes
    )


def make_mesh(ui: str = "D2", name: str = "fever", more: str = "") -> str:
    return (
        f"<DescriptorRecord><DescriptorUI>{ui}</DescriptorUI>"
        f"<DescriptorName><String>{name}</String></DescriptorName>{more}"
        "</DescriptorRecord>\n"
    )


def make_lines(*rows: Any) -> tuple[str, ...]:
    """Lines of a file; what is no text is written as JSON."""
    texts = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    return tuple(f"{text}\n" for text in texts)


EXAMPLES = {
    "rrf": Example(
        "MRCONSO.RRF",
        ROW,
        ("C0000002|ENG|fever|\n", ROW.replace("pain", "a|fever")),
        "rows of MRCONSO with a wrong number of fields",
        "rows of MRCONSO that are not UTF-8",
    ),
    "obo": Example(
        "x.obo",
        "[Term]\nid: X:1\nname: pain\n",
        make_lines(
            "fever",
            "synonym: fever EXACT []",
            'synonym: "fever EXACT []',
            "def: fever",
            "is_a:",
            "alt_id: ",
            "id: X:7",
        ),
    ),
    "obographs": Example(
        "x.json",
        '{"id": "X:1", "lbl": "pain", "type": "CLASS"}',
        (
            *("null", '"fever"', "[]", '{"lbl": "fever"}'),
            *make_nodes(
                {"id": 5},
                {"id": ""},
                {"lbl": ["fever"]},
                {"meta": "fever"},
                {"meta": {"synonyms": [{"pred": "hasExactSynonym"}]}},
                {"meta": {"synonyms": 5}},
                {"meta": {"synonyms": [{"pred": [], "val": "fever"}]}},
                {"meta": {"xrefs": ["fever"]}},
                {"meta": {"definition": "fever"}},
                {"meta": {"basicPropertyValues": [{"pred": 1, "val": "fever"}]}},
            ),
        ),
        "bad nodes",
        "",
        '{"graphs": [{"nodes": [{}]}]}',
        ",",
    ),
    "biosyn": Example(
        "x.txt",
        "X:1||pain\n",
        make_lines(
            *("fever", "D1|fever", "||fever", "D1|||fever||x", " ||fever", "D1| ||x")
        ),
    ),
    "jsonl": Example(
        "x.jsonl", '{"cui": "X:1", "name": "pain"}\n', make_lines({"name": "fever"})
    ),
    "scispacy": Example(
        "y.jsonl",
        '{"concept_id": "X:1", "canonical_name": "pain"}\n',
        make_lines(
            "fever",
            '{"concept_id": "1"',
            "[" * 100_000,
            [],
            {"canonical_name": "fever", "aliases": []},
            {"concept_id": "2", "aliases": []},
            {"concept_id": " ", "canonical_name": "fever"},
            {"concept_id": 2, "canonical_name": "fever"},
            {"concept_id": "2", "canonical_name": 7},
            {"concept_id": "2", "aliases": "fever"},
            {"concept_id": "2", "aliases": [["fever"]]},
            {"concept_id": "2", "canonical_name": "fever", "types": {"T184": 1}},
            {"concept_id": "2", "canonical_name": "fever", "definition": ["fever"]},
            {"concept_id": "2", "canonical_name": "fever", "name": "fever"},
            {"concept_id": "2", "canonical_name": "half a character: \ud800"},
        ),
    ),
    "icd10cm": Example(
        "icd10cm_2021.xml",
        "<diag><name>X1</name><desc>pain</desc></diag>",
        ("<diag><desc>fever</desc></diag>", "<diag><name>X2</name></diag>"),
        "bad nodes",
        "",
        "<ICD10CM.tabular>{}</ICD10CM.tabular>",
    ),
    "icd10cm_list": Example(
        "icd10cm_codes_2026.txt", "X10     pain\n", make_lines("fever")
    ),
    "mesh": Example(
        "desc2024.xml",
        make_mesh("D1", "pain"),
        (
            make_mesh(" "),
            make_mesh(name=""),
            make_mesh().replace("DescriptorUI", "UI"),
            make_mesh().replace("String", "Text"),
            make_mesh().replace("DescriptorRecord", "SupplementalRecord"),
            make_mesh().replace("DescriptorRecord", "QualifierRecord"),
            make_mesh(
                more="<ConceptList><Concept><TermList><Term><TermUI>T1</TermUI></Term>"
                "</TermList></Concept></ConceptList>"
            ),
        ),
        "bad records",
        "",
        "<DescriptorRecordSet>\n{}</DescriptorRecordSet>",
    ),
    "rxnorm": Example(
        "RXNCONSO.RRF",
        "1|ENG||||||A1||||RXNORM|IN|1|pain||N||\n",
        make_lines("2|ENG|fever|"),
        "rows of RXNCONSO with a wrong number of fields",
        "rows of RXNCONSO that are not UTF-8",
    ),
    "omop": Example(
        "CONCEPT.csv",
        "1\tpain\tCondition\tSNOMED\tS\t2\t\n",
        make_lines("1\tfever"),
        text="concept_id\tconcept_name\tdomain_id\tvocabulary_id\t"
        "standard_concept\tconcept_code\tinvalid_reason\n{}",
    ),
    "snomed": Example(
        "sct2_Concept_Snapshot_X.txt",
        "1\t1\tpain\n",
        make_lines("\t1\tfever"),
        text="id\tactive\tx\n{}",
        beside={
            "sct2_Description_Snapshot_X.txt": "id\tactive\tconceptId\tlanguageCode\t"
            "typeId\tterm\n5\t1\t1\ten\t900000000000013009\tpain\n"
        },
    ),
    "loinc": Example(
        "Loinc.csv",
        '"1-1","pain",ACTIVE\n',
        make_lines('"1-2",fever'),
        text='"LOINC_NUM","LONG_COMMON_NAME","STATUS"\n{}',
    ),
    "icd11": Example(
        "SimpleTabulation-ICD-11-MMS-en.txt",
        '\t1A0\t\t"- pain"\tcategory\t\n',
        make_lines("\t\t\tfever\tcategory\t"),
        text="Foundation URI\tCode\tBlockId\tTitle\tClassKind\tChapterNo\n{}",
    ),
    "claml": Example(
        "icd10.xml",
        CLAML_CLASS,
        (
            CLAML_CLASS.replace("pain", "fever").replace("A0", " "),
            CLAML_CLASS.replace("pain", "fever").replace(' code="A0"', ""),
        ),
        "bad nodes",
        "",
        "<ClaML>{}</ClaML>",
    ),
    "sssom": Example(
        "map.sssom.tsv",
        "A:1\tskos:exactMatch\tB:1\tpain\n",
        make_lines("A:2\tskos:exactMatch\t\tfever"),
        text="#curie_map:\n#  A: https://a\nsubject_id\tpredicate_id\tobject_id\t"
        "subject_label\n{}",
    ),
    "table": Example(
        "own.csv", "X:1,pain\n", make_lines("X:2,fever,"), text="id,name\n{}"
    ),
}
# a file of RDF has no records of which one could be invalid: see `test_ontologies.py`
every_format = pytest.mark.parametrize("format", [*EXAMPLES])
every_on_error = pytest.mark.parametrize("on_error", ["fail", "skip"])


@every_format
def test_read_vocabulary_file_may_be_compressed(format: str, tmp_path: Path) -> None:
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
def test_read_vocabulary_truncated_gzip_is_an_error(
    format: str, on_error: str, tmp_path: Path
) -> None:
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


@pytest.mark.parametrize(("format", "bad"), BAD)
def test_read_vocabulary_invalid_record_is_an_error_or_counted(
    format: str, bad: str, tmp_path: Path
) -> None:
    example = EXAMPLES[format]
    path = example.write(tmp_path, example.good, bad)
    error = fail(path, format)
    line = path.read_text("utf8").partition(bad)[0].count("\n") + 1
    assert error.startswith(f"[E117] {path}:{'' if format == 'obographs' else line}")
    assert "Expected" in error
    assert "fever" not in error
    (concept,), report = read(path, format, on_error="skip")
    assert concept.aliases == ["pain"]
    assert report.to_json()["dropped"] == {example.rule: 1}


@every_format
def test_read_vocabulary_bytes_that_are_not_utf8_are_an_error_or_counted(
    format: str, tmp_path: Path
) -> None:
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
    format: str, tmp_path: Path
) -> None:
    example = EXAMPLES[format]
    error = fail(example.write(tmp_path), format)
    assert error.startswith("[E105]" if format == "rrf" else "[E106]")
    if format not in ("icd10cm", "snomed"):  # an invalid record; in another file
        path = example.write(tmp_path, example.good.replace("pain", "--"))
        assert NO_WORD in fail(path, format)


@every_format
@every_on_error
def test_read_vocabulary_utf16_is_an_error(
    format: str, on_error: str, tmp_path: Path
) -> None:
    path = EXAMPLES[format].write(tmp_path, EXAMPLES[format].good)
    path.write_bytes(path.read_text("utf8").encode("utf-16"))
    assert "iconv -f utf-16" in fail(path, format, on_error=on_error)


@every_format
def test_read_vocabulary_byte_order_mark_and_carriage_returns_are_removed(
    format: str, tmp_path: Path
) -> None:
    path = EXAMPLES[format].write(tmp_path, EXAMPLES[format].good)
    expected = read(path, format)[0]
    text = path.read_text("utf8").replace("\n", "\r\n")
    path.write_bytes(text.encode("utf-8-sig"))
    assert read(path, format)[0] == expected


@every_format
def test_read_vocabulary_missing_file_is_an_error(format: str, tmp_path: Path) -> None:
    assert fail(tmp_path / EXAMPLES[format].name, format)[:6] in ("[E001]", "[E108]")


# --- several vocabularies ---


def test_read_vocabularies_merges_files_with_a_report_of_each(tmp_path: Path) -> None:
    obo, jsonl = tmp_path / "a.obo", tmp_path / "b.jsonl"
    obo.write_text("[Term]\nid: C0027051\nname: coronary\n")
    write_concepts(jsonl, [Concept("C0027051", ["MI"]), Concept("Z", ["z"])])
    reports = [Report(), Report()]
    concepts = list(read_vocabularies([obo, jsonl], reports=reports))
    assert [concept.aliases for concept in concepts] == [["coronary", "MI"], ["z"]]
    assert [report.concepts for report in reports] == [1, 2]
    assert [report.format for report in reports] == ["obo", "jsonl"]


def test_read_vocabularies_one_invalid_file_is_an_error(tmp_path: Path) -> None:
    bad = tmp_path / "bad.obo"
    bad.write_text("[Term]\nid: X:1\nnonsense\n")
    with pytest.raises(SapbertError, match=r"bad\.obo:3: "):
        list(read_vocabularies([SAMPLE, bad]))


@pytest.mark.parametrize(
    ("format", "options", "error"),
    [
        ("word", {}, "E110.*'word'"),
        (None, {"on_error": "ignore"}, "E331.*'ignore'"),
        (None, {"multi_xref": "all"}, "E113.*rrf.*--multi-xref"),
    ],
)
def test_read_vocabularies_unknown_format_or_option_is_an_error_at_once(
    format: str | None, options: dict[str, Any], error: str
) -> None:
    with pytest.raises(SapbertError, match=error):
        read_vocabulary(SAMPLE, format, **options)


def test_read_vocabularies_passes_an_option_to_the_formats_that_have_it(
    tmp_path: Path,
) -> None:
    obo = tmp_path / "a.obo"
    obo.write_text("[Term]\nid: X:1\nname: x\nxref: UMLS:C0000001\n")
    options: Any = {"ids": "xref", "languages": ("SPA",)}
    concepts = list(read_vocabularies([obo, SAMPLE], **options))
    assert concepts[0].name == "x"
    assert "Belly" not in concepts[1].aliases


# --- file names ---


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("umls/MRCONSO.RRF.aa.gz", "rrf"),
        ("OTHER.RRF.gz", "rrf"),
        ("desc2024.gz", "mesh"),
        ("supp2024.gz", "mesh"),
        ("desc2026.gz", "mesh"),
    ],
)
def test_guess_format_uses_the_file_name(name: str, format: str) -> None:
    assert guess_format(Path(name)) == format


def test_guess_format_of_a_folder_uses_its_files(tmp_path: Path) -> None:
    (tmp_path / "META").mkdir()
    (tmp_path / "META" / "MRCONSO.RRF.aa.gz").touch()
    assert guess_format(tmp_path) == guess_format(SAMPLE) == "rrf"


def test_guess_format_unknown_name_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match="E110.*--format"):
        guess_format(tmp_path)


def test_examples_have_all_formats_but_rdf() -> None:
    assert {*READERS} - {*EXAMPLES} == {"rdf"}


def test_registry_has_readers_whose_options_exist() -> None:
    fields = {*ReadOptions.__dataclass_fields__}
    for reader in READERS.values():
        assert {*reader.takes} <= fields
        assert callable(load_object(reader.read, "spacy_sapbert.vocabularies"))
    assert {name for reader in READERS.values() for name in reader.takes} == fields


# --- other packages ---


def read_words(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """A reader of another package: a name in each line, which is the id too."""
    for number, line in read_good_lines(path, report):
        if " " in line:
            report.bad_line(path, number, "one word")
        else:
            yield Fact(line, NAME, line, language=(options.languages or ["ENG"])[0])


def test_reader_of_another_package_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader("words", read_words, ("*.words",), ("languages", "type"))
    monkeypatch.setattr(registry, "load_plugins", lambda *_: {"words": reader})
    path = tmp_path / "x.words"
    path.write_text("pain\nblue fever\nfever\n")
    found, report = read(path, "words", on_error="skip", type="T", languages=["SPA"])
    assert guess_format(path) == "words"
    assert [concept.cui for concept in found] == ["fever", "pain"]
    assert found[0].types == ["T"]
    assert found[0].languages == {"SPA": [0]}
    assert report.dropped["bad lines"] == 1


OMOP_ROWS = """concept_id,concept_name,domain_id,vocabulary_id,standard_concept,\
concept_code,invalid_reason
437663,"Fever, high",Condition,SNOMED,S,386661006,
"""


def test_release_is_found_in_a_folder_in_a_zip_in_any_case(tmp_path: Path) -> None:
    release = tmp_path / "downloads" / "athena 2026"
    release.mkdir(parents=True)
    (release / "concept.csv").write_text(OMOP_ROWS)  # commas, as others export it
    (release.parent / "readme.txt").write_text("a note")
    archive = shutil.make_archive(str(tmp_path / "omop"), "zip", release.parent)
    for path in (release, release.parent, Path(archive)):
        report = Report()
        (concept,) = read_vocabulary(path, report=report)
        assert (concept.cui, concept.aliases) == ("OMOP:437663", ["Fever, high"])
        assert (report.path, report.format) == (str(path), "omop")


def test_only_vocabulary_of_a_zip_is_read_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, temporary = tmp_path / "x", tmp_path / "tmp"
    folder.mkdir()
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (folder / "own.obo").write_text("[Term]\nid: X:1\nname: fever\n")
    (folder / "licence.pdf").write_bytes(b"%PDF")
    path = Path(shutil.make_archive(str(tmp_path / "own"), "zip", folder))
    concepts = read_vocabulary(path)
    assert next(concepts).aliases == ["fever"]
    assert [*concepts] == []
    assert [*temporary.iterdir()] == []
    (folder / "other.obo").write_text("[Term]\nid: X:2\nname: cough\n")
    two = Path(shutil.make_archive(str(tmp_path / "two"), "zip", folder))
    with pytest.raises(SapbertError, match="E110"):
        read_vocabulary(two)


def test_damaged_zip_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(SapbertError, match=r"E150.*x\.zip"):
        read_vocabulary(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.obo", b"\0" * ((1 << 27) + 1))
    with pytest.raises(SapbertError, match="E007"):
        read_vocabulary(path)


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("a.xml", b"<?xml version='1.0'?>\n<rdf:RDF xmlns:rdf='x'/>", "rdf"),
        ("b.xml", b"<ICD10CM.tabular/>", "icd10cm"),
        ("c.xml", b"<DescriptorRecordSet/>", "mesh"),
        ("kb.json", b'[\n {"concept_id": "C1", "canonical_name": "a"}]', "scispacy"),
        ("graph.json", b'{"graphs": []}', "obographs"),
    ],
)
def test_format_is_that_of_the_root_element_or_first_key(
    name: str, content: bytes, format: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert guess_format(path) == format


def test_unknown_xml_is_not_said_to_be_mesh(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_text("<unknown/>")
    with pytest.raises(SapbertError, match=r"E110.*Pass `--format`"):
        read_vocabulary(path)


def test_scispacy_may_be_one_list_with_an_invalid_line(tmp_path: Path) -> None:
    path = tmp_path / "kb.json"
    path.write_text(
        '[{"concept_id": "C0000001", "canonical_name": "Alpha"},\n{"concept_id": 3}]'
    )
    assert len(read(path, on_error="skip")[0]) == 1
    assert "kb.json:2" in fail(path)


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("*.[a-c]bo", "X.BBO", True),
        ("*.[a-c]bo", "x.dbo", False),
        ("x.[!a-c]", "x.B", False),
        ("x.[!a-c]", "x.D", True),
        ("*[._-]Sssom.tsv", "a-sssom.TSV", True),
        ("*[a_-]x", "A-x", True),
        ("*[a_-]x", "bx", False),
        ("desc[0-9]*.gz", "DESC2024.gz", True),
    ],
)
def test_any_case_keeps_lists_of_characters(
    pattern: str, name: str, matches: bool
) -> None:
    assert Path(name).match(any_case(pattern)) is matches
