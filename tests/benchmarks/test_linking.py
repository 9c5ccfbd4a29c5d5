import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from benchmarks.gold_docs import read_corpus, score_links
from benchmarks.linking import isolate, main
from spacy_sapbert.evaluation.gold_mentions import (
    make_resolver,
)
from spacy_sapbert.formats.gold import GoldMention
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


def test_read_corpus_has_the_longest_mentions_as_entities(pubtator_file: Path) -> None:
    corpus = read_corpus(pubtator_file, labels=["Disease"], prefix="UMLS:")
    texts = [[ent.text for ent in doc.ents] for doc in corpus.docs]
    assert texts == [["Fever", "heart attack", "Diabetes mellitus"]] + [
        ["Headache", "fever"]
    ]
    assert corpus.mentions == 6
    assert [gold.parts for gold in corpus.golds[:3]] == [
        [["UMLS:C0000004"]],
        [["UMLS:C0000001"]],
        [["UMLS:C0000005"], ["UMLS:C0000003"]],
    ]


def test_score_links_scores_by_concepts() -> None:
    parts: list[Any] = [[["C1"]], [["C1"]], [["C2"]], [["C1"]], [], [["C9"]]]
    golds = [GoldMention(-1, -1, "", "a text", part, 0) for part in parts]
    answers = [
        [("C1", 0.9), ("C2", 0.90000001)],  # a tie, the first is right
        [("C3", 0.9), ("C2", 0.8)],  # an alias of the right one
        [("C1", 0.9), ("C2", 0.8)],  # wrong
        [],
        [],  # not judged
        [("C1", 0.4)],  # the dictionary has no C9
    ]
    aliases = {"C3": "C1"}
    live = {"C1": "C1", "C2": "C2"}
    scores = score_links(golds, answers, make_resolver(live.get, aliases), aliases)
    assert scores == {
        "strict": 0.2,
        "answered": 0.4,
        "linked": pytest.approx(4 / 6),
        "coverage": 0.8,
        "judged": 5,
    }


def test_isolate_hides_the_checkout(new_process: Any) -> None:
    code = "import benchmarks.linking_side, sys; print(*sys.path, sep='\\n')"
    with isolate() as env:
        done = new_process.run([sys.executable, "-S", "-c", code], env=env, check=True)
    checkout = Path(__file__).parents[2]
    assert checkout not in [Path(place) for place in done.stdout.splitlines()]


@pytest.mark.usefixtures("new_process")
def test_linking_measures_another_checkout_in_turns(
    sample_kb: Path, pubtator_file: Path
) -> None:
    options = ["--kb", sample_kb, "--label", "Disease", "--config", "k=3"]
    options += ["--before", Path(__file__).parents[2], "--rounds", 1, "--threads", 1]
    done = run(app, pubtator_file, *options)
    assert done.exit_code == 0, done.output
    assert "5 of 6 mentions on token boundaries, 5 with an id, 100.0%" in done.output
    assert "all 5 mentions have the same first CUI" in done.output
    lines = done.output.splitlines()
    # the composite cannot be right: it has two concepts
    assert "| Acc@1, first answer | 0.800 | 0.800 | 1.00× |" in lines
    assert "| Mentions with an answer | 100.0% | 100.0% | 1.00× |" in lines
