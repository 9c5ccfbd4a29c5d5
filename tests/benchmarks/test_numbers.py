"""The pages of numbers: their commands in order, and their tables."""

import json
import re
from pathlib import Path

import pytest
import typer

from benchmarks.numbers import (
    CORPORA,
    DEV,
    PAGES,
    SECTIONS,
    format_hierarchies,
    format_languages,
    format_numbers,
    run_commands,
)
from spacy_sapbert.evaluation.evaluate import evaluate_kb
from spacy_sapbert.evaluation.gold_mentions import read_pairs
from spacy_sapbert.evaluation.score_mentions import EvaluationSettings
from spacy_sapbert.kb.knowledge_base import load_kb
from training.experiments.evaluate_hierarchy import score_encoder
from training.experiments.held_out_pairs import NamePair

ROOT = Path(__file__).parents[2]


def write_run(path: Path, files: list[str], value: float) -> None:
    """Write an evaluation.json with one accuracy for all files."""
    ties = {"lenient": value + 0.1, "expected": value, "strict": value}
    levels = {level: {"acc@1": ties, "acc@5": ties} for level in ("concepts", "rows")}
    accuracy = {"all": levels, "covered": levels}
    results = [
        {"file": file, "sha256": "", "coverage": 0.25, "accuracy": accuracy}
        for file in files
    ]
    path.write_text(json.dumps({"settings": {"ks": [1, 5]}, "files": results}), "utf8")


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_pages_read_what_earlier_ones_write(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text("utf8")
    commands = text.split("```bash\n")[-1].partition("```")[0].splitlines()
    made: set[str] = set()
    for command in commands:
        names = re.findall(r"\$OUT/([\w.-]+)", command)
        assert {*names} - made, command
        for reads in re.findall(r"--(?:encoder|compare) \$OUT/([\w.-]+)", command):
            assert reads in made, command
        for config in re.findall(r"--config (\S+)", command):
            assert (ROOT / config).is_file()
        made |= {*names}


def test_run_commands_runs_each_once_and_exits_if_one_fails(
    tmp_path: Path, concepts_file: Path
) -> None:
    page, out = tmp_path / "page.md", tmp_path / "out"
    pairs = "python -m training pairs $DATA/concepts.jsonl $OUT/pairs.tsv --quiet"
    block = f"```bash\nnot this\n```\n\n```bash\n{pairs}\n```\n"
    page.write_text(block, "utf8")
    run_commands(page, concepts_file.parent, "", out)
    made = (out / "pairs.tsv").stat().st_mtime_ns
    run_commands(page, concepts_file.parent, "", out)
    assert (out / "pairs.tsv").stat().st_mtime_ns == made
    page.write_text(block.replace("/pairs.tsv", "/other.tsv"), "utf8")
    with pytest.raises(typer.Exit):
        run_commands(page, tmp_path, "", out)


def test_format_numbers_has_all_figures(
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
    for name in SECTIONS:
        seeds = 2 if name in ("mesh", "medic") else 1
        (tmp_path / f"{name}.jsonl").symlink_to(concepts_file)
        trained = [f"trained-{seed}" for seed in range(seeds)]
        for run in ("base", *trained, "fine-tuned-0"):
            path = tmp_path / f"kb-{name}-{run}.json"
            path.write_text(json.dumps(results), "utf8")
    errors = {"files": [{"judged": 9}], "causes": {"tie": 1, "near miss": 3}}
    (tmp_path / "errors.json").write_text(json.dumps(errors), "utf8")
    page = "\n".join(format_numbers(tmp_path))
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
    assert str(tmp_path) not in page


def test_format_languages_has_each_encoder_and_corpus(tmp_path: Path) -> None:
    for number, encoder in enumerate(("base", "english", "all", "translated")):
        for dictionary in ("all", "english"):
            path = tmp_path / f"kb-{dictionary}-{encoder}.json"
            write_run(path, [*CORPORA], number / 10)
    page = "\n".join(format_languages(tmp_path))
    assert "25.0% of XL-BEL Spanish, 25.0% of XL-BEL Russian" in page
    row = "| trained on the names of all languages |" + " 0.200 |" * 6
    assert page.count(row) == 2


def test_format_hierarchies_has_areas_and_accuracies(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    kinds = {"0": "pyrexia", "1": "chills", "2": "sign", "3": "hip", "isa": "symptom"}
    pairs = [NamePair(kind, "fever", other) for kind, other in kinds.items()]
    result = json.loads(json.dumps(score_encoder(str(tiny_encoder), pairs)))
    without = {**result, "auc": {**result["auc"], "0-1": None}}
    del without["relatedness"]
    values = {"base": 0.4, "sap-0": 0.4, "sap-1": 0.6, "hierarchical-0": 0.2}
    for run, value in values.items():
        write_run(tmp_path / f"kb-{run}.json", [DEV], value)
        for vocabulary in ("open", "icd10cm", "phecode"):
            found = without if vocabulary == "phecode" else result
            path = tmp_path / f"{vocabulary}-{run}.json"
            path.write_text(json.dumps(found), "utf8")
    page = "\n".join(format_hierarchies(tmp_path))
    assert "| Encoder | 0-1 | 0-2 | 0-3 | 1-2 | 1-3 | 2-3 | Spearman | `isa` |" in page
    assert "| Encoder | 0-2 | 0-3 | 1-2 | 1-3 | 2-3 | Spearman |\n" in page
    assert "| trained on names | 0.600 ± 0.141 | 0.600 ± 0.141 |" in page
    assert "| trained on names and hierarchies | 0.300 | 0.300 |" in page
