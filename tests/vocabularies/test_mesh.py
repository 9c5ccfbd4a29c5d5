import csv
import gzip
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.io import xml_blocks
from spacy_sapbert.vocabularies.concepts import Concept, clean_name, has_letter_or_digit
from tests.vocabularies import whole

HEAD = """<?xml version="1.0"?>
<!DOCTYPE {0} SYSTEM "https://www.nlm.nih.gov/databases/dtd/{0}.dtd">
<{0} LanguageCode = "eng">
"""

# the layout of desc2024.xml, with definitions of our own
DESCRIPTORS = """\
<DescriptorRecord DescriptorClass = "1">
 <DescriptorUI>D003924</DescriptorUI>
 <DescriptorName>
  <String>Diabetes Mellitus, Type 2</String>
 </DescriptorName>
 <AllowableQualifiersList>
  <AllowableQualifier>
   <QualifierReferredTo>
    <QualifierUI>Q000097</QualifierUI>
    <QualifierName>
     <String>blood</String>
    </QualifierName>
   </QualifierReferredTo>
   <Abbreviation>BL</Abbreviation>
  </AllowableQualifier>
 </AllowableQualifiersList>
 <TreeNumberList>
  <TreeNumber>C18.452.394.750.149</TreeNumber>
  <TreeNumber>C19.246.300</TreeNumber>
 </TreeNumberList>
 <ConceptList>
  <Concept PreferredConceptYN="Y">
   <ConceptUI>M0006155</ConceptUI>
   <ConceptName>
    <String>Diabetes Mellitus, Type 2</String>
   </ConceptName>
   <ScopeNote>Diabetes of adults &amp; others
    whose body resists insulin.
    </ScopeNote>
   <SemanticTypeList>
    <SemanticType>
     <SemanticTypeUI>T047</SemanticTypeUI>
     <SemanticTypeName>Disease or Syndrome</SemanticTypeName>
    </SemanticType>
   </SemanticTypeList>
   <TermList>
    <Term ConceptPreferredTermYN="Y" IsPermutedTermYN="N" RecordPreferredTermYN="Y">
     <TermUI>T011985</TermUI>
     <String>Diabetes Mellitus, Type 2</String>
    </Term>
    <Term ConceptPreferredTermYN="N" IsPermutedTermYN="N" RecordPreferredTermYN="N">
     <TermUI>T011979</TermUI>
     <String>NIDDM</String>
    </Term>
    <Term ConceptPreferredTermYN="N" IsPermutedTermYN="Y" RecordPreferredTermYN="N">
     <TermUI>T011979</TermUI>
     <String>Mellitus, Noninsulin-Dependent Diabetes</String>
    </Term>
   </TermList>
  </Concept>
  <Concept PreferredConceptYN="N">
   <ConceptUI>M0006152</ConceptUI>
   <ScopeNote>Of a narrower concept.</ScopeNote>
   <SemanticTypeList>
    <SemanticType><SemanticTypeUI>T047</SemanticTypeUI></SemanticType>
    <SemanticType><SemanticTypeUI>T033</SemanticTypeUI></SemanticType>
   </SemanticTypeList>
   <TermList>
    <Term ConceptPreferredTermYN="Y" IsPermutedTermYN="N" RecordPreferredTermYN="N">
     <TermUI>T011974</TermUI>
     <String>Maturity-Onset  Diabetes</String>
    </Term>
   </TermList>
  </Concept>
 </ConceptList>
</DescriptorRecord>
<DescriptorRecord DescriptorClass = "1">
 <DescriptorUI>D003920</DescriptorUI>
 <DescriptorName><String>Diabetes Mellitus</String></DescriptorName>
 <TreeNumberList>
  <TreeNumber>C18.452.394.750</TreeNumber>
  <TreeNumber>C19.246</TreeNumber>
 </TreeNumberList>
</DescriptorRecord>
<DescriptorRecord DescriptorClass = "3">
 <DescriptorUI>D008297</DescriptorUI>
 <DescriptorName><String>Male</String></DescriptorName>
 <ConceptList>
  <Concept PreferredConceptYN="Y">
   <TermList>
    <Term IsPermutedTermYN="N"><String>Male</String></Term>
    <Term IsPermutedTermYN="N"><String>Males</String></Term>
   </TermList>
  </Concept>
 </ConceptList>
</DescriptorRecord>
"""

SUPPLEMENTARY = """\
<SupplementalRecord SCRClass = "3">
 <SupplementalRecordUI>C535468</SupplementalRecordUI>
 <SupplementalRecordName><String>Fazio-Londe syndrome</String></SupplementalRecordName>
 <Note>Somebody's remark.</Note>
 <HeadingMappedToList>
  <HeadingMappedTo>
   <DescriptorReferredTo>
    <DescriptorUI>*D010244</DescriptorUI>
    <DescriptorName><String>Bulbar Palsy, Progressive</String></DescriptorName>
   </DescriptorReferredTo>
  </HeadingMappedTo>
 </HeadingMappedToList>
 <ConceptList>
  <Concept PreferredConceptYN="Y">
   <TermList>
    <Term IsPermutedTermYN="N"><String>Fazio-Londe syndrome</String></Term>
    <Term IsPermutedTermYN="N"><String>Fazio Londe disease</String></Term>
   </TermList>
  </Concept>
 </ConceptList>
</SupplementalRecord>
"""


def as_xml(records: str, root: str = "DescriptorRecordSet") -> str:
    return f"{HEAD.format(root)}{records}</{root}>\n"


HALF = as_xml(DESCRIPTORS).partition("NIDDM")[0]


def record(ui: str = "D000001", heading: str = "Fever", rest: str = "") -> str:
    return (
        f"<DescriptorRecord><DescriptorUI>{ui}</DescriptorUI>"
        f"<DescriptorName><String>{heading}</String></DescriptorName>"
        f"{rest}</DescriptorRecord>\n"
    )


def write(folder: Path, text: str, name: str = "desc2024.xml") -> Path:
    path = folder / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


read = partial(whole.read, format="mesh")
fail = partial(whole.fail, format="mesh")


def mesh_concept(ui: str, names: list[str], **fields: Any) -> Concept:
    """A concept with what all of MeSH have."""
    return Concept(
        f"MESH:{ui}",
        names,
        codes={"MSH": [ui]},
        languages={"ENG": list(range(len(names)))},
        sources={"MSH": list(range(len(names)))},
        **fields,
    )


DIABETES = mesh_concept(
    "D003924",
    ["Diabetes Mellitus, Type 2", "NIDDM", "Maturity-Onset Diabetes"],
    types=["T047", "T033"],
    parents=["MESH:D003920"],
    definition="Diabetes of adults & others whose body resists insulin.",
)


def test_read_mesh_descriptors_are_concepts(tmp_path: Path) -> None:
    concepts, report = read(write(tmp_path, as_xml(DESCRIPTORS)))
    assert concepts == [
        mesh_concept("D003920", ["Diabetes Mellitus"]),
        DIABETES,
        mesh_concept("D008297", ["Male", "Males"]),
    ]
    assert report.to_json() == {
        "path": str(tmp_path / "desc2024.xml"),
        "format": "mesh",
        "rows": {"desc2024.xml": 3},
        "rows_kept": 6,
        "names": 6,
        "concepts": 3,
        "dropped": {"permuted terms": 1},
        "counts": {
            "concepts with a definition": 1,
            "parents": 1,
            "records of class 1": 2,
            "records of class 3": 1,
        },
        "notes": [],
        "releases": {"MSH": ["2024", ""]},
    }


def test_read_mesh_supplementary_records_are_concepts_without_parents(
    tmp_path: Path,
) -> None:
    xml = as_xml(SUPPLEMENTARY, "SupplementalRecordSet")
    concepts, report = read(write(tmp_path, xml, "supp2024.xml"))
    names = ["Fazio-Londe syndrome", "Fazio Londe disease"]
    assert concepts == [mesh_concept("C535468", names)]
    assert report.counts["records of class 3"] == 1


def test_read_mesh_parent_is_one_level_up_and_in_the_file(tmp_path: Path) -> None:
    numbers = {"D1": "C14", "D2": "C14.280", "D3": "C14.280.647", "D4": "C15.100"}
    # the parent behind the child, and D4's parent absent
    records = [
        record(
            ui, rest=f"<TreeNumberList><TreeNumber>{n}</TreeNumber></TreeNumberList>"
        )
        for ui, n in reversed(numbers.items())
    ]
    concepts, _ = read(write(tmp_path, as_xml("".join(records))))
    assert [concept.parents for concept in concepts] == [
        [],
        ["MESH:D1"],
        ["MESH:D2"],
        [],
    ]


def test_read_mesh_language_is_that_of_the_file(tmp_path: Path) -> None:
    xml = as_xml(record(heading="Fièvre")).replace('"eng"', '"fre"')
    ((concept,), _) = read(write(tmp_path, xml))
    assert concept.languages == {"FRE": [0]}


def test_read_mesh_names_are_cleaned_and_dropped_ones_counted(
    tmp_path: Path,
) -> None:
    terms = "".join(
        f"<Term><String>{name}</String></Term>"
        for name in (
            "--",
            "pyrexia",
            " Fe<!-- of a man -->ver ",
            "pyrexia",
            "a&#x2028;b",
        )
    )
    rest = f"<ConceptList><Concept><TermList>{terms}</TermList></Concept></ConceptList>"
    records = record(rest=rest) + record("D000002", "--")
    concepts, report = read(write(tmp_path, as_xml(records)))
    assert concepts == [mesh_concept("D000001", ["Fever", "pyrexia", "a b"])]
    assert report.to_json()["dropped"] == {
        "names without a letter or digit": 2,
        "concepts without a name": 1,
        "repeated names": 1,
    }


BAD_RECORDS = [
    record(ui=" "),
    record(heading=""),
    record().replace("DescriptorUI", "UI"),
    record().replace("String", "Text"),
    record().replace("DescriptorRecord", "SupplementalRecord"),
    record().replace("DescriptorRecord", "QualifierRecord"),
    record(
        rest="<ConceptList><Concept><TermList><Term><TermUI>T1</TermUI></Term></TermList>"
        "</Concept></ConceptList>"
    ),
]
PLACES = range(len(BAD_RECORDS))


@pytest.mark.parametrize("bad", BAD_RECORDS, ids=PLACES)
def test_read_mesh_invalid_record_is_an_error_or_counted(
    tmp_path: Path, bad: str
) -> None:
    path = write(tmp_path, as_xml(record("D1") + "\n" + bad + record("D2")))
    error = fail(path)
    assert error.startswith(f"[E117] {path}:6: ")
    assert "Fever" not in error
    concepts, report = read(path, on_error="skip")
    assert [concept.cui for concept in concepts] == ["MESH:D1", "MESH:D2"]
    assert report.to_json()["dropped"] == {"bad records": 1}


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("", "E150", 1),
        ("fever\n", "E150", 1),
        (HALF, "E150", HALF.count("\n") + 1),
        (as_xml(record()) + "<more/>", "E150", 6),
        (as_xml("<DescriptorRecord>\n</String>"), "E150", 5),
        ("<?xml version='1.0'?>\n<PubmedArticleSet/>", "E117", 2),
        ("<QualifierRecordSet/>", "E117", 1),
        (as_xml(record(heading="&fever;")), "E150", 4),
    ],
    ids=range(8),
)
def test_read_mesh_what_is_no_whole_mesh_is_an_error_with_its_line(
    tmp_path: Path, text: str, code: str, line: int, on_error: str
) -> None:
    path = write(tmp_path, text)
    assert fail(path, on_error=on_error).startswith(f"[{code}] {path}:{line}: ")


def test_read_mesh_record_that_is_too_large_is_an_error_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, as_xml(record("D1") + record(heading="x" * (1 << 20))))
    assert len(read(path)[0]) == 2
    monkeypatch.setattr(xml_blocks, "RECORD_BYTES", 1 << 19)
    assert fail(path, on_error="skip").startswith(f"[E007] {path}:")
    path = write(
        tmp_path, as_xml(record(heading="x") + "<r>" + "<a/>" * 99_999 + "</r>")
    )
    monkeypatch.setattr(xml_blocks, "RECORD_VALUES", 99_999)
    assert fail(path, on_error="skip").startswith(f"[E007] {path}:")


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">',
        '<!ENTITY a SYSTEM "file:///etc/hostname">',
        '<!ENTITY % a SYSTEM "https://example.org/a.dtd"> %a;',
    ],
)
@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_read_mesh_declared_entity_is_an_error(
    tmp_path: Path, declaration: str, on_error: str
) -> None:
    text = f"<!DOCTYPE DescriptorRecordSet [\n{declaration}]>\n"
    text += f"<DescriptorRecordSet>{record(heading='&b;')}</DescriptorRecordSet>"
    path = write(tmp_path, text)
    assert fail(path, on_error=on_error).startswith(f"[E150] {path}:2: ")


def test_read_mesh_bytes_that_are_not_utf8_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "desc2024.xml"
    xml = as_xml(record(heading="Sjögren")).replace('"1.0"', '"1.0" encoding="latin-1"')
    path.write_bytes(xml.encode("latin-1"))
    assert fail(path).startswith(f"[E150] {path}:4: ")
    path.write_bytes(xml.encode("utf-16"))
    assert fail(path).startswith("[E009]")
    path.write_bytes(xml.encode("utf-8-sig"))
    assert read(path)[0] == [mesh_concept("D000001", ["Sjögren"])]


CHARACTERS = st.characters(
    codec="utf8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"
)
NAMES = st.text(CHARACTERS, max_size=12)
RECORDS = st.fixed_dictionaries(
    {
        "heading": NAMES.filter(clean_name),
        "terms": st.lists(
            st.tuples(NAMES.filter(clean_name), st.booleans()), max_size=4
        ),
        "note": NAMES,
        "numbers": st.lists(st.sampled_from(["A01", "A01.1", "A01.1.2", "B01"])),
    }
)


def to_xml(ui: str, fields: dict[str, Any]) -> str:
    terms = "".join(
        f'<Term IsPermutedTermYN="{"Y" if permuted else "N"}">'
        f"<String>{escape(name)}</String></Term>"
        for name, permuted in fields["terms"]
    )
    numbers = "".join(f"<TreeNumber>{n}</TreeNumber>" for n in fields["numbers"])
    concept = (
        f"<ScopeNote>{escape(fields['note'])}</ScopeNote><TermList>{terms}</TermList>"
    )
    return record(
        ui,
        escape(fields["heading"]),
        f"<TreeNumberList>{numbers}</TreeNumberList><ConceptList>"
        f'<Concept PreferredConceptYN="Y">{concept}</Concept></ConceptList>',
    )


def to_concepts(records: dict[str, dict[str, Any]]) -> list[Concept]:
    """What the records should become, worked out in another way."""
    said = {
        ui: [
            clean_name(name)
            for name in [fields["heading"], *(n for n, y in fields["terms"] if not y)]
            if has_letter_or_digit(clean_name(name))
        ]
        for ui, fields in records.items()
    }
    owners: dict[str, set[str]] = {}
    for ui, fields in records.items():
        for number in fields["numbers"]:
            if said[ui]:
                owners.setdefault(number, set()).add(ui)
    concepts = []
    for ui in sorted(ui for ui in records if said[ui]):
        above = {number[: number.rfind(".")] for number in records[ui]["numbers"]}
        parents = {each for number in above for each in owners.get(number, ())} - {ui}
        concepts.append(
            mesh_concept(
                ui,
                list(dict.fromkeys(said[ui])),
                parents=sorted(f"MESH:{parent}" for parent in parents),
                definition=clean_name(records[ui]["note"]) or None,
            )
        )
    return concepts


@given(st.dictionaries(st.from_regex(r"D\d{3}", fullmatch=True), RECORDS, max_size=5))
def test_read_mesh_any_records_are_read_unchanged(
    records: dict[str, dict[str, Any]],
) -> None:
    xml = as_xml("".join(to_xml(ui, fields) for ui, fields in records.items()))
    expected = to_concepts(records)
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), xml)
        if expected:
            assert read(path)[0] == expected
        else:
            assert fail(path).startswith("[E106]")


@given(st.integers(0, len(as_xml(DESCRIPTORS)) - 2), st.sampled_from(["fail", "skip"]))
def test_read_mesh_file_that_is_cut_anywhere_is_an_error(
    length: int, on_error: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), as_xml(DESCRIPTORS)[:length])
        assert fail(path, on_error=on_error).startswith("[E150]")


def read_table(path: Path) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The rows of each descriptor."""
    with gzip.open(path, "rt", encoding="utf8") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        for ui, same in groupby(rows, key=lambda row: row["DescriptorUI"]):
            yield ui, list(same)


@pytest.mark.slow
def test_read_mesh_diseases_of_mesh_are_read_unchanged(
    data_file: Callable[[str], Path], tmp_path: Path
) -> None:
    records: dict[str, dict[str, Any]] = {}
    for ui, rows in read_table(data_file("sources/mesh_trees.tsv.gz")):
        numbers = [row["tree_location"] for row in rows]
        if any(number.startswith(("C08", "C1")) for number in numbers):
            records[ui] = {"note": "", "numbers": numbers}
    for ui, rows in read_table(data_file("sources/mesh_terms.tsv.gz")):
        if ui in records:
            records[ui]["heading"] = rows[0]["DescriptorName"]
            terms = [(row["TermName"], row["IsPermutedTermYN"] == "Y") for row in rows]
            records[ui]["terms"] = terms
    xml = as_xml("".join(to_xml(ui, fields) for ui, fields in records.items()))
    concepts, report = read(write(tmp_path, xml, "desc2024.gz"))
    assert concepts == to_concepts(records)
    assert len(concepts) > 2900
    assert report.counts["parents"] > 3000
    above = ["D001982", "D008173", "D012130"]
    assert {concept.cui: concept for concept in concepts}["MESH:D001249"] == (
        mesh_concept(
            "D001249",
            ["Asthma", "Bronchial Asthma", "Asthma, Bronchial"],
            parents=[f"MESH:{ui}" for ui in above],
        )
    )
