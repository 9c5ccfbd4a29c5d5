"""results.json of an experiment → its table: accuracies by linker and corpus."""

from collections import defaultdict
from pathlib import Path

import typer

from benchmarks.harness import machine_line, markdown_table, run_cli
from spacy_sapbert.evaluation.accuracy import TIES, format_mean
from spacy_sapbert.io.terminal import msg
from training.experiments.tables import Results, read_results


def format_accuracies(
    runs: dict[str, list[Results]], group: str, ties: str
) -> list[str]:
    """Format the accuracies by concepts of each linker, of several seeds the mean."""
    values = {
        linker: [run.values(group, ties) for run in seeds]
        for linker, seeds in runs.items()
    }
    first = next(iter(values.values()))[0]
    keys = [key for key in first if key.level == "concepts"]
    header = ["Linker", *(f"{key.file.split('.tsv')[0]} Acc@{key.k}" for key in keys)]
    rows = [
        [linker]
        + [format_mean([accuracies[key] for accuracies in seeds]) for key in keys]
        for linker, seeds in values.items()
    ]
    return markdown_table(header, rows)


def main(
    results: list[Path] = typer.Argument(
        ..., help="JSON of `evaluate --output`, LINKER.json or LINKER-SEED.json."
    ),
    group: str = typer.Option("all", help="all, covered, seen or unseen mentions."),
    ties: str = typer.Option("expected", help="lenient, expected or strict."),
) -> None:
    """results.json of several linkers and seeds -> one table in Markdown

    Example: python -m benchmarks.numbers experiments/sapbert/results/*.json
    """
    if ties not in TIES:
        raise typer.BadParameter(f"expected one of {', '.join(TIES)}")
    runs: dict[str, list[Results]] = defaultdict(list)
    for path, run in zip(results, read_results(results, group), strict=True):
        linker, dash, seed = path.stem.rpartition("-")
        runs[linker if dash and seed.isdigit() else path.stem].append(run)
    msg.text(f"{machine_line()}; {group} mentions, ties {ties}, by concepts.")
    typer.echo("\n".join(format_accuracies(runs, group, ties)))


if __name__ == "__main__":
    run_cli(main)
