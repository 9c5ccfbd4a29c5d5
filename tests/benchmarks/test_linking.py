import sys
from typing import Any

import pytest
import typer

from benchmarks.linking import Entities, main, score
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
def test_linking_measures_another_version_in_turns(exported_kb, tmp_path):
    gold = tmp_path / "gold.txt"
    gold.write_text(PUBTATOR, "utf8")
    page = tmp_path / "page.md"
    part = "<!-- linking: start -->\n\n<!-- linking: end -->\n"
    page.write_text(f"Before\n{part}", "utf8")
    options = ["--kb", exported_kb, "--label", "Disease", "--page", page]
    options += ["--before", sys.executable, "--rounds", 1, "--cores", 1]
    done: Any = invoke(gold, *options, app=app)
    assert done.exit_code == 0, done.output
    assert "0 of 5 mentions have another first candidate" in done.output
    lines = page.read_text("utf8").splitlines()
    assert "2 documents with 5 mentions, 2 texts with detection" in lines[2]
    assert "With 1 core:" in lines
    # Of three mentions with one concept in the knowledge base
    assert "| First candidate right | 1.000 | 1.000 | 1.00 × |" in lines
    assert "| Mentions with an answer | 100.0% | 100.0% | 1.00 × |" in lines


def test_score_counts_mentions_with_one_concept_that_is_there():
    concepts = [
        [frozenset({"C1", "C2"})],  # two ids, each is right
        [frozenset({"C3"})],
        [frozenset({"C4"})],
        [frozenset()],  # not in the knowledge base
        [frozenset({"C1"}), frozenset({"C3"})],  # composite
    ]
    answers = [("C2", True), ("C3", False), ("C1", True), ("C1", True), (None, False)]
    # Right candidates: 2 of 3. Answers: 3 of 5, of which 2 are judged and 1 is right.
    entities = Entities([], concepts)
    assert score(answers, entities) == pytest.approx(
        {"right": 2 / 3, "linked": 3 / 5, "precision": 1 / 2}
    )
