import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.evaluation import calibration
from spacy_sapbert.evaluation.calibration import read_gold_files
from spacy_sapbert.io.reading import file_digest
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.folder.versions import read_version
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.linking.probability import log_odds
from spacy_sapbert.vocabularies.concepts import Concept
from tests.commands import invoke

SENTINEL = "xyzzy"
GOLD = f"""mention\tids
Fever\tC0000004
MI\tC0000001
heart attack\tC9999999
{SENTINEL} {SENTINEL}\tC0000001+C0000002
headache\tMESH:1
nothing\t-1
"""


run_evaluate = partial(invoke, "evaluate")


def test_evaluate_writes_results_and_predictions(sample_kb, tmp_path):
    names = ("aliases.tsv", "seen.txt", "out.json", "out.jsonl", "other.jsonl")
    aliases, seen, output, predictions, other = (tmp_path / name for name in names)
    gold = tmp_path / "gold.tsv"
    gold.write_text(GOLD, "utf8")
    aliases.write_text("MESH:1\tC0000007\n", "utf8")
    seen.write_text("fever||C0000004\n", "utf8")
    cuis = ["C0000004", "C0000002", "C0000008", "C0000001", "C0000007"]
    rows = [
        {"file": "gold.tsv", "line": line, "cuis": [cui], "scores": [0.9]}
        for line, cui in enumerate(cuis, 2)
    ]
    other.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf8")
    options = ["--aliases", aliases, "--seen", seen, "--output", output]
    options += ["--predictions", predictions, "--compare", other]
    result = run_evaluate(sample_kb, gold, *options, code=0)
    results = json.loads(output.read_text("utf8"))
    assert results["settings"]["ks"] == [1, 5]
    assert results["settings"]["composite"] == "parts"
    assert results["kb"]["counts"]["concepts"] == 8
    assert results["versions"]["spacy-sapbert"]
    assert results["index_recall"]["recall@10"] == 1
    (file,) = results["files"]
    assert (file["mentions"], file["judged"], file["without_id"]) == (6, 5, 1)
    assert file["coverage"] == 1
    groups = file["accuracy"]
    assert (groups["seen"]["mentions"], groups["unseen"]["mentions"]) == (1, 4)
    # Right for certain: fever, heart attack, headache; MI ties between two concepts;
    # a composite cannot be right with one answer.
    ties = groups["all"]["concepts"]["acc@1"]
    assert (ties["expected"], ties["strict"]) == (0.7, 0.6)
    rows = [json.loads(line) for line in predictions.read_text("utf8").splitlines()]
    assert [row["line"] for row in rows] == [2, 3, 4, 5, 6]
    assert rows[1]["cuis"][:2] == ["C0000001", "C0000002"]
    assert rows[4]["cuis"][0] == "C0000007"
    (found,) = results["comparison"]["results"]
    strict = found["ties"]["strict"]
    # Both link fever and headache; only this one links heart attack for certain.
    assert (strict["first"], strict["second"]) == (0.4, 0.6)
    assert (strict["only_first"], strict["only_second"], strict["p"]) == (0, 1, 1)
    for written in (result.output, output.read_text(), predictions.read_text()):
        assert SENTINEL not in written
    shown = " ".join(result.stdout.split())
    assert "other.jsonl" in shown
    assert "5 mentions (1 without an id, or repeated, are left out)" in shown
    assert "first answer is right 70.0% (29.9% to 92.7%)" in shown
    # of what has an id, all are in the knowledge base: nothing says anything of NIL
    assert re.search(r" 0\.5 \(used\) [\d.]+ [\d.]+ – – ", shown)
    assert all(at["nil_precision"] is None for at in results["links"])


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (f"{SENTINEL} 1\tUMLS:C0000004\n" * 10, "none of 10 has one, e.g. 'UMLS:C"),
        (f"C0000004 1\t{SENTINEL}\n" * 10, "E725"),  # the columns are swapped
    ],
)
def test_evaluate_of_ids_in_another_form_is_an_error(sample_kb, tmp_path, rows, said):
    path = tmp_path / "gold.tsv"
    path.write_text(f"mention\tids\n{rows}", "utf8")
    result = run_evaluate(sample_kb, path, code=1)
    assert "E725" in result.output
    assert said in result.output
    assert SENTINEL not in result.output


def calibrate(*arguments: Any) -> dict[str, Any]:
    result = invoke("calibrate", *arguments, "--json", code=0)
    return dict(json.loads(result.stdout))


def test_calibrate_writes_threshold_and_calibration(annotated_file, own_kb):
    found = calibrate(own_kb, annotated_file, "--dry-run")
    assert read_version(own_kb).name == "v1"
    result = invoke("calibrate", own_kb, annotated_file, code=0)
    assert "Expected calibration error" in result.output
    manifest = load_kb(own_kb).manifest  # verified
    assert manifest.calibration is not None
    assert manifest.calibration.model_dump() == found
    assert manifest.threshold == found["threshold"]
    assert found["criterion"] == "f1"
    assert found["files"] == [
        {"file": "gold.tsv", "sha256": file_digest(annotated_file)}
    ]
    counts = ("mentions", "documents", "answered", "right", "nil")
    assert [found[name] for name in counts] == [80, 10, 60, 40, 10]
    # names are more probable than the other texts
    assert 0 < found["threshold"] < 1
    assert (found["precision"], found["linked"]) == (1, 40)
    assert found["recall"] == pytest.approx(4 / 7, abs=1e-6)
    assert found["accuracy"] == pytest.approx(5 / 8, abs=1e-6)
    info = " ".join(invoke("kb", "info", own_kb).output.split())
    said = f"f1 on 80 mentions of gold.tsv: threshold {found['threshold']:g}, "
    assert f"{said}precision 1.000" in info
    assert [at["threshold"] for at in found["thresholds"]] == sorted(
        {0.3, 0.5, 0.8, found["threshold"]}
    )
    assert f"{found['threshold']:g} (used) precision 1.000" in info
    invoke("kb", "verify", own_kb, code=0)
    for secret in ("xyz of", "heart attack", str(annotated_file.parent)):
        assert secret not in result.output
        assert secret not in (own_kb / "v2" / "meta.json").read_text("utf8")


def test_calibrate_checks_on_other_mentions(annotated_file, own_kb, tmp_path):
    other = tmp_path / "other.tsv"
    text = annotated_file.read_text("utf8").replace("fever\tC0000004", "fever\t-1")
    other.write_text(text, "utf8")
    found = calibrate(own_kb, other, "--check")  # of one that is not calibrated
    assert (found["threshold"], found["nil"]) == (0.5, 20)
    assert "criterion" not in found
    invoke("calibrate", own_kb, annotated_file, code=0)
    before = read_version(own_kb)
    found = calibrate(own_kb, other, "--check")
    assert found["files"][0]["file"] == "other.tsv"
    assert (found["precision"], found["linked"], found["nil"]) == (0.75, 40, 20)
    assert read_version(own_kb) == before


def test_calibrate_changes_only_the_version_that_was_scored(
    annotated_file, own_kb, monkeypatch
):
    score = calibration.score_top1

    def publish_meanwhile(*arguments: Any, **options: Any) -> Any:
        add_concepts(load_kb(own_kb), [Concept("L1", ["ward 1"])])
        return score(*arguments, **options)

    monkeypatch.setattr(calibration, "score_top1", publish_meanwhile)
    done = invoke("calibrate", own_kb, annotated_file, code=1)
    assert "[E550]" in done.output
    assert read_version(own_kb).name == "v2"


@pytest.fixture
def ordered_kb(make_kb, letters_order, few_concepts, tmp_path) -> Path:
    return Path(make_kb(tmp_path, few_concepts, learned=letters_order))


def test_calibrate_corrects_the_probability_of_an_order(annotated_file, ordered_kb):
    before = load_kb(ordered_kb)
    found = calibrate(ordered_kb, annotated_file)
    after = load_kb(ordered_kb)
    assert after.manifest.threshold == found["threshold"]
    (old,), (new,) = (kb.link(["xyz of feverr"]) for kb in (before, after))
    assert [c["cui"] for c in old.candidates] == [c["cui"] for c in new.candidates]
    odds = [log_odds(each.candidates[0]["probability"] or 0) for each in (old, new)]
    correction = found["correction"]
    expected = correction["slope"] * odds[0] + correction["intercept"]
    assert odds[1] == pytest.approx(expected, abs=1e-3)
    # what was measured is what is linked
    golds = [
        gold
        for file in read_gold_files([annotated_file]).values()
        for document in file
        for gold in document.mentions
    ]
    linked = after.link([gold.mention for gold in golds])
    assert sum(each.cui is not None for each in linked) == found["linked"]
    checked = calibrate(ordered_kb, annotated_file, "--check")
    names = ("threshold", "linked", "precision", "recall", "f1", "calibration_error")
    assert [checked[n] for n in names] == [found[n] for n in names]
    assert f"{found['threshold']:.3f}" in invoke("kb", "versions", ordered_kb).output
