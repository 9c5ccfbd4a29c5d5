"""What spaCy has to import for us, whether or not anybody uses us."""

from pathlib import Path

import pytest

CODE = """
import sys
from importlib.metadata import entry_points
import spacy
before = {*sys.modules}
for point in entry_points(group="spacy_factories"):
    if point.value.startswith("spacy_sapbert."):
        print(point.name)
        point.load()
new = {name.partition(".")[0] for name in {*sys.modules} - before}
packages = new - before - sys.stdlib_module_names  # spaCy has pydantic itself
print(sorted(packages), "sqlite3" in new)
"""


@pytest.mark.smoke
def test_opening_spacy_imports_only_regex_and_small_modules_of_ours(new_process):
    done = new_process.python(CODE, check=True)
    *names, imported = done.stdout.splitlines()
    # `spacy.blank` imports the factories of all packages that are installed.
    assert {"sapbert_linker", "sapbert_mentions"} <= {*names}
    assert imported == "['regex', 'spacy_sapbert'] False"


WAIT_POLICY = """
import os, sys
from importlib import import_module

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print(os.environ.get("OMP_WAIT_POLICY"))

sys.meta_path.insert(0, Finder())
import_module(sys.argv[1])
import torch
"""


@pytest.mark.parametrize(
    ("module", "given", "used"),
    [
        ("spacy_sapbert.cli.main", None, "PASSIVE"),
        ("training.__main__", "ACTIVE", "ACTIVE"),
    ],
)
def test_commands_set_the_wait_policy_before_torch_is_imported(
    monkeypatch, given, used, module, new_process
):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    done = new_process.python(
        WAIT_POLICY, module, cwd=Path(__file__).parents[1], check=True
    )
    assert done.stdout == f"{used}\n"
