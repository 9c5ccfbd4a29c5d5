"""`spacy sapbert concepts`: vocabularies in, concepts.jsonl out."""

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import typer
from tqdm import tqdm
from wasabi import msg

from ..errors import Errors, SapbertError
from ..system.writing import write_atomically
from ..vocabularies.concepts import write_concepts
from ..vocabularies.registry import READERS, read_vocabularies
from ..vocabularies.report import Report, print_report
from .app import app

ALL = "all"
Progress = Callable[[str, int], None]


def split_values(text: Optional[str]) -> Optional[List[str]]:
    """Split values at their commas.

    text (Optional[str]): E.g. "ENG,SPA"; "all" or nothing for no filter.
    RETURNS (Optional[List[str]]): The values; None if there is no text.
    """
    if text is None:
        return None
    values = [value.strip() for value in text.split(",")]
    return [] if values == [ALL] else [value for value in values if value]


def choose_options(**options: Any) -> Dict[str, Any]:
    """Keep the options that were given, for a reader that has defaults of its own.

    options (Any): Values; None = not given.
    RETURNS (Dict[str, Any]): Those that are not None.
    """
    return {key: value for key, value in options.items() if value is not None}


@contextmanager
def show_progress(wanted: bool) -> Iterator[Optional[Progress]]:
    """Show how many rows are read, if somebody is there to see it.

    wanted (bool): Whether to show anything.
    YIELDS (Optional[Progress]): What readers call with a file and more rows of it.
    """
    if not wanted:
        yield None
        return
    with tqdm(unit=" rows", unit_scale=True) as bar:

        def progress(file: str, rows: int) -> None:
            if bar.desc != file:
                bar.set_description_str(file, refresh=False)
            bar.update(rows)

        yield progress


def convert(
    inputs: List[Path],
    output: Path,
    format: Optional[str],
    *,
    on_error: str,
    progress: Optional[Progress],
    **options: Any,
) -> Tuple[int, List[Report]]:
    """Read vocabularies and write them as one concepts.jsonl.

    inputs (List[Path]): Vocabularies; of several, concepts with the same id are united.
    output (Path): The file; it appears only when it is whole.
    format (Optional[str]): Of all the inputs; None = told by their names.
    on_error (str): "fail", or "skip" to count bad rows and go on.
    progress (Optional[Progress]): Told of rows that are read.
    options (Any): What the readers take; each gets those that it knows.
    RETURNS (Tuple[int, List[Report]]): How many concepts, and a report of each input.
    RAISES (SapbertError): As the readers do; then nothing is written.
    """
    reports = [Report(progress=progress) for _ in inputs]
    concepts = read_vocabularies(
        inputs, format, on_error=on_error, reports=reports, **options
    )
    return write_concepts(output, concepts), reports


def write_report(path: Path, count: int, reports: List[Report]) -> None:
    """Write what was read, kept and dropped.

    path (Path): A JSON file.
    count (int): How many concepts were written.
    reports (List[Report]): One of each input.
    """
    data = {"concepts": count, "inputs": [report.to_json() for report in reports]}
    with write_atomically(path) as file:
        file.write(json.dumps(data, indent=2, ensure_ascii=False).encode("utf8"))
        file.write(b"\n")


@app.command("concepts")
def main(
    inputs: List[Path] = typer.Argument(
        ..., help="Files or release folders; several are united by their ids."
    ),
    output: Path = typer.Option(
        ..., "--output", "-o", help="concepts.jsonl to write; .gz compresses it."
    ),
    format: Optional[str] = typer.Option(
        None, "--format", help=f"{', '.join(READERS)}. [told by the name]"
    ),
    languages: Optional[str] = typer.Option(
        None, help="rrf: languages kept, preferred first: ENG,SPA; or all. [ENG]"
    ),
    sources: Optional[str] = typer.Option(
        None, help="rrf: sources kept, e.g. MSH,SNOMEDCT_US. [all]"
    ),
    source_rank: Optional[str] = typer.Option(
        None, help="rrf: sources whose names and definitions come first."
    ),
    types: Optional[str] = typer.Option(
        None, help="rrf: semantic types kept, e.g. T047,T191. [all]"
    ),
    term_types: Optional[str] = typer.Option(
        None, help="rrf: term types kept, e.g. PT,SY. [all]"
    ),
    exclude_term_types: Optional[str] = typer.Option(
        None, help="rrf: term types left out, e.g. OAP,OP."
    ),
    suppressed: Optional[bool] = typer.Option(
        None, "--suppressed", help="rrf: keep suppressed rows too."
    ),
    trade_names: Optional[bool] = typer.Option(
        None, "--trade-names", help="rrf: give drugs the names of their brands."
    ),
    cui_pattern: Optional[str] = typer.Option(
        None,
        help=r"rrf, obo, obographs: regular expression of the ids. [C\d{7}; own: any]",
    ),
    ids: Optional[str] = typer.Option(
        None, help="obo, obographs: own, or xref for those of another vocabulary. [own]"
    ),
    xref_prefix: Optional[str] = typer.Option(
        None, help="obo, obographs: the vocabulary whose ids xref takes. [UMLS]"
    ),
    multi_xref: Optional[str] = typer.Option(
        None, help="obo, obographs: terms with several such ids: drop, or all. [drop]"
    ),
    scopes: Optional[str] = typer.Option(
        None, help="obo, obographs: synonyms kept, e.g. EXACT,RELATED. [EXACT]"
    ),
    obsolete: Optional[bool] = typer.Option(
        None, "--obsolete", help="obo, obographs: keep obsolete terms too."
    ),
    type: Optional[str] = typer.Option(
        None,
        help="obo, obographs, biosyn, phecode, icd10cm, maps: semantic type of all "
        "concepts, e.g. T047.",
    ),
    on_error: str = typer.Option(
        "fail", help="fail at the first bad row, or skip and count them."
    ),
    report: Optional[Path] = typer.Option(
        None, help="JSON file for what was read, kept and dropped."
    ),
    force: bool = typer.Option(False, "--force", help="Replace the output."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """vocabularies -> concepts.jsonl

    Example: spacy sapbert concepts assets/umls/2024AA -o assets/concepts.jsonl
    --languages ENG,SPA --trade-names

    Example: spacy sapbert concepts mondo.json.gz hp.obo --ids xref -o concepts.jsonl
    """
    if output.exists() and not force:
        raise SapbertError(Errors.E003.format(path=output))
    with show_progress(sys.stderr.isatty() and not quiet) as progress:
        count, reports = convert(
            inputs,
            output,
            format,
            on_error=on_error,
            progress=progress,
            **choose_options(
                languages=split_values(languages),
                sources=split_values(sources),
                source_rank=split_values(source_rank),
                types=split_values(types),
                term_types=split_values(term_types),
                exclude_term_types=split_values(exclude_term_types),
                suppressed=suppressed or None,
                trade_names=trade_names or None,
                cui_pattern=cui_pattern,
                ids=ids,
                xref_prefix=xref_prefix,
                multi_xref=multi_xref,
                scopes=split_values(scopes),
                obsolete=obsolete or None,
                type=type,
            ),
        )
    if report is not None:
        write_report(report, count, reports)
    if not quiet:
        for each in reports:
            print_report(each)
        msg.good(f"Wrote {count:,} concepts to {output}")
