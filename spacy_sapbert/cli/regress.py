"""`spacy sapbert regress`: cases → those that are not linked as expected."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..formats.gold import NIL
from ..io.progress import format_count, show_progress
from ..io.writing import write_atomically
from .app import app, check_outputs, report_errors
from .options import OUTPUT, Force, KbOrPipeline, Quiet, choose_pipeline

if TYPE_CHECKING:
    from ..evaluation.regression import Outcome

HEADER = ("case", "mention", "expected", "found", "name", "score", "remarks", "note")
ALIGNS = ("l", "l", "l", "l", "l", "r", "l", "l")
FAILED, UNUSABLE = 1, 2  # exit codes


def failure_row(outcome: "Outcome") -> list[str]:
    """Return a cell for each of `HEADER`."""
    note = f" ({outcome.link_note})" if outcome.link_note else ""
    return [
        f"{outcome.file}:{outcome.line}",
        outcome.mention,
        ", ".join(outcome.expected),
        (outcome.cui or NIL) + note,
        outcome.name or "",
        "" if outcome.score is None else f"{outcome.score:.3f}",
        "; ".join(outcome.remarks),
        outcome.note or "",
    ]


def misses_least(
    outcomes: "Sequence[Outcome]", passed: Mapping[str, int], least: Mapping[str, int]
) -> bool:
    """Return whether too few cases of a file passed; without a number all must."""
    totals = Counter(outcome.file for outcome in outcomes)
    return any(passed[file] < least.get(file, total) for file, total in totals.items())


def format_failures(
    failures: "Sequence[Outcome]", total: int, least: Mapping[str, int]
) -> str:
    """Format a table of the cases that failed, and a line with the counts."""
    from ..formats.table import draw_table

    cases = format_count(total, "case")
    line = f"{cases}, {total - len(failures)} passed, {len(failures)} failed"
    if least:
        must = ", ".join(f"{number} of {file}" for file, number in least.items())
        line += f"; at least {must} must pass"
    if not failures:
        return line
    drawn = draw_table(map(failure_row, failures), HEADER, ALIGNS)
    return f"{drawn.strip()}\n\n{line}"


@app.command("regress")
def regress(
    kb: KbOrPipeline,
    cases: list[Path] | None = typer.Argument(
        None,
        metavar="[CASES]...",
        help="YAML files. [those in the pipeline]",
        show_default=False,
    ),
    pipeline: str | None = typer.Option(
        None,
        "--pipeline",
        "-p",
        help="Folder or package that runs on the context before. [a blank one]",
    ),
    output: Path | None = typer.Option(
        None,
        "--output",
        "-o",
        help="JSONL file with the result of each case.",
        **OUTPUT,
    ),
    keep: Path | None = typer.Option(
        None,
        help="Folder of a pipeline: put the cases into it, with the number of each "
        "file that passed, which must pass from then on.",
        **OUTPUT,
    ),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """kb/ + cases.yaml … -> cases that are not linked as expected

    A case: {mention: MI, context: "no MI on the echo", expected: C0026266, label:
    DISEASE, note: why}. Required are expected, and mention or [[marks]] in the context;
    expected may be a list, or NIL.

    Example: spacy sapbert regress models/sample/kb assets/sample/cases.yaml

    Example: spacy sapbert regress models/pipeline cases/*.yaml -o results.jsonl --force

    Example: spacy sapbert regress models/pipeline cases.yaml --keep packages/pipeline

    Example: spacy sapbert regress en_sample

    Exit code: 0 = all cases passed, or as many as must, or they are kept; 1 = others
    failed; 2 = cases, options, pipeline or knowledge base cannot be used; 130 =
    interrupted.
    """
    from ..evaluation.regression import run_cases
    from ..evaluation.regression_cases import (
        check_kept,
        find_kept,
        keep_cases,
        read_cases,
    )
    from ..pipeline.running import complete_pipeline, load_pipeline

    files, least = cases or [], dict[str, int]()
    with report_errors(UNUSABLE):
        check_outputs(output, force=force)
        if keep is not None:
            check_kept(keep, files, force=force)
        checked = [case for path in files for case in read_cases(path)]
        # The language of a case is not known, so names of all languages count.
        loaded, name = choose_pipeline(kb, pipeline)
        nlp = load_pipeline(loaded, lang=None if loaded else "xx")
        if not files:
            files, least = find_kept(nlp.path)
            checked = [case for path in files for case in read_cases(path)]
        linker = complete_pipeline(nlp, kb=name, detection=False)
        found = run_cases(nlp, linker, checked)
        total = len(checked)
        outcomes = [*show_progress(found, total=total, unit="cases", quiet=quiet)]
        if output is not None:
            with write_atomically(output) as file:
                for outcome in outcomes:
                    line = json.dumps(outcome._asdict(), ensure_ascii=False)
                    file.write(line.encode("utf8", "replace") + b"\n")
        failures = [outcome for outcome in outcomes if not outcome.passed]
        if not quiet:
            typer.echo(format_failures(failures, len(checked), least))
        passed = Counter({outcome.file: 0 for outcome in outcomes})
        passed.update(outcome.file for outcome in outcomes if outcome.passed)
        if keep is not None:
            keep_cases(keep, files, passed)
    if keep is None and misses_least(outcomes, passed, least):
        raise typer.Exit(FAILED)
