"""`spacy sapbert link`: link the entities of texts."""

import sys
import time
from collections import Counter
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import typer

from .. import __version__
from ..errors import Errors, SapbertError
from ..formats.inputs.files import ENDINGS, UNANNOTATED, count_documents, list_inputs
from ..formats.inputs.reading import read_documents
from ..formats.inputs.rows import COLUMNS, Columns
from ..linking.options import OPTIONS
from ..pipeline.running import NAMES, complete_pipeline, load_pipeline, open_pipeline
from ..pipeline.workers import Workers
from ..system.progress import show_progress
from ..system.terminal import printable
from .app import app
from .filter_options import ALLOW, DENY, LANGUAGES, SOURCES, TYPES, gather_filter
from .link_options import CODES, SETTING, THRESHOLD, K, gather_options
from .linking.checks import check_keep, check_omop, check_output, choose_format
from .linking.output import make_part_writer, write_folder, write_whole
from .linking.resume import (
    describe_system,
    digest_inputs,
    digest_json,
    digest_pipeline,
)
from .linking.summary import SkippedDocuments, finish_line


@app.command("link")
def link(
    inputs: list[Path] = typer.Argument(
        ...,
        metavar="INPUT...",
        help="Files: text, JSONL, CSV, Parquet, .spacy, PubTator, brat, BioC; folders "
        "of them; - = the standard input, as JSONL.",
    ),
    input_format: str | None = typer.Option(
        None, help=f"{', '.join(ENDINGS)}. [by the ending, else the content]"
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
        None, help="Engine of the encoder: torch or openvino. [as the linker: torch]"
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
    from ..formats.registry import check_library, load_writer

    if shard_size is None and format is None and output and output.is_dir():
        raise SapbertError(Errors.E515.format(path=output))
    format = choose_format(format, output, shard_size)
    check_output(output, format, shard_size=shard_size, force=force)
    writer = load_writer(format)
    columns = Columns(text_field, id_field, check_keep(keep, format))
    if on_error not in ("fail", "skip"):
        raise SapbertError(Errors.E112.format(value=on_error))
    filter = gather_filter(types, sources, languages, allow, deny)
    linking = gather_options(setting, codes, k=k, threshold=threshold, filter=filter)
    counts, left_out = Counter[str](), Counter[str]()
    files = list_inputs(inputs, "text" if one_text else input_format, left_out=left_out)
    for name in {file.format for file in files}:
        check_library(name)
    nlp = load_pipeline(pipeline, lang=lang)
    if pipeline is None:
        mentions = mentions or NAMES
    command: dict[str, Any] = {
        "version": __version__,
        "input": digest_inputs(files),
        "text_field": text_field,
        "id_field": id_field,
        "keep": columns.keep,
        "on_error": on_error,
        "pipeline": digest_pipeline(nlp),
        "mentions": mentions,
        **{name: digest_json(linking.get(name)) for name in OPTIONS},
        "engine": engine,
        "precision": precision,
        "format": format,
        "no_text": no_text,
        "first_id": first_id,
        "shard_size": shard_size,
    }
    settings: dict[str, Any] = {
        "kb": kb,
        "mentions": mentions,
        "options": linking,
        "engine": engine,
        "precision": precision,
        # other files may have mentions in all documents
        "detection": any(file.format in UNANNOTATED for file in files),
    }
    linker = complete_pipeline(nlp, **settings)
    skipped = SkippedDocuments(on_error == "skip")
    documents = read_documents(
        files,
        longest=nlp.max_length,
        vocab=nlp.vocab,
        columns=columns,
        overlapping=linker.spans_key is not None,
        on_error=skipped.handle_error,
        counts=counts,
    )
    workers = None
    if n_process > 1:
        # Each process opens this version, also one that is started later.
        settings["kb_digest"] = linker.kb.manifest.digest
        opened = partial(open_pipeline, pipeline, settings, lang=lang)
        workers = Workers(opened, vocab=nlp.vocab, n_process=n_process)
    # Rows on a terminal would be between the bar's.
    hidden = quiet or (output is None and sys.stderr.isatty())
    bar = show_progress(
        unit="documents",
        total=None if hidden else count_documents(files),
        quiet=hidden,
    )
    options: dict[str, Any] = {"include_text": not no_text}
    if columns.keep:
        options["keep"] = columns.keep
    if format == "parquet":
        options["kb_digest"] = linker.kb.manifest.digest
    if format == "omop":
        check_omop(linker.kb, linker.options.codes)
        options["system"] = describe_system(nlp, linker.kb.manifest.digest)
        options["first_id"] = first_id
    done, start = 0, time.monotonic()

    def count_document() -> None:
        nonlocal done
        done += 1
        bar.update()

    with bar, workers or nullcontext():
        write_part = make_part_writer(
            nlp,
            linker,
            writer,
            batch_size=batch_size,
            options=options,
            on_doc=count_document,
            on_error=skipped.handle_error,
            run=workers.run if workers else None,
        )
        if output is None or shard_size is None:
            line = write_whole(
                output, documents, write_part, format=format, skipped=skipped
            )
        else:
            command["kb"] = linker.kb.manifest.digest
            line = write_folder(
                output,
                documents,
                write_part,
                command=command,
                options=options,
                force=force,
                bar=bar,
                skipped=skipped,
            )
    if not quiet:
        counts["skipped"] = skipped.count
        seconds = time.monotonic() - start
        line = finish_line(line, counts, left_out, documents=done, seconds=seconds)
        typer.echo(printable(line), err=True)
