import json
from functools import partial
from pathlib import Path

import pytest

from tests.commands import invoke

run = partial(invoke, "regress")


@pytest.fixture
def cases(tmp_path):
    path = tmp_path / "cases.yaml"
    path.write_text(
        "- {mention: pyrexia, expected: C0000004}\n"
        "- {context: 'no [[fever]]', expected: C0000001, note: wrong on purpose}\n"
    )
    return path


def test_regress_prints_failures_and_exits_with_1(cases, sample_kb):
    result = run(sample_kb, cases, code=1)
    header, _, row, _, summary = result.stdout.splitlines()
    assert header.split() == [
        *("case", "mention", "expected", "found", "name", "score", "remarks", "note")
    ]
    assert row.split()[:6] == [
        *("cases.yaml:2", "fever", "C0000001", "C0000004", "Fever", "1.000")
    ]
    assert "wrong on purpose" in row
    assert summary == "2 cases, 1 passed, 1 failed"


def test_regress_passes_the_sample_cases_with_any_encoder(demo_folder):
    cases = Path(__file__).parents[2] / "assets" / "sample" / "cases.yaml"
    result = run(demo_folder / "models" / "sample" / "kb", cases, code=0)
    assert result.stdout == "7 cases, 7 passed, 0 failed\n"


def test_regress_writes_a_line_for_each_case(cases, sample_kb, tmp_path):
    output = tmp_path / "results.jsonl"
    result = run(sample_kb, cases, cases, "--output", output, "--quiet")
    assert (result.exit_code, result.output) == (1, "")
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [(line["line"], line["passed"]) for line in lines] == [
        *((1, True), (2, False), (1, True), (2, False))
    ]
    assert lines[1]["context"] == "no fever"
    assert lines[1]["candidates"][0]["cui"] == "C0000004"
    before = output.read_bytes()
    assert "E003" in run(sample_kb, cases, "--output", output, code=2).output
    assert output.read_bytes() == before
    run(sample_kb, cases, "--output", output, "--force", code=1)


@pytest.mark.parametrize(
    ("text", "kb", "options", "code"),
    [
        ("- {mention: x, expect: C1}\n", None, (), "E117"),
        ("- 'x\n", None, (), "E117"),
        ("", None, (), "E106"),
        ("- {mention: x, expected: C1}\n", "not_there", (), "E310"),
        ("- {mention: x, expected: C1}\n", None, ("--pipeline", "not_there"), "E507"),
    ],
)
def test_regress_exits_with_2_if_an_input_is_unusable(
    cases, sample_kb, tmp_path, text, kb, options, code
):
    cases.write_text(text)
    output = tmp_path / "results.jsonl"
    result = run(kb or sample_kb, cases, *options, "--output", output, code=2)
    assert code in result.output
    assert "Traceback" not in result.output
    assert not output.exists()


def test_regress_exits_with_2_without_the_file(sample_kb, tmp_path):
    run(sample_kb, tmp_path / "none.yaml", code=2)


def test_regress_exits_with_2_after_an_unexpected_error(
    cases, sample_kb, monkeypatch
) -> None:
    """1 means that cases failed, which a defect of a component does not show."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("spacy_sapbert.evaluation.regression.run_cases", fail)
    run(sample_kb, cases, code=2)
