"""The readers of experiments/hierarchies, found by their entry points."""

import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io import plugins
from spacy_sapbert.io.plugins import load_plugins
from spacy_sapbert.vocabularies import registry
from tests.vocabularies import whole

FOLDER = Path(__file__).parents[2] / "experiments" / "hierarchies"


@pytest.fixture(autouse=True)
def installed(monkeypatch) -> Iterator[None]:
    """The package of the folder, as if pip had installed it."""
    declared = tomllib.loads((FOLDER / "pyproject.toml").read_text("utf8"))["project"]
    points = [
        EntryPoint(name, value, registry.PLUGINS)
        for name, value in declared["entry-points"][registry.PLUGINS].items()
    ]

    def find(group: str) -> list[EntryPoint]:
        return [point for point in points if point.group == group]

    monkeypatch.setattr(plugins, "entry_points", find)
    monkeypatch.syspath_prepend(str(FOLDER))
    load_plugins.cache_clear()
    yield
    load_plugins.cache_clear()
    sys.modules.pop("sapbert_hierarchies", None)


read_maps = partial(whole.read, format="maps")
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


def test_read_phecode_parents_are_the_nearest_of_what_a_code_rolls_up_to(tmp_path):
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
    # without the map there are no parents
    (tmp_path / "phecodeX_rollup_map.csv").unlink()
    path = write(tmp_path, LABELS + '"BI_3"\n', "")
    with pytest.raises(SapbertError, match=r"labels\.csv:5: Expected 3 fields"):
        read(path)
    concepts, report = read(path, on_error="skip")
    assert [each.parents for each in concepts] == [[], [], []]
    assert report.notes == ["phecodeX_rollup_map.csv is not there: no parents."]
    with pytest.raises(SapbertError, match=r"labels\.csv:1: .*phenotype"):
        read(write(tmp_path, '"code","name"\n"1","fever"\n'))


def write_maps(folder: Path, names: str, parents: str = "") -> Path:
    path = folder / "loinc_names.tsv"
    path.write_text(names, "utf8")
    if parents:
        (folder / "loinc_parents.tsv").write_text(parents, "utf8")
    return path


@pytest.mark.parametrize("line", ["L9", "L9\t", "\tname", "L9\tname\tmore"])
def test_read_maps_invalid_line_is_named_or_counted(tmp_path, line):
    path = write_maps(tmp_path, f"L1\tLaboratory\n{line}\nL3\tBlood count\n")
    with pytest.raises(SapbertError, match="E117") as error:
        read_maps(path)
    assert f"{path}:2:" in str(error.value)
    concepts, report = read_maps(path, on_error="skip")
    assert [each.cui for each in concepts] == ["L1", "L3"]
    assert report.notes == ["loinc_parents.tsv is not there: no parents."]
    assert report.dropped["bad lines"] == 1
    bad = write_maps(tmp_path, "L1\tLaboratory\n", f"{line}\n")
    with pytest.raises(SapbertError, match=r"loinc_parents\.tsv:1:"):
        read_maps(bad)
