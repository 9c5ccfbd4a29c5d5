"""`spacy sapbert convert`: annotated corpora → mentions.tsv, or gold Docs."""

from pathlib import Path

import typer

from ..errors import SapbertError, unknown_on_error
from ..formats.convert import LABEL, convert_corpus
from ..formats.corpus import read_corpus
from ..formats.registry import FORMATS
from ..io.progress import show_progress
from ..io.terminal import msg
from .app import app, check_outputs

CORPUS = typer.Argument(..., help="File or folder, as the format has it.")
READ = ", ".join(name for name, format in FORMATS.items() if format.read)
FORMAT = typer.Option(None, help=f"One of {READ}. [detected]")
ON_ERROR = typer.Option(
    "fail", help="fail, or skip: leave out documents that cannot be read, and count."
)
PREFIX = typer.Option(
    "", help="Add to ids without a colon, e.g. MESH:", show_default=False
)
DROP_PREFIX = typer.Option("", help="Remove from ids, e.g. UMLS:", show_default=False)
BARS_JOIN_PARTS = typer.Option(
    None,
    "--bars-join-parts/--bars-are-alternatives",
    help="A|B means A and B, or A or B. [as the format]",
)


class Skipped:
    """What `--on-error` does with a document that cannot be read."""

    def __init__(self, on_error: str) -> None:
        if on_error not in ("fail", "skip"):
            raise unknown_on_error(value=on_error)
        self.fails = on_error == "fail"
        self.errors: list[SapbertError] = []

    def __call__(self, error: SapbertError) -> None:
        if self.fails:
            raise error
        self.errors.append(error)

    def report(self) -> None:
        """Print how many were left out, and the first reason."""
        if self.errors:
            first = self.errors[0]
            msg.warn(f"{len(self.errors):,} documents were left out: {first}")


@app.command("convert")
def convert(
    corpus: Path = CORPUS,
    format: str | None = FORMAT,
    output: Path = typer.Option(
        ...,
        "--output",
        "-o",
        help="mentions.tsv, mentions.tsv.gz or docs.spacy to write.",
    ),
    prefix: str = PREFIX,
    drop_prefix: str = DROP_PREFIX,
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
    lang: str = typer.Option("en", help="docs.spacy: language of the tokenizer."),
    label: str = typer.Option(LABEL, help="docs.spacy: of mentions without a type."),
    on_error: str = ON_ERROR,
    force: bool = typer.Option(False, "--force", help="Replace the output."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """annotated corpus -> mentions.tsv or docs.spacy, by the ending of the output

    Example: spacy sapbert convert corpus/NCBIdevelopset_corpus.txt --prefix MESH:
    --output corpus/ncbi/dev.tsv

    Example: spacy sapbert convert corpus/medmentions.txt.gz --format pubtator
    --drop-prefix UMLS: --linked-only --output corpus/medmentions.spacy
    """
    check_outputs(output, force=force)
    given = {
        "bars_join_parts": bars_join_parts,
        "split_composites": split_composites,
        "language": language,
    }
    options = {name: value for name, value in given.items() if value is not None}
    skipped = Skipped(on_error)
    documents = read_corpus(
        corpus,
        format,
        prefix=prefix,
        drop_prefix=drop_prefix,
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
