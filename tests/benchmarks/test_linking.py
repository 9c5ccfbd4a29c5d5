import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from benchmarks.linking import isolate, main, read_entities
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
def pubtator_file(tmp_path: Path) -> Path:
    path = tmp_path / "gold.txt"
    path.write_text(PUBTATOR, "utf8")
    return path


def run(command: Any, *arguments: Any) -> Any:
    return invoke(*arguments, app=command)


def test_read_entities_has_the_longest_mentions_of_a_type(pubtator_file: Path) -> None:
    docs = read_entities(pubtator_file, labels=["Disease"], limit=0)
    texts = [[ent.text for ent in doc.ents] for doc in docs]
    assert texts == [["Fever", "heart attack", "Diabetes mellitus"]] + [
        ["Headache", "fever"]
    ]
    assert len(read_entities(pubtator_file, labels=[], limit=2)) == 1


def test_isolate_hides_the_checkout(new_process: Any) -> None:
    code = "import benchmarks.linking_side, sys; print(*sys.path, sep='\\n')"
    with isolate() as env:
        done = new_process.run([sys.executable, "-S", "-c", code], env=env, check=True)
    checkout = Path(__file__).parents[2]
    assert checkout not in [Path(place) for place in done.stdout.splitlines()]


@pytest.mark.usefixtures("new_process")
def test_linking_measures_another_checkout_in_turns(
    exported_kb: Path, pubtator_file: Path
) -> None:
    options = ["--kb", exported_kb, "--label", "Disease", "--config", "k=3"]
    options += ["--before", Path(__file__).parents[2], "--rounds", 1, "--threads", 1]
    done = run(app, pubtator_file, *options)
    assert done.exit_code == 0, done.output
    assert "2 documents, 5 mentions; median of 1" in done.output
    assert "all 5 mentions have the same first CUI" in done.output
    lines = done.output.splitlines()
    assert "| Mentions with an answer | 100.0% | 100.0% | 1.00× |" in lines
