"""LOINC: invented terms in the columns of its files."""

from pathlib import Path

from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.registry import guess_format
from tests.vocabularies.whole import read_by_id as read

TABLES = {
    "LoincTable/Loinc.csv": '''"LOINC_NUM","COMPONENT","CLASS","DefinitionDescription",\
"STATUS","CONSUMER_NAME","RELATEDNAMES2","SHORTNAME","LONG_COMMON_NAME","DisplayName"
"10-1","Blue","CHEM","How blue
it is, ""exactly""","ACTIVE","","Azur; Pt","Blue Bld","Blue [Mass] in Blood","Blue (B)"
"11-9","Red","CHEM","","DEPRECATED","","","Red Bld","Red [Mass] in Blood",""
''',
    "LoincTable/MapTo.csv": '"LOINC","MAP_TO","COMMENT"\n"11-9","10-1",""\n',
    "AccessoryFiles/PartFile/Part.csv": """"PartNumber","PartTypeName","PartName",\
"PartDisplayName","Status"
"LP1-1","COMPONENT","Blue","Blueness","ACTIVE"
""",
    "AccessoryFiles/ConsumerName/ConsumerName.csv": (
        '"LoincNumber","ConsumerName"\n"10-1","Blue, Blood"\n'
    ),
    "AccessoryFiles/ComponentHierarchyBySystem/ComponentHierarchyBySystem.csv": (
        '"PATH_TO_ROOT","SEQUENCE","IMMEDIATE_PARENT","CODE","CODE_TEXT"\n'
        '"","1","","LP9-9","Colours"\n'
        '"LP9-9","1","LP9-9","LP1-1","Blue"\n'
        '"LP9-9.LP1-1","1","LP1-1","10-1","Blue Bld"\n'
    ),
    "AccessoryFiles/LinguisticVariants/esES12LinguisticVariant.csv": (
        '"LOINC_NUM","COMPONENT","LONG_COMMON_NAME"\n"10-1","Azul","Azul en sangre"\n'
    ),
}


def write(folder: Path) -> Path:
    for name, text in TABLES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf8")
    return folder


def test_read_loinc_terms_parts_consumer_names_variants_and_hierarchy(
    tmp_path: Path,
) -> None:
    assert guess_format(write(tmp_path)) == "loinc"
    concepts, report = read(tmp_path)
    assert concepts["LOINC:10-1"] == Concept(
        "LOINC:10-1",
        [
            *("Blue [Mass] in Blood", "Blue (B)", "Blue Bld", "Blue, Blood"),
            "Azul en sangre",
        ],
        types=["CHEM"],
        codes={"LNC": ["10-1"]},
        parents=["LOINC:LP1-1"],
        definition='How blue it is, "exactly"',
        retired=["LOINC:11-9"],
        languages={"ENG": [0, 1, 2, 3], "SPA": [4]},
        sources={"LNC": [0, 1, 2, 3, 4]},
    )
    part = concepts["LOINC:LP1-1"]
    assert (part.aliases, part.types) == (["Blue", "Blueness"], ["COMPONENT"])
    assert part.parents == ["LOINC:LP9-9"]
    assert concepts["LOINC:LP9-9"].name == "Colours"
    assert report.dropped["deprecated terms"] == 1
    assert report.notes == []


def test_read_loinc_table_alone_and_deprecated_terms(tmp_path: Path) -> None:
    table = write(tmp_path) / "LoincTable" / "Loinc.csv"
    alone = tmp_path / "alone" / "Loinc.csv"
    alone.parent.mkdir()
    table.rename(alone)
    concepts, report = read(alone, obsolete=True)
    assert {key: each.aliases for key, each in concepts.items()} == {
        "LOINC:10-1": ["Blue [Mass] in Blood", "Blue (B)", "Blue Bld"],
        "LOINC:11-9": ["Red [Mass] in Blood", "Red Bld"],
    }
    assert len(report.notes) == 4


def test_read_loinc_languages_are_kept(tmp_path: Path) -> None:
    concepts, _ = read(write(tmp_path) / "LoincTable" / "Loinc.csv", languages=["SPA"])
    assert [each.aliases for each in concepts.values()] == [["Azul en sangre"]]


def test_read_loinc_term_that_is_kept_is_no_retired_id(tmp_path: Path) -> None:
    """MapTo.csv names replacements of discouraged terms, which are concepts."""
    write(tmp_path)
    table, maps = (tmp_path / f"LoincTable/{name}.csv" for name in ("Loinc", "MapTo"))
    discouraged = '"12-7","Red","CHEM","","DISCOURAGED","","","","Red [Moles]",""\n'
    table.write_text(table.read_text("utf8") + discouraged, "utf8")
    maps.write_text(
        '"LOINC","MAP_TO","COMMENT"\n"11-9","12-7",""\n"12-7","10-1",""\n', "utf8"
    )
    concepts, report = read(tmp_path)
    assert concepts["LOINC:10-1"].retired == []
    assert concepts["LOINC:12-7"].retired == ["LOINC:11-9"]
    assert report.dropped["retired ids that a concept has"] == 1
    concepts, _ = read(tmp_path, obsolete=True)
    assert "LOINC:11-9" in concepts
    assert [each.retired for each in concepts.values() if each.retired] == []
