"""The benchmarks of verified ids and of links that move to a new release."""

import json
from pathlib import Path

import pytest
import typer

from benchmarks import order, update, verify
from tests.commands import invoke

DOCUMENTS = """1|t|Heart attack and warm skin
1|a|
1\t0\t12\tHeart attack\tDisease\tC0000001
1\t17\t26\twarm skin\tDisease\tC0000004
1\t17\t26\twarm skin\tChemical\tC0000006

"""


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    (tmp_path / "gold.txt").write_text(DOCUMENTS)
    gold = order.GoldSet("", "", "gold.txt", "gold.txt", "Disease")
    monkeypatch.setattr(verify, "SETS", {"made up": gold})
    return tmp_path


def test_verify_counts_verdicts_of_right_and_wrong_pairs(sample_kb, data):
    words = ["measure", sample_kb, data, "--set", "made up"]
    run = invoke(*words, app=verify.app, code=0)
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in run.output.splitlines()
        if line.startswith("|")
    ]
    of_kind = {row[0]: row for row in rows}
    assert rows[0] == ["pairs", "number", "right", "near", "unsure", "wrong"]
    assert of_kind["right"][1] == "2"  # the chemical is of another type
    assert of_kind["right"][2] in ("50.0 %", "100.0 %")  # one is a name
    assert of_kind["rank 2–10"][1] == "6"


def test_fit_writes_the_weights_of_every_model(thousand_names_kb, data):
    names = ["acute heart inflammation", "left lung pain", "liver canser"]
    ids = ["INF-heart-acute", "SIDE-lung-left", "CAN-liver"]
    texts = " ".join(names)
    lines = [f"1|t|{texts}", "1|a|"]
    for name, id in zip(names, ids, strict=True):
        start = texts.index(name)
        lines.append(f"1\t{start}\t{start + len(name)}\t{name}\tDisease\t{id}")
    (data / "gold.txt").write_text("\n".join(lines) + "\n\n")
    output = data / "weights.json"
    words = ["fit", data, thousand_names_kb, "--set", "made up", "-o", output]
    invoke(*words, app=verify.app, code=0)
    table = json.loads(output.read_text("utf8"))
    assert {m: [*w["weights"]] for m, w in table.items()} == verify.MODELS


def test_update_moves_all_ids_with_a_replacement(thousand_names_kb, tmp_path):
    app = typer.Typer()
    app.command()(update.main)
    words = [thousand_names_kb, tmp_path / "out", "--links", 600, "--share", 0.2]
    run = invoke(*words, app=app, code=0)
    lines = [line.strip("| ").split("|") for line in run.output.splitlines()]
    cells = {line[0].strip(): line[1].strip() for line in lines if len(line) == 2}
    assert cells["moved"] == cells["links of ids with a replacement"] != "0"
    equal, total = map(
        int, cells["as linking all again"].replace(",", "").split(" of ")
    )
    assert equal >= 0.97 * total
