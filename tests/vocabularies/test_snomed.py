"""SNOMED CT: invented concepts in the columns of Release Format 2."""

import shutil

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.reader_table import guess_format
from spacy_sapbert.vocabularies.readers.snomed import TAG
from tests.vocabularies.test_examples import FOLDER
from tests.vocabularies.whole import read

RELEASE = FOLDER / "snomed" / "release"


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
    assert name in [concept.name for concept in read(tmp_path)[0]]
    (main,) = tmp_path.glob("Snapshot/Terminology/sct2_Concept_*")
    found = [read(path) for path in (main, tmp_path, RELEASE)]
    for concepts, report in found:
        assert (report.format, report.notes) == ("snomed", [])
        for concept in concepts:  # the UK prefers other names
            concept.aliases.sort()
            concept.languages.clear()
    assert found[0][0] == found[1][0] == found[2][0]


@pytest.mark.parametrize("piece", [" ", "(", "(a) ", ") "])
def test_tag_of_a_long_name_is_found_in_the_time_of_its_length(piece):
    assert TAG.search(f"{piece * 100_000}.") is None
    assert TAG.search(f"{piece * 100_000} (finding) ")[1] == "finding"


@pytest.mark.parametrize(
    "name", ["sct2_Concept_Full_INT_20990101.txt", "sct2_Description_Delta-en_INT.txt"]
)
def test_read_snomed_full_or_delta_asks_for_the_snapshot(name, tmp_path):
    (tmp_path / name).write_text("id\teffectiveTime\tactive\n")
    with pytest.raises(SapbertError, match="E108"):
        guess_format(tmp_path / name)
