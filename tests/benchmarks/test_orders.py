"""The comparison of models that order the candidates."""

import re
from pathlib import Path

import typer
from typer.testing import CliRunner

from benchmarks.orders import main

ROOT = Path(__file__).parents[2]


def test_orders_compares_models_on_documents(demo_folder: Path) -> None:
    kb = demo_folder / "models" / "sample" / "kb"
    corrections = ROOT / "assets" / "sample" / "corrections.csv"
    app = typer.Typer()
    app.command()(main)
    result = CliRunner().invoke(app, [str(kb), str(corrections), str(corrections)])
    assert result.exit_code == 0, result.output
    # name, with columns apart by two spaces → share of all, of seen
    lines = [re.split(r"\s{2,}", line.strip()) for line in result.output.splitlines()]
    found = {line[0].split(",")[0]: line[1:3] for line in lines if len(line) > 3}
    cosine, linear, network = (
        [float(share) for share in found[name]]
        for name in ("cosine", "linear", "network")
    )
    # The documents to link are those to learn from: what was annotated is found again.
    assert cosine[0] < linear[0] == linear[1]
    assert cosine[0] < network[0]
