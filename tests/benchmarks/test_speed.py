"""The commands of `benchmarks.speed` that take seconds."""

from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from benchmarks.speed import REST, STEPS, app

GOLD = "1|t|Fever and headache\n1|a|None.\n1\t0\t5\tFever\tDisease\tC0000004\n"


def run(*arguments: Any) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_profile_has_every_step(sample_kb: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.txt"
    gold.write_text(GOLD, "utf8")
    output = run("profile", gold, "--kb", sample_kb, "--rounds", 1)
    rows = [line.split("  ")[0].strip() for line in output.splitlines()]
    shown = [row for row in rows if row in {*STEPS, REST, "all"}]
    assert shown == [*STEPS, REST, "all"]
    assert "1 documents, 1 mentions" in output
