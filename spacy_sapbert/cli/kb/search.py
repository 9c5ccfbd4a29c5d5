"""`spacy sapbert kb search`: candidates of mentions."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ...errors import SapbertError
from ...io.reading import read_lines
from ...io.terminal import format_json
from ...kb.knowledge_base import load_kb
from ..options import (
    Allow,
    AsJson,
    Deny,
    KbName,
    Languages,
    Sources,
    Types,
    gather_filter,
)
from .app import kb_app

if TYPE_CHECKING:
    from ...linking.candidates import Candidate
    from ...linking.link import Linked

HEADER = ("rank", "score", "CUI", "name", "alias", "types")
ALIGNS = ("r", "r", "l", "l", "l", "l")
NOTHING_FOUND = 3  # exit code


def candidate_row(candidate: "Candidate") -> list[str]:
    """Return the cells of a candidate, one for each of `HEADER`."""
    texts = (candidate["cui"], candidate["name"], candidate["alias"])
    types = ", ".join(candidate["types"])
    return [str(candidate["rank"]), f"{candidate['score']:.3f}", *texts, types]


def show_result(mention: str, linked: "Linked") -> str:
    """Format the candidates of a mention as a table."""
    from ...formats.table import draw_table, shorten

    said = [linked.note] if linked.note else []
    probability = linked.candidates[0]["probability"] if linked.candidates else None
    if probability is not None:  # it orders the candidates, not the score
        said.append(f"probability of the first: {probability:.3f}")
    note = f" ({', '.join(said)})" if said else ""
    rows = list(map(candidate_row, linked.candidates))
    body = "\nno candidates\n"
    if rows:
        body = draw_table(rows, HEADER, ALIGNS)
    return f"\n{shorten(mention)}{note}\n{body}"


def read_mentions(path: Path) -> list[str]:
    """Read mentions, one a line, without blank lines."""
    lines = read_lines(path)
    return [line.strip() for _, line in lines if line.strip()]


@kb_app.command("search")
def search(
    kb: KbName,
    mentions: list[str] = typer.Argument(None, metavar="MENTION", help="Texts."),
    file: Path | None = typer.Option(
        None, help="Text file with a mention on each line."
    ),
    k: int = typer.Option(10, "-k", "--k", min=1, max=1000, help="Candidates."),
    types: Types = None,
    sources: Sources = None,
    languages: Languages = None,
    allow: Allow = None,
    deny: Deny = None,
    as_json: AsJson = False,
) -> None:
    """kb/ + mentions -> candidates

    Example: spacy sapbert kb search models/kb "heart atack" MI -k 5

    Example: spacy sapbert kb search models/kb --file terms.txt -k 1

    Example: spacy sapbert kb search models/kb cold --types DISO --json

    Exit code: 0 = every mention has a candidate; 3 = one has none; 1 = an error,
    printed in one line; 2 = wrong options.
    """
    filter = gather_filter(types, sources, languages, allow, deny)
    mentions = [*(mentions or []), *(read_mentions(file) if file else [])]
    if not mentions:
        raise SapbertError(
            "E106",
            "Expected at least one mention, but got none. Write mentions on the "
            "command line, or one a line into a file for `--file`.",
        )
    results = load_kb(kb).link(mentions, k=k, filter=filter or {})
    pairs = list(zip(mentions, results, strict=True))
    if as_json:
        listed = [
            {"mention": mention, "note": found.note, "candidates": found.candidates}
            for mention, found in pairs
        ]
        typer.echo(format_json(listed))
    else:
        typer.echo("".join(show_result(*pair) for pair in pairs).strip("\n"))
    if not all(found.candidates for found in results):
        raise typer.Exit(NOTHING_FOUND)
