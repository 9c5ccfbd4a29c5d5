"""results.json of gold files by language → Precision@1 and @5, as for XL-BEL."""

import re
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, TypedDict

import typer

from spacy_sapbert.evaluation.accuracy import LEVELS, TIES, format_mean
from spacy_sapbert.system.terminal import msg
from spacy_sapbert.system.writing import (
    check_outputs,
    write_atomically,
    write_json,
)
from training.data.reporting import Force, Quiet, format_markdown
from training.errors import Errors, SapbertError, check_choice
from training.experiments.summarize_runs import Group, Key, Run, read_runs

# In the name of a file: xlbel_es.test.tsv.gz, es_1k_test_query.txt, dev.es.tsv
LANGUAGE = re.compile(r"(?<![A-Za-z0-9])[a-z]{2}(?![A-Za-z0-9])")

Columns = dict[str, dict[str, float | None]]  # coverage, p@1 …: by language, and mean


class LanguageTable(TypedDict):
    """Results by language.

    files (dict[str, str]): The gold file of each language.
    linkers (dict[str, list[Columns]]): For each linker one entry for each seed.
    """

    level: str
    ties: str
    group: str
    settings: dict[str, Any]
    files: dict[str, str]
    linkers: dict[str, list[Columns]]


def find_language(file: str) -> str:
    """Return the first two separate small letters in the name of a file."""
    found = LANGUAGE.search(file)
    if found is None:
        raise SapbertError(Errors.E780.format(file=file))
    return found.group()


def list_languages(run: Run, path: Path) -> dict[str, str]:
    """Return the name of the gold file of each language, in the order of the results.

    RAISES (SapbertError): If a language has two files, or a file no language.
    """
    files: dict[str, str] = {}
    for file in run.digests:
        language = find_language(file)
        if language in files:
            raise SapbertError(
                Errors.E781.format(
                    path=path, language=language, first=files[language], second=file
                )
            )
        files[language] = file
    return files


def make_columns(run: Run, files: dict[str, str], level: str, ties: str) -> Columns:
    """Return coverage and precisions of a run by language, with their means."""
    columns: Columns = {
        "coverage": {language: run.coverages[file] for language, file in files.items()}
    }
    for k in run.settings["ks"]:
        columns[f"p@{k}"] = {
            language: run.accuracies[Key(file, level, k)][ties]
            for language, file in files.items()
        }
    for values in columns.values():
        known = [value for value in values.values() if value is not None]
        values["mean"] = round(fmean(known), 6) if known else None
    return columns


def format_table(table: LanguageTable) -> str:
    """Format the result of `make_table` as Markdown, without a final line feed."""
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


def make_table(
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
) -> LanguageTable:
    """Arrange results by language, from names of gold files: xlbel_es.test.tsv.gz.

    Example: python -m training language-table base=results/base.json
    translated=results/translated.json --output results/xlbel.md
    """
    check_outputs(output, json, force=force)
    check_choice("level", LEVELS, level)
    check_choice("ties", TIES, ties)
    names, paths = zip(*map(parse_result, results), strict=True)
    runs = read_runs(paths, group)
    files = list_languages(runs[0], paths[0])
    linkers: dict[str, list[Columns]] = {}
    for name, path, run in zip(names, paths, runs, strict=True):
        if run.digests != runs[0].digests:
            raise SapbertError(Errors.E782.format(path=path, first=paths[0]))
        linkers.setdefault(name, []).append(make_columns(run, files, level, ties))
    table: LanguageTable = {
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
