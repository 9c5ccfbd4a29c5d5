"""`spacy sapbert concepts`: vocabularies in, concepts.jsonl out."""

import inspect
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, get_args

import typer
from typer.main import get_group

from ..io.progress import show_progress
from ..io.temporary_db import open_temporary_db
from ..io.terminal import msg, printable
from ..io.writing import write_atomically, write_json
from ..vocabularies.concepts import Concept, write_concepts
from ..vocabularies.hierarchy import describe_problems, watch_parents
from ..vocabularies.options import READ_OPTIONS
from ..vocabularies.reader_table import (
    READERS,
    list_readers,
    list_takers,
    read_vocabularies,
)
from ..vocabularies.releases import SourceRelease, unite_releases, write_releases
from ..vocabularies.report import Report, print_report
from .app import PanelGroup, app, check_outputs, make_app
from .options import (
    OUTPUT,
    Force,
    OnError,
    Panel,
    Quiet,
    one_of,
    some_of,
    split_values,
)

Progress = Callable[[str, int], None]
Conflict = Callable[[str, str, str, str], None]
CONFLICTS = ("rule", "id", "concepts", "name")  # columns of the list
READING: Panel = {"rich_help_panel": "Reading"}
OTHERS: Panel = {"rich_help_panel": "Other vocabularies"}
READ = "read"  # the command whose name may be left out


class ConceptsGroup(PanelGroup):
    """`concepts FILE…` is `concepts read FILE…`."""

    pages = {READ: "vocabularies", "diff": "vocabularies"}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = [READ, *args]
        return super().parse_args(ctx, args)


concepts_app = make_app(
    name="concepts",
    cls=ConceptsGroup,
    help="vocabularies -> concepts.jsonl; `diff` compares two",
)
app.add_typer(concepts_app)


def with_reader_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option to a command for each of `READ_OPTIONS`, as `**options`."""
    signature = inspect.signature(command, eval_str=True)
    parameters = [*signature.parameters.values()][:-1]
    index = [*signature.parameters].index("format") + 1
    for name, (doc, kind, choices) in READ_OPTIONS.items():
        is_flag = kind == "flag"
        flags = [f"--{name.replace('_', '-')}"] if is_flag else []
        default = False if is_flag else None
        text = f"{', '.join(list_takers(name))}: {doc}"
        is_some = kind == "list" and choices is not None
        check = some_of(get_args(choices)) if is_some else None
        option = inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=typer.Option(default, *flags, help=text, callback=check, **READING),
            annotation=bool if is_flag else text_type(kind, choices),
        )
        parameters.insert(index, option)
        index += 1

    @wraps(command)
    def run(**values: Any) -> None:
        command(**values)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {
        parameter.name: parameter.annotation for parameter in parameters
    }
    return run


def text_type(kind: str, choices: Any) -> Any:
    """Return the type of an option with a value; the values of a list are split."""
    if kind == "number":
        return float | None
    return (str if kind == "list" or choices is None else choices) | None


def choose_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were passed, lists split; readers have the defaults."""
    return {
        name: split_values(value) if READ_OPTIONS[name].kind == "list" else value
        for name, value in values.items()
        if value not in (None, False)
    }


@contextmanager
def count_rows(enabled: bool) -> Iterator[Progress | None]:
    """Show the progress in rows by the function yielded, if `enabled`."""
    if not enabled:
        yield None
        return
    with show_progress(unit="rows") as bar:

        def progress(file: str, rows: int) -> None:
            bar.set_description_str(f"{printable(file)}: ", refresh=False)
            bar.update(rows)

        yield progress


@contextmanager
def list_conflicts(path: Path | None) -> Iterator[Conflict | None]:
    """Write conflicts to a table, when they are complete; see `Report.conflict`."""
    if path is None:
        yield None
        return
    with write_atomically(path) as file:

        def write(*fields: str) -> None:
            line = "\t".join(" ".join(field.split()) for field in fields)
            file.write(line.encode("utf8") + b"\n")

        write(*CONFLICTS)
        yield write


def find_defaults(values: Mapping[str, Any], defaults: str) -> list[str]:
    """Return the options whose values are in a list `languages=ENG,trade-names`."""
    listed = {*(split_values(defaults) or ())}
    written = {
        name: name.replace("_", "-") + ("" if value is True else f"={value}")
        for name, value in values.items()
    }
    return [name for name in written if written[name] in listed]


def open_inputs(
    inputs: Sequence[Path],
    format: str | None,
    *,
    progress: Progress | None = None,
    conflict: Conflict | None = None,
    where_known: str,
    xrefs: Sequence[Path],
    retired: Sequence[Path],
    on_error: str,
    add_unmapped: bool,
    **options: Any,
) -> tuple[Iterator[Concept], list[Report]]:
    """Return the concepts of the inputs of the command, and the reports of these."""
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
        where_known=find_defaults(options, where_known),
        **choose_options(options),
    )
    return concepts, reports


class Enough(Exception):
    """Raised in a reader that has read the first rows."""


def try_reading(
    words: Sequence[str], rows: int
) -> tuple[Counter[str], dict[str, SourceRelease]]:
    """Read the first rows of the inputs as the command with these words would.

    A problem that the command would have there is raised: a SapbertError, or what
    typer ends a command with.

    Returns:
        How many names of each source were read, and the releases of sources.
    """
    command: Any = get_group(concepts_app).commands[READ]
    output = ["--output", os.devnull]
    with command.make_context("concepts", [*words, *output]) as context:
        values = dict(context.params)
    for name in ("output", "report", "conflicts", "force", "quiet"):
        del values[name]
    read = 0

    def count(_: str, more: int) -> None:
        nonlocal read
        read += more
        if read > rows:
            raise Enough

    concepts, reports = open_inputs(**values, progress=count)
    names = Counter[str]()
    with suppress(Enough):
        for concept in concepts:
            names.update({source: len(n) for source, n in concept.sources.items()})
    return names, unite_releases(reports)


@concepts_app.command(READ)
@with_reader_options
def main(
    inputs: list[Path] = typer.Argument(
        ..., help="Files, folders or .zip; concepts with the same id are merged."
    ),
    output: Path = typer.Option(
        ...,
        "--output",
        "-o",
        help="concepts.jsonl to write; .gz compresses it.",
        **OUTPUT,
    ),
    format: str | None = typer.Option(
        None,
        "--format",
        help=f"{', '.join(READERS)}. [by the file name]",
        **one_of(list_readers),
        **READING,
    ),
    where_known: str = typer.Option(
        "",
        help="Options that are left out if the format does not have them, with their "
        "values: languages=ENG,trade-names.",
        **READING,
    ),
    xrefs: list[Path] = typer.Option(
        [],
        help="Another vocabulary: its names for the concepts that it is mapped to; may "
        "be repeated.",
        **OTHERS,
    ),
    add_unmapped: bool = typer.Option(
        False,
        "--add-unmapped",
        help="Concepts of --xrefs that are mapped to none or several are concepts too.",
        **OTHERS,
    ),
    conflicts: Path | None = typer.Option(
        None,
        help="TSV file for the mappings and names of --xrefs that conflict.",
        **OTHERS,
    ),
    retired: list[Path] = typer.Option(
        [],
        help="Lines: a retired id, a tab or comma, the id that replaced it; may be "
        "repeated.",
        **OTHERS,
    ),
    on_error: OnError = "fail",
    report: Path | None = typer.Option(
        None, help="JSON file for what was read, kept and dropped.", **OUTPUT
    ),
    force: Force = False,
    quiet: Quiet = False,
    **options: Any,
) -> None:
    """vocabularies -> concepts.jsonl; `read` may be left out

    Example: spacy sapbert concepts assets/umls/2024AA -o assets/concepts.jsonl
    --languages ENG,SPA --trade-names

    Example: spacy sapbert concepts mondo.json.gz hp.obo --ids xref -o concepts.jsonl

    Example: spacy sapbert concepts diagnoses.xlsx -o concepts.jsonl --columns
    id=Code,name=Text

    Example: spacy sapbert concepts desc2024.gz --xrefs mondo.json --xrefs hp.obo
    --retired replaced.tsv -o concepts.jsonl

    See also: spacy sapbert concepts diff --help
    """
    check_outputs(output, report, conflicts, force=force)
    with count_rows(not quiet) as progress, list_conflicts(conflicts) as conflict:
        concepts, reports = open_inputs(
            inputs,
            format,
            progress=progress,
            conflict=conflict,
            where_known=where_known,
            on_error=on_error,
            xrefs=xrefs,
            add_unmapped=add_unmapped,
            retired=retired,
            **options,
        )
        with open_temporary_db() as database:
            count = write_concepts(output, watch_parents(database, concepts))
            problems = describe_problems(database)
    write_releases(output, reports)
    if report is not None:
        inputs_read = [single_report.to_json() for single_report in reports]
        about = {"concepts": count, "hierarchy": problems, "inputs": inputs_read}
        write_json(report, about)
    if not quiet:
        for single_report in reports:
            print_report(single_report)
        for problem in problems:
            msg.warn(problem)
        msg.good(f"Wrote {count:,} concepts to {output}")
