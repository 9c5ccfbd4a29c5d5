"""results.json of `spacy sapbert evaluate` → tables of seeds, folds and languages."""

import pkgutil
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any, NamedTuple

import typer
from pydantic import BaseModel, ValidationError

from spacy_sapbert.evaluation.accuracy import LEVELS, TIES, format_mean
from spacy_sapbert.io.reading import open_to_read
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_outputs, write_atomically, write_json
from training.data.options import Force, Quiet, format_markdown
from training.errors import Errors, SapbertError, check_choice

TOGETHER = "all files"
WORD = re.compile(r"(?<![A-Za-z0-9])[a-z]{2}(?![A-Za-z0-9])")
Group = Annotated[str, typer.Option(help="all, covered, seen or unseen mentions.")]

Columns = dict[str, dict[str, float | None]]  # coverage, p@1 …: by language, and mean


class Key(NamedTuple):
    """File of gold mentions, level and k of an accuracy."""

    file: str
    level: str
    k: int


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

    def values(self, group: str, ties: str) -> dict[Key, float | None]:
        """Return the accuracies of a group; None if it has no mentions."""
        found: dict[Key, float | None] = {}
        for gold in self.files:
            for level in LEVELS:
                by_k: Any = gold.accuracy[group][level]
                for k in self.settings["ks"]:
                    found[Key(gold.file, level, k)] = by_k[f"acc@{k}"][ties]
        return found


def read_results(paths: Sequence[Path], group: str = "all") -> list[Results]:
    """Read results.json of runs with the same settings, which have the group."""
    runs: list[Results] = []
    for path in paths:
        with open_to_read(path) as file:
            text = file.read()
        try:
            run = Results.model_validate_json(text)
        except ValidationError:
            command = "spacy sapbert evaluate --output"
            values = {"expected": "results", "command": command}
            raise SapbertError(Errors.E763.format(path=path, **values)) from None
        if not all(group in gold.accuracy for gold in run.files):
            raise SapbertError(Errors.E747.format(path=path, group=group))
        runs.append(run)
        first = runs[0].settings
        for setting in sorted({*first, *run.settings}):
            if first.get(setting) != run.settings.get(setting):
                names = {"first": paths[0], "setting": setting}
                raise SapbertError(Errors.E746.format(path=path, **names))
    return runs


def summarize_values(values: Sequence[float]) -> dict[str, Any]:
    """Compute mean and sample standard deviation, None of one value, rounded."""
    deviation = round(stdev(values), 6) if len(values) > 1 else None
    mean = round(fmean(values), 6)
    return {"mean": mean, "deviation": deviation, "values": list(values)}


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
) -> dict[str, Any]:
    """Compute mean and standard deviation of each accuracy of several runs.

    Example: python -m training summarize-runs results-1.json results-2.json
    """
    check_outputs(output, force=force)
    runs = read_results(results, group)
    digests: dict[str, set[str]] = defaultdict(set)
    values: dict[Key, dict[str, list[float]]] = {}
    for run in runs:
        for gold in run.files:
            digests[gold.file].add(gold.sha256)
        for tie in TIES:
            for key, value in run.values(group, tie).items():
                named = key._replace(file=TOGETHER) if together else key
                by_tie = values.setdefault(named, {tie: [] for tie in TIES})
                if value is not None:
                    by_tie[tie].append(value)
    summary: dict[str, Any] = {
        "runs": [path.name for path in results],
        "group": group,
        "settings": runs[0].settings,
        "different_files": sorted(name for name in digests if len(digests[name]) > 1),
        "accuracy": [
            {
                **key._asdict(),
                "ties": {tie: summarize_values(each) for tie, each in ties.items()},
            }
            for key, ties in values.items()
            if all(ties.values())
        ],
    }
    if output:
        write_json(output, summary)
    if not quiet:
        rows = [
            (key.file, key.level, f"Acc@{key.k}", str(len(ties[TIES[0]])))
            + tuple(format_mean(ties[tie], digits=4) for tie in TIES)
            for key, ties in values.items()
            if all(ties.values())
        ]
        header = ("Mentions", "By", "", "Number", *TIES)
        aligns = ["l", "l", "l", *["r"] * (len(header) - 3)]
        msg.table(rows, header=header, divider=True, aligns=aligns)
        msg.text(f"Mean ± sample standard deviation; mentions: {group}.")
        for name in summary["different_files"]:
            msg.warn(f"{name} is not the same file in all runs.")
        if output:
            msg.good(f"Wrote {output}")
    return summary


def find_language(file: str) -> str:
    """Return the one code of a language of spaCy in the name of a file.

    E.g. xlbel_es.test.tsv.gz, es_1k_test_query.txt, dev.es.tsv.
    """
    from spacy import lang

    known = {module.name for module in pkgutil.iter_modules(lang.__path__)}
    found = {*WORD.findall(file)} & known
    if len(found) != 1:
        raise SapbertError(Errors.E780.format(file=file))
    return found.pop()


def list_languages(run: Results, path: Path) -> dict[str, str]:
    """Return the name of the gold file of each language, as the results have them."""
    files: dict[str, str] = {}
    for gold in run.files:
        language = find_language(gold.file)
        if language in files:
            values = {"first": files[language], "second": gold.file}
            raise SapbertError(
                Errors.E781.format(path=path, language=language, **values)
            )
        files[language] = gold.file
    return files


def make_columns(
    run: Results, files: dict[str, str], *, group: str, level: str, ties: str
) -> Columns:
    """Return coverage and precisions of a run by language, with their means."""
    coverages = {gold.file: gold.coverage for gold in run.files}
    accuracies = run.values(group, ties)
    columns: Columns = {
        "coverage": {language: coverages[file] for language, file in files.items()}
    }
    for k in run.settings["ks"]:
        columns[f"p@{k}"] = {
            language: accuracies[Key(file, level, k)]
            for language, file in files.items()
        }
    for values in columns.values():
        known = [value for value in values.values() if value is not None]
        values["mean"] = round(fmean(known), 6) if known else None
    return columns


def format_table(table: dict[str, Any]) -> str:
    """Format the result of `make_language_table` as Markdown."""
    linkers = table["linkers"]
    columns = [(name, column) for name, seeds in linkers.items() for column in seeds[0]]
    header = ["Language", *(f"{name}: {each.capitalize()}" for name, each in columns)]
    rows = [
        [language]
        + [
            format_mean([seed[column][language] for seed in linkers[name]])
            for name, column in columns
        ]
        for language in (*table["files"], "mean")
    ]
    lines = [
        f"Precision of the first answers by {table['level']}, ties {table['ties']}; "
        f"mentions: {table['group']}. Coverage is of all mentions. Of several seeds "
        "mean ± standard deviation.",
        "",
        *format_markdown(header, rows),
    ]
    return "\n".join(lines)


def parse_result(value: str) -> tuple[str, Path]:
    """Parse `NAME=results.json`."""
    name, separator, path = value.partition("=")
    if not separator or not name.strip() or not path.strip():
        raise SapbertError(Errors.E783.format(value=value))
    return name.strip(), Path(path.strip())


def make_language_table(
    results: Annotated[
        list[str],
        typer.Argument(
            help="NAME=results.json of each linker; with one name for several seeds."
        ),
    ],
    level: Annotated[str, typer.Option(help="concepts or rows.")] = "concepts",
    ties: Annotated[str, typer.Option(help="lenient, expected, strict.")] = "expected",
    group: Group = "all",
    output: Annotated[Path | None, typer.Option(help="Markdown to write.")] = None,
    json: Annotated[Path | None, typer.Option(help="JSON to write.")] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> dict[str, Any]:
    """Arrange results by language, from names of gold files: xlbel_es.test.tsv.gz.

    Example: python -m training language-table base=results/base.json
    translated=results/translated.json --output results/xlbel.md
    """
    check_outputs(output, json, force=force)
    check_choice("level", LEVELS, level)
    check_choice("ties", TIES, ties)
    names, paths = zip(*map(parse_result, results), strict=True)
    runs = read_results(paths, group)
    files = list_languages(runs[0], paths[0])
    digests = [{gold.file: gold.sha256 for gold in run.files} for run in runs]
    linkers: dict[str, list[Columns]] = defaultdict(list)
    for name, path, run, digest in zip(names, paths, runs, digests, strict=True):
        if digest != digests[0]:
            raise SapbertError(Errors.E782.format(path=path, first=paths[0]))
        columns = make_columns(run, files, group=group, level=level, ties=ties)
        linkers[name].append(columns)
    table = {
        "level": level,
        "ties": ties,
        "group": group,
        "settings": runs[0].settings,
        "files": files,
        "linkers": linkers,
    }
    text = format_table(table)
    if output:
        with write_atomically(output) as file:
            file.write(f"{text}\n".encode())
    if json:
        write_json(json, table)
    if not quiet:
        typer.echo(text)
        for written in filter(None, (output, json)):
            msg.good(f"Wrote {written}")
    return table
