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
    find = {registry.PLUGINS: points}.get
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


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, "utf8")
    return path


read = partial(whole.read, format="phecode")


def test_read_phecode_parents_are_the_nearest_of_what_a_code_rolls_up_to(tmp_path):
    rollup = write(tmp_path, ROLLUP, PARENTS)
    concepts, report = read(write(tmp_path, LABELS, CODES), type="T047")
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
    rollup.unlink()
    path = write(tmp_path, LABELS, CODES + '"BI_3"\n')
    with pytest.raises(SapbertError, match=r"labels\.csv:5: Expected 3 fields"):
        read(path)
    concepts, report = read(path, on_error="skip")
    assert [each.parents for each in concepts] == [[], [], []]
    assert report.notes == ["phecodeX_rollup_map.csv is not there: no parents."]
    with pytest.raises(SapbertError, match=r"labels\.csv:1: .*phenotype"):
        read(write(tmp_path, LABELS, '"code","name"\n"1","fever"\n'))
