"""`spacy sapbert link`: link the entities of texts."""

import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import typer
from tqdm import tqdm

from .. import __version__
from ..errors import Errors, SapbertError
from ..formats.documents import DOCS_SUFFIX, list_inputs, read_documents
from ..pipeline.running import NAMES, complete_pipeline, load_pipeline, open_pipeline
from ..pipeline.workers import Workers
from ..system.terminal import printable
from ..system.writing import check_replaceable
from .app import app
from .filter_options import ALLOW, DENY, LANGUAGES, SOURCES, TYPES, gather_filter
from .link_output import make_part_writer, write_folder, write_whole
from .resume import digest_inputs, digest_json, digest_pipeline


def choose_format(
    format: str | None, output: Path | None, shard_size: int | None
) -> str:
    """Return the format: as given, JSONL for parts, else by the ending of the output.

    RAISES (SapbertError): If the ending is unknown.
    """
    from ..formats.registry import guess_format

    if format is not None:
        return format
    if shard_size is not None:
        return "jsonl"
    return "table" if output is None else guess_format(output)


def check_output(
    output: Path | None, format: str, *, shard_size: int | None, force: bool
) -> None:
    """Raise an error if the output cannot be written, before anything is loaded."""
    from ..formats.registry import FOLDERS

    if output is not None:
        check_replaceable(output)
    if shard_size is not None:
        if format in FOLDERS:
            raise SapbertError(Errors.E518.format(format=format))
        if output is None:
            raise SapbertError(Errors.E514)
    elif output is not None and output.is_dir() and format not in FOLDERS:
        raise SapbertError(Errors.E515.format(path=output))
    elif output is not None and output.exists() and not force:
        raise SapbertError(Errors.E003.format(path=output))


@app.command("link")
def link(
    inputs: list[Path] = typer.Argument(
        ...,
        metavar="INPUT...",
        help="Files .txt or .jsonl, also .gz; .spacy; folders of .txt; - = the "
        "standard input, as JSONL.",
    ),
    pipeline: str | None = typer.Option(
        None, help="Folder or package. [blank English with `--mentions names`]"
    ),
    output: Path | None = typer.Option(
        None, help="File to write, or folder for parts. [the terminal]"
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
    k: int | None = typer.Option(
        None, min=1, max=1000, help="Candidates for a mention. [as the linker: 10]"
    ),
    threshold: float | None = typer.Option(
        None,
        min=-1,
        max=1,
        help="Minimum score of a link. [as the linker, the kb]",
    ),
    types: str | None = TYPES,
    sources: str | None = SOURCES,
    languages: str | None = LANGUAGES,
    allow: Path | None = ALLOW,
    deny: Path | None = DENY,
    one_text: bool = typer.Option(
        False, "--one-text", help="The standard input is one text, not JSONL."
    ),
    batch_size: int = typer.Option(
        64, min=1, help="Documents in memory at once, in each process."
    ),
    engine: str | None = typer.Option(
        None, help="Engine of the encoder: torch or openvino. [as the linker: torch]"
    ),
    precision: str | None = typer.Option(
        None, help="Precision of the encoder: float32 or bf16. [as the linker: float32]"
    ),
    n_process: int = typer.Option(
        1, min=1, help="Number of processes; each opens the pipeline."
    ),
    no_text: bool = typer.Option(False, "--no-text", help="Do not write the texts."),
    force: bool = typer.Option(
        False, "--force", help="Replace the output, or the parts in a folder."
    ),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """texts + pipeline + kb/ -> linked entities

    Documents of a .spacy file that have entities keep them.

    Example: spacy sapbert link notes/ --pipeline en_core_sci_sm --kb models/kb
    --output linked.jsonl

    Example: spacy sapbert link notes.jsonl.gz --kb models/kb --output linked
    --shard-size 1000 --types DISO

    Example: zcat notes.jsonl.gz | spacy sapbert link - --kb models/kb --output
    linked.jsonl

    Example: spacy sapbert link notes.jsonl.gz --kb models/kb --output linked.jsonl
    --n-process 4 --engine openvino

    Exit code: 0 = every document is linked and written; 1 = an error, printed in one
    line; 2 = wrong options; 130 = interrupted.
    """
    from ..formats.registry import load_writer

    if shard_size is None and format is None and output and output.is_dir():
        raise SapbertError(Errors.E515.format(path=output))
    format = choose_format(format, output, shard_size)
    check_output(output, format, shard_size=shard_size, force=force)
    writer = load_writer(format)
    filter = gather_filter(types, sources, languages, allow, deny)
    files = list_inputs(inputs)
    nlp = load_pipeline(pipeline)
    if pipeline is None:
        mentions = mentions or NAMES
    command: dict[str, Any] = {
        "version": __version__,
        "input": digest_inputs(inputs),
        "one_text": one_text,
        "pipeline": digest_pipeline(nlp),
        "mentions": mentions,
        "k": k,
        "threshold": threshold,
        "filter": filter and digest_json(filter),
        "engine": engine,
        "precision": precision,
        "format": format,
        "no_text": no_text,
        "shard_size": shard_size,
    }
    documents = read_documents(
        inputs, longest=nlp.max_length, vocab=nlp.vocab, one_text=one_text
    )
    settings: dict[str, Any] = {
        "kb": kb,
        "mentions": mentions,
        "k": k,
        "threshold": threshold,
        "filter": filter,
        "engine": engine,
        "precision": precision,
        "detection": not all(name.endswith(DOCS_SUFFIX) for _, name in files),
    }
    linker = complete_pipeline(nlp, **settings)
    workers = None
    if n_process > 1:
        # Each process opens this version, also one that is started later.
        settings["kb_digest"] = linker.kb.manifest.digest
        opened = partial(open_pipeline, pipeline, settings)
        workers = Workers(opened, vocab=nlp.vocab, n_process=n_process)
    shown = not quiet and output is not None and sys.stderr.isatty()
    with tqdm(unit=" docs", disable=not shown) as bar, workers or nullcontext():
        write_part = make_part_writer(
            nlp,
            linker,
            writer,
            batch_size=batch_size,
            include_text=not no_text,
            on_doc=bar.update,
            run=workers.run if workers else None,
        )
        if output is None or shard_size is None:
            line = write_whole(output, documents, write_part, format=format)
        else:
            command["kb"] = linker.kb.manifest.digest
            line = write_folder(
                output, documents, write_part, command=command, force=force
            )
    if not quiet:
        typer.echo(printable(line), err=True)
