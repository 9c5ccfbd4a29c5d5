"""SNOMED CT: invented concepts in the columns of Release Format 2."""

from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.registry import guess_format, read_vocabularies
from spacy_sapbert.vocabularies.report import Report
from tests.vocabularies.whole import read_by_id as read

FSN, SYN = "900000000000003001", "900000000000013009"
GOOD, MAY = "900000000000548007", "900000000000549004"
US, GB = "900000000000509007", "900000000000508004"
TERMINOLOGY, REFSET = "Snapshot/Terminology/sct2_", "Snapshot/Refset/x/der2_"
START = "id effectiveTime active moduleId "
TABLES = {
    TERMINOLOGY + "Concept_Snapshot_INT_20990101": START
    + """definitionStatusId
101 20990101 1 0 0
102 20990101 1 0 0
103 20990101 0 0 0
104 20990101 0 0 0
105 20990101 0 0 0""",
    TERMINOLOGY + "Description_Snapshot-en_INT_20990101": START
    + f"""conceptId languageCode typeId term caseSignificanceId
1 20990101 1 0 101 en {FSN} Blue_"fever"_(old)_(disorder) 0
2 20990101 1 0 101 en {SYN} Azure_fever 0
3 20990101 1 0 101 en {SYN} Blue_fever 0
4 20990101 1 0 101 en {SYN} Bleu_fever 0
5 20990101 0 0 101 en {SYN} Wrong_fever 0
6 20990101 1 0 101 es {SYN} Fiebre_azul 0
7 20990101 1 0 102 en {FSN} Fever_(finding) 0
8 20990101 1 0 103 en {SYN} Old_fever 0""",
    TERMINOLOGY + "TextDefinition_Snapshot-en_INT_20990101": START
    + """conceptId languageCode typeId term caseSignificanceId
9 20990101 1 0 101 en 900000000000550004 A_fever_that_is_blue. 0""",
    TERMINOLOGY + "Relationship_Snapshot_INT_20990101": START
    + """sourceId destinationId relationshipGroup typeId characteristicTypeId modifierId
10 20990101 1 0 101 102 0 116680003 0 0
11 20990101 0 0 102 101 0 116680003 0 0
12 20990101 1 0 102 101 0 363698007 0 0""",
    REFSET + "cRefset_LanguageSnapshot-en_INT_20990101": START
    + f"""refsetId referencedComponentId acceptabilityId
a 20990101 1 0 {GB} 2 {GOOD}
b 20990101 1 0 {US} 3 {GOOD}
c 20990101 1 0 {GB} 3 {MAY}
d 20990101 1 0 {US} 2 {MAY}""",
    REFSET + "cRefset_AssociationSnapshot_INT_20990101": START
    + """refsetId referencedComponentId targetComponentId
e 20990101 1 0 900000000000526001 103 101
f 20990101 1 0 900000000000523009 104 101
g 20990101 1 0 900000000000527005 105 101
h 20990101 1 0 900000000000527005 105 102""",
    REFSET + "sRefset_SimpleMapSnapshot_INT_20990101": START
    + """refsetId referencedComponentId mapTarget
i 20990101 1 0 446608001 101 8000/3
j 20990101 1 0 999 101 Q""",
    REFSET + "iisssccRefset_ExtendedMapSnapshot_INT_20990101": START
    + """refsetId referencedComponentId mapGroup mapPriority mapRule mapAdvice \
mapTarget correlationId mapCategoryId
k 20990101 1 0 447562003 101 2 1 TRUE x Z9 0 0
l 20990101 1 0 447562003 101 1 2 TRUE x R2 0 0
m 20990101 1 0 447562003 101 1 1 TRUE x R1 0 0
n 20990101 1 0 447562003 101 3 1 TRUE x _ 0 0""",
}


def write(folder: Path, tables: dict[str, str] = TABLES) -> Path:
    for name, text in tables.items():
        path = folder / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = text.replace(" ", "\t").replace("_", " ") + "\n"
        path.write_bytes(rows.replace("\n", "\r\n").encode())
    return folder


def test_read_snomed_active_concepts_of_all_tables(tmp_path: Path) -> None:
    assert guess_format(write(tmp_path)) == "snomed"
    concepts, report = read(tmp_path)
    assert concepts == {
        "SNOMEDCT:101": Concept(
            "SNOMEDCT:101",
            [
                *("Blue fever", "Azure fever", "Bleu fever", "Fiebre azul"),
                'Blue "fever" (old)',
            ],
            types=["disorder"],
            codes={
                "SNOMEDCT_US": ["101"],
                "ICDO3": ["8000/3"],
                "ICD10": ["R1", "R2", "Z9"],
            },
            parents=["SNOMEDCT:102"],
            definition="A fever that is blue.",
            retired=["SNOMEDCT:103"],
            languages={"ENG": [0, 1, 2, 4], "SPA": [3]},
            sources={"SNOMEDCT_US": [0, 1, 2, 3, 4]},
        ),
        "SNOMEDCT:102": Concept(
            "SNOMEDCT:102",
            ["Fever"],
            types=["finding"],
            codes={"SNOMEDCT_US": ["102"]},
            languages={"ENG": [0]},
            sources={"SNOMEDCT_US": [0]},
        ),
    }
    assert report.to_json()["dropped"] == {
        "associations that are no replacements": 1,
        "inactive descriptions": 1,
        "inactive or unknown concepts": 1,
        "maps to other vocabularies": 1,
        "retired ids that lead to several concepts": 1,
    }
    assert report.notes == []


def rename(names: dict[str, str]) -> dict[str, str]:
    """The tables under the file names of another edition."""
    tables = {}
    for name, text in TABLES.items():
        for old, new in names.items():
            name = name.replace(old, new)
        tables[name] = text
    return tables


# As they stand in releases of the UK (clinical), the UK (all in one) and the US.
UK = {"Snapshot_INT": "UKCLSnapshot_GB1000000", "Snapshot-en_INT": "UKCLSnapshot-en_GB"}
MONOLITH = {"Snapshot_INT": "MONOSnapshot_GB", "Snapshot-en_INT": "MONOSnapshot-en_GB"}
US_EDITION = {"_INT_": "_US1000124_"}


def read_unordered(path: Path) -> dict[str, Concept]:
    """The concepts without the order of their names: the UK prefers other ones."""
    concepts, _ = read(path)
    for concept in concepts.values():
        concept.aliases.sort()
        concept.languages.clear()
    return concepts


@pytest.mark.parametrize("names", [UK, MONOLITH, US_EDITION])
def test_read_snomed_national_editions(names: dict[str, str], tmp_path: Path) -> None:
    expected = read_unordered(write(tmp_path / "international"))
    folder = write(tmp_path / "national", rename(names))
    assert guess_format(folder) == "snomed"
    assert read_unordered(folder) == expected
    assert read(folder)[1].notes == []
    (main,) = folder.glob("Snapshot/Terminology/sct2_Concept_*")
    assert guess_format(main) == "snomed"
    assert read_unordered(main) == expected


def test_read_snomed_extension_adds_its_names_to_those_of_the_edition(
    tmp_path: Path,
) -> None:
    write(tmp_path)
    edition = "SpanishExtensionSnapshot-es_INT_20990430"
    write(
        tmp_path,
        {
            TERMINOLOGY + f"Description_{edition}": START
            + f"""conceptId languageCode typeId term caseSignificanceId
70 20990430 1 0 102 es {FSN} fiebre_(hallazgo) 0
71 20990430 1 0 102 es {SYN} calentura 0
72 20990430 1 0 102 es {SYN} fiebre 0""",
            REFSET + f"cRefset_Language{edition}": START
            + f"""refsetId referencedComponentId acceptabilityId
z 20990430 1 0 448879004 72 {GOOD}""",
        },
    )
    concepts, report = read(tmp_path, languages=["SPA"])
    assert concepts["SNOMEDCT:102"].aliases == ["fiebre", "calentura"]
    assert report.notes == []


def test_read_snomed_languages_are_kept_in_their_order(tmp_path: Path) -> None:
    main = tmp_path / f"{TERMINOLOGY}Concept_Snapshot_INT_20990101.txt"
    write(tmp_path)
    concepts, _ = read(main, languages=["es", "English"])
    assert concepts["SNOMEDCT:101"].name == "Fiebre azul"
    concepts, report = read(main, languages=["SPA"])
    assert [*concepts] == ["SNOMEDCT:101"]
    assert report.dropped["concepts without a name"] == 1


def test_read_snomed_notes_the_tables_that_are_absent(tmp_path: Path) -> None:
    write(tmp_path)
    for name in TABLES:
        if "Concept_" not in name and "Description" not in name:
            (tmp_path / f"{name}.txt").unlink()
    concepts, report = read(tmp_path)
    assert concepts["SNOMEDCT:101"].name == "Azure fever"
    assert len(report.notes) == 6


SPANISH = f"""conceptId languageCode typeId term caseSignificanceId
20 20990101 1 0 101 es {FSN} fiebre_azul_(trastorno) 0
21 20990101 1 0 102 es {FSN} fiebre_(hallazgo) 0"""


def test_read_snomed_type_is_the_english_tag_if_there_is_one(tmp_path: Path) -> None:
    extension = {
        TERMINOLOGY + "Description_SpanishExtensionSnapshot-es_INT_20990101": START
        + SPANISH
    }
    concepts, _ = read(write(tmp_path, TABLES | extension))
    assert concepts["SNOMEDCT:101"].types == ["disorder"]
    alone = {name: text for name, text in TABLES.items() if "Description" not in name}
    for path in tmp_path.rglob("sct2_Description_Snapshot*"):
        path.unlink()
    concepts, _ = read(write(tmp_path, alone | extension))
    assert concepts["SNOMEDCT:101"].types == ["trastorno"]


def test_read_snomed_release_of_the_uk_prefers_british_english(tmp_path: Path) -> None:
    concepts, _ = read(write(tmp_path / "us"))
    assert concepts["SNOMEDCT:101"].name == "Blue fever"
    concepts, _ = read(write(tmp_path / "gb", rename(UK)))
    assert concepts["SNOMEDCT:101"].name == "Azure fever"


@pytest.mark.parametrize(
    "name", ["sct2_Concept_Full_INT_20990101.txt", "sct2_Description_Delta-en_INT.txt"]
)
def test_read_snomed_full_or_delta_asks_for_the_snapshot(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text("id\teffectiveTime\tactive\n")
    with pytest.raises(SapbertError, match="E108"):
        guess_format(tmp_path / name)


def test_read_snomed_extension_says_more_of_concepts_of_the_international_edition(
    tmp_path: Path,
) -> None:
    write(tmp_path / "international")
    edition = "SpanishExtensionSnapshot"
    write(
        tmp_path / "spanish",
        {
            TERMINOLOGY + f"Concept_{edition}_INT_20990430": START
            + """definitionStatusId
900 20990430 1 0 0""",
            TERMINOLOGY + f"Description_{edition}-es_INT_20990430": START
            + f"""conceptId languageCode typeId term caseSignificanceId
70 20990430 1 0 101 es {SYN} calentura 0
71 20990430 1 0 900 es {SYN} fiebre_nueva 0
72 20990430 1 0 105 es {SYN} fiebre_inactiva 0""",
            REFSET + f"sRefset_SimpleMap{edition}_INT_20990430": START
            + """refsetId referencedComponentId mapTarget
i 20990430 1 0 446608001 101 9000/3""",
        },
    )
    paths = [tmp_path / "international", tmp_path / "spanish"]
    reports = [Report(), Report()]
    concepts = {c.cui: c for c in read_vocabularies(paths, reports=reports)}
    fever = concepts["SNOMEDCT:101"]
    assert (fever.name, "calentura" in fever.aliases) == ("Blue fever", True)
    assert fever.codes["ICDO3"] == ["8000/3", "9000/3"]
    assert concepts["SNOMEDCT:900"].aliases == ["fiebre nueva"]
    assert "SNOMEDCT:105" not in concepts  # inactive
    assert (reports[0].concepts, reports[1].concepts) == (3, 0)
    assert reports[1].notes[0].startswith("Its concepts are counted with those of")
    # with --xrefs it adds names and codes, and no concepts
    reports = [Report(), Report()]
    found = read_vocabularies(paths[:1], xrefs=paths[1:], reports=reports)
    names = {concept.cui: concept for concept in found}
    assert names["SNOMEDCT:101"] == fever
    assert "SNOMEDCT:900" not in names
    (whole,) = read_vocabularies(paths[:1], xrefs=paths[1:], languages=["SPA"])
    assert whole.aliases == ["Fiebre azul", "calentura"]
