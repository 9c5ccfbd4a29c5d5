import csv
import json
import os
import platform
import re
import shutil
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from spacy_sapbert.evaluation.diagnose import CAUSES
from spacy_sapbert.io.version import __version__
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.vocabularies.concepts import read_concepts
from tests.commands import invoke

run_kb = partial(invoke, "kb")


def test_kb_build_writes_a_kb_and_prints_its_counts(
    concepts_file, tiny_encoder, tmp_path
):
    kb = tmp_path / "kb"
    result = run_kb(
        *("build", concepts_file, kb, "--encoder", tiny_encoder),
        *("--backend", "hnsw", "--setting", "M=8", "--setting", "ef=50"),
        *("--pooling", "cls", "--threshold", "0.4", "--source", "made up 1.0"),
        *("--engine", "torch"),
        code=0,
    )
    assert "made up 1.0" in result.output
    assert "slower search" not in result.output
    assert "No order of candidates is learned" in result.output
    manifest = load_kb(kb).manifest
    assert manifest.index.settings["M"] == 8
    assert manifest.index.settings["ef_construction"] == 400
    assert manifest.encoder.pooling == "cls"
    assert manifest.encoder.max_length == 25
    assert manifest.threshold == 0.4
    assert manifest.sources == ["made up 1.0"]


def test_kb_verify_finds_damage(own_kb):
    assert "100.0%" in run_kb("verify", own_kb, code=0).output
    (own_kb / "v1" / "concepts.db").write_bytes(b"SQLite")
    assert "concepts.db" in run_kb("verify", own_kb, code=1).output


def test_kb_commands_are_commands_of_spacy(sample_kb):
    from spacy.cli._util import app

    words = ("sapbert", "kb", "info", sample_kb)
    assert "Distinct names" in invoke(*words, app=app, code=0).output


def test_kb_search_prints_candidates_in_order(sample_kb):
    words = ("search", sample_kb, "pyrexia", "head pain", "-k", 2)
    first, second = run_kb(*words, code=0).output.split("\n\nhead pain (")
    rows = [line.split() for line in first.splitlines()[4:]]
    assert [row[0] for row in rows] == ["1", "2"]
    assert rows[0][1:] == ["1.000", "C0000004", "Fever", "Pyrexia", "T184"]
    assert "C0000007" in second
    assert all("probability of the first: " in found for found in (first, second))
    data = json.loads(run_kb(*words, "--json", code=0).output)
    assert [found["mention"] for found in data] == ["pyrexia", "head pain"]
    assert [len(found["candidates"]) for found in data] == [2, 2]
    result = run_kb("search", sample_kb, "fever", "...", code=3)
    assert "no candidates" in result.output


@pytest.fixture
def edited_kb(own_kb) -> Path:
    """With a name and a concept of a ward, without a name and a concept of ours."""
    run_kb("add", own_kb, "--cui", "C0000004", "--alias", "ward heat", code=0)
    run_kb("add", own_kb, "--new", "--cui", "W1", "--alias", "bay 3 cough", code=0)
    run_kb("remove", own_kb, "C0000004", "--alias", "Pyrexia", code=0)
    run_kb("remove", own_kb, "C0000006", code=0)
    return own_kb


def test_kb_show_marks_what_was_added(edited_kb):
    output = run_kb("show", edited_kb, "C0000004", "W1", code=0).output
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert "ward heat yes" in lines
    assert "bay 3 cough yes" in lines
    assert not any("Pyrexia" in line for line in lines)
    (shown,) = json.loads(run_kb("show", edited_kb, "W1", "--json", code=0).output)
    assert shown == {
        "cui": "W1",
        "name": "bay 3 cough",
        "aliases": ["bay 3 cough"],
        "children": [],
    }


def test_kb_dump_is_the_vocabulary_after_the_edits(edited_kb, concepts_file, tmp_path):
    dump, table, ward = (tmp_path / name for name in ("a.jsonl", "a.csv", "ward.jsonl"))
    run_kb("dump", edited_kb, "-o", dump, "--quiet", code=0)
    dumped = {one.cui: one for one in read_concepts(dump)}
    built = {one.cui: one for one in read_concepts(concepts_file)}
    assert list(dumped) == sorted({*built, "W1"} - {"C0000006"})
    assert dumped["W1"].aliases == ["bay 3 cough"]
    names = [name for name in built["C0000004"].aliases if name != "Pyrexia"]
    assert dumped["C0000004"].aliases == [*names, "ward heat"]
    for cui in {*built} - {"C0000004", "C0000006"}:
        assert dumped[cui] == built[cui]
    # A table has a row for each name.
    run_kb("dump", edited_kb, "-o", table, code=0)
    rows = [*csv.DictReader(table.read_text("utf8").splitlines())]
    local = [(row["id"], row["name"]) for row in rows if row["local"] == "yes"]
    assert local == [("C0000004", "ward heat"), ("W1", "bay 3 cough")]
    invoke("concepts", table, "-o", tmp_path / "again.jsonl", code=0)
    again = {one.cui: {*one.aliases} for one in read_concepts(tmp_path / "again.jsonl")}
    assert again == {cui: {*one.aliases} for cui, one in dumped.items()}
    run_kb("dump", edited_kb, "--local", "-o", ward, code=0)
    assert [one.cui for one in read_concepts(ward)] == ["C0000004", "W1"]


def test_kb_dump_has_no_annotated_mentions(own_kb, tmp_path):
    note = tmp_path / "note.jsonl"
    text = "The waterworks are blocked."
    entities = [{"start": 4, "end": 14, "cui": "C0000004"}]
    note.write_text(json.dumps({"id": "n", "text": text, "entities": entities}))
    invoke("teach", own_kb, note, "--force", code=0)
    assert "waterworks" in load_kb(own_kb)["C0000004"].aliases
    run_kb("dump", own_kb, "-o", tmp_path / "dump.jsonl", code=0)
    assert "waterworks" not in (tmp_path / "dump.jsonl").read_text("utf8")


def test_info_has_what_a_report_needs_and_no_names_of_files(
    sample_kb, tmp_path, monkeypatch
):
    taught, corrections = tmp_path / "taught", tmp_path / "corrections.csv"
    corrections.write_text("id,text,cui\n1,very hot,C0000004\n", "utf8")
    words = ("teach", sample_kb, corrections, "--output", taught, "--force")
    invoke(*words, code=0)
    found = json.loads(invoke("info", "--json", taught, code=0).stdout)
    assert found["spacy-sapbert"] == __version__
    assert found["Python"] == platform.python_version()
    assert found["numpy"] == np.__version__
    assert found["Installation"] == "full"
    monkeypatch.setitem(sys.modules, "transformers", None)
    light = json.loads(invoke("info", "--json", code=0).stdout)
    assert light["Installation"].startswith("light, without transformers")
    manifest = load_kb(taught).manifest
    assert found["Digest"] == manifest.digest
    assert found["Concepts, as built"] == f"{manifest.counts.concepts:,}"
    shown = invoke("info", taught).stdout
    assert "Digest" in shown
    for private in ("corrections", str(tmp_path)):
        assert private not in shown


run_explain = partial(invoke, "explain")


def facts(output: str) -> dict[str, str]:
    lines = (line for line in output.splitlines() if line[:1].isalpha())
    return {line[:11].strip(): line[13:] for line in lines}


def test_explain_with_a_threshold_of_the_options(sample_kb):
    """By an option of its own or with `--setting`, which comes last."""
    for words, expected in (
        ((), (0.5, None)),
        (("--threshold", 0.6, "--least-cosine", 0.7), (0.6, 0.7)),
        (("--threshold", 0.6, "--setting", "threshold=0.7"), (0.7, None)),
        (("--setting", "threshold=0.8", "--setting", "least_cosine=-0.5"), (0.8, -0.5)),
    ):
        found = json.loads(run_explain(sample_kb, "fever", *words, "--json").stdout)
        assert (found["threshold"], found["least_cosine"]) == expected
    done = run_explain(sample_kb, "fever", "--threshold", -0.5, code=1)
    assert re.search(r"\[E331\].*a probability.*`least_cosine`", done.output)
    words = ("--threshold", 0, "--least-cosine", 1)
    lines = facts(run_explain(sample_kb, "fevr", *words, code=3).stdout)
    assert (lines["threshold"], lines["least score"]) == ("0", "1")


def test_explain_prints_the_link_and_suggestions(sample_kb):
    right = run_explain(sample_kb, "pyrexia", "--expected", "C0000004", code=0)
    lines = facts(right.stdout)
    assert lines["concept"] == "C0000004 Fever"
    assert "1.0000   C0000004" in right.stdout
    assert lines["probability"].endswith(", that the first candidate is right")
    assert "most likely first; score: cosine of mention and alias" in right.stdout
    assert lines["expected"] == "C0000004: It is the linked concept."
    assert "1. " not in right.stdout
    assert "does not read all" not in right.stdout
    words = (sample_kb, "heart attack", "--expected", "C9999999")
    now = facts(run_explain(*words, code=0).stdout)["now"]
    assert now == "C0000001; C9999999 was retired"
    wrong = run_explain(sample_kb, "MI", "--expected", "C0000002", code=3)
    lines = facts(wrong.stdout)
    assert lines["expected"] == f"C0000002: {CAUSES['tie'].meaning}"
    assert (lines["cause"], lines["name"]) == ("tie", "Mitral insufficiency (T047)")
    assert f"kb remove {sample_kb} C0000001 --alias MI" in wrong.stdout
    context = "A heart attack (HA), and the [[HA]] came back."
    lines = facts(run_explain(sample_kb, "--context", context, code=0).stdout)
    assert lines["long form"] == "heart attack, linked instead"
    assert lines["concept"] == "C0000001 Myocardial infarction"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("fever",), 0),
        (("...",), 3),
        (("...", "--expected", "NIL"), 0),
        (("fever", "--expected", "C0000001"), 3),
    ],
)
def test_explain_exits_with_a_code_for_the_result(sample_kb, arguments, code):
    run_explain(sample_kb, *arguments, code=code)
    assert run_explain(sample_kb, *arguments, "--json").exit_code == code


run_regress = partial(invoke, "regress")


def test_regress_prints_and_writes_results_and_exits_with_1(
    sample_kb, tmp_path, monkeypatch
):
    cases, output = tmp_path / "cases.yaml", tmp_path / "results.jsonl"
    cases.write_text(
        "- {mention: pyrexia, expected: C0000004}\n"
        "- {context: 'no [[fever]]', expected: C0000001, note: wrong on purpose}\n"
    )
    result = run_regress(sample_kb, cases, "--output", output, code=1)
    header, _, row, _, summary = result.stdout.splitlines()
    assert header.split() == [
        *("case", "mention", "expected", "found", "name", "score", "remarks", "note")
    ]
    assert row.split()[:6] == [
        *("cases.yaml:2", "fever", "C0000001", "C0000004", "Fever", "1.000")
    ]
    assert "wrong on purpose" in row
    assert summary == "2 cases, 1 passed, 1 failed"
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [(line["line"], line["passed"]) for line in lines] == [(1, True), (2, False)]
    assert lines[1]["context"] == "no fever"
    assert lines[1]["candidates"][0]["cui"] == "C0000004"
    assert run_regress(sample_kb, cases, "--quiet", code=1).output == ""

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    # 1 means that cases failed, which a defect of a component does not show.
    monkeypatch.setattr("spacy_sapbert.evaluation.regression.run_cases", fail)
    run_regress(sample_kb, cases, code=2)


@pytest.fixture
def cases(tmp_path) -> Path:
    path = tmp_path / "cases.yaml"
    path.write_text(
        "- {mention: pyrexia, expected: C0000004}\n"
        "- {mention: fever, expected: C0000001}\n"
    )
    return path


def test_regress_keeps_cases_and_how_many_passed_in_a_pipeline(
    sample_kb, cases, tmp_path
):
    pipeline = tmp_path / "pipeline"
    invoke("assemble", sample_kb, pipeline, code=0)
    assert "[E106]" in run_regress(pipeline, code=2).output
    kept = run_regress(sample_kb, cases, "--keep", pipeline, code=0)
    assert kept.stdout.endswith("2 cases, 1 passed, 1 failed\n")
    least = pipeline / "regression" / "least.json"
    assert json.loads(least.read_text()) == {"cases.yaml": 1}
    cases.unlink()
    passed = run_regress(pipeline, code=0)
    line = "2 cases, 1 passed, 1 failed; at least 1 of cases.yaml must pass\n"
    assert passed.stdout.endswith(line)
    least.write_text('{"cases.yaml": 2}')
    run_regress(pipeline, code=1)
    least.write_text('{"../cases.yaml": "2"}')
    assert "[E117]" in run_regress(pipeline, code=2).output
    invoke("assemble", sample_kb, pipeline, "--force", code=0)
    assert not least.exists()


def test_regress_keeps_cases_in_pipelines_alone(sample_kb, cases, tmp_path):
    assert "[E507]" in run_regress(sample_kb, cases, "--keep", sample_kb, code=2).output
    pipeline = tmp_path / "pipeline"
    invoke("assemble", sample_kb, pipeline, code=0)
    assert "[E331]" in run_regress(sample_kb, "--keep", pipeline, code=2).output
    twice = (cases, cases, "--keep", pipeline)
    assert "[E331]" in run_regress(sample_kb, *twice, code=2).output
    run_regress(sample_kb, cases, "--keep", pipeline, code=0)
    again = run_regress(sample_kb, cases, "--keep", pipeline, code=2)
    assert "[E003]" in again.output
    run_regress(sample_kb, cases, "--keep", pipeline, "--force", code=0)


def test_regress_runs_the_cases_of_an_installed_wheel(
    exported_kb, cases, tmp_path, new_process
):
    pipeline, site = tmp_path / "pipeline", tmp_path / "site"
    invoke("assemble", exported_kb, pipeline, "--name", "tiny", code=0)
    run_regress(exported_kb, cases, "--keep", pipeline, code=0)
    package = ["-m", "spacy", "package", pipeline, tmp_path, "--name", "tiny"]
    new_process.run([sys.executable, *package, "--build", "none"], check=True)
    folder = tmp_path / "en_tiny-0.1.0"
    build = ["-m", "build", "--quiet", "--no-isolation", "--wheel", folder]
    new_process.run([sys.executable, *build], check=True)
    (wheel,) = folder.rglob("*.whl")
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    new_process.run([sys.executable, *install, "--target", site, wheel], check=True)
    shutil.rmtree(pipeline)
    regress = ["-m", "spacy_sapbert", "regress", "en_tiny"]
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = new_process.run(
        [sys.executable, *regress],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
    )
    assert "1 passed, 1 failed; at least 1 of cases.yaml must pass" in done.stdout
