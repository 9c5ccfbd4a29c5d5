"""`spacy sapbert regress`: cases of a vocabulary in, what is not as expected out."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer
from wasabi import msg, table

from ..errors import Errors, SapbertError
from ..evaluation.regression import run_cases
from ..evaluation.regression_cases import read_cases
from ..pipeline.running import complete_pipeline, load_pipeline
from ..system.writing import write_atomically
from .app import app

HEADER = ("case", "mention", "expected", "found", "name", "score", "remarks", "note")
ALIGNS = ("l", "l", "l", "l", "l", "r", "l", "l")
FAILED, UNUSABLE = 1, 2  # exit codes


def failure_row(outcome: dict[str, Any]) -> list[str]:
    """Put a case that failed in a row.

    outcome (dict[str, Any]): From `run_cases`.
    RETURNS (list[str]): A cell for each of `HEADER`.
    """
    from ..formats.entities import NIL
    from ..formats.table import shorten

    score = outcome["score"]
    found = outcome["cui"] or NIL
    if outcome["link_note"]:
        found += f" ({outcome['link_note']})"
    return [
        shorten(f"{outcome['file']}:{outcome['line']}"),
        shorten(outcome["mention"]),
        shorten(", ".join(outcome["expected"])),
        shorten(found),
        shorten(outcome["name"] or ""),
        "" if score is None else f"{score:.3f}",
        shorten("; ".join(outcome["remarks"])),
        shorten(outcome["note"] or ""),
    ]


def write_outcomes(
    outcomes: Iterable[dict[str, Any]], output: Path | None
) -> Iterator[dict[str, Any]]:
    """Write what became of the cases, and let it pass.

    outcomes (Iterable[dict[str, Any]]): From `run_cases`.
    output (Path | None): A JSONL file that takes its name once it is whole.
    YIELDS (dict[str, Any]): The same.
    """
    if output is None:
        yield from outcomes
        return
    with write_atomically(output) as file:
        for outcome in outcomes:
            line = json.dumps(outcome, ensure_ascii=False, allow_nan=False)
            file.write(line.encode("utf8") + b"\n")
            yield outcome


def report_failures(failures: list[dict[str, Any]], total: int) -> str:
    """Draw the cases that failed, and count the others.

    failures (list[dict[str, Any]]): Their outcomes.
    total (int): How many cases there are.
    RETURNS (str): A table, if there are any, and a line.
    """
    line = f"{total} cases, {total - len(failures)} passed, {len(failures)} failed"
    if not failures:
        return line
    from ..formats.table import WIDEST

    rows = [failure_row(outcome) for outcome in failures]
    drawn = table(rows, header=HEADER, divider=True, aligns=ALIGNS, max_col=WIDEST)
    return f"{drawn.strip()}\n\n{line}"


@app.command("regress")
def regress(
    cases: list[Path] = typer.Argument(
        ..., metavar="CASES...", help="YAML files: see docs/regress.md."
    ),
    kb: str | None = typer.Option(
        None, help="Folder or name of a knowledge base. [the installed]"
    ),
    pipeline: str | None = typer.Option(
        None, help="Folder or package, with a linker. [blank English and `--kb`]"
    ),
    output: Path | None = typer.Option(
        None, help="JSONL file for what became of each case."
    ),
    force: bool = typer.Option(False, "--force", help="Replace the output."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """cases.yaml + kb/ -> what is not linked as expected

    A case: {mention: MI, context: "no MI on the echo", expected: C0026266, label:
    DISEASE, note: why}. Only expected and mention, or [[marks]] in the context, must be
    there; expected may be a list, or NIL.

    Example: spacy sapbert regress assets/sample/cases.yaml --kb models/sample/kb

    Example: spacy sapbert regress cases/*.yaml --pipeline models/pipeline --output
    results.jsonl --force

    Exit code: 0 = all cases passed; 1 = some failed; 2 = cases, options, pipeline or
    knowledge base cannot be used; 130 = interrupted.
    """
    try:
        if output is not None and output.exists() and not force:
            raise SapbertError(Errors.E003.format(path=output))
        checked = [case for path in cases for case in read_cases(path)]
        nlp = load_pipeline(pipeline)
        linker = complete_pipeline(nlp, kb=kb, detection=False)
        outcomes = write_outcomes(run_cases(nlp, linker, checked), output)
        failures = [outcome for outcome in outcomes if not outcome["passed"]]
    except SapbertError as error:
        msg.fail(str(error), exits=UNUSABLE)
    if not quiet:
        typer.echo(report_failures(failures, len(checked)))
    if failures:
        raise typer.Exit(FAILED)
