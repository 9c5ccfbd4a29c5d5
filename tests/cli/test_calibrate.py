import json
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


def calibrate(*arguments: Any) -> dict[str, Any]:
    result = invoke("calibrate", *arguments, "--json", code=0)
    return dict(json.loads(result.stdout))


def test_calibrate_writes_threshold_and_calibration(
    annotated_file: Path, own_kb: Path
) -> None:
    result = invoke("calibrate", own_kb, annotated_file, code=0)
    assert "Expected calibration error" in result.output
    manifest = load_kb(own_kb).manifest  # verified
    assert manifest.calibration is not None
    written = manifest.calibration.model_dump()
    found = calibrate(own_kb, annotated_file)
    assert written.items() <= found.items()
    assert manifest.threshold == found["threshold"]
    assert found["criterion"] == "f1"
    assert found["files"] == [
        {"file": "gold.tsv", "sha256": file_digest(annotated_file)}
    ]
    counts = ("mentions", "documents", "answered", "right", "nil")
    assert [found[name] for name in counts] == [80, 10, 70, 40, 10]
    # names have the cosine 1, and the other texts less
    assert found["threshold"] == pytest.approx(1, abs=1e-5)
    assert (found["precision"], found["linked"]) == (1, 40)
    assert found["recall"] == pytest.approx(4 / 7, abs=1e-6)
    assert found["accuracy"] == pytest.approx(5 / 8, abs=1e-6)
    assert "f1 on 80 mentions of gold.tsv" in invoke("kb", "info", own_kb).output
    invoke("kb", "verify", own_kb, code=0)


def test_calibrate_reveals_no_text_and_no_folder(
    annotated_file: Path, own_kb: Path
) -> None:
    result = invoke("calibrate", own_kb, annotated_file, "--json")
    written = (own_kb / "v2" / "meta.json").read_text("utf8")
    for secret in ("xyz of", "heart attack", str(annotated_file.parent)):
        assert secret not in result.output
        assert secret not in written


def test_calibrate_changes_nothing_in_a_dry_run(
    annotated_file: Path, own_kb: Path
) -> None:
    before = read_version(own_kb)
    result = invoke("calibrate", own_kb, annotated_file, "--dry-run", code=0)
    assert "--dry-run" in result.output
    assert read_version(own_kb) == before


def test_calibrate_checks_on_other_mentions(
    annotated_file: Path, own_kb: Path, tmp_path: Path
) -> None:
    arguments = (own_kb, annotated_file, "--check")
    assert "E582" in invoke("calibrate", *arguments, code=1).output
    invoke("calibrate", own_kb, annotated_file, code=0)
    before = read_version(own_kb)
    other = tmp_path / "other.tsv"
    text = annotated_file.read_text("utf8").replace("fever\tC0000004", "fever\t-1")
    other.write_text(text, "utf8")
    arguments = (own_kb, other, "--check")
    assert "Expected calibration error" in invoke("calibrate", *arguments).output
    found = json.loads(invoke("calibrate", *arguments, "--json").stdout)
    assert found["files"][0]["file"] == "other.tsv"
    assert (found["precision"], found["linked"], found["nil"]) == (0.75, 40, 20)
    assert read_version(own_kb) == before


def test_calibrate_prints_nothing_if_quiet(annotated_file: Path, own_kb: Path) -> None:
    result = invoke("calibrate", own_kb, annotated_file, "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_calibrate_reaches_a_precision(annotated_file: Path, own_kb: Path) -> None:
    found = calibrate(own_kb, annotated_file, "--criterion", "precision=0.95")
    assert read_version(own_kb).manifest.threshold == found["threshold"]
    assert found["criterion"] == "precision=0.95"
    assert found["precision"] >= 0.95


def test_calibrate_uses_aliases_and_a_limit(
    annotated_file: Path, own_kb: Path, tmp_path: Path
) -> None:
    gold, aliases = tmp_path / "gold.tsv", tmp_path / "aliases.tsv"
    text = annotated_file.read_text("utf8").replace("C0000004", "OMIM:1")
    gold.write_text(text, "utf8")
    aliases.write_text("OMIM:1\tC0000004\n", "utf8")
    arguments = (own_kb, gold, "--limit", 70, "--bars-join-parts")
    found = calibrate(*arguments, "--aliases", aliases)
    assert found["mentions"] == 70
    assert found["right"] == 4 * 9
    assert calibrate(*arguments)["right"] == 3 * 9


@pytest.mark.parametrize(
    ("kb", "options", "code"),
    [
        (None, ["--criterion", "recall"], "E331"),
        (None, ["--limit", "20"], "E582"),
        ("nowhere", ["--criterion", "nonsense"], "E331"),
        ("nowhere", [], "E310"),
    ],
)
def test_calibrate_refuses_bad_options(
    annotated_file: Path, own_kb: Path, kb: str | None, options: list, code: str
) -> None:
    before = read_version(own_kb)
    arguments = (kb or own_kb, annotated_file, *options)
    assert code in invoke("calibrate", *arguments, code=1).output
    assert read_version(own_kb) == before


def test_calibrate_changes_only_the_version_that_was_scored(
    annotated_file: Path, own_kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score = calibration.score_top1

    def publish_meanwhile(*arguments: Any, **options: Any) -> Any:
        add_concepts(load_kb(own_kb), [Concept("L1", ["ward 1"])])
        return score(*arguments, **options)

    monkeypatch.setattr(calibration, "score_top1", publish_meanwhile)
    done = invoke("calibrate", own_kb, annotated_file, code=1)
    assert "[E550]" in done.output
    assert read_version(own_kb).name == "v2"


def test_calibrate_never_changes_an_installed_kb(
    annotated_file: Path, own_kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Point:
        def load(self) -> Path:
            return own_kb

    monkeypatch.setattr(
        "spacy_sapbert.kb.folder.versions.installed_kbs", lambda: {"umls": Point()}
    )
    before = read_version(own_kb)
    assert "E586" in invoke("calibrate", "umls", annotated_file, code=1).output
    invoke("calibrate", "umls", annotated_file, "--dry-run", code=0)
    assert read_version(own_kb) == before


@pytest.fixture
def ordered_kb(
    make_kb: Any, letters_order: Any, few_concepts: Any, tmp_path: Path
) -> Path:
    ranker = letters_order.ranker.model_copy(
        update={"chance": {"margin": 0.1, "cosine": 30.0}, "intercept": -29.0}
    )
    order = letters_order.model_copy(update={"ranker": ranker})
    return Path(make_kb(tmp_path, few_concepts, learned=order))


def test_calibrate_corrects_the_probability_of_an_order(
    annotated_file: Path, ordered_kb: Path
) -> None:
    before = load_kb(ordered_kb)
    found = calibrate(ordered_kb, annotated_file)
    after = load_kb(ordered_kb)
    assert (found["by"], after.manifest.threshold) == ("probability", None)
    assert after.ranker is not None
    assert after.ranker.threshold == found["threshold"]
    (old,), (new,) = (kb.link(["xyz of feverr"]) for kb in (before, after))
    assert [c["cui"] for c in old.candidates] == [c["cui"] for c in new.candidates]
    odds = [log_odds(each.candidates[0]["probability"] or 0) for each in (old, new)]
    logistic = found["logistic"]
    expected = logistic["slope"] * odds[0] + logistic["intercept"]
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
    assert [checked[n] for n in names] == pytest.approx([found[n] for n in names])
    assert f"{found['threshold']:.3f}" in invoke("kb", "versions", ordered_kb).output


def test_calibrate_checks_an_order_that_nobody_calibrated(
    annotated_file: Path, ordered_kb: Path
) -> None:
    found = calibrate(ordered_kb, annotated_file, "--check")
    assert (found["by"], found["criterion"]) == ("probability", "no calibration")
    assert found["threshold"] == load_kb(ordered_kb).ranker.threshold  # type: ignore
