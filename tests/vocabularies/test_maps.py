from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept
from tests.vocabularies import whole

NAMES = "L2\tHematology\nL1\tLaboratory\nL2\tHaematology\nL3\tBlood count\nL2\t-\n"
PARENTS = "L2\tL1\nL3\tL2\nL3\tL1\nL3\tL2\nL1\tL1\nL4\tL1\n"


def write(folder: Path, names: str = NAMES, parents: str = PARENTS) -> Path:
    path = folder / "loinc_names.tsv"
    path.write_text(names, "utf8")
    if parents:
        (folder / "loinc_parents.tsv").write_text(parents, "utf8")
    return path


read = partial(whole.read, format="maps")


def test_read_maps_two_tables_are_concepts_with_parents(tmp_path: Path) -> None:
    path = write(tmp_path)
    concepts, report = read(path, type="T059")
    assert concepts == [
        Concept("L1", ["Laboratory"], types=["T059"]),
        Concept("L2", ["Hematology", "Haematology"], types=["T059"], parents=["L1"]),
        Concept("L3", ["Blood count"], types=["T059"], parents=["L1", "L2"]),
    ]
    assert (report.concepts, report.names, report.counts["parents"]) == (3, 4, 3)
    assert report.dropped["names without a letter or digit"] == 1


def test_read_maps_without_parents_there_is_a_note(tmp_path: Path) -> None:
    concepts, report = read(write(tmp_path, NAMES[:-5], ""))
    assert not any(each.parents for each in concepts)
    assert report.notes == ["loinc_parents.tsv is not there: no parents."]


@pytest.mark.parametrize("line", ["L9", "L9\t", "\tname", "L9\tname\tmore"])
def test_read_maps_invalid_line_is_named_or_counted(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, f"L1\tLaboratory\n{line}\nL3\tBlood count\n")
    with pytest.raises(SapbertError, match="E117") as error:
        read(path)
    assert f"{path}:2:" in str(error.value)
    concepts, report = read(path, on_error="skip")
    assert [each.cui for each in concepts] == ["L1", "L3"]
    assert report.dropped["bad lines"] == 1
    bad = write(tmp_path, "L1\tLaboratory\n", f"{line}\n")
    with pytest.raises(SapbertError, match=r"loinc_parents\.tsv:1:"):
        read(bad)


@given(
    st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from(["x", "y y", "z"]))),
    st.lists(st.tuples(st.sampled_from("ABCD"), st.sampled_from("ABCD"))),
)
def test_read_maps_every_name_and_parent_is_read_once(
    tmp_path_factory: pytest.TempPathFactory, names: list, parents: list
) -> None:
    folder = tmp_path_factory.mktemp("maps")
    lines = "".join(f"{code}\t{name}\n" for code, name in [*names, ("A", "x")])
    path = write(folder, lines, "".join(f"{c}\t{p}\n" for c, p in parents) or "\n")
    concepts, _ = read(path)
    found = {each.cui: each for each in concepts}
    assert [*found] == sorted({code for code, _ in [*names, ("A", "x")]})
    for code, each in found.items():
        own = [name for other, name in [*names, ("A", "x")] if other == code]
        assert each.aliases == list(dict.fromkeys(own))
        assert each.parents == sorted({p for c, p in parents if c == code} - {code})
