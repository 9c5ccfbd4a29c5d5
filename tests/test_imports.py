"""What spaCy has to import for us, whether or not anybody uses us."""

import subprocess
import sys

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
print(sorted(new - sys.stdlib_module_names), "sqlite3" in new)
"""


def test_opening_spacy_imports_nothing_but_small_modules_of_ours():
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True
    )
    *names, imported = done.stdout.splitlines()
    # `spacy.blank` imports the factories of all packages that are installed.
    assert {"sapbert_linker", "sapbert_mentions"} <= {*names}
    assert imported == "['spacy_sapbert'] False"
