import json
from pathlib import Path

from click.testing import Result
from typer.testing import CliRunner

from spacy_sapbert.cli.main import app


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["kb", "search", *map(str, arguments)])


def test_search_prints_candidates_in_order(sample_kb: Path) -> None:
    result = run("pyrexia", "head pain", "--kb", sample_kb, "-k", 2)
    assert result.exit_code == 0, result.output
    first, second = result.output.split("\n\nhead pain\n")
    rows = [line.split() for line in first.splitlines()[4:]]
    assert [row[0] for row in rows] == ["1", "2"]
    assert rows[0][1:] == ["1.000", "C0000004", "Fever", "Pyrexia", "T184"]
    assert "C0000007" in second


def test_search_json_has_every_candidate(sample_kb: Path) -> None:
    result = run("pyrexia", "MI", "--kb", sample_kb, "--k", 3, "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.output)
    assert [found["mention"] for found in data] == ["pyrexia", "MI"]
    assert [len(found["candidates"]) for found in data] == [3, 3]
    assert {c["cui"] for c in data[1]["candidates"][:2]} == {"C0000001", "C0000002"}


def test_search_a_mention_without_candidates_exits_with_3(sample_kb: Path) -> None:
    result = run("fever", "...", "--kb", sample_kb)
    assert result.exit_code == 3
    assert "no candidates" in result.output
    assert json.loads(run("...", "--kb", sample_kb, "--json").output)[0]["note"]


def test_search_without_a_kb_is_an_error(tmp_path: Path) -> None:
    result = run("fever", "--kb", tmp_path / "none")
    assert result.exit_code == 1
    assert "E310" in result.output


def test_search_prints_no_control_characters(sample_kb: Path) -> None:
    result = run("fever\x1b[31m", "--kb", sample_kb)
    assert "\x1b[31m" not in result.output
