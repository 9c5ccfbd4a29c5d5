import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.evaluation.diagnose import CAUSES
from tests.commands import invoke

run = partial(invoke, "explain")


def facts(output: str) -> dict[str, str]:
    lines = (line for line in output.splitlines() if line[:1].isalpha())
    return {line[:11].strip(): line[13:] for line in lines}


def test_explain_prints_the_link(sample_kb: Path) -> None:
    result = run(sample_kb, "pyrexia", "--expected", "C0000004", code=0)
    lines = facts(result.stdout)
    assert lines["concept"] == "C0000004 Fever"
    assert "1.0000   C0000004" in result.stdout
    assert lines["expected"] == "C0000004: It is the linked concept."
    assert "1. " not in result.stdout


def test_explain_prints_suggestions_and_exits_with_3(sample_kb: Path) -> None:
    result = run(sample_kb, "MI", "--expected", "C0000002", code=3)
    lines = facts(result.stdout)
    assert lines["expected"] == f"C0000002: {CAUSES['tie'].meaning}"
    assert lines["cause"] == "tie"
    assert f"kb remove {sample_kb} C0000001 --alias MI" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("fever",), 0),
        (("...",), 3),
        (("...", "--expected", "NIL"), 0),
        (("fever", "--expected", "NIL"), 3),
        (("fever", "--expected", "C0000001"), 3),
        (("fever", "--expected", "C7777777"), 3),
        (("head", "--threshold", "1"), 3),
        (("MI", "--setting", "ambiguous=nil", "--setting", "tie_evidence=[]"), 3),
    ],
)
def test_explain_exits_with_a_code_for_the_result(
    sample_kb: Path, arguments: tuple[str, ...], code: Any
) -> None:
    run(sample_kb, *arguments, code=code)
    assert run(sample_kb, *arguments, "--json").exit_code == code


def test_explain_has_the_filters_of_search(sample_kb: Path) -> None:
    arguments = (sample_kb, "fever", "--types", "T047", "-k", 3)
    result = run(*arguments, code=3)
    assert facts(result.stdout)["concept"] == "NIL (filtered)"
    assert "filtered\n" in result.stdout
    data = json.loads(run(*arguments, "--json").stdout)
    assert len(data["candidates"]) == 3
    assert data["filtered"][0]["cui"] == "C0000004"


def test_explain_runs_the_pipeline_on_the_context(
    sample_kb: Path, tmp_path: Path
) -> None:
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_abbreviations")
    nlp.add_pipe("sapbert_linker", config={"kb": str(sample_kb)})
    nlp.to_disk(tmp_path / "pipeline")
    context = "A heart attack (HA), and the [[HA]] came back."
    result = run(tmp_path / "pipeline", "--context", context, code=0)
    lines = facts(result.stdout)
    assert lines["long form"] == "heart attack, linked instead"
    assert lines["concept"] == "C0000001 Myocardial infarction"
    result = run(sample_kb, "HA", "--context", context)
    assert facts(result.stdout)["long form"] == "heart attack, linked instead"


def test_explain_uses_label_and_settings(cold_kb: Path) -> None:
    setting = 'label_types={"SIGN": ["T070"]}'
    result = run(cold_kb, "cold", "--label", "SIGN", "--setting", setting)
    assert facts(result.stdout)["concept"] == "C1 Cold temperature"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "E331"),
        (("fever", "--context", "a secret cough"), "E331"),
        (("--context", "a secret [[cough"), "E331"),
        *((("fever", "--setting", wrong), "E331") for wrong in ("k", "=1", "k=")),
        (("fever", "--setting", "secret=1"), "E333"),
        (("fever", "--setting", "k=no"), "E331"),
        (("fever", "--types", "T999"), "E332"),
    ],
)
def test_explain_refuses_bad_input_in_one_line(
    sample_kb: Path, arguments: tuple[str, ...], code: Any
) -> None:
    result = run(sample_kb, *arguments, code=1)
    assert code in result.output
    assert "cough" not in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("mention", ["", " ", "fev\udcffer"])
def test_explain_refuses_a_mention_that_is_no_text(
    sample_kb: Path, mention: str
) -> None:
    assert "E331" in run(sample_kb, mention, code=1).output


def test_explain_setting_of_lists_without_end_is_an_error(sample_kb: Path) -> None:
    setting = f"label_types={'[' * 50_000}"
    assert "[E" in run(sample_kb, "fever", "--setting", setting, code=1).output


def test_explain_prints_no_control_characters(sample_kb: Path) -> None:
    result = run(sample_kb, "fever\x1b[31m", "--expected", "C0000001")
    assert "\x1b[31m" not in result.output
