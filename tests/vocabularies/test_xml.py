"""MeSH, ClaML and ICD-10-CM: what stands in no example."""

import gzip
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.io import xml_blocks
from tests.vocabularies import whole
from tests.vocabularies.test_examples import FOLDER

HEAD = """<?xml version="1.0"?>
<!DOCTYPE DescriptorRecordSet SYSTEM "https://www.nlm.nih.gov/databases/dtd/x.dtd">
<DescriptorRecordSet LanguageCode = "eng">
"""
EXAMPLE = (FOLDER / "mesh" / "desc2024.xml").read_text("utf8")


def as_xml(records: str) -> str:
    return f"{HEAD}{records}</DescriptorRecordSet>\n"


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


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("<?xml version='1.0'?>\n<PubmedArticleSet/>", "E117", 2),
        (as_xml(record(heading="&fever;")), "E150", 4),
        # what a DTD declares
        ('<!DOCTYPE x [\n<!ENTITY a "aaa"><!ENTITY b "&a;&a;">]>', "E150", 2),
        ('<!DOCTYPE x [\n<!ENTITY a SYSTEM "file:///etc/hostname">]>', "E150", 2),
    ],
    ids=range(4),
)
def test_read_mesh_what_is_no_whole_mesh_is_an_error_with_its_line(
    tmp_path, text, code, line, on_error
):
    if text.startswith("<!DOCTYPE"):
        text += f"<DescriptorRecordSet>{record(heading='&b;')}</DescriptorRecordSet>"
    path = write(tmp_path, text)
    assert fail(path, on_error=on_error).startswith(f"[{code}] {path}:{line}: ")


def test_read_mesh_record_that_is_too_large_is_an_error_with_its_line(
    tmp_path, monkeypatch
):
    path = write(tmp_path, as_xml(record("D1") + record(heading="x" * (1 << 20))))
    assert len(read(path)[0]) == 2
    monkeypatch.setattr(xml_blocks, "RECORD_BYTES", 1 << 19)
    assert fail(path, on_error="skip").startswith(f"[E007] {path}:")
    path = write(
        tmp_path, as_xml(record(heading="x") + "<r>" + "<a/>" * 99_999 + "</r>")
    )
    monkeypatch.setattr(xml_blocks, "RECORD_VALUES", 99_999)
    assert fail(path, on_error="skip").startswith(f"[E007] {path}:")


@given(st.integers(0, len(EXAMPLE) - 2), st.sampled_from(["fail", "skip"]))
def test_read_mesh_file_that_is_cut_anywhere_is_an_error(length, on_error):
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), EXAMPLE[:length])
        assert fail(path, on_error=on_error).startswith("[E150]")


@pytest.mark.parametrize(("format", "code"), [("claml", "E117"), ("icd10cm", "E106")])
def test_read_xml_of_another_root_or_with_entities_is_an_error(format, code, tmp_path):
    path = tmp_path / "x.xml"
    path.write_text("<Claim><Class code='A00'/></Claim>")
    assert whole.fail(path, format).startswith(f"[{code}]")
    for entity in ('"b"', 'SYSTEM "file:///etc/hostname"'):
        path.write_text(f"<!DOCTYPE a [<!ENTITY a {entity}>]><a>&a;</a>")
        assert whole.fail(path, format).startswith(f"[E150] {path}:1")


def test_read_claml_too_many_codes_of_modifiers_are_an_error(tmp_path):
    path = tmp_path / "icd10.xml"
    label = "<Rubric kind='preferred'><Label>x</Label></Rubric>"
    modifiers = "".join(
        f"<ModifierClass code='{'' if n else '.'}{k}' modifier='M{n}'>{label}"
        "</ModifierClass>"
        for n in range(5)
        for k in range(60)
    )
    used = "".join(f"<ModifiedBy code='M{n}'/>" for n in range(5))
    path.write_text(
        f"<ClaML>{modifiers}<Class code='A00' kind='category'>{used}{label}</Class>"
        "</ClaML>"
    )
    assert whole.fail(path).startswith("[E007]")


@pytest.mark.slow
def test_read_icd10cm_real_file_is_a_forest_of_22_chapters(data_file):
    path = data_file("hierarchies/icd10cm_tabular_2021.xml.gz")
    concepts, _ = whole.read(path, "icd10cm")
    known = {each.cui for each in concepts}
    assert sum(not each.parents for each in concepts) == 22
    assert all(set(each.parents) <= known for each in concepts)
    assert all(len(each.parents) <= 1 for each in concepts)
    names = {each.cui: each.name for each in concepts}
    assert names["T36.0X1A"].endswith(", accidental (unintentional), initial encounter")
    assert names["O36.0111"].endswith(", first trimester, fetus 1")
