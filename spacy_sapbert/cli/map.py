"""`spacy sapbert map`: a column of terms → a table with their concepts."""

from pathlib import Path
from typing import Annotated

import typer

from ..io.terminal import msg
from .app import app, check_outputs
from .options import (
    COLUMN,
    ID,
    INPUT,
    SETTING,
    Allow,
    Codes,
    Deny,
    Device,
    Encoding,
    Force,
    KbName,
    Languages,
    LeastCosine,
    Quiet,
    Sources,
    Threshold,
    Types,
    gather_filter,
    gather_options,
    open_kb,
)


@app.command("map")
def map_terms(
    kb: KbName,
    column: Annotated[str, COLUMN],
    table: Path = typer.Argument(
        ..., help="CSV, TSV, Excel, .ods or .parquet with a header, or .jsonl."
    ),
    output: Path = typer.Option(
        ...,
        "--output",
        "-o",
        help="CSV, TSV, .xlsx, .parquet, .jsonl, .sssom.tsv or "
        "source_to_concept_map.csv to write.",
    ),
    split: str | None = typer.Option(
        None, help='What stands between several terms of a cell, e.g. ";".', **INPUT
    ),
    type_column: str | None = typer.Option(
        None, help="Column of the allowed semantic types or groups of a row.", **INPUT
    ),
    language_column: str | None = typer.Option(
        None, help="Column of the allowed languages of names, e.g. ENG.", **INPUT
    ),
    unit_column: str | None = typer.Option(
        None, help="Column of the units of laboratory tests, e.g. mg/dL.", **INPUT
    ),
    specimen_column: str | None = typer.Option(
        None, help="Column of their specimens, e.g. Serum.", **INPUT
    ),
    id: Annotated[str | None, ID] = None,
    subject_prefix: str = typer.Option(
        "", help="Vocabulary of the ids, e.g. LAB. [by the name of their column]"
    ),
    encoding: Encoding = "utf-8",
    k: int = typer.Option(5, "-k", "--k", min=1, max=100, help="Candidates of a term."),
    threshold: Threshold = None,
    least_cosine: LeastCosine = None,
    codes: Codes = None,
    types: Types = None,
    sources: Sources = None,
    languages: Languages = None,
    allow: Allow = None,
    deny: Deny = None,
    setting: list[str] = SETTING,
    device: Device = "auto",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """kb/ + column of terms -> the table with their concepts

    All columns of a table are kept, in order, and columns `match_…` added: the term,
    the concept that it is linked to, and the candidates. SSSOM, and the table
    source_to_concept_map of OMOP, have the sure mappings and what people chose, each
    term once, or each term of an id (--id), and none of your other columns.

    Write the right id, or NIL, into `match_chosen`: `spacy sapbert teach` and
    `evaluate` read the table then. A table of `map` that is mapped again keeps it.

    Codes in brackets, "NOS", "h/o", "F/H", sides and capitals are left out if the rest
    is nearer to a name. `match_dropped` says what the concept then lacks, and a person
    decides.

    Example: spacy sapbert map models/kb diagnoses.xlsx --column diagnosis -o
    mapped.xlsx

    Example: spacy sapbert map models/kb terms.csv --column term --split ";" -o
    mapped.sssom.tsv --id code --subject-prefix LAB

    Exit code: 0 = written; 1 = an error, printed in one line; 2 = wrong options.
    """
    from ..io.tables.files import find_kind, is_sssom
    from ..io.tables.headers import list_columns
    from ..linking.options import DEFAULT_OPTIONS, change_options
    from ..mapping.concept_map import is_concept_map
    from ..mapping.lookup import STATUSES
    from ..mapping.run import CHOSEN, LOST, TermColumns, list_left_out, map_table

    check_outputs(output, force=force)
    find_kind(output)
    filter = gather_filter(types, sources, languages, allow, deny)
    given = gather_options(
        setting,
        codes,
        k=k,
        threshold=threshold,
        least_cosine=least_cosine,
        filter=filter,
    )
    options = change_options(DEFAULT_OPTIONS, given)
    opened = open_kb(kb, device)
    opened.check_options(options)
    columns = TermColumns(
        column,
        type_column,
        language_column,
        split,
        unit_column,
        specimen_column,
        id,
        subject_prefix,
    )
    counts = map_table(
        opened,
        table,
        output,
        columns,
        options,
        encoding=encoding,
        progress=not quiet,
    )
    if quiet:
        return
    total = sum(counts[status] for status in STATUSES)
    rows = [
        (
            status,
            f"{counts[status]:,}",
            f"{counts[status] / max(total, 1):.0%}",
            meaning,
        )
        for status, meaning in STATUSES.items()
    ]
    msg.table(rows, header=("Terms", "", "", ""), aligns=("l", "r", "r", "l"))
    if counts["empty"]:
        msg.info(f"Rows without a term: {counts['empty']:,}")
    if counts[CHOSEN]:
        msg.info(f"Decisions of people that are kept: {counts[CHOSEN]:,}")
    if counts[LOST]:
        msg.warn(
            "Decisions of people that are not kept, since their terms are other ones "
            f"now: {counts[LOST]:,}. Pass the `--column` and `--split` of the first "
            "time."
        )
    if (is_sssom(output) or is_concept_map(output)) and (
        left_out := list_left_out(table, columns, encoding=encoding)
    ):
        msg.info(f"Columns that the mappings do not have: {list_columns(left_out)}")
    msg.good(f"Wrote {output}")
