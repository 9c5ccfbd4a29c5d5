"""ClaML: an invented classification in the elements of the WHO's files."""

from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.readers.claml import find_source
from spacy_sapbert.vocabularies.registry import guess_format
from spacy_sapbert.vocabularies.report import Report
from tests.vocabularies.whole import read_by_id

FILE = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE ClaML SYSTEM "ClaML.dtd">
<ClaML version="2.0.0">
  <Meta name="lang" value="en"/>
  <Title date="2099-01-01" name="ICD-10-EN-2099" version="2099">Invented</Title>
  <Modifier code="S1"><Rubric kind="text"><Label>x</Label></Rubric></Modifier>
  <ModifierClass code=".0" modifier="S1"><SuperClass code="S1"/>
    <Rubric kind="preferred"><Label xml:lang="en">With blue spots</Label></Rubric>
  </ModifierClass>
  <ModifierClass code=".1" modifier="S1"><SuperClass code="S1"/>
    <Rubric kind="preferred"><Label xml:lang="en">With red spots</Label></Rubric>
  </ModifierClass>
  <Class code="I" kind="chapter">
    <SubClass code="A00"/>
    <Rubric kind="preferred"><Label xml:lang="en">Fevers</Label></Rubric>
  </Class>
  <Class code="A00" kind="category" usage="dagger">
    <SuperClass code="I"/>
    <ModifiedBy code="S1"><ValidModifierClass code=".0"/></ModifiedBy>
    <Rubric kind="preferred"><Label xml:lang="en">Blue
      fever <Reference>B99</Reference></Label></Rubric>
    <Rubric kind="preferredLong"><Label xml:lang="en">Blue fever of humans</Label>
    </Rubric>
    <Rubric kind="inclusion"><Label xml:lang="en"><Fragment type="item">azure</Fragment>
      <Fragment type="item">fever</Fragment></Label></Rubric>
    <Rubric kind="inclusion"><Label xml:lang="de">Blaues Fieber</Label></Rubric>
    <Rubric kind="exclusion"><Label xml:lang="en">red fever</Label></Rubric>
    <Rubric kind="definition"><Label><Para>A blue fever.</Para></Label></Rubric>
  </Class>
</ClaML>
"""


def read(
    folder: Path, text: str = FILE, **options: Any
) -> tuple[dict[str, Concept], Report]:
    path = folder / "icd10.xml"
    path.write_text(text, "utf8")
    return read_by_id(path, **options)


def test_read_claml_classes_and_the_subclasses_that_modifiers_make(
    tmp_path: Path,
) -> None:
    concepts, report = read(tmp_path, type="T047")
    assert guess_format(tmp_path / "icd10.xml") == report.format == "claml"
    assert [*concepts] == ["A00", "A00.0", "I"]
    assert concepts["A00"] == Concept(
        "A00",
        ["Blue fever", "Blue fever of humans", "azure fever", "Blaues Fieber"],
        types=["T047"],
        codes={"ICD10": ["A00"]},
        parents=["I"],
        definition="A blue fever.",
        languages={"ENG": [0, 1, 2], "GER": [3]},
        sources={"ICD10": [0, 1, 2, 3]},
    )
    modified = concepts["A00.0"]
    assert (modified.name, modified.parents) == ("Blue fever, With blue spots", ["A00"])


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("ICD-10-EN-2019", "ICD10"),
        ("ICD-10-GM-2024", "ICD10GM"),
        ("OPS-2024", "OPS"),
        ("ATC", "ATC"),
        ("", "CLAML"),
    ],
)
def test_find_source_is_the_name_without_language_and_year(
    name: str, source: str
) -> None:
    assert find_source(name) == source


def test_read_claml_bad_class_is_an_error_or_counted(tmp_path: Path) -> None:
    text = FILE.replace('<Class code="I"', "<Class")
    with pytest.raises(SapbertError, match=r"E117.*icd10\.xml:13"):
        read(tmp_path, text)
    concepts, report = read(tmp_path, text, on_error="skip")
    assert "A00" in concepts
    assert report.dropped["bad nodes"] == 1


def test_read_claml_other_root_and_hostile_labels_are_errors(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match="E117"):
        read(tmp_path, FILE.replace("ClaML", "Claim"), format="claml")
    deep = FILE.replace("red fever", "<a>" * 5000 + "x" + "</a>" * 5000)
    assert "A00" in read(tmp_path, deep)[0]
    entity = FILE.replace('"ClaML.dtd"', '"ClaML.dtd" [<!ENTITY a "b">]')
    with pytest.raises(SapbertError, match="E150"):
        read(tmp_path, entity)


def make_class(code: str, inside: str) -> str:
    label = f"<Rubric kind='preferred'><Label>{code} name</Label></Rubric>"
    return f"<Class code='{code}' kind='category'>{inside}{label}</Class>"


def make_modifier(modifier: str, code: str, more: str = "") -> str:
    label = f"<Rubric kind='preferred'><Label>m{code}</Label></Rubric>"
    attributes = f"code='{code}' modifier='{modifier}'"
    return f"<ModifierClass {attributes}>{more}{label}</ModifierClass>"


def test_read_claml_modifiers_are_inherited_and_follow_each_other(
    tmp_path: Path,
) -> None:
    never = "<Meta name='excludeOnPrecedingModifier' value='FOUR .1'/>"
    parts = [
        make_modifier("FIVE", "0"),
        make_modifier("FIVE", "1", never),
        make_modifier("FOUR", ".0"),
        make_modifier("FOUR", ".1"),
        make_class(
            "W00-W09",
            "<SubClass code='W00'/><ModifiedBy code='FIVE'/><ModifiedBy code='FOUR'/>",
        ),
        make_class("W00", "<SuperClass code='W00-W09'/>"),
        make_class("W01", "<SuperClass code='W00-W09'/><ExcludeModifier code='FOUR'/>"),
        make_class("W02", "<SuperClass code='W00-W09'/><SubClass code='W02.7'/>"),
        make_class("W02.7", "<SuperClass code='W02'/>"),
    ]
    concepts, _ = read(tmp_path, f"<ClaML>{''.join(parts)}</ClaML>")
    made = {cui: concept.parents for cui, concept in concepts.items()}
    assert made == {
        "W00-W09": [],
        "W00": ["W00-W09"],
        "W00.0": ["W00"],
        "W00.00": ["W00.0"],
        "W00.01": ["W00.0"],
        "W00.1": ["W00"],
        "W00.10": ["W00.1"],
        "W01": ["W00-W09"],
        "W02": ["W00-W09"],
        "W02.7": ["W02"],
        "W02.70": ["W02.7"],
        "W02.71": ["W02.7"],
    }
    assert concepts["W00.10"].name == "W00 name, m.1, m0"


def test_read_claml_many_modifiers_are_an_error(tmp_path: Path) -> None:
    count = 60
    parts = [
        make_modifier(f"M{n}", f"{'.' if not n else ''}{k}")
        for n in range(5)
        for k in range(count)
    ]
    used = "".join(f"<ModifiedBy code='M{n}'/>" for n in range(5))
    text = f"<ClaML>{''.join(parts)}{make_class('A00', used)}</ClaML>"
    with pytest.raises(SapbertError, match="E007"):
        read(tmp_path, text)


def test_read_claml_subscripts_are_part_of_their_word(tmp_path: Path) -> None:
    """As ICD-10 of the WHO writes D51."""
    label = (
        'Vitamin B<Term class="subscript">12</Term> deficiency an'
        '<Term class="italics">ae</Term>mia'
    )
    text = FILE.replace("Fevers", label)
    concepts, _ = read(tmp_path, text)
    names = {each.name for each in concepts.values()}
    assert "Vitamin B12 deficiency anaemia" in names
    assert "azure fever" in {
        name for each in concepts.values() for name in each.aliases
    }


def test_read_claml_modifiers_of_codes_without_dots(tmp_path: Path) -> None:
    parts = [
        make_modifier("M", "M1"),
        make_modifier("FIVE", "0"),
        make_class("B", "<ModifiedBy code='M'/>"),
        make_class("1-100", "<ModifiedBy code='FIVE'/>"),
        make_class("W00", "<ModifiedBy code='FIVE'/>"),  # it has no fourth character
    ]
    concepts, report = read(tmp_path, f"<ClaML>{''.join(parts)}</ClaML>")
    assert [*concepts] == ["1-100", "1-1000", "B", "BM1", "W00"]
    assert report.dropped["modifiers that do not fit a code"] == 1
