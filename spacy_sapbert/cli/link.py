"""`spacy sapbert link`: link the entities of texts."""

import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import SapbertError
from ..formats.format_table import FORMATS, list_formats
from ..formats.inputs.rows import COLUMNS
from ..io.progress import format_count, format_time
from ..io.system import STREAM
from ..io.terminal import msg, printable
from ..linking.candidates import CANDIDATES
from .app import app, keep_inputs
from .options import (
    ID,
    INPUT,
    OUTPUT,
    RUNNING,
    SETTING,
    TEXT,
    Allow,
    Codes,
    Delimiter,
    Deny,
    Device,
    Encoding,
    Engine,
    Force,
    K,
    KbOrPipeline,
    Lang,
    Languages,
    LeastCosine,
    MentionColumns,
    OnError,
    Pipeline,
    Precision,
    Quiet,
    Sources,
    Threshold,
    Types,
    choose_pipeline,
    gather_filter,
    gather_options,
    one_of,
    split_values,
)

if TYPE_CHECKING:
    from ..pipeline.link_files import LinkResult

INPUTS = [name for name, format in FORMATS.items() if format.endings]
OUTPUTS = [name for name, format in FORMATS.items() if format.write]
MOST_PRINTED = 20  # errors of documents that are skipped


@app.command("link")
def link(
    kb: KbOrPipeline,
    inputs: list[Path] = typer.Argument(
        ...,
        metavar="INPUT",
        help="Files: text, JSONL, CSV, Excel, .ods, Parquet, .spacy, PubTator, brat, "
        "BioC; folders of them; - = the standard input, as JSONL.",
    ),
    pipeline: Pipeline = None,
    lang: Lang = None,
    mentions: Literal["names"] | None = typer.Option(
        None, help="Detect the names of the knowledge base."
    ),
    on_error: OnError = "fail",
    input_format: str | None = typer.Option(
        None,
        help=f"{', '.join(INPUTS)}. [by the ending, else the content]",
        **one_of(partial(list_formats, "endings")),
        **INPUT,
    ),
    encoding: Encoding = "utf-8",
    text: Annotated[str, TEXT] = COLUMNS.text,
    id: Annotated[str, ID] = COLUMNS.id,
    columns: MentionColumns = None,
    delimiter: Delimiter = None,
    k: K = None,
    threshold: Threshold = None,
    least_cosine: LeastCosine = None,
    setting: list[str] = SETTING,
    types: Types = None,
    sources: Sources = None,
    languages: Languages = None,
    allow: Allow = None,
    deny: Deny = None,
    output: Path | None = typer.Option(
        None,
        "--output",
        "-o",
        help="File, or folder for parts. [-, the standard output]",
        **OUTPUT,
    ),
    format: str | None = typer.Option(
        None,
        help=f"{', '.join(OUTPUTS)}. [by the ending of the output; jsonl for "
        "parts; else table]",
        **one_of(partial(list_formats, "write")),
        **OUTPUT,
    ),
    shard_size: int | None = typer.Option(
        None,
        min=1,
        help="Write parts with this number of documents into the folder `--output`; "
        "the same command continues a stopped run.",
        **OUTPUT,
    ),
    keep: str | None = typer.Option(
        None, help="Fields of tables and JSONL to repeat: a,b.", **OUTPUT
    ),
    candidates: int | None = typer.Option(
        None,
        min=0,
        max=1_000,
        help=f"Candidates of a mention to write. [as -k, if it is given; {CANDIDATES}]",
        **OUTPUT,
    ),
    codes: Codes = None,
    no_text: bool = typer.Option(
        False, "--no-text", help="Do not write the texts.", **OUTPUT
    ),
    first_id: int = typer.Option(
        1, min=1, help="The first `note_nlp_id` of `--format omop`.", **OUTPUT
    ),
    force: Force = False,
    quiet: Quiet = False,
    n_process: int = typer.Option(
        1,
        "--n-process",
        "-n",
        min=1,
        help="Number of processes; each opens the pipeline.",
        **RUNNING,
    ),
    batch_size: int = typer.Option(
        64,
        "--batch-size",
        "-b",
        min=1,
        help="Documents in memory at once, in each process.",
        **RUNNING,
    ),
    engine: Engine = None,
    precision: Precision = None,
    device: Device = "auto",
) -> None:
    """kb/ + texts -> linked entities

    Documents with entities keep them; their concepts are not used.

    Example: spacy sapbert link models/kb notes/ --pipeline en_core_sci_sm -o
    linked.jsonl

    Example: spacy sapbert link models/kb notes.jsonl.gz -o linked --shard-size 1000
    --types DISO

    Example: zcat notes.jsonl.gz | spacy sapbert link models/kb - -o linked.jsonl

    Example: spacy sapbert link models/pipeline notes.jsonl.gz -o linked.jsonl
    --n-process 4 --engine onnx

    Exit code: 0 = every document is linked and written, or skipped as asked; 1 = an
    error, printed in one line; 2 = wrong options; 130 = interrupted.
    """
    from ..pipeline.link_files import LinkJob, link_files

    output = None if output == STREAM else output
    keep_inputs(output)
    detector, name = choose_pipeline(kb, pipeline)
    job = LinkJob(
        tuple(inputs),
        output,
        input_format=input_format,
        encoding=encoding,
        text=text,
        id=id,
        keep=tuple(split_values(keep) or ()),
        columns=columns,
        delimiter=delimiter,
        on_error=on_error,
        pipeline=detector,
        lang=lang,
        kb=name,
        mentions=mentions,
        options=gather_options(
            setting,
            codes,
            k=k,
            threshold=threshold,
            least_cosine=least_cosine,
            filter=gather_filter(types, sources, languages, allow, deny),
        ),
        engine=engine,
        precision=precision,
        device=device,
        format=format,
        shard_size=shard_size,
        candidates=candidates,
        no_text=no_text,
        first_id=first_id,
        batch_size=batch_size,
        n_process=n_process,
        force=force,
    )
    # Rows on a terminal would be between the bar's.
    shown = not quiet and (output is not None or not sys.stderr.isatty())
    try:
        result = link_files(job, progress=shown, on_skip=SkippedPrinter().print)
    except KeyboardInterrupt:
        if output is not None:
            msg.warn(describe_interrupted(output, in_parts=shard_size is not None))
        raise
    if not quiet:
        typer.echo(printable(describe_result(result, output)), err=True)


class SkippedPrinter:
    """Prints the first errors of documents that are left out."""

    def __init__(self) -> None:
        self.count = 0

    def print(self, error: SapbertError) -> None:
        self.count += 1
        if self.count <= MOST_PRINTED:
            msg.warn(f"Skipped: {error}")
        if self.count == MOST_PRINTED:
            msg.warn("Further documents that are skipped are only counted.")


def describe_interrupted(output: Path, *, in_parts: bool) -> str:
    """Return what a stopped run has written."""
    if not in_parts:
        return f"Interrupted: {output} was not written."
    from ..formats.shards import read_state

    state = read_state(output) if output.is_dir() else None
    parts = state["parts"] if state is not None else []
    written = format_count(sum(part["documents"] for part in parts), "document")
    return f"Interrupted: {written} in {output}. The same command continues."


def summary_line(counts: Counter[str]) -> str:
    """Format counts: "2 documents, 9 entities, 8 linked, 1 NIL (1 empty)"."""
    totals = [
        format_count(counts["documents"], "document"),
        format_count(counts["entities"], "entity"),
        f"{counts['linked']:,} linked",
    ]
    reasons = {k[5:]: n for k, n in sorted(counts.items()) if k.startswith("NIL: ")}
    line = f"{', '.join(totals)}, {sum(reasons.values())} NIL"
    if reasons:
        line += f" ({', '.join(f'{n} {reason}' for reason, n in reasons.items())})"
    return line


def describe_result(result: "LinkResult", output: Path | None) -> str:
    """Return what was written and left out, the time and the throughput."""
    line = summary_line(result.counts)
    if result.parts is not None:
        line += f"; {format_count(result.parts, 'part')} in {output}"
    notes = [f"{count:,} {what}" for what, count in result.left_out.items() if count]
    unread = [f"{count:,} {what}" for what, count in result.not_read.items() if count]
    if unread:
        notes.append(f"not read: {', '.join(unread)}")
    if result.unmarked:
        ids = ", ".join(map(str, result.unmarked))
        notes.append(f"not marked in the output: {ids}")
    time = format_time(result.seconds)
    if result.documents:  # all parts may have been finished before
        speed = result.documents / max(result.seconds, 1e-9)
        time += f", {speed:,.1f} documents/s"
    return "; ".join((line, *notes, time))
