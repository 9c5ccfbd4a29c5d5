import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from benchmarks.linking import main, read_entities
from tests.commands import invoke

app = typer.Typer()
app.command()(main)

PUBTATOR = """1|t|Fever after a heart attack
1|a|Diabetes mellitus, not pre-diabetes, and aspirin.
1\t0\t5\tFever\tDisease\tC0000004
1\t14\t26\theart attack\tDisease\tC0000001
1\t20\t26\tattack\tDisease\tC0000001
1\t27\t44\tDiabetes mellitus\tDisease\tC0000005|C0000003
1\t68\t75\taspirin\tChemical\t-1

2|t|Nothing here
2|a|to be linked.

3|t|Headache
3|a|and fever.
3\t0\t8\tHeadache\tDisease\tC0000007
3\t13\t18\tfever\tDisease\tC0000004
"""


@pytest.fixture
def pubtator_file(tmp_path) -> Path:
    path = tmp_path / "gold.txt"
    path.write_text(PUBTATOR, "utf8")
    return path


def test_read_entities_has_the_longest_mentions_of_a_type(pubtator_file):
    docs = read_entities(pubtator_file, ["Disease"])
    texts = [[ent.text for ent in doc.ents] for doc in docs]
    assert texts == [["Fever", "heart attack", "Diabetes mellitus"]] + [
        ["Headache", "fever"]
    ]


@pytest.mark.usefixtures("new_process")
def test_linking_measures_another_version_in_turns(
    exported_kb, pubtator_file, monkeypatch
):
    # The other version is this one, found as an installed package is.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    options = ["--kb", exported_kb, "--label", "Disease"]
    options += ["--before", sys.executable, "--rounds", 1]
    done: Any = invoke(pubtator_file, *options, app=app)
    assert done.exit_code == 0, done.output
    assert "2 documents; median of 1" in done.output
    assert "0 of 5 mentions have another CUI" in done.output
    lines = done.output.splitlines()
    assert "| Mentions with an answer | 100.0% | 100.0% | 1.00× |" in lines
