"""What commands share: options, a table of counts, and one in Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from spacy_sapbert.io.terminal import msg

Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the output.")]
AliasFile = Annotated[
    Path | None,
    typer.Option(help="Lines: an id, a tab, the id that it is an alias of."),
]
Concepts = Annotated[Path, typer.Argument(help="concepts.jsonl")]


def print_counts(counts: Mapping[str, int], output: Path, *, quiet: bool) -> None:
    """Print counts and the file that was written."""
    if not quiet:
        msg.table([(what, f"{count:,}") for what, count in counts.items()])
        msg.good(f"Wrote {output}")


def format_markdown(
    header: Sequence[str], rows: Iterable[Sequence[Any]], *, left: int = 1
) -> list[str]:
    """Return the lines of a Markdown table; the first `left` columns have texts."""
    aligns = ["---"] * left + ["---:"] * (len(header) - left)
    return [f"| {' | '.join(map(str, row))} |" for row in (header, aligns, *rows)]
