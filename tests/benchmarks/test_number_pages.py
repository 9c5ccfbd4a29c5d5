"""The pages of figures on languages and hierarchies: steps in order, all shown."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import hierarchies, languages
from benchmarks.steps import Step
from training.experiments.evaluate_hierarchy import score_encoder
from training.experiments.held_out_pairs import NamePair
from training.experiments.summarize_runs import Key, Run

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "steps", [languages.list_steps("--a 1"), hierarchies.list_steps(2, "--a 1")]
)
def test_every_step_reads_what_an_earlier_one_made(steps: list[Step]) -> None:
    made = set()
    besides = {"held-out.jsonl"}  # written together with what a step is named after
    for step in steps:
        named = set(re.findall(r"\$OUT/([\w.-]+)", step.command))
        assert step.makes in named, step
        assert {name for name in named if "-rest" not in name} - besides <= {
            *made,
            step.makes,
        }, step
        assert step.makes not in made, step
        made.add(step.makes)
        for config in re.findall(r"--config (\S+)", step.command):
            assert (ROOT / config).is_file()
    assert sum("--a 1" in step.command for step in steps) in (2, 4)


def make_run(files: list[str], value: float) -> Run:
    """Results of a linker that has the same accuracy everywhere, but for the last."""
    keys = [Key(file, "concepts", k) for file in files for k in (1, 5)]
    accuracies = {key: {"expected": value, "lenient": value + 0.1} for key in keys}
    coverages = dict.fromkeys(files, 0.25)
    return Run({"ks": [1, 5]}, dict.fromkeys(files, ""), accuracies, coverages)


def test_the_page_of_languages_has_each_encoder_and_corpus() -> None:
    files = [*languages.CORPORA]
    runs = {
        name: make_run(files, 0.1 * number)
        for number, name in enumerate(languages.ENCODERS)
    }
    steps = languages.list_steps("")
    page = languages.render_page(
        {"all": runs, "english": runs}, steps, {"train": "--x 1"}, "a machine, 2 cores"
    )
    assert "--page docs/numbers-languages.md --train '--x 1'\n" in page
    assert "25.0% of XL-BEL Spanish, 25.0% of XL-BEL Russian" in page
    row = "| trained on the names of all languages |" + " 0.200 |" * 6
    assert page.count(row) == 2
    assert all(step.command in page for step in steps)


def test_the_page_of_hierarchies_has_areas_and_accuracies(tiny_encoder: Path) -> None:
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
    page = hierarchies.render_page(areas, linking, steps, {"seeds": "2"}, "a machine")
    assert "| Encoder | 0-1 | 0-2 | 0-3 | 1-2 | 1-3 | 2-3 | Spearman | `isa` |" in page
    assert "| Encoder | 0-2 | 0-3 | 1-2 | 1-3 | 2-3 | Spearman |\n" in page
    assert "| trained on names | 0.700 ± 0.141 | 0.700 ± 0.141 |" in page
    assert "| trained on names and hierarchies | 0.400 ± 0.000 |" in page
    assert all(step.command in page for step in steps)
