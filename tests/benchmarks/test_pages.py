"""The pages of numbers: their steps in order, and their tables."""

import json
import re
from pathlib import Path

import pytest
import typer

from benchmarks import hierarchies, languages, numbers
from benchmarks.harness import Step, run_step
from spacy_sapbert.evaluation.evaluate import evaluate_kb
from spacy_sapbert.evaluation.gold_mentions import read_pairs
from spacy_sapbert.evaluation.score_mentions import EvaluationSettings
from spacy_sapbert.kb.knowledge_base import load_kb
from training.experiments.evaluate_hierarchy import score_encoder
from training.experiments.held_out_pairs import NamePair
from training.experiments.summarize_runs import Key, Run

ROOT = Path(__file__).parents[2]
# files that a step writes besides the one after which it is named
OTHER_OUTPUTS = {"held-out.jsonl", "base.jsonl", "errors.html"}


@pytest.mark.parametrize(
    ("steps", "trained"),
    [
        (languages.list_steps("--a 1"), 2),
        (hierarchies.list_steps(2, "--a 1"), 4),
        (numbers.list_steps(2, "--a 1"), 2),
    ],
)
def test_list_steps_read_what_earlier_steps_make(
    steps: list[Step], trained: int
) -> None:
    made = set()
    for step in steps:
        named = set(re.findall(r"\$OUT/([\w.-]+)", step.command))
        assert step.makes in named, step
        assert {name for name in named if "-rest" not in name} - OTHER_OUTPUTS <= {
            *made,
            step.makes,
        }, step
        assert step.makes not in made, step
        made.add(step.makes)
        for config in re.findall(r"--config (\S+)", step.command):
            assert (ROOT / config).is_file()
    assert sum("--a 1" in step.command for step in steps) == trained


def test_list_steps_of_numbers_make_all_results() -> None:
    made = {step.makes for step in numbers.list_steps(2, "")}
    for section in numbers.SECTIONS:
        for runs in numbers.list_runs(section.name, 2).values():
            assert {f"kb-{section.name}-{run}.json" for run in runs} <= made
    assert {"trained-1", "kb-mesh-trained-1", "kb-medic-trained-1"} <= made
    assert not {"fine-tuned-1", "kb-medic-ncbi-trained-1"} & made


def test_run_step_runs_once_and_exits_if_it_fails(
    tmp_path: Path, concepts_file: Path
) -> None:
    places = {"DATA": str(concepts_file.parent), "OUT": str(tmp_path)}
    pairs = "python -m training pairs"
    step = Step("pairs.tsv", f"{pairs} $DATA/concepts.jsonl $OUT/pairs.tsv --quiet")
    run_step(step, places, tmp_path)
    made = (tmp_path / "pairs.tsv").stat().st_mtime_ns
    run_step(step, places, tmp_path)
    assert (tmp_path / "pairs.tsv").stat().st_mtime_ns == made
    with pytest.raises(typer.Exit):
        run_step(Step("x", f"{pairs} $DATA/none $OUT/x"), places, tmp_path)


def test_format_page_of_numbers_has_all_figures_and_commands(
    sample_kb: Path, concepts_file: Path, tmp_path: Path
) -> None:
    gold, seen = tmp_path / "gold.tsv", tmp_path / "seen.txt"
    gold.write_text(
        "mention\tids\nFever\tC0000004\nMI\tC0000002\nheadaches\tC0000007\n", "utf8"
    )
    seen.write_text("fever||C0000004\n", "utf8")
    results = evaluate_kb(
        load_kb(sample_kb),
        [gold],
        EvaluationSettings(),
        seen=read_pairs([seen], {}),
        baselines=True,
    ).results
    found = {"difference": 0.0178, "interval": [-0.0013, 0.0368], "p": 0.0759}
    results["comparison"] = {
        "results": [
            {"file": "dev.tsv.gz", "mentions": 787, "ties": {"lenient": found}},
        ]
    }
    for step in numbers.list_steps(2, ""):
        if step.makes.endswith(".json"):
            (tmp_path / step.makes).write_text(json.dumps(results), "utf8")
    errors = {"files": [{"judged": 9}], "causes": {"tie": 1, "near miss": 3}}
    (tmp_path / "errors.json").write_text(json.dumps(errors), "utf8")
    for section in numbers.SECTIONS:
        (tmp_path / f"{section.name}.jsonl").symlink_to(concepts_file)
    steps = numbers.list_steps(2, "")
    page = "\n".join(numbers.format_page(tmp_path, steps, 2, {"seeds": "2"}))
    assert "*trained*: 2 seeds" in page
    assert "4 of 9 mentions" in page
    row = "| trained | dev, 787 | +0.0178 | -0.0013 to +0.0368 | 0.076 |"
    assert row in page
    assert page.index("| near miss | 3 | 75.0% |") < page.index("| tie | 1 | 25.0% |")
    assert "**gold**: 3 mentions, 2 of them unseen in training mentions" in page
    assert "the dictionary covers 100.0%" in page
    # by concepts and rows at 1 and 5, then the unseen: a tie, and one without answer
    cells = "0.333 | 0.667 | 0.333 | 0.667 | 0.000 | 0.500 |"
    assert f"| exact look-up | strict | {cells}" in page
    assert page.count("| exact look-up | expected | 0.500 | 0.667 |") == 4
    assert page.count("| TF-IDF | expected | 0.833 | 1.000 |") == 4
    assert page.count("| trained | lenient | 1.000 ± 0.000 |") == 2
    assert page.count("| trained | lenient | 1.000 | ") == 2
    assert all(step.command in page for step in steps)
    assert str(tmp_path) not in page


def make_run(files: list[str], value: float) -> Run:
    """Return results with one accuracy for all files."""
    keys = [Key(file, "concepts", k) for file in files for k in (1, 5)]
    accuracies = {key: {"expected": value, "lenient": value + 0.1} for key in keys}
    coverages = dict.fromkeys(files, 0.25)
    return Run({"ks": [1, 5]}, dict.fromkeys(files, ""), accuracies, coverages)


def test_format_page_of_languages_has_each_encoder_and_corpus() -> None:
    files = [*languages.CORPORA]
    runs = {
        name: make_run(files, 0.1 * number)
        for number, name in enumerate(languages.ENCODERS)
    }
    steps = languages.list_steps("")
    page = "\n".join(
        languages.format_page(
            {"all": runs, "english": runs}, steps, {"train": "--x 1"}, "a machine"
        )
    )
    assert "--page docs/numbers-languages.md --train '--x 1'\n" in page
    assert "25.0% of XL-BEL Spanish, 25.0% of XL-BEL Russian" in page
    row = "| trained on the names of all languages |" + " 0.200 |" * 6
    assert page.count(row) == 2
    assert all(step.command in page for step in steps)


def test_format_page_of_hierarchies_has_areas_and_accuracies(
    tiny_encoder: Path,
) -> None:
    pairs = [
        NamePair("0", "fever", "pyrexia"),
        NamePair("1", "fever", "chills"),
        NamePair("2", "fever", "sign"),
        NamePair("3", "fever", "hip"),
        NamePair("isa", "fever", "symptom"),
    ]
    result = json.loads(json.dumps(score_encoder(str(tiny_encoder), pairs)))
    without = {**result, "auc": {**result["auc"], "0-1": None}}
    del without["relatedness"]
    runs = {"base": [result], "sap": [result] * 2, "hierarchical": [result] * 2}
    areas = {
        "open": runs,
        "icd10cm": runs,
        "phecode": {kind: [without] * len(some) for kind, some in runs.items()},
    }
    linking = {
        "base": [make_run([hierarchies.DEV], 0.5)],
        "sap": [make_run([hierarchies.DEV], 0.5), make_run([hierarchies.DEV], 0.7)],
        "hierarchical": [make_run([hierarchies.DEV], 0.3)] * 2,
    }
    steps = hierarchies.list_steps(2, "")
    options = {"seeds": "2"}
    page = "\n".join(
        hierarchies.format_page(areas, linking, steps, options, "a machine")
    )
    assert "| Encoder | 0-1 | 0-2 | 0-3 | 1-2 | 1-3 | 2-3 | Spearman | `isa` |" in page
    assert "| Encoder | 0-2 | 0-3 | 1-2 | 1-3 | 2-3 | Spearman |\n" in page
    assert "| trained on names | 0.700 ± 0.141 | 0.700 ± 0.141 |" in page
    assert "| trained on names and hierarchies | 0.400 ± 0.000 |" in page
    assert all(step.command in page for step in steps)
