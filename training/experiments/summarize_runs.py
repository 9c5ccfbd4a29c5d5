"""results.json of several runs → mean and standard deviation of each accuracy."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import typer
from wasabi import msg

from training.errors import Errors, SapbertError
from spacy_sapbert.evaluation.accuracy import LEVELS, TIES, render_mean
from spacy_sapbert.system.reading import open_to_read
from spacy_sapbert.system.writing import write_json

TOGETHER = "all files"


class Key(NamedTuple):
    """What an accuracy is of.

    file (str): The file of gold mentions.
    level (str): One of `LEVELS`.
    k (int): How many answers count.
    """

    file: str
    level: str
    k: int


class Run(NamedTuple):
    """What is read from one results.json.

    settings (dict[str, Any]): How answers were judged.
    digests (dict[str, str]): The sha256 of each gold file.
    accuracies (dict[Key, dict[str, float | None]]): By the way of ties; None if the
        group has no mentions.
    coverages (dict[str, float]): Of each gold file the share of mentions that the
        dictionary covers.
    """

    settings: dict[str, Any]
    digests: dict[str, str]
    accuracies: dict[Key, dict[str, float | None]]
    coverages: dict[str, float]


def read_run(path: Path, group: str = "all") -> Run:
    """Read what `spacy_sapbert.evaluation.evaluate --output` wrote.

    path (Path): The file.
    group (str): Of mentions: "all", "covered", "seen" or "unseen".
    RETURNS (Run): The accuracies in it.
    RAISES (SapbertError): If it is something else, or does not have the group.
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
    """Compute mean and sample standard deviation.

    values (Sequence[float]): At least one.
    RETURNS (dict[str, Any]): `mean`, `deviation`, None for one value, and the `values`.
    """
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

    paths (Sequence[Path]): Files results.json.
    group (str): Of mentions: "all", "covered", "seen" or "unseen".
    together (bool): Whether all gold files are one, e.g. the folds of one set.
    RETURNS (dict[str, Any]): For each accuracy mean, deviation and values by the way of
        ties, and the names of gold files of which there are several.
    RAISES (SapbertError): If a file is not usable, or was judged in another way.
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
    """Print the accuracies.

    data (dict[str, Any]): From `summarize_runs`.
    """
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


def main(
    results: list[Path] = typer.Argument(..., help="results.json of each run."),
    group: str = typer.Option("all", help="all, covered, seen or unseen mentions."),
    together: bool = typer.Option(
        False, "--together", help="Take all gold files for one, e.g. for folds."
    ),
    output: Path | None = typer.Option(None, help="JSON to write."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """results.json of several seeds or folds -> table, JSON

    Example: python -m training.experiments.summarize_runs results-1.json results-2.json
    """
    try:
        data = summarize_runs(results, group=group, together=together)
        if output:
            write_json(output, data)
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        print_summary(data)
        if output:
            msg.good(f"Wrote {output}")


if __name__ == "__main__":
    typer.run(main)
