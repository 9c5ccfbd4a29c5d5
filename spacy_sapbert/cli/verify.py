"""`spacy sapbert verify`: a table of texts and ids → the verdict on each id."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import check_choice
from ..io.terminal import msg
from .app import FAILED, app, check_outputs
from .options import (
    COLUMN,
    ID,
    LABEL,
    TEXT,
    Device,
    Encoding,
    Force,
    KbName,
    Quiet,
    open_kb,
    split_values,
)


@app.command("verify")
def verify(
    kb: KbName,
    table: Path = typer.Argument(
        ..., help="CSV, TSV, .sssom.tsv, Excel, .ods, .parquet or .jsonl."
    ),
    column: Annotated[str | None, COLUMN] = None,
    id: Annotated[str | None, ID] = None,
    label: Annotated[str | None, LABEL] = None,
    text: Annotated[str | None, TEXT] = None,
    output: Path = typer.Option(
        ...,
        "--output",
        "-o",
        help="CSV, TSV, .xlsx, .parquet, .jsonl, .html; .sssom.tsv of SSSOM.",
    ),
    fail_on: str | None = typer.Option(
        None,
        help="Verdicts with which the exit code is 1, e.g. wrong,unknown,retired.",
    ),
    encoding: Encoding = "utf-8",
    device: Device = "auto",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """kb/ + table of texts and ids -> a verdict on each id

    All columns are kept, and columns `verify_…` added: the verdict, the probability
    that the id is right, the better concept, and a sentence why. Abbreviations are
    expanded by the document of a term, if `--text` names its column. The same command
    continues a run that was stopped.

    Example: spacy sapbert verify models/kb codes.xlsx --column term --id code -o
    checked.xlsx

    Example: spacy sapbert verify models/kb mappings.sssom.tsv -o wrong.html --fail-on
    wrong,unknown,retired

    Exit code: 0 = written; 1 = a verdict of --fail-on, or an error, printed in one
    line; 2 = wrong options.
    """
    from ..verification.verdicts import VERDICTS
    from ..verification.verified_tables import (
        OTHER,
        check_verified,
        choose_columns,
        verify_table,
    )

    chosen = split_values(fail_on) or []
    for verdict in chosen:
        check_choice("fail-on", [*VERDICTS], verdict)
    check_outputs(output, force=force)
    check_verified(table, output)
    columns = choose_columns(table, column, id, label, text, encoding)
    opened = open_kb(kb, device)
    counts = verify_table(
        opened, table, output, columns, encoding=encoding, progress=not quiet
    )
    if not quiet:
        rows = [(v, f"{counts[v]:,}", meaning) for v, meaning in VERDICTS.items()]
        msg.table(rows, header=("Ids", "", ""), aligns=("l", "r", "l"))
        if counts["empty"]:
            msg.info(f"Rows without an id: {counts['empty']:,}")
        if counts[OTHER]:
            msg.info(
                "Mappings that do not say that text and concept are the same: "
                f"{counts[OTHER]:,}"
            )
        msg.good(f"Wrote {output}")
    failing = [f"{counts[v]:,} {v}" for v in dict.fromkeys(chosen) if counts[v]]
    if failing and not quiet:
        msg.warn(f"Exit code {FAILED}, by `--fail-on`: {', '.join(failing)}")
    if failing:
        raise typer.Exit(FAILED)
