"""Research corpora with a layout of their own → mentions.tsv, or gold Docs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from spacy_sapbert.cli.options import Corpus, DropPrefix, Prefix
from spacy_sapbert.formats.convert import convert_corpus
from spacy_sapbert.formats.corpus import finish_documents
from spacy_sapbert.io.progress import show_progress
from spacy_sapbert.io.writing import check_outputs
from training.corpora.research import READERS
from training.data.options import Force, Quiet, print_counts


def convert_research(
    corpus: Corpus,
    format: Annotated[
        Literal["cometa", "xlbel"],
        typer.Option(help="The corpus: docs/corpora.md."),
    ] = ...,  # type: ignore[assignment]
    output: Path = typer.Option(
        ..., "--output", "-o", help="mentions.tsv, mentions.tsv.gz or docs.spacy."
    ),
    prefix: Prefix = "",
    drop_prefix: DropPrefix = "",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Convert COMETA or XL-BEL as it was released.

    Example: python -m training convert-corpus cometa/splits/stratified_general/dev.csv
    --format cometa --output corpus/cometa/dev.tsv
    """
    check_outputs(output, force=force)
    documents = finish_documents(corpus, READERS[format](corpus), prefix, drop_prefix)
    with show_progress(documents, unit="documents", quiet=quiet) as shown:
        counts = convert_corpus(shown, output)
    print_counts(counts, output, quiet=quiet)
