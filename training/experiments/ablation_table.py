"""Results of the runs of a grid → one table with the accuracy of each setting."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, TypedDict

from spacy_sapbert.evaluation.accuracy import LEVELS, TIES, format_mean
from spacy_sapbert.evaluation.score_mentions import FileScores
from training.data.reporting import format_markdown
from training.errors import Errors, SapbertError

COLUMNS = [(level, f"acc@{k}") for level in LEVELS for k in (1, 5)]


class RunResult(TypedDict):
    """The result of a run, and what it depends on.

    made_of (dict[str, str]): The sha256 of each input.
    files (dict[str, FileScores]): By name of the gold mentions.
    """

    name: str
    settings: dict[str, Any]
    made_of: dict[str, str]
    files: dict[str, FileScores]


def check_table(folder: Path, names: Collection[str], *, force: bool) -> None:
    """Check that the table in a folder is of this grid, which may have got more runs.

    names (Collection[str]): Names of the runs of this grid.
    force (bool): The table of another grid may be replaced.
    RAISES (SapbertError): If a run of the table is not in this grid.
    """
    path = folder / "ablation.json"
    if not force and path.is_file():
        for result in json.loads(path.read_text("utf8")):
            if result["name"] not in names:
                raise SapbertError(Errors.E624.format(path=path, name=result["name"]))


def format_accuracies(seeds: Sequence[FileScores], level: str, k: str) -> str:
    """Format the accuracy of several seeds for each tie order."""
    groups = [seed["accuracy"]["all"] for seed in seeds]
    by_k = [group["rows" if level == "rows" else "concepts"] for group in groups]
    return " / ".join(format_mean([each[k][tie] for each in by_k]) for tie in TIES)


def format_grid(results: Sequence[RunResult]) -> str:
    """Format all runs as Markdown, one table for each file of mentions.

    results (Sequence[RunResult]): From `finish_run`; runs of one name are seeds.
    """
    groups: dict[str, list[RunResult]] = {}
    for result in results:
        groups.setdefault(result["name"], []).append(result)
    lines: list[str] = []
    for file, scored in results[0]["files"].items():
        titles = [f"{k} by {level}".capitalize() for level, k in COLUMNS]
        rows = []
        for name, runs in groups.items():
            seeds = [run["files"][file] for run in runs]
            cells = [format_accuracies(seeds, *column) for column in COLUMNS]
            rows.append([name, str(len(seeds)), *cells])
        lines += [
            f"**{file}**: {scored['judged']:,} mentions, the dictionary covers "
            f"{scored['coverage']:.1%}; ties {' / '.join(TIES)}.",
            "",
            *format_markdown(["Run", "Seeds", *titles], rows),
            "",
        ]
    return "\n".join(lines)
