"""Research corpora → mentions.tsv, or gold Docs; dictionaries → concepts.jsonl."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from spacy_sapbert.cli.options import Corpus, DropPrefix, Prefix
from spacy_sapbert.formats.convert import convert_corpus
from spacy_sapbert.formats.corpus import finish_documents
from spacy_sapbert.io.progress import show_progress
from spacy_sapbert.io.writing import check_outputs
from spacy_sapbert.vocabularies.concepts import write_concepts
from training.corpora.biosyn import read_dictionary_file
from training.corpora.research import READERS
from training.data.options import Force, Quiet, print_counts


def convert_research(
    corpus: Corpus,
    format: Annotated[
        Literal["cometa", "xlbel", "biosyn"],
        typer.Option(help="The corpus."),
    ] = ...,  # type: ignore[assignment]
    output: Path = typer.Option(
        ..., "--output", "-o", help="mentions.tsv, mentions.tsv.gz or docs.spacy."
    ),
    prefix: Prefix = "",
    drop_prefix: DropPrefix = "",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Convert COMETA, XL-BEL or a set of BioSyn as it was released.

    Example: python -m training convert-corpus cometa/splits/stratified_general/dev.csv
    --format cometa --output corpus/cometa/dev.tsv
    """
    check_outputs(output, force=force)
    documents = finish_documents(corpus, READERS[format](corpus), prefix, drop_prefix)
    with show_progress(documents, unit="documents", quiet=quiet) as shown:
        counts = convert_corpus(shown, output)
    print_counts(counts, output, quiet=quiet)


def convert_dictionary(
    dictionary: Annotated[Path, typer.Argument(help="Lines `id||name|name|…`.")],
    output: Annotated[Path, typer.Argument(help="concepts.jsonl to write.")],
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Convert a dictionary of BioSyn, or another one with lines `id||name`.

    Example: python -m training convert-dictionary data/ncbi-disease/test_dictionary.txt
    corpus/ncbi-disease/concepts.jsonl
    """
    check_outputs(output, force=force)
    count = write_concepts(output, read_dictionary_file(dictionary))
    print_counts({"concepts": count}, output, quiet=quiet)
