import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from benchmarks.linking import main
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


@pytest.mark.usefixtures("new_process")
def test_linking_measures_another_version_in_turns(exported_kb, tmp_path, monkeypatch):
    gold = tmp_path / "gold.txt"
    gold.write_text(PUBTATOR, "utf8")
    # The other version is this one, found as an installed package is.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    options = ["--kb", exported_kb, "--label", "Disease"]
    options += ["--before", sys.executable, "--rounds", 1]
    done: Any = invoke(gold, *options, app=app)
    assert done.exit_code == 0, done.output
    assert "2 documents; median of 1" in done.output
    assert "0 of 5 mentions have another CUI" in done.output
    lines = done.output.splitlines()
    assert "| Mentions with an answer | 100.0% | 100.0% | 1.00× |" in lines
