"""results.json of gold files by language → Precision@1 and @5, as for XL-BEL."""

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import typer
from wasabi import msg

from spacy_sapbert.evaluation.accuracy import LEVELS, TIES, format_mean
from spacy_sapbert.system.writing import write_atomically, write_json
from training.errors import Errors, SapbertError, check_choice
from training.experiments.summarize_runs import Key, Run, read_run

# In the name of a file: xlbel_es.test.tsv.gz, es_1k_test_query.txt, dev.es.tsv
LANGUAGE = re.compile(r"(?<![A-Za-z0-9])[a-z]{2}(?![A-Za-z0-9])")


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


def read_runs(paths: dict[str, list[Path]], group: str) -> dict[str, list[Run]]:
    """Read the results of several linkers, each with files for its seeds.

    RAISES (SapbertError): If a file is not usable, or has other settings or mentions.
    """
    first: Path | None = None
    runs: dict[str, list[Run]] = {}
    for name, files in paths.items():
        for path in files:
            run = read_run(path, group)
            if first is None:
                first, known = path, run
            for setting in sorted({*known.settings, *run.settings}):
                if known.settings.get(setting) != run.settings.get(setting):
                    raise SapbertError(
                        Errors.E746.format(path=path, first=first, setting=setting)
                    )
            if run.digests != known.digests:
                raise SapbertError(Errors.E782.format(path=path, first=first))
            runs.setdefault(name, []).append(run)
    return runs


def mean_of_known(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are not None; None without any."""
    known = [value for value in values if value is not None]
    return round(fmean(known), 6) if known else None


def make_table(
    paths: dict[str, list[Path]],
    *,
    level: str = "concepts",
    ties: str = "expected",
    group: str = "all",
) -> dict[str, Any]:
    """Arrange results by language.

    paths (dict[str, list[Path]]): Files results.json by linker, one for each seed.
    level (str): One of `LEVELS`, the unit of k.
    ties (str): One of `TIES`.
    group (str): Group of mentions: "all", "covered", "seen" or "unseen".
    RETURNS (dict[str, Any]): Settings, gold files by language, and for each linker and
        seed `coverage` and `p@k` by language, with their `mean` over languages.
    RAISES (SapbertError): If a file is not usable, or a setting is unknown or differs.
    """
    check_choice("level", LEVELS, level)
    check_choice("ties", TIES, ties)
    runs = read_runs(paths, group)
    first = next(iter(runs.values()))[0]
    files = list_languages(first, next(iter(paths.values()))[0])
    ks = first.settings["ks"]
    linkers: dict[str, list[dict[str, Any]]] = {}
    for name, seeds in runs.items():
        for run in seeds:
            columns: dict[str, dict[str, float | None]] = {
                "coverage": {lang: run.coverages[file] for lang, file in files.items()}
            }
            for k in ks:
                columns[f"p@{k}"] = {
                    language: run.accuracies[Key(file, level, k)][ties]
                    for language, file in files.items()
                }
            for values in columns.values():
                values["mean"] = mean_of_known(list(values.values()))
            linkers.setdefault(name, []).append(columns)
    return {
        "level": level,
        "ties": ties,
        "group": group,
        "settings": first.settings,
        "files": files,
        "linkers": linkers,
    }


def format_table(data: dict[str, Any]) -> str:
    """Format the result of `make_table` as Markdown, without a final line feed."""
    columns = [
        (name, column) for name, seeds in data["linkers"].items() for column in seeds[0]
    ]
    titles = [f"{name}: {column.capitalize()}" for name, column in columns]
    lines = [
        f"Precision of the first answers by {data['level']}, ties {data['ties']}; "
        f"mentions: {data['group']}. Coverage is of all mentions. Of several seeds "
        "mean ± standard deviation.",
        "",
        f"| Language | {' | '.join(titles)} |",
        f"| --- |{' ---: |' * len(titles)}",
    ]
    for language in (*data["files"], "mean"):
        cells = [
            format_mean([seed[column][language] for seed in data["linkers"][name]])
            for name, column in columns
        ]
        lines.append(f"| {language} | {' | '.join(cells)} |")
    return "\n".join(lines)


def group_results(values: Sequence[str]) -> dict[str, list[Path]]:
    """Parse `NAME=results.json`; files of one name are seeds."""
    paths: dict[str, list[Path]] = {}
    for value in values:
        name, separator, path = value.partition("=")
        if not separator or not name.strip() or not path.strip():
            raise SapbertError(Errors.E783.format(value=value))
        paths.setdefault(name.strip(), []).append(Path(path.strip()))
    return paths


def language_table_command(
    results: list[str] = typer.Argument(
        ..., help="NAME=results.json of each linker; with one name for several seeds."
    ),
    level: str = typer.Option("concepts", help="Unit of k: concepts or rows."),
    ties: str = typer.Option("expected", help="lenient, expected or strict."),
    group: str = typer.Option("all", help="all, covered, seen or unseen mentions."),
    output: Path | None = typer.Option(None, help="Markdown to write."),
    json: Path | None = typer.Option(None, help="JSON to write."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """The languages are in the names of the gold files: xlbel_es.test.tsv.gz.

    Example: python -m training language-table base=results/base.json
    translated=results/translated.json --output results/xlbel.md
    """
    data = make_table(group_results(results), level=level, ties=ties, group=group)
    table = format_table(data)
    if output:
        with write_atomically(output) as file:
            file.write(f"{table}\n".encode())
    if json:
        write_json(json, data)
    if not quiet:
        typer.echo(table)
        for written in filter(None, (output, json)):
            msg.good(f"Wrote {written}")
