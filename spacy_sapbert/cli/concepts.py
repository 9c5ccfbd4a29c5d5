"""`spacy sapbert concepts`: vocabularies in, concepts.jsonl out."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from ..errors import Errors, SapbertError
from ..system.progress import show_progress
from ..system.terminal import msg, printable
from ..system.writing import check_outputs, write_atomically, write_json
from ..vocabularies.concepts import write_concepts
from ..vocabularies.describe import (
    Description,
    describe_concepts,
    describe_rows,
    example_row,
)
from ..vocabularies.registry import READERS, read_vocabularies
from ..vocabularies.releases import write_releases
from ..vocabularies.report import Report, print_report
from .app import app

ALL = "all"
Progress = Callable[[str, int], None]
Conflict = Callable[[str, str, str, str], None]
CONFLICTS = ("rule", "id", "concepts", "name")  # columns of the list


def split_values(text: str | None) -> list[str] | None:
    """Split values at commas; "all" or an empty text is no filter, None stays None."""
    if text is None:
        return None
    values = [value.strip() for value in text.split(",")]
    return [] if values == [ALL] else [value for value in values if value]


def choose_options(**options: Any) -> dict[str, Any]:
    """Return the options that are not None; the readers have their own defaults."""
    return {key: value for key, value in options.items() if value is not None}


@contextmanager
def count_rows(enabled: bool) -> Iterator[Progress | None]:
    """Show the progress in rows, if `enabled`.

    Yields:
        A function of a file and the number of more rows read.
    """
    if not enabled:
        yield None
        return
    with show_progress(unit="rows") as bar:

        def progress(file: str, rows: int) -> None:
            bar.set_description_str(f"{printable(file)}: ", refresh=False)
            bar.update(rows)

        yield progress


def convert(
    inputs: list[Path],
    output: Path | None,
    format: str | None,
    *,
    on_error: str,
    xrefs: list[Path],
    add_unmapped: bool,
    retired: list[Path],
    progress: Progress | None,
    conflict: Conflict | None,
    **options: Any,
) -> tuple[int, list[Report]]:
    """Read vocabularies and write them as one concepts.jsonl, or print what they have.

    Args:
        output: None = print.

    Returns:
        Number of concepts, 0 if they are printed, and a report of each file.

    Raises:
        SapbertError: As the readers; then nothing is written.
    """
    reports = [
        Report(progress=progress, conflict=conflict)
        for _ in (*inputs, *xrefs, *retired)
    ]
    concepts = read_vocabularies(
        inputs,
        format,
        on_error=on_error,
        xrefs=xrefs,
        add_unmapped=add_unmapped,
        retired=retired,
        reports=reports,
        **options,
    )
    if output is not None:
        return write_concepts(output, concepts), reports
    print_description(describe_concepts(concepts))
    return 0, reports


def print_description(found: Description) -> None:
    """Print what is in a vocabulary."""
    # the names may have control characters
    rows = [tuple(map(printable, row)) for row in describe_rows(found)]
    msg.table(rows)
    header = ("Id", "Name", "Other names", "Types", "Codes")
    examples = [tuple(map(printable, example_row(each))) for each in found.examples]
    msg.table(examples, header=header, divider=True, max_col=50)


@contextmanager
def list_conflicts(path: Path | None) -> Iterator[Conflict | None]:
    """Write conflicts to a table with tabs, when they are complete.

    Yields:
        See `Report.conflict`; None without a path.
    """
    if path is None:
        yield None
        return
    with write_atomically(path) as file:

        def write(*fields: str) -> None:
            line = "\t".join(" ".join(field.split()) for field in fields)
            file.write(line.encode("utf8") + b"\n")

        write(*CONFLICTS)
        yield write


@app.command("concepts")
def main(
    inputs: list[Path] = typer.Argument(
        ..., help="Files or release folders; concepts with the same id are merged."
    ),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="concepts.jsonl to write; .gz compresses it."
    ),
    describe: bool = typer.Option(
        False,
        "--describe",
        help="Print what the inputs have, with ten concepts; write nothing.",
    ),
    format: str | None = typer.Option(
        None, "--format", help=f"{', '.join(READERS)}. [by the file name]"
    ),
    languages: str | None = typer.Option(
        None,
        help="rrf [ENG], omop, snomed, loinc, rdf: languages kept: ENG,SPA. [all]",
    ),
    sources: str | None = typer.Option(
        None, help="rrf, rxnorm, omop: sources kept, e.g. MSH,SNOMEDCT_US. [all]"
    ),
    source_rank: str | None = typer.Option(
        None, help="rrf: sources whose names and definitions are preferred, best first."
    ),
    types: str | None = typer.Option(
        None, help="rrf, omop: semantic types kept, e.g. T047,T191; Condition. [all]"
    ),
    term_types: str | None = typer.Option(
        None, help="rrf, rxnorm: term types kept, e.g. PT,SY. [all]"
    ),
    exclude_term_types: str | None = typer.Option(
        None, help="rrf, rxnorm: term types left out, e.g. OAP,OP."
    ),
    suppressed: bool | None = typer.Option(
        None, "--suppressed", help="rrf, rxnorm: keep suppressed rows."
    ),
    trade_names: bool | None = typer.Option(
        None, "--trade-names", help="rrf, rxnorm: add the names of brands to drugs."
    ),
    mapped_names: bool | None = typer.Option(
        None, "--mapped-names", help="omop: add the names of concepts mapped to one."
    ),
    cui_pattern: str | None = typer.Option(
        None,
        help=r"rrf, obo, obographs, rdf: pattern of the ids. [C\d{7}; own: any]",
    ),
    ids: str | None = typer.Option(
        None,
        help="obo, obographs, rdf: own, or xref for ids of another vocabulary. [own]",
    ),
    xref_prefix: str | None = typer.Option(
        None, help="obo, obographs, rdf: prefix of the ids that xref uses. [UMLS]"
    ),
    multi_xref: str | None = typer.Option(
        None, help="obo, obographs: terms with several such ids: drop, or all. [drop]"
    ),
    scopes: str | None = typer.Option(
        None, help="obo, obographs, rdf: synonyms kept, e.g. EXACT,RELATED. [EXACT]"
    ),
    obsolete: bool | None = typer.Option(
        None, "--obsolete", help="obo, obographs, rdf, loinc: keep obsolete terms."
    ),
    type: str | None = typer.Option(
        None,
        help="obo, obographs, rdf, biosyn, phecode, icd10cm, icd11, claml, maps, "
        "table: semantic type of all concepts, e.g. T047.",
    ),
    columns: str | None = typer.Option(
        None,
        help="table: which column is what: id=Code,name=Preferred,synonyms=Synonyms,"
        "codes.ICD10CM=icd. [by their names]",
    ),
    separator: str | None = typer.Option(
        None, help="table: between several synonyms or codes in a cell. [| or ;]"
    ),
    encoding: str | None = typer.Option(
        None, help="table: encoding of a text file, e.g. cp1252. [utf-8]"
    ),
    xrefs: list[Path] = typer.Option(
        [],
        help="Another vocabulary: its names for the concepts that it is mapped to; may "
        "be repeated.",
    ),
    add_unmapped: bool = typer.Option(
        False,
        "--add-unmapped",
        help="Concepts of --xrefs that are mapped to none or several are concepts too.",
    ),
    conflicts: Path | None = typer.Option(
        None, help="TSV file for the mappings and names of --xrefs that conflict."
    ),
    retired: list[Path] = typer.Option(
        [],
        help="Lines: a retired id, a tab or comma, the id that replaced it; may be "
        "repeated.",
    ),
    on_error: str = typer.Option(
        "fail", help="fail at the first invalid row, or skip and count them."
    ),
    report: Path | None = typer.Option(
        None, help="JSON file for what was read, kept and dropped."
    ),
    force: bool = typer.Option(False, "--force", help="Replace existing outputs."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """vocabularies -> concepts.jsonl

    Example: spacy sapbert concepts assets/umls/2024AA -o assets/concepts.jsonl
    --languages ENG,SPA --trade-names

    Example: spacy sapbert concepts mondo.json.gz hp.obo --ids xref -o concepts.jsonl

    Example: spacy sapbert concepts diagnoses.xlsx --columns id=Code,name=Text
    --describe

    Example: spacy sapbert concepts desc2024.gz --xrefs mondo.json --xrefs hp.obo
    --retired replaced.tsv -o concepts.jsonl
    """
    if (output is None) != describe or (describe and (report or conflicts)):
        raise SapbertError(Errors.E423)
    check_outputs(output, report, conflicts, force=force)
    with count_rows(not quiet) as progress, list_conflicts(conflicts) as conflict:
        count, reports = convert(
            inputs,
            output,
            format,
            on_error=on_error,
            xrefs=xrefs,
            add_unmapped=add_unmapped,
            retired=retired,
            progress=progress,
            conflict=conflict,
            **choose_options(
                languages=split_values(languages),
                sources=split_values(sources),
                source_rank=split_values(source_rank),
                types=split_values(types),
                term_types=split_values(term_types),
                exclude_term_types=split_values(exclude_term_types),
                suppressed=suppressed or None,
                trade_names=trade_names or None,
                mapped_names=mapped_names or None,
                cui_pattern=cui_pattern,
                ids=ids,
                xref_prefix=xref_prefix,
                multi_xref=multi_xref,
                scopes=split_values(scopes),
                obsolete=obsolete or None,
                type=type,
                columns=columns,
                separator=separator,
                encoding=encoding,
            ),
        )
    if output is not None:
        write_releases(output, reports)
    if report is not None:
        inputs_read = [each.to_json() for each in reports]
        write_json(report, {"concepts": count, "inputs": inputs_read})
    if not quiet:
        for each in reports:
            print_report(each)
        if output is not None:
            msg.good(f"Wrote {count:,} concepts to {output}")
