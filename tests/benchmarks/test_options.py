import json
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from benchmarks.options import (
    PLAIN,
    Outcome,
    Row,
    app,
    choose_fusion,
    choose_steps,
    describe_row,
    describe_ties,
    format_change,
    list_fusions,
    list_options,
    mean_gains,
    score_mention,
)

TITLE = "Fever, mitral insufficiency (MI), and acetylsalicylic acid."
PLACES = [
    ("Fever", "Disease", "C0000004"),
    ("mitral insufficiency", "Disease", "C0000002"),
    ("MI", "Disease", "C0000002"),
    ("acetylsalicylic acid", "Chemical", "C0000006"),
    ("acid", "Chemical", "-1"),
    ("insufficiency", "Disease", "C7654321"),
]


def write_corpus(path: Path, documents: int = 1) -> Path:
    lines: list[str] = []
    for number in range(1, documents + 1):
        lines += [f"{number}|t|{TITLE}", f"{number}|a|None."]
        for mention, label, cui in PLACES:
            start = TITLE.index(mention)
            place = f"{start}\t{start + len(mention)}\t{mention}"
            lines.append(f"{number}\t{place}\t{label}\t{cui}")
        lines.append("")
    path.write_text("\n".join(lines), "utf8")
    return path


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["all", *map(str, arguments)])


def candidate(cui: str, score: float, tie: str | None = None) -> Any:
    return {"cui": cui, "score": score, "tie": tie}


def test_list_options_changes_one_thing_each() -> None:
    rows = list_options([["MSH", "CTD"]])
    assert next(iter(rows)) == PLAIN
    assert rows[PLAIN].base is None
    assert rows["source: MSH > CTD"].settings == {
        "tie_evidence": ("source",),
        "source_rank": ["MSH", "CTD"],
    }
    assert [name for name, row in rows.items() if row.abbreviations] == [
        "abbreviations"
    ]
    assert rows["label as filter"].settings["tie_evidence"] == ()
    without = [*list_options([], ngrams=False)]
    assert [name for name in rows if name not in without] == [
        "source: MSH > CTD",
        "fusion weighted, 0.1",
        "fusion weighted, 0.2",
        "fusion rrf",
    ]


def test_choose_steps_combines_what_helps_best_first() -> None:
    rows = list_options([["A", "B"], ["B", "A"]])
    gains = {
        "preferred": 0.01,
        "label": 0.02,
        "label as filter": 0.01,
        "source: A > B": 0.001,
        "source: B > A": 0.003,
        "coherence": 0.0,
        "abbreviations": 0.1,
    }
    steps = choose_steps(rows, gains)
    assert [*steps] == ["ties: label, preferred, source", "+ abbreviations"]
    first, second = steps.values()
    assert first.settings["source_rank"] == ["B", "A"]
    assert first.settings["label_types_use"] == "evidence"
    assert (first.base, first.abbreviations) == (PLAIN, False)
    assert (second.base, second.abbreviations) == ([*steps][0], True)
    assert second.settings == first.settings


def test_choose_steps_uses_labels_in_the_better_way() -> None:
    gains = {"label": 0.01, "label as filter": 0.02, "preferred": 0.001}
    steps = choose_steps(list_options([]), gains)
    assert [*steps] == ["ties: preferred", "+ label as filter"]
    assert steps["+ label as filter"].settings["label_types_use"] == "filter"
    assert steps["+ label as filter"].settings["tie_evidence"] == ("preferred",)


def test_choose_steps_without_gains_is_empty() -> None:
    assert choose_steps(list_options([]), {"label": 0, "abbreviations": -0.1}) == {}


def test_list_fusions_adds_to_the_last_step() -> None:
    rows = list_options([])
    steps = choose_steps(rows, {"label": 0.1, "abbreviations": 0.1})
    fusions = list_fusions(rows, steps)
    for row in fusions.values():
        assert (row.base, row.abbreviations) == ("+ abbreviations", True)
        assert row.settings["tie_evidence"] == ("label",)
    assert fusions["+ fusion weighted, 0.2"].settings["ngram_weight"] == 0.2
    assert [row.base for row in list_fusions(rows, {}).values()] == [PLAIN] * 3
    assert list_fusions(list_options([], ngrams=False), steps) == {}


def test_choose_fusion_marks_one_that_does_not_help() -> None:
    rows = list_options([])
    fusions = list_fusions(rows, {})
    gains = dict.fromkeys(fusions, -0.1)
    better = {**gains, "+ fusion rrf": 0.1}
    assert [*choose_fusion(fusions, better)] == ["+ fusion rrf"]
    worse = {**gains, "+ fusion weighted, 0.1": 0.0}
    assert [*choose_fusion(fusions, worse)] == ["+ fusion weighted, 0.1 (not chosen)"]
    assert choose_fusion({}, {}) == {}


def test_score_mention_counts_order_and_possible_ties() -> None:
    found = [candidate("C1", 1.0, "id"), candidate("C2", 1.0, "id")]
    found.append(candidate("C3", 0.5))
    assert score_mention(found, [{"C1"}], {}) == ([True, True], "id", True)
    assert score_mention(found, [{"C2"}], {}) == ([False, True], "id", True)
    assert score_mention(found, [{"C3"}], {}) == ([False, True], "id", False)
    assert score_mention(found, [{"C9"}], {"C1": "C9"}) == ([True, True], "id", True)
    assert score_mention(found, [{"C1"}, {"C3"}], {}) == ([False, True], "id", False)
    assert score_mention([], [{"C1"}], {}) == ([False, False], None, False)


def outcome(right: list[int], decided: list[str | None]) -> Outcome:
    hits = np.array([[one, 1] for one in right], dtype=bool)
    return Outcome(hits, decided, np.ones(len(right), dtype=bool))


def test_mean_gains_averages_files() -> None:
    rows = {PLAIN: Row({}, base=None), "label": Row({})}
    plain = outcome([1, 0, 0, 0], [None] * 4)
    first = {PLAIN: plain, "label": outcome([1, 1, 0, 0], [None] * 4)}
    second = {PLAIN: plain, "label": outcome([1, 1, 1, 1], [None] * 4)}
    assert mean_gains([first, second], rows) == {"label": 0.5}


def test_describe_row_compares_mention_by_mention() -> None:
    one = outcome([1, 0, 0, 0], [None] * 4)
    other = outcome([0, 1, 1, 0], [None] * 4)
    row = describe_row(other, one)
    assert (row["acc@1"], row["acc@5"], row["difference"]) == (0.5, 1.0, 0.25)
    assert (row["better"], row["worse"], row["p"]) == (2, 1, 1.0)
    assert format_change(row) == "+25.00 (+2 −1), p = 1.000"
    assert format_change(describe_row(one, None)) == "–"
    assert format_change(describe_row(one, one)) == "0"
    assert format_change({**row, "p": 0.0001}).endswith("p < 0.001")


def test_describe_ties_counts_what_decides() -> None:
    plain = outcome([1, 0, 0], ["id", "id", None])
    label = outcome([1, 1, 0], ["id", "label", None])
    ties = describe_ties({PLAIN: plain, "label": label})
    assert (ties["ties"], ties["possible"]) == (2, 2)
    assert ties["lines"]["label"] == {
        "decides": 1,
        "right_where_it_decides": 1,
        "right_there_by_id": 0,
        "right": 2,
    }
    assert ties["lines"][PLAIN]["right"] == 1


def test_all_measures_options_in_the_pipeline(sample_kb: Path, tmp_path: Path) -> None:
    dev = write_corpus(tmp_path / "dev.txt")
    train = write_corpus(tmp_path / "train.txt", documents=3)
    output = tmp_path / "options.json"
    arguments = ["--kb", sample_kb, "--train", train, "--output", output]
    result = run(dev, *arguments, "--limit", 2)
    assert result.exit_code == 0, result.output
    data = json.loads(output.read_text("utf8"))
    file = data["files"]["dev.txt"]
    assert (file["mentions"], file["without_id"], file["judged"]) == (6, 1, 4)
    assert data["files"]["train.txt"]["documents"] == 2
    assert data["files"]["train.txt"]["chosen_on"] is True
    assert file["rows"][PLAIN]["acc@1"] == 0.75  # MI is the infarction, by its id
    assert file["rows"]["abbreviations"]["acc@1"] == 1.0
    assert file["rows"]["label as filter"]["acc@1"] == 0.75
    assert "+ abbreviations" in data["steps"]
    assert file["ties"]["ties"] == 1
    assert file["ties"]["possible"] == 1
    assert "| **+ abbreviations** | 1.0000 |" in result.output
    assert "4 of 6 mentions scored" in result.output
    ties = result.output.partition("1 of 4 mentions (25.0 %)")[2]
    assert "| preferred | 0 | 0 | 0 | 0 |" in ties
    assert "abbreviations" not in ties
    assert "insufficiency" not in result.output


def test_all_without_known_ids_is_an_error(sample_kb: Path, tmp_path: Path) -> None:
    dev = write_corpus(tmp_path / "dev.txt")
    result = run(dev, "--kb", sample_kb, "--prefix", "MESH:")
    assert result.exit_code == 1
    assert "E730" in str(result.exception)
