import json

import pytest
from typer.testing import CliRunner

from spacy_sapbert.cli.explain import parse_settings
from spacy_sapbert.cli.main import app
from spacy_sapbert.errors import SapbertError


def run(*arguments):
    return CliRunner().invoke(app, ["explain", *map(str, arguments)])


def facts(output):
    lines = (line for line in output.splitlines() if line[:1].isalpha())
    return {line[:11].strip(): line[13:] for line in lines}


def test_explain_tells_what_was_found_and_why(sample_kb):
    result = run("pyrexia", "--kb", sample_kb, "--expected", "C0000004")
    assert result.exit_code == 0, result.output
    told = facts(result.stdout)
    assert told["concept"] == "C0000004 Fever"
    assert told["by its name"] == "Pyrexia"
    assert told["score"] == "1.000"
    assert told["index"] == "missed nothing"
    assert told["expected"] == "C0000004: it is what was found"
    assert "what mends it" not in result.stdout


def test_explain_tells_what_mends_it_and_exits_with_3(sample_kb):
    result = run("MI", "--kb", sample_kb, "--expected", "C0000002")
    assert result.exit_code == 3, result.output
    told = facts(result.stdout)
    assert told["tie"] == "nothing but the order of the ids"
    assert told["expected"] == "C0000002: it is as near as what was found"
    assert "equally near" in result.stdout
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
def test_explain_exit_codes(sample_kb, arguments, code):
    result = run(*arguments, "--kb", sample_kb)
    assert result.exit_code == code, result.output
    assert run(*arguments, "--kb", sample_kb, "--json").exit_code == code


def test_explain_takes_the_filters_of_search(sample_kb):
    result = run("fever", "--kb", sample_kb, "--types", "T047", "-k", 3, "--no-exact")
    assert result.exit_code == 0, result.output
    assert facts(result.stdout)["filter"].startswith("types T047; leaves out ")
    assert "filtered out" in result.stdout
    assert "index " not in result.stdout
    data = json.loads(
        run("fever", "--kb", sample_kb, "--types", "T047", "-k", 3, "--json").stdout
    )
    assert len(data["candidates"]) == 3
    assert data["filter"]["taken"][0]["cui"] == "C0000004"


def test_explain_runs_the_pipeline_on_the_context(sample_kb, tmp_path):
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_abbreviations")
    nlp.add_pipe("sapbert_linker", config={"kb": str(sample_kb)})
    nlp.to_disk(tmp_path / "pipeline")
    context = "A heart attack (HA), and the [[HA]] came back."
    result = run("--context", context, "--pipeline", tmp_path / "pipeline")
    assert result.exit_code == 0, result.output
    told = facts(result.stdout)
    assert told["long form"] == "heart attack, looked up in its place"
    assert told["concept"] == "C0000001 Myocardial infarction"
    result = run("HA", "--context", context, "--kb", sample_kb)
    assert facts(result.stdout)["long form"] == "heart attack, not looked up"


def test_explain_shows_both_scores_of_a_fusion(cold_kb):
    result = run("astma", "--kb", cold_kb, "--setting", "fusion=weighted")
    assert result.exit_code == 0, result.output
    assert "characters" in result.stdout
    assert "fused" in result.stdout


def test_explain_label_and_settings_reach_the_search(cold_kb):
    setting = 'label_types={"SIGN": ["T070"]}'
    options = ("--kb", cold_kb, "--label", "SIGN", "--setting", setting)
    assert facts(run("cold", *options).stdout)["concept"] == "C1 Cold temperature"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "E540"),
        (("fever", "--context", "a secret cough"), "E540"),
        (("--context", "a secret [[cough"), "E540"),
        (("fever", "--setting", "k"), "E541"),
        (("fever", "--setting", "secret=1"), "E333"),
        (("fever", "--setting", "k=no"), "E313"),
        (("fever", "--types", "T999"), "E332"),
    ],
)
def test_explain_what_cannot_be_asked_is_an_error_in_a_line(sample_kb, arguments, code):
    result = run(*arguments, "--kb", sample_kb)
    assert result.exit_code == 1, result.output
    assert code in result.output
    assert "cough" not in result.output
    assert "Traceback" not in result.output


def test_explain_does_not_let_a_mention_steer_the_terminal(sample_kb):
    result = run("fever\x1b[31m", "--kb", sample_kb, "--expected", "C0000001")
    assert "\x1b[31m" not in result.output


def test_explain_settings_are_json_or_a_text():
    assert parse_settings(["fusion=rrf", "k=3", "source_rank=[]", "a=b=c"]) == {
        "fusion": "rrf",
        "k": 3,
        "source_rank": [],
        "a": "b=c",
    }
    for wrong in ("fusion", "=rrf", "fusion="):
        with pytest.raises(SapbertError, match="E541"):
            parse_settings([wrong])


def test_explain_shows_a_broader_concept_and_what_it_is_above(cold_kb):
    settings = ("--setting", "broader=true", "--threshold", 1)
    result = run("asthmatic", "--kb", cold_kb, *settings)
    assert result.exit_code == 0, result.output
    told = facts(result.stdout)
    assert told["concept"].startswith("C9 Lung disease: a broader one, since the best")
    assert sorted(told["above"].split(", ")) == ["C3", "C4"]
    result = run("asthmatic", "--kb", cold_kb, "--threshold", 1)
    assert result.exit_code == 3
    assert "above" not in facts(result.stdout)
