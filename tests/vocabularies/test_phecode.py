from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.readers.phecode import find_parents
from tests.vocabularies import whole

LABELS = """"phenotype","description","icd10_only"
"BI_160","Deficiency anemias",0
"BI_160.1","Iron deficiency, anemia",0
"BI_160.11","Anemia secondary to ""blood"" loss*",1
"""
ROLLUP = """"code","phecode_unrolled"
"BI_160","BI_160"
"BI_160.1","BI_160"
"BI_160.1","BI_160.1"
"BI_160.11","BI_160"
"BI_160.11","BI_160.1"
"BI_160.11","BI_160.11"
"""


def write(folder: Path, labels: str = LABELS, rollup: str = ROLLUP) -> Path:
    path = folder / "phecodeX_labels.csv"
    path.write_text(labels, "utf8")
    if rollup:
        (folder / "phecodeX_rollup_map.csv").write_text(rollup, "utf8")
    return path


read = partial(whole.read, format="phecode")


def test_read_phecode_parents_are_the_nearest_of_what_a_code_rolls_up_to(
    tmp_path: Path,
) -> None:
    concepts, report = read(write(tmp_path), type="T047")
    found = {each.cui: (each.name, each.parents) for each in concepts}
    assert found == {
        "BI_160": ("Deficiency anemias", []),
        "BI_160.1": ("Iron deficiency, anemia", ["BI_160"]),
        "BI_160.11": ('Anemia secondary to "blood" loss', ["BI_160.1"]),
    }
    assert concepts[0].types == ["T047"]
    assert concepts[0].codes == {"PHECODE": ["BI_160"]}
    assert (report.concepts, report.names, report.counts["parents"]) == (3, 3, 2)


def test_read_phecode_without_the_map_there_are_no_parents_and_a_note(
    tmp_path: Path,
) -> None:
    concepts, report = read(write(tmp_path, rollup=""))
    assert not any(each.parents for each in concepts)
    assert report.notes == ["phecodeX_rollup_map.csv is not there: no parents."]


def test_read_phecode_invalid_line_is_an_error_with_its_number_or_counted(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, LABELS + '"BI_3"\n')
    with pytest.raises(SapbertError, match=r"labels\.csv:5: Expected 3 fields"):
        read(path)
    concepts, report = read(path, on_error="skip")
    assert len(concepts) == 3
    assert report.dropped["bad lines"] == 1


def test_read_phecode_missing_column_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match=r"labels\.csv:1: .*phenotype"):
        read(write(tmp_path, '"code","name"\n"1","fever"\n'))


@given(
    st.dictionaries(
        st.sampled_from("abcd"), st.sets(st.sampled_from("abcd")), max_size=4
    )
)
def test_read_phecode_nearest_ends_and_is_above_whatever_the_map_says(
    above: Any,
) -> None:
    for code, ancestors in above.items():
        assert set(find_parents(code, above)) <= ancestors - {code}


def test_read_phecode_real_file_has_a_parent_for_each_dotted_code(
    data_file: Callable[[str], Path],
) -> None:
    concepts, report = read(data_file("hierarchies/phecodeX_R_labels.csv.gz"))
    assert len(concepts) == 3612
    known = {each.cui for each in concepts}
    for each in concepts:
        assert bool(each.parents) >= ("." in each.cui), each.cui
        assert set(each.parents) <= known
    assert not report.notes
