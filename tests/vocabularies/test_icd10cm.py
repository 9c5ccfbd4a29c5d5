from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.registry import read_vocabulary
from tests.vocabularies import whole

XML = """<?xml version="1.0" encoding="utf-8"?>
<ICD10CM.tabular>
  <version>2021</version>
  <introduction><introSection><title>A title</title></introSection></introduction>
  <chapter>
    <name>1</name>
    <desc>Certain infectious &amp; parasitic diseases (A00-B99)</desc>
    <includes><note>diseases generally recognized</note></includes>
    <section id="A00-A09">
      <desc>Intestinal infectious diseases (A00-A09)</desc>
      <diag>
        <name>A00</name>
        <desc>Cholera</desc>
        <excludes1><note>not this (B00)</note></excludes1>
        <diag>
          <name>A00.1</name>
          <desc>Cholera due to Vibrio
                cholerae 01, biovar eltor</desc>
          <inclusionTerm>
            <note>Cholera eltor</note>
            <note>Cholera eltor</note>
          </inclusionTerm>
        </diag>
      </diag>
    </section>
    <section id="B10">
      <desc>Other human herpesviruses (B10)</desc>
      <diag><name>B10</name><desc>Other human herpesviruses</desc></diag>
    </section>
  </chapter>
</ICD10CM.tabular>
"""


def write(folder: Path, text: str = XML) -> Path:
    path = folder / "icd10cm_tabular.xml"
    path.write_text(text, "utf8")
    return path


read = partial(whole.read, format="icd10cm")


def test_read_icd10cm_chapters_blocks_and_codes_are_concepts_with_parents(
    tmp_path: Path,
) -> None:
    concepts, report = read(write(tmp_path))
    assert {each.cui: (each.aliases, each.parents) for each in concepts} == {
        "A00-B99": (["Certain infectious & parasitic diseases"], []),
        "A00-A09": (["Intestinal infectious diseases"], ["A00-B99"]),
        "A00": (["Cholera"], ["A00-A09"]),
        "A00.1": (
            ["Cholera due to Vibrio cholerae 01, biovar eltor", "Cholera eltor"],
            ["A00"],
        ),
        "B10": (["Other human herpesviruses"], ["A00-B99"]),
    }
    assert [each.cui for each in concepts] == sorted(each.cui for each in concepts)
    assert concepts[0].codes == {"ICD10CM": [concepts[0].cui]}
    # of B10, a block of one category, and "Cholera eltor"
    assert report.dropped["repeated names"] == 2
    assert (report.concepts, report.rows["icd10cm_tabular.xml"]) == (5, 6)


FRACTURE = """<ICD10CM.tabular><chapter><name>19</name><desc>Injury (S00-T88)</desc>
<section id="S50-S59"><desc>Injuries (S50-S59)</desc>
<diag><name>S52</name><desc>Fracture of forearm</desc>
  <sevenChrNote><note>The appropriate 7th character is to be added</note></sevenChrNote>
  <sevenChrDef>
    <extension char="A">initial encounter for closed fracture</extension>
    <extension char="D">subsequent encounter</extension>
  </sevenChrDef>
  <diag><name>S52.5</name><desc>Fracture of lower end of radius</desc>
    <diag><name>S52.52</name><desc>Torus fracture of lower end of radius</desc>
      <sevenChrDef><extension char="K">nonunion</extension></sevenChrDef>
      <diag><name>S52.521</name><desc>Torus fracture of right radius</desc></diag>
    </diag>
    <diag><name>S52.59</name><desc>Other fractures</desc></diag>
  </diag>
</diag></section></chapter></ICD10CM.tabular>
"""


def test_read_icd10cm_billable_codes_have_a_seventh_character(tmp_path: Path) -> None:
    """The nearest list of characters counts; X stands where a code is too short."""
    concepts, _ = read(write(tmp_path, FRACTURE))
    longer = {each.cui: each for each in concepts if len(each.cui) == 8}
    assert {cui: (each.name, each.parents) for cui, each in longer.items()} == {
        "S52.521K": ("Torus fracture of right radius, nonunion", ["S52.521"]),
        "S52.59XA": (
            "Other fractures, initial encounter for closed fracture",
            ["S52.59"],
        ),
        "S52.59XD": ("Other fractures, subsequent encounter", ["S52.59"]),
    }
    assert longer["S52.521K"].codes == {"ICD10CM": ["S52.521K"]}


def test_read_icd10cm_code_without_a_name_is_an_error_or_counted(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, XML.replace("<desc>Cholera</desc>", ""))
    with pytest.raises(SapbertError, match=r"xml:5: .* diag, also of one in A00-A09"):
        read(path)
    concepts, report = read(path, on_error="skip")
    assert (len(concepts), report.dropped["bad nodes"]) == (4, 1)


def test_read_icd10cm_entities_of_the_file_are_an_error(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;">]><a>&b;</a>'
    with pytest.raises(SapbertError, match="E150"):
        read(write(tmp_path, bomb))


@pytest.mark.slow
def test_read_icd10cm_real_file_is_a_forest_of_22_chapters(
    data_file: Callable[[str], Path],
) -> None:
    concepts, _ = read(data_file("hierarchies/icd10cm_tabular_2021.xml.gz"))
    known = {each.cui for each in concepts}
    assert sum(not each.parents for each in concepts) == 22
    assert all(set(each.parents) <= known for each in concepts)
    assert all(len(each.parents) <= 1 for each in concepts)
    names = {each.cui: each.name for each in concepts}
    assert names["T36.0X1A"].endswith(", accidental (unintentional), initial encounter")
    assert names["O36.0111"].endswith(", first trimester, fetus 1")


INJURIES = """<ICD10CM.tabular><chapter><name>19</name><desc>Injury (S00-T88)</desc>
<section id="S00-S09"><desc>Injuries (S00-S09)</desc><diag><name>S06</name>
<desc>Intracranial injury</desc>
<sevenChrDef><extension char="A">initial encounter</extension>
<extension char="D">subsequent encounter</extension>
<extension char="S">sequela</extension></sevenChrDef>
<notes><note>7th characters D and S do not apply to codes in category S06 with 6th
character 7 - death due to brain injury, or 8 - death due to other cause.</note></notes>
<diag><name>S06.1X1</name><desc>Edema, brief</desc></diag>
<diag><name>S06.1X7</name><desc>Edema with death</desc></diag>
<diag><name>S06.1X8</name><desc>Edema with other death</desc></diag>
</diag></section></chapter></ICD10CM.tabular>
"""


def test_read_icd10cm_a_note_excludes_seventh_characters(tmp_path: Path) -> None:
    concepts, report = read(write(tmp_path, INJURIES))
    codes = {each.cui for each in concepts if len(each.cui) == 8}
    assert codes == {
        *("S06.1X1A", "S06.1X1D", "S06.1X1S"),
        *("S06.1X7A", "S06.1X8A"),
    }
    assert report.dropped["seventh characters that do not apply"] == 4


def test_read_icd10cm_a_list_beside_it_says_which_codes_there_are(
    tmp_path: Path,
) -> None:
    (tmp_path / "icd10cm_codes_2021.txt").write_text("S061X1A Edema, brief, initial\n")
    concepts, report = read(write(tmp_path, INJURIES))
    codes = {each.cui for each in concepts if len(each.cui) == 8}
    assert codes == {"S06.1X1A"}
    assert report.dropped["seventh characters that do not apply"] == 8


ORDER = """\
00001 A00     0 Cholera                                                      Cholera
00002 A000    1 Cholera due to Vibrio cholerae 01, biovar cholerae           \
Cholera due to Vibrio cholerae 01, biovar cholerae
00003 A01     0 Typhoid and paratyphoid fevers                               \
Typhoid and paratyphoid fevers
"""


def test_read_icd10cm_order_file(tmp_path: Path) -> None:
    path = tmp_path / "icd10cm_order_2026.txt"
    path.write_text(ORDER)
    concepts = {each.cui: each for each in read_vocabulary(path)}
    assert [*concepts] == ["A00", "A00.0", "A01"]
    assert concepts["A00.0"].parents == ["A00"]
    assert concepts["A01"].parents == []
    assert concepts["A00.0"].codes == {"ICD10CM": ["A00.0"]}
    codes = tmp_path / "icd10cm_codes_2026.txt"
    codes.write_text("A000    Cholera due to Vibrio cholerae\n")
    (concept,) = read_vocabulary(codes)
    assert (concept.cui, concept.name) == ("A00.0", "Cholera due to Vibrio cholerae")
    procedures = tmp_path / "icd10pcs_order_2026.txt"
    procedures.write_text(f"00001 001     0 {'Bypass':60} Central Nervous, Bypass\n")
    (concept,) = read_vocabulary(procedures)
    assert concept.cui == "001"
    assert concept.aliases == ["Central Nervous, Bypass", "Bypass"]
