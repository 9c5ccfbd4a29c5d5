"""Research corpora with a layout of their own → mentions.tsv, or gold Docs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from spacy_sapbert.cli.options import Corpus, DropPrefix, Prefix
from spacy_sapbert.formats.convert import LABEL, convert_corpus
from spacy_sapbert.formats.corpus import finish_documents
from spacy_sapbert.io.progress import show_progress
from spacy_sapbert.io.writing import check_outputs
from training.corpora.research import read_askapatient, read_cometa, read_xlbel
from training.data.options import Force, Quiet, print_counts


def convert_research(
    corpus: Corpus,
    format: Annotated[
        Literal["askapatient", "cometa", "xlbel"],
        typer.Option(help="The corpus: docs/corpora.md."),
    ] = ...,  # type: ignore[assignment]
    output: Path = typer.Option(
        ..., "--output", "-o", help="mentions.tsv, mentions.tsv.gz or docs.spacy."
    ),
    prefix: Prefix = "",
    drop_prefix: DropPrefix = "",
    level: Annotated[
        Literal["general", "specific"], typer.Option(help="COMETA: which ids.")
    ] = "general",
    fold: Annotated[int, typer.Option(min=0, max=9, help="AskAPatient.")] = 0,
    split: Annotated[
        Literal["train", "validation", "test"], typer.Option(help="AskAPatient.")
    ] = "test",
    lang: str = typer.Option("en", help="docs.spacy: language of the tokenizer."),
    label: str = typer.Option(LABEL, help="docs.spacy: of mentions without a type."),
    linked_only: bool = typer.Option(
        False, "--linked-only", help="Leave out composites and mentions without an id."
    ),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Convert COMETA, AskAPatient or XL-BEL as it was released.

    Example: python -m training convert-corpus cometa/splits/stratified_general/dev.csv
    --format cometa --output corpus/cometa/dev.tsv
    """
    check_outputs(output, force=force)
    if format == "cometa":
        documents = read_cometa(corpus, level=level)
    elif format == "askapatient":
        documents = read_askapatient(corpus, fold=fold, split=split)
    else:
        documents = read_xlbel(corpus)
    found = finish_documents(corpus, documents, prefix, drop_prefix)
    with show_progress(found, unit="documents", quiet=quiet) as shown:
        counts = convert_corpus(
            shown, output, lang=lang, label=label, linked_only=linked_only
        )
    print_counts(counts, output, quiet=quiet)
