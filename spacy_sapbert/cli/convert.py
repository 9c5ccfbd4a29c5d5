"""`spacy sapbert convert`: annotated corpora → mentions.tsv, or gold Docs."""

from pathlib import Path

import typer

from ..formats.convert import DOCS_SUFFIX, LABEL, convert_corpus
from ..formats.corpus import read_corpus
from ..io.progress import show_progress
from ..io.terminal import msg
from .app import app, check_outputs
from .options import (
    ANNOTATED_FORMAT,
    BARS_JOIN_PARTS,
    Corpus,
    Delimiter,
    DropPrefix,
    Force,
    LeastConfidence,
    MentionColumns,
    OnError,
    Prefix,
    Quiet,
    Skipped,
    TableEncoding,
)


@app.command("convert")
def convert(
    corpus: Corpus,
    format: str | None = ANNOTATED_FORMAT,
    output: Path = typer.Option(
        ...,
        "--output",
        "-o",
        help="mentions.tsv, mentions.tsv.gz or docs.spacy to write.",
    ),
    columns: MentionColumns = None,
    delimiter: Delimiter = None,
    encoding: TableEncoding = None,
    prefix: Prefix = "",
    drop_prefix: DropPrefix = "",
    least_confidence: LeastConfidence = None,
    bars_join_parts: bool | None = BARS_JOIN_PARTS,
    split_composites: bool | None = typer.Option(
        None,
        "--split-composites/--whole-composites",
        help="Parts of a composite are mentions of their own. [as the format]",
    ),
    language: str | None = typer.Option(
        None, help="TSV: only mentions with this `lang`. [all]"
    ),
    linked_only: bool = typer.Option(
        False, "--linked-only", help="Leave out composites and mentions without an id."
    ),
    lang: str | None = typer.Option(
        None, help="docs.spacy: language of the tokenizer. [en]"
    ),
    label: str | None = typer.Option(
        None, help=f"docs.spacy: of mentions without a type. [{LABEL}]"
    ),
    on_error: OnError = "fail",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """annotated corpus -> mentions.tsv or docs.spacy

    Example: spacy sapbert convert corpus/NCBIdevelopset_corpus.txt --prefix MESH:
    --output corpus/ncbi/dev.tsv

    Example: spacy sapbert convert corpus/medmentions.txt.gz --format pubtator
    --drop-prefix UMLS: --linked-only --output corpus/medmentions.spacy

    An id A|B means both with `--bars-join-parts`, either with
    `--bars-are-alternatives`. A composite is a mention for each of its parts with
    `--split-composites`, one mention with `--whole-composites`.
    """
    check_outputs(output, force=force)
    given = {
        "bars_join_parts": bars_join_parts,
        "split_composites": split_composites,
        "language": language,
        "least_confidence": least_confidence,
        "columns": columns,
        "delimiter": delimiter,
        "encoding": encoding,
    }
    options = {name: value for name, value in given.items() if value is not None}
    skipped = Skipped(on_error)
    documents = read_corpus(
        corpus,
        format,
        prefix=prefix,
        drop_prefix=drop_prefix,
        every=output.name.endswith(DOCS_SUFFIX),
        on_error=skipped,
        **options,
    )
    with show_progress(documents, unit="documents", quiet=quiet) as shown:
        counts = convert_corpus(
            shown, output, lang=lang, label=label, linked_only=linked_only
        )
    if not quiet:
        msg.table([(what, f"{count:,}") for what, count in counts.items()])
        skipped.report()
        msg.good(f"Wrote {output}")
