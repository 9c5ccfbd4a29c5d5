"""`spacy sapbert link`: link the entities of texts."""

import sys
from pathlib import Path

import typer

from ..formats.inputs.rows import COLUMNS
from ..formats.registry import FORMATS
from ..io.terminal import msg, printable
from ..pipeline.link_files import LinkJob, link_files
from .app import app, keep_inputs
from .concepts import split_values
from .filter_options import ALLOW, DENY, LANGUAGES, SOURCES, TYPES, gather_filter
from .link_options import CODES, SETTING, THRESHOLD, K, gather_options
from .linking.summary import SkippedPrinter, describe_interrupted, describe_result

INPUTS = [name for name, format in FORMATS.items() if format.endings]


@app.command("link")
def link(
    inputs: list[Path] = typer.Argument(
        ...,
        metavar="INPUT...",
        help="Files: text, JSONL, CSV, Excel, .ods, Parquet, .spacy, PubTator, brat, "
        "BioC; folders of them; - = the standard input, as JSONL.",
    ),
    input_format: str | None = typer.Option(
        None, help=f"{', '.join(INPUTS)}. [by the ending, else the content]"
    ),
    encoding: str = typer.Option(
        "utf-8", help="Of texts, JSONL and CSV, e.g. cp1252 (Windows)."
    ),
    text_field: str = typer.Option(
        COLUMNS.text, help="JSONL, CSV, Parquet: field of the text; a.b = nested."
    ),
    id_field: str = typer.Option(
        COLUMNS.id, help="JSONL, CSV, Parquet: field of the id."
    ),
    keep: str | None = typer.Option(
        None, help="Fields of the input to repeat in JSONL, CSV or Parquet: a,b."
    ),
    on_error: str = typer.Option(
        "fail", help="fail, or skip = count documents that are invalid or fail."
    ),
    pipeline: str | None = typer.Option(
        None, help="Folder or package. [blank with `--mentions names`]"
    ),
    lang: str | None = typer.Option(
        None, help="Language of the blank pipeline, e.g. es. [en]"
    ),
    output: Path | None = typer.Option(
        None,
        "--output",
        "-o",
        help="File to write, or folder for parts. [the terminal]",
    ),
    shard_size: int | None = typer.Option(
        None,
        min=1,
        help="Write parts with this number of documents into the folder `--output`; "
        "the same command continues a stopped run.",
    ),
    kb: str | None = typer.Option(
        None, help="Folder or name of a knowledge base. [the installed]"
    ),
    format: str | None = typer.Option(
        None,
        help="jsonl, html, table …: see docs/formats.md. [by the ending of the output; "
        "jsonl for parts; else table]",
    ),
    mentions: str | None = typer.Option(
        None, help="names = detect the names of the knowledge base."
    ),
    k: int | None = K,
    threshold: float | None = THRESHOLD,
    types: str | None = TYPES,
    sources: str | None = SOURCES,
    languages: str | None = LANGUAGES,
    allow: Path | None = ALLOW,
    deny: Path | None = DENY,
    one_text: bool = typer.Option(
        False, "--one-text", hidden=True, help="The same as --input-format text."
    ),
    codes: str | None = CODES,
    setting: list[str] = SETTING,
    batch_size: int = typer.Option(
        64, min=1, help="Documents in memory at once, in each process."
    ),
    engine: str | None = typer.Option(
        None,
        help="Engine of the encoder: auto, torch or openvino. [as the linker: auto]",
    ),
    precision: str | None = typer.Option(
        None, help="Precision of the encoder: float32 or bf16. [as the linker: float32]"
    ),
    n_process: int = typer.Option(
        1, min=1, help="Number of processes; each opens the pipeline."
    ),
    no_text: bool = typer.Option(False, "--no-text", help="Do not write the texts."),
    first_id: int = typer.Option(
        1, min=1, help="The first `note_nlp_id` of `--format omop`."
    ),
    force: bool = typer.Option(
        False, "--force", help="Replace the output, or the parts in a folder."
    ),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """texts + pipeline + kb/ -> linked entities

    Documents with entities keep them; their concepts are not used.

    Example: spacy sapbert link notes/ --pipeline en_core_sci_sm --kb models/kb
    --output linked.jsonl

    Example: spacy sapbert link notes.jsonl.gz --kb models/kb --output linked
    --shard-size 1000 --types DISO

    Example: zcat notes.jsonl.gz | spacy sapbert link - --kb models/kb --output
    linked.jsonl

    Example: spacy sapbert link notes.jsonl.gz --kb models/kb --output linked.jsonl
    --n-process 4 --engine openvino

    Exit code: 0 = every document is linked and written, or skipped as asked; 1 = an
    error, printed in one line; 2 = wrong options; 130 = interrupted.
    """
    keep_inputs(output)
    job = LinkJob(
        tuple(inputs),
        output,
        input_format="text" if one_text else input_format,
        encoding=encoding,
        text_field=text_field,
        id_field=id_field,
        keep=tuple(split_values(keep) or ()),
        on_error=on_error,
        pipeline=pipeline,
        lang=lang,
        kb=kb,
        mentions=mentions,
        options=gather_options(
            setting,
            codes,
            k=k,
            threshold=threshold,
            filter=gather_filter(types, sources, languages, allow, deny),
        ),
        engine=engine,
        precision=precision,
        format=format,
        shard_size=shard_size,
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
