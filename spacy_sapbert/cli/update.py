"""`spacy sapbert update`: links of an old release → links of a new one."""

from pathlib import Path
from typing import Annotated

import typer

from ..io.terminal import msg
from ..io.writing import check_existing
from .app import app, check_outputs, keep_inputs
from .options import COLUMN, ID, LABEL, Device, Encoding, Force, Quiet, open_kb


@app.command("update")
def update(
    old: str = typer.Argument(
        ..., help="Knowledge base that the links are of: folder or name."
    ),
    new: str = typer.Argument(..., help="Knowledge base of the new release."),
    links: Path = typer.Argument(
        ...,
        help="Of `link` or `map`, .sssom.tsv, .spacy, or a table of other columns.",
    ),
    output: Path = typer.Option(
        ..., "--output", "-o", help="The same with the new ids, in the same format."
    ),
    report: Path | None = typer.Option(
        None, help="Table to write: each link that changed or must be decided, and why."
    ),
    column: Annotated[str | None, COLUMN] = None,
    id: Annotated[str | None, ID] = None,
    label: Annotated[str | None, LABEL] = None,
    by_people: bool = typer.Option(
        False, help="People chose all ids: only retired ones change."
    ),
    encoding: Encoding = "utf-8",
    device: Device = "auto",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """old kb/ + new kb/ + links -> links with ids of the new kb/

    An id that was retired for another one becomes that. What else can change is linked
    again: a link of the software gets the new answer, a decision of a person (chosen in
    `map`, curated in SSSOM, a column that you name, or with --by-people) stays and is
    marked `review`.

    Example: spacy sapbert update models/umls-2024AA models/umls-2024AB linked.jsonl -o
    moved.jsonl --report changes.csv

    Exit code: 0 = written; 1 = an error, printed in one line; 2 = wrong options.
    """
    from ..io.tables.files import find_kind
    from ..verification.updated_files import update_file
    from ..verification.updates import STATUSES
    from ..verification.verified_tables import choose_columns

    if links.is_dir():  # so is the output
        check_existing(output, force=force)
        keep_inputs(output, report)
        check_outputs(report, force=force)
    else:
        check_outputs(output, report, force=force)
    if report is not None:
        find_kind(report)
    named = column is not None or id is not None
    columns = choose_columns(links, column, id, label, None) if named else None
    opened = open_kb(old, device), open_kb(new, device)
    result = update_file(
        *opened,
        links,
        output,
        columns,
        by_people=by_people,
        report=report,
        encoding=encoding,
        progress=not quiet,
    )
    if not quiet:
        rows = [(s, f"{result.counts[s]:,}", text) for s, text in STATUSES.items()]
        msg.table(rows, header=("Links", "", ""), aligns=("l", "r", "l"))
        msg.info(f"{result.linked:,} texts were linked again")
        msg.good(f"Wrote {output}")
