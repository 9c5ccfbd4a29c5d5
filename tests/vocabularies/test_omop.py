"""OMOP: invented concepts in the columns of Athena's tables."""

from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.registry import guess_format
from tests.vocabularies.whole import read_by_id as read

TABLES = {
    "CONCEPT": """concept_id concept_name domain_id vocabulary_id concept_class_id \
standard_concept concept_code valid_start_date valid_end_date invalid_reason
1 Blue_fever Condition SNOMED Disorder S 11 19700101 20991231 -
2 Fever Condition SNOMED Disorder S 22 19700101 20991231 -
3 "Blue"_fever,_NOS Condition ICD10CM Code - B1 19700101 20991231 -
4 Fevers_or_colds Condition ICD10CM Code - B2 19700101 20991231 -
5 Cold Condition SNOMED Disorder S 55 19700101 20991231 -
6 Azure_fever Condition SNOMED Disorder - 66 19700101 20100101 U
7 Fever_drugs Drug ATC Class C A1 19700101 20991231 -
8 Spanish_language Language SNOMED Value S 88 19700101 20991231 -
9 Old_azure_fever Condition SNOMED Disorder - 99 19700101 20000101 U""",
    "CONCEPT_SYNONYM": """concept_id concept_synonym_name language_concept_id
1 Sapphire_fever 4180186
1 Fiebre_azul 8
3 Blue_fever_of_no_kind 4180186""",
    "CONCEPT_RELATIONSHIP": """concept_id_1 concept_id_2 relationship_id \
valid_start_date valid_end_date invalid_reason
3 1 Maps_to 19700101 20991231 -
4 2 Maps_to 19700101 20991231 -
4 5 Maps_to 19700101 20991231 -
1 1 Maps_to 19700101 20991231 -
5 2 Maps_to 19700101 20000101 D
6 1 Concept_replaced_by 20100101 20991231 -
9 6 Concept_replaced_by 20000101 20991231 -
1 2 Is_a 19700101 20991231 -""",
    "CONCEPT_ANCESTOR": """ancestor_concept_id descendant_concept_id \
min_levels_of_separation max_levels_of_separation
1 1 0 0
2 1 1 1
7 1 2 2""",
}


def write(folder: Path, *without: str) -> Path:
    for name, text in TABLES.items():
        if name not in without:
            rows = text.replace("-\n", "\n").removesuffix("-").replace(" - ", "  ")
            rows = rows.replace(" ", "\t").replace("_", " ")
            header, rest = text.split("\n", 1)[0], rows.split("\n", 1)[1]
            path = folder / f"{name}.csv"
            path.write_text(header.replace(" ", "\t") + "\n" + rest + "\n", "utf8")
    return folder


def test_read_omop_standard_concepts_with_synonyms_codes_parents_and_old_ids(
    tmp_path: Path,
) -> None:
    assert guess_format(write(tmp_path)) == "omop"
    concepts, report = read(tmp_path)
    assert [*concepts] == ["OMOP:1", "OMOP:2", "OMOP:5", "OMOP:7", "OMOP:8"]
    assert concepts["OMOP:1"] == Concept(
        "OMOP:1",
        ["Blue fever", "Sapphire fever", "Fiebre azul"],
        types=["Condition"],
        codes={"OMOP": ["1"], "SNOMEDCT_US": ["11"], "ICD10CM": ["B1"]},
        parents=["OMOP:2"],
        retired=["OMOP:6", "OMOP:9"],
        languages={"ENG": [0, 1], "SPA": [2]},
        sources={"SNOMEDCT_US": [0]},
    )
    assert concepts["OMOP:2"].codes == {"OMOP": ["2"], "SNOMEDCT_US": ["22"]}
    dropped = report.to_json()["dropped"]
    assert dropped == {
        "concepts that are mapped to several": 1,
        "concepts that are not standard": 2,
        "invalid concepts": 2,
        "names of other concepts": 1,
    }


def test_read_omop_mapped_names_have_the_source_they_come_from(tmp_path: Path) -> None:
    concepts, _ = read(write(tmp_path), mapped_names=True, languages=["ENG"])
    assert concepts["OMOP:1"].aliases == [
        *("Blue fever", "Sapphire fever", '"Blue" fever, NOS')
    ]
    assert concepts["OMOP:1"].sources == {"SNOMEDCT_US": [0], "ICD10CM": [2]}


def test_read_omop_filters_by_vocabulary_and_domain(tmp_path: Path) -> None:
    concepts, _ = read(write(tmp_path), sources=["SNOMED"], types=["Condition"])
    assert [*concepts] == ["OMOP:1", "OMOP:2", "OMOP:5"]
    with pytest.raises(SapbertError, match="E105.*Did you mean ATC"):
        read(tmp_path, sources=["ATCC"])


def test_read_omop_one_table_is_enough_and_parents_are_of_either_table(
    tmp_path: Path,
) -> None:
    concepts, _ = read(write(tmp_path, "CONCEPT_ANCESTOR") / "CONCEPT.csv")
    assert concepts["OMOP:1"].parents == ["OMOP:2"]
    for name in ("CONCEPT_SYNONYM", "CONCEPT_RELATIONSHIP"):
        (tmp_path / f"{name}.csv").unlink()
    concepts, report = read(tmp_path)
    assert concepts["OMOP:1"].aliases == ["Blue fever"]
    assert len(report.notes) == 2


def test_read_omop_missing_column_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "CONCEPT.csv").write_text("concept_id\tconcept_name\n1\tfever\n")
    with pytest.raises(SapbertError, match=r"E410.*CONCEPT\.csv:1.*domain_id"):
        read(tmp_path)


def test_read_omop_names_of_concepts_are_english(tmp_path: Path) -> None:
    """Without English only synonyms in the language are names."""
    concepts, report = read(write(tmp_path), languages=["SPA"], mapped_names=True)
    assert {cui: each.aliases for cui, each in concepts.items()} == {
        "OMOP:1": ["Fiebre azul"]
    }
    assert report.dropped["names in other languages"] == 7
    concepts, _ = read(tmp_path, languages=["ENG"], mapped_names=True)
    assert concepts["OMOP:1"].languages == {"ENG": [0, 1, 2]}
