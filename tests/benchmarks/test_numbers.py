import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.compare_linkers import main as compare_main
from benchmarks.numbers import SECTIONS, render_page
from benchmarks.numbers_steps import list_steps
from benchmarks.steps import Step, run_step

app = typer.Typer()
app.command()(compare_main)


def test_every_step_reads_what_an_earlier_one_made() -> None:
    made = set()
    for step in list_steps(seeds=2, options="--training.steps 5"):
        named = set(re.findall(r"\$OUT/([\w.-]+)", step.command))
        assert step.makes in named, step
        assert named - {step.makes, "errors.html"} <= made, step
        assert step.makes not in made, step
        made.add(step.makes)
    assert {f"{section.name}.json" for section in SECTIONS} <= made
    assert {"trained-1", "fine-tuned-0", "kb-mesh-base", "kb-mesh-trained-1"} <= made
    assert "fine-tuned-1" not in made


def test_a_step_runs_once_and_ends_the_whole_if_it_fails(
    tmp_path: Path, concepts_file: Path
) -> None:
    places = {"DATA": str(concepts_file.parent), "OUT": str(tmp_path)}
    step = Step(
        "pairs.tsv",
        f"python -m training pairs $DATA/{concepts_file.name} $OUT/pairs.tsv --quiet",
    )
    run_step(step, places, tmp_path)
    made = (tmp_path / "pairs.tsv").stat().st_mtime_ns
    run_step(step, places, tmp_path)
    assert (tmp_path / "pairs.tsv").stat().st_mtime_ns == made
    with pytest.raises(typer.Exit):
        run_step(
            Step("x", "python -m training pairs $DATA/none $OUT/x"),
            places,
            tmp_path,
        )


def test_the_page_has_all_figures_and_commands(
    sample_kb: Path, concepts_file: Path, tmp_path: Path
) -> None:
    gold, seen = tmp_path / "gold.tsv", tmp_path / "seen.txt"
    gold.write_text("mention\tids\nFever\tC0000004\nMI\tC0000002\n", "utf8")
    seen.write_text("fever||C0000004\n", "utf8")
    output = tmp_path / "comparison.json"
    options = ["--dictionary", concepts_file, "--seen", seen, "--output", output]
    kbs = ["--kb", f"base={sample_kb}"] + 2 * ["--kb", f"trained={sample_kb}"]
    done = CliRunner().invoke(app, [str(each) for each in [gold, *options, *kbs]])
    assert done.exit_code == 0, done.output
    data = json.loads(output.read_text("utf8"))
    steps = list_steps(seeds=2, options="")
    errors = {
        "files": [{"judged": 9}],
        "causes": {"tie": 1, "near miss": 3},
    }
    comparisons = {section.name: data for section in SECTIONS}
    found = {"difference": 0.0178, "interval": [-0.0013, 0.0368], "p": 0.0759}
    result = {"file": "dev.tsv.gz", "mentions": 787, "ties": {"lenient": found}}
    tests = {"trained": {"comparison": {"results": [result]}}}
    page = render_page(comparisons, tests, errors, steps, {"seeds": "2", "train": ""})
    assert "4 of 9 mentions" in page
    row = "| trained | dev, 787 | +0.0178 | -0.0013 to +0.0368 | 0.076 |"
    assert row in page
    assert page.index("| near miss | 3 | 75.0% |") < page.index("| tie | 1 | 25.0% |")
    assert "2 mentions, 1 of them unseen in training mentions" in page
    # by concepts and rows at 1 and 5, then the unseen one, which is a tie
    assert (
        "| exact look-up | strict | 0.500 | 1.000 | 0.500 | 1.000 | 0.000 | 1.000 |"
    ) in page
    assert page.count("| trained | lenient | 1.000 ± 0.000 |") == len(SECTIONS)
    assert all(step.command in page for step in steps)
    assert str(tmp_path) not in page
