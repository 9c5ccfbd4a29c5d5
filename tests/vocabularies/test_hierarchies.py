"""The readers of experiments/hierarchies, found by their entry points."""

import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from spacy_sapbert.io import plugins
from spacy_sapbert.io.plugins import load_plugins
from spacy_sapbert.vocabularies import reader_table
from tests.vocabularies.whole import fail, read

FOLDER = Path(__file__).parents[2] / "experiments" / "hierarchies"


@pytest.fixture(autouse=True)
def installed(monkeypatch) -> Iterator[None]:
    """The package of the folder, as if pip had installed it."""
    declared = tomllib.loads((FOLDER / "pyproject.toml").read_text("utf8"))["project"]
    points = [
        EntryPoint(name, value, reader_table.PLUGINS)
        for name, value in declared["entry-points"][reader_table.PLUGINS].items()
    ]
    find = {reader_table.PLUGINS: points}.get
    monkeypatch.setattr(plugins, "entry_points", lambda group: find(group, []))
    monkeypatch.syspath_prepend(str(FOLDER))
    load_plugins.cache_clear()
    yield
    load_plugins.cache_clear()
    sys.modules.pop("sapbert_hierarchies", None)


LABELS, ROLLUP = "phecodeX_labels.csv", "phecodeX_rollup_map.csv"
CODES = """"phenotype","description","icd10_only"
"BI_160","Deficiency anemias",0
"BI_160.1","Iron deficiency, anemia",0
"BI_160.11","Anemia secondary to ""blood"" loss*",1
"""
PARENTS = """"code","phecode_unrolled"
"BI_160","BI_160"
"BI_160.1","BI_160"
"BI_160.1","BI_160.1"
"BI_160.11","BI_160"
"BI_160.11","BI_160.1"
"BI_160.11","BI_160.11"
"""


def test_read_phecode_parents_are_the_nearest_of_what_a_code_rolls_up_to(tmp_path):
    path, rollup = tmp_path / LABELS, tmp_path / ROLLUP
    path.write_text(CODES, "utf8")
    rollup.write_text(PARENTS, "utf8")
    concepts, report = read(path, "phecode", type="T047")
    found = {each.cui: (each.name, each.parents) for each in concepts}
    assert found == {
        "BI_160": ("Deficiency anemias", []),
        "BI_160.1": ("Iron deficiency, anemia", ["BI_160"]),
        "BI_160.11": ('Anemia secondary to "blood" loss', ["BI_160.1"]),
    }
    assert concepts[0].types == ["T047"]
    assert report.counts["parents"] == 2
    rollup.unlink()
    path.write_text(CODES + '"BI_3"\n', "utf8")
    assert "labels.csv:5: Expected 3 fields" in fail(path, "phecode")
