"""Figures of the decisions of a knowledge base, compared with those of before."""

import json
from collections import Counter

import pytest
import typer

from benchmarks import decisions
from tests.commands import invoke

LISTS = {"differences.tsv": 200, "same.tsv": 60, "substitutions.tsv": 120}


@pytest.mark.parametrize("name", LISTS)
def test_lists_have_distinct_pairs(name):
    pairs = [cells[:2] for cells in decisions.read_list(name)]
    assert len(pairs) >= LISTS[name]
    assert all(len(pair) == 2 and pair[0] != pair[1] for pair in pairs)
    twice = Counter(frozenset(pair) for pair in pairs)
    assert [pair for pair, count in twice.items() if count > 1] == []


def test_a_break_of_a_line_in_a_list_is_one():
    assert ["miliary TUBER-\nCULOSIS", "miliary tuberculosis"] in decisions.read_list(
        "same.tsv"
    )


def test_figures_are_compared_with_those_of_before(
    sample_kb, tmp_path, monkeypatch, typer_app
):
    (tmp_path / "same.tsv").write_text(
        "# accents\nMénière tremor\tMeniere tremor\nclumsy gait\tswollen knee\n", "utf8"
    )
    (tmp_path / "abbreviations.txt").write_text("MRSA\nPTCA\n")
    monkeypatch.setattr(decisions, "LISTS", tmp_path)
    options = [sample_kb, "--data", tmp_path, "--only", "same", "--show", 2]
    first = tmp_path / "first.json"
    run = invoke(*options, "--write", first, app=typer_app)
    assert run.exit_code == 0, run.output
    assert "| same | the same name, linked at 1.0 | 2 of 4 | 0.5000 |" in run.output
    assert "'swollen knee' | 'clumsy gait' → " in run.output
    figures = json.loads(first.read_text("utf8"))
    (figure,) = figures.values()
    assert (figure["count"], figure["total"], len(figure["cases"])) == (2, 4, 2)
    first.write_text(json.dumps({key: {"value": 0.25} for key in figures}))
    again = invoke(*options, "--against", first, app=typer_app)
    assert "| 2 of 4 | 0.5000 | 0.25 |" in again.output
    wrong = invoke(sample_kb, "--data", tmp_path, "--only", "x", app=typer_app)
    assert "abbreviations" in str(wrong.exception)


@pytest.fixture
def typer_app():
    app = typer.Typer()
    app.command()(decisions.main)
    return app


def test_links_and_probabilities_of_mentions_are_judged():
    def answer(meant, first, probability, *, linked=True, barred=False):
        return decisions.Answer(
            "fever", frozenset(meant), first if linked else None, first, probability,
            barred,
        )  # fmt: skip

    right = [answer("A", "A", 0.9)] * 60
    wrong = [answer("A", "B", 0.4)] * 10
    nil = [answer("", "B", 0.1, linked=False)] * 20
    barred = [answer("", "B", 0.95, linked=False, barred=True)] * 10
    figures = {
        figure.name: figure.value
        for figure in decisions.measure_answers([*right, *wrong, *nil, *barred])
    }
    assert figures["mentions with a concept"] == 0.7
    assert figures["precision of links by default"] == pytest.approx(60 / 70)
    assert figures["recall of links at p ≥ 0.5"] == pytest.approx(60 / 70)
    assert figures["precision of links at p ≥ 0.5"] == 1
    assert figures["NIL recall by default"] == 1
    assert figures["best F1"] == pytest.approx(120 / 130, abs=1e-4)
    assert figures["… at p ≥"] == 0.9
    # Bins of few mentions do not count, and what is never linked does.
    gap = (60 * 0.9 + 10 * 0.95 - 60) / 70
    assert figures["largest gap of a bin"] == pytest.approx(gap, abs=1e-4)


def test_how_names_differ_is_found():
    kinds = {
        decisions.find_kind("Stroke, ischemic", "Ischemic strokes"): "order",
        decisions.find_kind("Bcl-10 protein", "bcl-X protein"): "number",
        decisions.find_kind("Pre-eclampsia", "Preeclampsia"): "writing",
    }
    assert all(found == kind for found, kind in kinds.items())
