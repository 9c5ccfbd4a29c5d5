"""`spacy sapbert update`: links of an old release → links of a new one."""

from pathlib import Path

import typer

from ..io.terminal import msg
from .app import app, check_outputs
from .options import INPUT, Force, Quiet


@app.command("update")
def update(
    old: str = typer.Argument(
        ..., help="Knowledge base that the links are of: folder or name."
    ),
    new: str = typer.Argument(..., help="Knowledge base of the new release."),
    links: Path = typer.Argument(
        ..., help="JSONL or table of `link`, of `map`, .sssom.tsv, or another table."
    ),
    output: Path = typer.Option(
        ..., "--output", "-o", help="The same with the new ids, of the same kind."
    ),
    report: Path | None = typer.Option(
        None, help="Table to write: each link that changed or must be decided, and why."
    ),
    text: str | None = typer.Option(None, help="Column of texts of another table."),
    id: str | None = typer.Option(None, help="Column of ids of another table."),
    label: str | None = typer.Option(None, help="Column of the names of the ids."),
    encoding: str = typer.Option("utf-8", help="Encoding of CSV or TSV.", **INPUT),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """old kb/ + new kb/ + links -> the links with the ids of the new release

    An id that was retired for another one becomes that. What else can change is linked
    again: a link of the software gets the new answer, a decision of a person (chosen in
    `map`, curated in SSSOM, or a column that you name) stays and is marked `review`.

    Example: spacy sapbert update models/umls-2024AA models/umls-2024AB linked.jsonl -o
    moved.jsonl --report changes.csv

    Exit code: 0 = written; 1 = an error, printed in one line; 2 = wrong options.
    """
    from ..kb.knowledge_base import load_kb
    from ..kb.verification.update import STATUSES
    from ..mapping.tables import find_kind, write_table
    from ..mapping.update import REPORT, update_file
    from ..mapping.verify import choose_columns

    check_outputs(output, report, force=force)
    for path in filter(None, (output, report)):
        find_kind(path)
    named = text is not None or id is not None
    columns = choose_columns(links, text, id, label, None) if named else None
    opened = load_kb(old), load_kb(new)
    result = update_file(
        *opened, links, output, columns, encoding=encoding, progress=not quiet
    )
    if report is not None:
        write_table(report, REPORT, result.rows)
    if not quiet:
        rows = [(s, f"{result.counts[s]:,}", text) for s, text in STATUSES.items()]
        msg.table(rows, header=("Links", "", ""), aligns=("l", "r", "l"))
        msg.info(f"{result.linked:,} distinct texts were linked again")
        msg.good(f"Wrote {output}")
