"""results.json of several runs → mean and standard deviation of each accuracy."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any, NamedTuple, TypedDict

import typer
from pydantic import BaseModel, ValidationError

from spacy_sapbert.evaluation.accuracy import LEVELS, TIES, format_mean
from spacy_sapbert.system.reading import open_to_read
from spacy_sapbert.system.terminal import msg
from spacy_sapbert.system.writing import check_outputs, write_json
from training.data.reporting import Force, Quiet
from training.errors import Errors, SapbertError

TOGETHER = "all files"
Group = Annotated[str, typer.Option(help="all, covered, seen or unseen mentions.")]

ByTie = dict[str, float | None]  # None if the group has no mentions


class GoldFile(BaseModel):
    """What results.json has for a file of gold mentions."""

    file: str
    sha256: str
    coverage: float
    accuracy: dict[str, dict[str, int | dict[str, ByTie]]]


class Results(BaseModel):
    """The content of results.json."""

    settings: dict[str, Any]
    files: list[GoldFile]


class Key(NamedTuple):
    """File of gold mentions, level and k of an accuracy."""

    file: str
    level: str
    k: int


class Run(NamedTuple):
    """The results of one run for one group of mentions.

    settings (dict[str, Any]): Settings of the evaluation.
    digests (dict[str, str]): The sha256 of each gold file.
    accuracies (dict[Key, ByTie]): By tie order.
    coverages (dict[str, float]): Share of mentions with a concept in the dictionary,
        by gold file.
    """

    settings: dict[str, Any]
    digests: dict[str, str]
    accuracies: dict[Key, ByTie]
    coverages: dict[str, float]


class Values(TypedDict):
    """Mean, sample standard deviation (None for one value) and values."""

    mean: float
    deviation: float | None
    values: list[float]


class AccuracySummary(TypedDict):
    """A `Key`, and its accuracy in all runs by tie order."""

    file: str
    level: str
    k: int
    ties: dict[str, Values]


class Summary(TypedDict):
    """The accuracies of several runs.

    different_files (list[str]): Names of gold files that differ between runs.
    """

    runs: list[str]
    group: str
    settings: dict[str, Any]
    different_files: list[str]
    accuracy: list[AccuracySummary]


def read_run(path: Path, group: str = "all") -> Run:
    """Read a result of `spacy sapbert evaluate --output`.

    group (str): Group of mentions: "all", "covered", "seen" or "unseen".
    RAISES (SapbertError): If the file is something else, or lacks the group.
    """
    with open_to_read(path) as file:
        text = file.read()
    try:
        results = Results.model_validate_json(text)
        run = Run(results.settings, {}, {}, {})
        for gold in results.files:
            if group not in gold.accuracy:
                raise SapbertError(Errors.E747.format(path=path, group=group))
            run.digests[gold.file] = gold.sha256
            run.coverages[gold.file] = gold.coverage
            for level in LEVELS:
                by_k: Any = gold.accuracy[group][level]
                for k in results.settings["ks"]:
                    ties = {tie: by_k[f"acc@{k}"][tie] for tie in TIES}
                    run.accuracies[Key(gold.file, level, k)] = ties
    except (ValidationError, KeyError, TypeError):
        command = "spacy sapbert evaluate --output"
        raise SapbertError(
            Errors.E763.format(path=path, expected="results", command=command)
        ) from None
    return run


def read_runs(paths: Sequence[Path], group: str = "all") -> list[Run]:
    """Read the results of runs with the same settings of the evaluation."""
    runs = [read_run(path, group) for path in paths]
    known = runs[0].settings
    for path, run in zip(paths, runs, strict=True):
        for setting in sorted({*known, *run.settings}):
            if known.get(setting) != run.settings.get(setting):
                raise SapbertError(
                    Errors.E746.format(path=path, first=paths[0], setting=setting)
                )
    return runs


def summarize_values(values: Sequence[float]) -> Values:
    """Compute mean and sample standard deviation, rounded."""
    deviation = round(stdev(values), 6) if len(values) > 1 else None
    mean = round(fmean(values), 6)
    return {"mean": mean, "deviation": deviation, "values": list(values)}


def print_summary(summary: Summary) -> None:
    """Print the result of `summarize_runs`."""
    rows = [
        (
            each["file"],
            each["level"],
            f"Acc@{each['k']}",
            str(len(each["ties"][TIES[0]]["values"])),
            *(format_mean(each["ties"][tie]["values"], digits=4) for tie in TIES),
        )
        for each in summary["accuracy"]
    ]
    header = ("Mentions", "By", "", "Number", *TIES)
    aligns = ["l", "l", "l", *["r"] * (len(header) - 3)]
    msg.table(rows, header=header, divider=True, aligns=aligns)
    msg.text(f"Mean ± sample standard deviation; mentions: {summary['group']}.")
    for name in summary["different_files"]:
        msg.warn(f"{name} is not the same file in all runs.")


def summarize_runs(
    results: Annotated[list[Path], typer.Argument(help="results.json of each run.")],
    group: Group = "all",
    together: Annotated[
        bool,
        typer.Option("--together", help="Treat all gold files as one, e.g. folds."),
    ] = False,
    output: Annotated[Path | None, typer.Option(help="JSON to write.")] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> Summary:
    """Compute mean and standard deviation of each accuracy of several runs.

    Example: python -m training summarize-runs results-1.json results-2.json
    """
    check_outputs(output, force=force)
    runs = read_runs(results, group)
    digests: dict[str, set[str]] = defaultdict(set)
    values: dict[Key, dict[str, list[float]]] = {}
    for run in runs:
        for name, digest in run.digests.items():
            digests[name].add(digest)
        for key, ties in run.accuracies.items():
            named = key._replace(file=TOGETHER) if together else key
            found = values.setdefault(named, {tie: [] for tie in TIES})
            for tie, value in ties.items():
                if value is not None:
                    found[tie].append(value)
    summary: Summary = {
        "runs": [path.name for path in results],
        "group": group,
        "settings": runs[0].settings,
        "different_files": sorted(n for n, found in digests.items() if len(found) > 1),
        "accuracy": [
            {
                "file": key.file,
                "level": key.level,
                "k": key.k,
                "ties": {tie: summarize_values(each) for tie, each in ties.items()},
            }
            for key, ties in values.items()
            if all(ties.values())
        ],
    }
    if output:
        write_json(output, summary)
    if not quiet:
        print_summary(summary)
        if output:
            msg.good(f"Wrote {output}")
    return summary
