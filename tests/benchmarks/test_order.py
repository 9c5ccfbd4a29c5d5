"""The protocol of the order: names, then annotations, by first answers."""

import pytest
import typer

from benchmarks import order
from tests.commands import invoke

NAMES = """X1||fever|pyrexia
X2||heart attack|myocardial infarction
X3||diabetes mellitus|diabetes
"""
TRAIN = """1|t|Warm skin and fever
1|a|
1\t0\t9\tWarm skin\tDisease\tX1
1\t14\t19\tfever\tDisease\tX1
"""
DEV = """2|t|Warm skin, DM, heart attack and sugar
2|a|Pyrexia, and diabetes mellitus (DM).
2\t0\t9\tWarm skin\tDisease\tX1
2\t11\t13\tDM\tDisease\tX3
2\t15\t27\theart attack\tDisease\tX2
2\t32\t37\tsugar\tDisease\tX9
2\t38\t45\tPyrexia\tChemical\tX1
"""


def test_order_counts_first_answers_before_and_after_teaching(
    tmp_path, tiny_encoder, monkeypatch
):
    for name, text in {"v.txt": NAMES, "train.txt": TRAIN, "dev.txt": DEV}.items():
        (tmp_path / name).write_text(text)
    gold = order.GoldSet("v.txt", "biosyn", "train.txt", "dev.txt", "Disease")
    monkeypatch.setattr(order, "SETS", {"made up": gold})
    app = typer.Typer()
    app.command()(order.main)
    run = invoke(
        tmp_path, tmp_path / "out", "--encoder", tiny_encoder, "--seeds", 1, app=app
    )
    assert run.exit_code == 0, run.output
    row = run.output.strip().splitlines()[-1]
    # X9 is in no vocabulary, and Pyrexia is of another type. Of the three others, "warm
    # skin" is right for certain only when taught; "DM" by its long form.
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:2] == ["made up", "3"]
    assert cells[4] == "1.0000 ± 0.0000"
    wrong = invoke(tmp_path, tmp_path, "--encoder", "x", "--set", "other", app=app)
    assert "made up" in str(wrong.exception)


@pytest.mark.parametrize("name", order.SETS)
def test_sets_are_read(name, data_folder):
    gold = order.SETS[name]
    assert next(order.read_names(data_folder, gold)).aliases
    for path in (gold.train, gold.dev):
        documents = order.read_documents(data_folder / path, gold)
        assert any(document.mentions for document in documents)
