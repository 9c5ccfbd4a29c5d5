"""results.json of `spacy sapbert evaluate` → one table of linkers and seeds."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any

import typer
from pydantic import BaseModel, ValidationError

from spacy_sapbert.errors import SapbertError, check_choice
from spacy_sapbert.evaluation.accuracy import LEVELS, TIES
from spacy_sapbert.io.reading import open_to_read
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_outputs, write_atomically
from training.data.options import Force, Quiet, format_markdown

MEAN = "mean of the files"
SEED = re.compile(r"-\d+$")  # at the end of a name: trained-0.json, trained-1.json


class GoldFile(BaseModel):
    """What results.json has for a file of gold mentions."""

    file: str
    sha256: str
    coverage: float
    accuracy: dict[str, dict[str, int | dict[str, dict[str, float | None]]]]


class Results(BaseModel):
    """The content of results.json."""

    settings: dict[str, Any]
    files: list[GoldFile]

    def iter_values(
        self, group: str, level: str, ties: str
    ) -> Iterator[tuple[str, list[float | None]]]:
        """Yield each gold file with its coverage and accuracies, and their means.

        An accuracy is None if the group has no mentions, and not in the mean.
        """
        columns: list[list[float | None]] = []
        for gold in self.files:
            by_k: Any = gold.accuracy[group][level]
            accuracies = [by_k[f"acc@{k}"][ties] for k in self.settings["ks"]]
            columns.append([gold.coverage, *accuracies])
            yield gold.file, columns[-1]
        if len(columns) > 1:
            known = [
                [v for v in values if v is not None]
                for values in zip(*columns, strict=True)
            ]
            yield MEAN, [fmean(values) if values else None for values in known]


def read_results(paths: Sequence[Path], group: str = "all") -> list[Results]:
    """Read results.json of runs with the same settings and files, with the group."""
    runs: list[Results] = []
    digests: dict[str, str] = {}
    for path in paths:
        with open_to_read(path) as file:
            text = file.read()
        try:
            run = Results.model_validate_json(text)
        except ValidationError:
            raise SapbertError(
                "E746",
                f"{path}: Expected results of `spacy sapbert evaluate --output`, but "
                "got something else. Name such a file.",
            ) from None
        for gold in run.files:
            if group not in gold.accuracy:
                raise SapbertError(
                    "E746",
                    f"Expected a group of mentions that all results have, but {path} "
                    f"has no {group!r}. Correct `--group`, or evaluate with `--seen`.",
                )
        runs.append(run)
        first = runs[0].settings
        differing = [
            f"`{setting}`"
            for setting in sorted({*first, *run.settings})
            if first.get(setting) != run.settings.get(setting)
        ]
        differing += [
            gold.file
            for gold in run.files
            if digests.setdefault(gold.file, gold.sha256) != gold.sha256
        ]
        if differing:
            raise SapbertError(
                "E746",
                f"{path}: Expected results with the settings and files of {paths[0]}, "
                f"but {', '.join(differing)} differs. Evaluate both with the same "
                "options on the same files.",
            )
    return runs


def parse_result(value: str) -> tuple[str, Path]:
    """Parse `NAME=results.json`; the name is by default that of the file."""
    name, _, path = value.rpartition("=")
    return name or SEED.sub("", Path(path).stem), Path(path)


def results_table(
    results: Annotated[
        list[str],
        typer.Argument(
            help="results.json of each linker and seed: NAME=FILE, or NAME-SEED.json."
        ),
    ],
    level: Annotated[str, typer.Option(help="concepts or rows.")] = "concepts",
    ties: Annotated[str, typer.Option(help="lenient, expected, strict.")] = "expected",
    group: Annotated[
        str, typer.Option(help="all, covered, seen or unseen mentions.")
    ] = "all",
    output: Annotated[Path | None, typer.Option(help="Markdown to write.")] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> list[list[str]]:
    """Arrange coverage and accuracies by file of gold mentions, and by linker.

    Several results of one name are its seeds, of which the table has mean ± sample
    standard deviation.

    Example: python -m training results-table base=results/base.json
    results/trained-0.json results/trained-1.json --output results/table.md
    """
    check_outputs(output, force=force)
    check_choice("level", LEVELS, level)
    check_choice("ties", TIES, ties)
    names, paths = zip(*map(parse_result, results), strict=True)
    runs = read_results(paths, group)
    # by gold file and linker, in the order in which they come
    values: dict[str, dict[str, list[list[float | None]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for name, run in zip(names, runs, strict=True):
        for file, columns in run.iter_values(group, level, ties):
            values[file][name].append(columns)
    if MEAN in values:
        values[MEAN] = values.pop(MEAN)
    rows = [
        [file, name, *(format_mean(column) for column in zip(*seeds, strict=True))]
        for file, linkers in values.items()
        for name, seeds in linkers.items()
    ]
    header = [
        "Mentions",
        "Linker",
        "Coverage",
        *(f"Acc@{k}" for k in runs[0].settings["ks"]),
    ]
    text = "\n".join(
        [
            f"By {level}, ties {ties}, {group} mentions; coverage is of all.",
            "",
            *format_markdown(header, rows, left=2),
        ]
    )
    if output:
        with write_atomically(output) as written:
            written.write(f"{text}\n".encode())
    if not quiet:
        typer.echo(text)
        if output:
            msg.good(f"Wrote {output}")
    return rows


def format_mean(values: Sequence[float | None], *, digits: int = 3) -> str:
    """Format the mean of several seeds ± the sample standard deviation."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    spread = f" ± {stdev(known):.{digits}f}" if len(known) > 1 else ""
    return f"{fmean(known):.{digits}f}{spread}"
