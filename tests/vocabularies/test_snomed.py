"""SNOMED CT: invented concepts in the columns of Release Format 2."""

import shutil
from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.registry import guess_format, read_vocabularies
from spacy_sapbert.vocabularies.report import Report
from tests.vocabularies.test_examples import FOLDER
from tests.vocabularies.whole import read_by_id as read

SYN = "900000000000013009"
TERMINOLOGY, REFSET = "Snapshot/Terminology/sct2_", "Snapshot/Refset/x/der2_"
START = "id effectiveTime active moduleId "


RELEASE = FOLDER / "snomed" / "release"


def write(folder: Path, tables: dict[str, str]) -> Path:
    for name, text in tables.items():
        path = folder / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(" ", "\t").replace("_", " ") + "\n", "utf8")
    return folder


# As they stand in releases of the UK (clinical), the UK (all in one) and the US.
UK = {"Snapshot_INT": "UKCLSnapshot_GB1000000", "Snapshot-en_INT": "UKCLSnapshot-en_GB"}
MONOLITH = {"Snapshot_INT": "MONOSnapshot_GB", "Snapshot-en_INT": "MONOSnapshot-en_GB"}
US_EDITION = {"_INT_": "_US1000124_"}


@pytest.mark.parametrize("names", [UK, MONOLITH, US_EDITION])
def test_read_snomed_national_editions(names, tmp_path):
    for path in RELEASE.rglob("*.txt"):
        name = path.relative_to(RELEASE).as_posix()
        for old, new in names.items():
            name = name.replace(old, new)
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, tmp_path / name)
    name = "Blue fever" if names is US_EDITION else "Azure fever"  # British
    assert read(tmp_path)[0]["SNOMEDCT:101"].name == name
    (main,) = tmp_path.glob("Snapshot/Terminology/sct2_Concept_*")
    found = [read(path) for path in (main, tmp_path, RELEASE)]
    for concepts, report in found:
        assert (report.format, report.notes) == ("snomed", [])
        for concept in concepts.values():  # the UK prefers other names
            concept.aliases.sort()
            concept.languages.clear()
    assert found[0][0] == found[1][0] == found[2][0]


@pytest.mark.parametrize(
    "name", ["sct2_Concept_Full_INT_20990101.txt", "sct2_Description_Delta-en_INT.txt"]
)
def test_read_snomed_full_or_delta_asks_for_the_snapshot(name, tmp_path):
    (tmp_path / name).write_text("id\teffectiveTime\tactive\n")
    with pytest.raises(SapbertError, match="E108"):
        guess_format(tmp_path / name)


def test_read_snomed_extension_says_more_of_concepts_of_the_international_edition(
    tmp_path,
):
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
    paths = [RELEASE, tmp_path / "spanish"]
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
