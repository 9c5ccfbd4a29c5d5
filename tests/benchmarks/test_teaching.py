"""The table of what a knowledge base learns."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.teaching import app

ROOT = Path(__file__).parents[2]


def test_teaching_links_documents_that_were_not_learned(
    demo_folder: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    kb = demo_folder / "models" / "sample" / "kb"
    corrections = ROOT / "assets" / "sample" / "corrections.csv"
    figure = tmp_path / "curve.svg"
    command = [str(kb), str(corrections), "--sizes", "5,0", "--figure", str(figure)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.output.splitlines()]
    found = {row[0]: row[1:] for row in rows if row and re.fullmatch(r"\d+", row[0])}
    # 5 and all 25 of the documents to learn from; the others have 100 mentions.
    assert {key: int(row[0]) for key, row in found.items() if key != "100"} == {
        "0": 0,
        "5": 23,
        "25": 107,
    }
    assert float(found["0"][1]) < float(found["5"][1]) < float(found["25"][1])
    assert "100 mentions of 25 documents" in result.output
    assert figure.is_file()
