"""results.json of several runs → mean and standard deviation of each accuracy."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import typer
from wasabi import msg

from spacy_sapbert.evaluation.accuracy import LEVELS, TIES, format_mean
from spacy_sapbert.system.reading import open_to_read
from spacy_sapbert.system.writing import write_json
from training.errors import Errors, SapbertError

TOGETHER = "all files"


class Key(NamedTuple):
    """File of gold mentions, level and k of an accuracy."""

    file: str
    level: str
    k: int


class Run(NamedTuple):
    """The content of one results.json.

    settings (dict[str, Any]): Settings of the evaluation.
    digests (dict[str, str]): The sha256 of each gold file.
    accuracies (dict[Key, dict[str, float | None]]): By tie order; None if the group has
        no mentions.
    coverages (dict[str, float]): Share of mentions with a concept in the dictionary,
        by gold file.
    """

    settings: dict[str, Any]
    digests: dict[str, str]
    accuracies: dict[Key, dict[str, float | None]]
    coverages: dict[str, float]


def read_run(path: Path, group: str = "all") -> Run:
    """Read a result of `spacy sapbert evaluate --output`.

    group (str): Group of mentions: "all", "covered", "seen" or "unseen".
    RAISES (SapbertError): If the file is something else, or lacks the group.
    """
    with open_to_read(path) as file:
        text = file.read()
    run = Run({}, {}, {}, {})
    try:
        results = json.loads(text)
        run.settings.update(results["settings"])
        for judged in results["files"]:
            name = str(judged["file"])
            run.digests[name] = str(judged["sha256"])
            run.coverages[name] = float(judged["coverage"])
            if group not in judged["accuracy"]:
                raise SapbertError(Errors.E747.format(path=path, group=group))
            for level in LEVELS:
                for k in results["settings"]["ks"]:
                    ties = judged["accuracy"][group][level][f"acc@{k}"]
                    run.accuracies[Key(name, level, int(k))] = {
                        tie: None if ties[tie] is None else float(ties[tie])
                        for tie in TIES
                    }
    except SapbertError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError):
        raise SapbertError(Errors.E745.format(path=path)) from None
    return run


def describe_values(values: Sequence[float]) -> dict[str, Any]:
    """Return `mean`, sample standard `deviation` (None for one value) and `values`."""
    deviation = round(stdev(values), 6) if len(values) > 1 else None
    return {
        "mean": round(fmean(values), 6),
        "deviation": deviation,
        "values": list(values),
    }


def summarize_runs(
    paths: Sequence[Path], *, group: str = "all", together: bool = False
) -> dict[str, Any]:
    """Summarise the accuracies of several runs.

    group (str): Group of mentions: "all", "covered", "seen" or "unseen".
    together (bool): Treat all gold files as one, e.g. the folds of a corpus.
    RETURNS (dict[str, Any]): For each accuracy mean, deviation and values by tie order,
        and the names of gold files that differ between runs.
    RAISES (SapbertError): If a file is not usable, or has other settings.
    """
    runs = [read_run(path, group) for path in paths]
    digests: dict[str, set[str]] = defaultdict(set)
    values: dict[Key, dict[str, list[float]]] = {}
    for path, run in zip(paths, runs, strict=True):
        known = runs[0].settings
        for setting in sorted({*known, *run.settings}):
            if known.get(setting) != run.settings.get(setting):
                raise SapbertError(
                    Errors.E746.format(path=path, first=paths[0], setting=setting)
                )
        for name, digest in run.digests.items():
            digests[name].add(digest)
        for key, ties in run.accuracies.items():
            named = key._replace(file=TOGETHER) if together else key
            found = values.setdefault(named, {tie: [] for tie in TIES})
            for tie, value in ties.items():
                if value is not None:
                    found[tie].append(value)
    return {
        "runs": [path.name for path in paths],
        "group": group,
        "settings": runs[0].settings,
        "different_files": sorted(n for n, found in digests.items() if len(found) > 1),
        "accuracy": [
            {**key._asdict(), "ties": {t: describe_values(v) for t, v in ties.items()}}
            for key, ties in values.items()
            if all(ties.values())
        ],
    }


def print_summary(data: dict[str, Any]) -> None:
    """Print the result of `summarize_runs`."""
    rows = [
        (
            accuracy["file"],
            accuracy["level"],
            f"Acc@{accuracy['k']}",
            str(len(accuracy["ties"][TIES[0]]["values"])),
            *(format_mean(accuracy["ties"][tie]["values"], digits=4) for tie in TIES),
        )
        for accuracy in data["accuracy"]
    ]
    header = ("Mentions", "By", "", "Number", *TIES)
    aligns = ["l", "l", "l", *["r"] * (len(header) - 3)]
    msg.table(rows, header=header, divider=True, aligns=aligns)
    msg.text(f"Mean ± sample standard deviation; mentions: {data['group']}.")
    for name in data["different_files"]:
        msg.warn(f"{name} is not the same file in all runs.")


def summarize_runs_command(
    results: list[Path] = typer.Argument(..., help="results.json of each run."),
    group: str = typer.Option("all", help="all, covered, seen or unseen mentions."),
    together: bool = typer.Option(
        False, "--together", help="Treat all gold files as one, e.g. folds."
    ),
    output: Path | None = typer.Option(None, help="JSON to write."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """Example: python -m training summarize-runs results-1.json results-2.json"""
    data = summarize_runs(results, group=group, together=together)
    if output:
        write_json(output, data)
    if not quiet:
        print_summary(data)
        if output:
            msg.good(f"Wrote {output}")
