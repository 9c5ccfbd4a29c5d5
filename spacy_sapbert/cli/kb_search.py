"""`spacy sapbert kb search`: what a mention may mean."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from wasabi import table

from ..kb.knowledge_base import load_kb
from .filter_options import ALLOW, DENY, LANGUAGES, SOURCES, TYPES, gather_filter
from .kb import kb_app

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

HEADER = ("rank", "score", "CUI", "name", "alias", "types")
ALIGNS = ("r", "r", "l", "l", "l", "l")
NOTHING_FOUND = 3  # exit code


def search_mentions(
    kb: "KnowledgeBase",
    mentions: Sequence[str],
    *,
    k: int,
    filter: dict[str, list[str]] | None = None,
) -> list[dict[str, Any]]:
    """Look mentions up.

    kb (KnowledgeBase): The knowledge base.
    mentions (Sequence[str]): Their texts.
    k (int): Candidates for each at the most.
    filter (dict[str, list[str]] | None): What may be found, from `gather_filter`.
    RETURNS (list[dict[str, Any]]): For each its `mention`, `note` and `candidates`.
    """
    options: dict[str, Any] = {"filter": filter} if filter else {}
    return [
        {"mention": mention, "note": found.note, "candidates": found.candidates}
        for mention, found in zip(
            mentions, kb.link(mentions, k=k, **options), strict=True
        )
    ]


def candidate_row(rank: int, candidate: dict[str, Any]) -> list[str]:
    """Put a candidate in a row.

    rank (int): Its place, from 1.
    candidate (dict[str, Any]): The candidate.
    RETURNS (list[str]): A cell for each of `HEADER`.
    """
    from ..formats.table import shorten

    texts = (candidate["cui"], candidate["name"], candidate["alias"])
    types = ", ".join(candidate["types"])
    score = f"{candidate['score']:.3f}"
    return [str(rank), score, *map(shorten, texts), shorten(types)]


def show_result(result: dict[str, Any]) -> str:
    """Draw what was found for a mention.

    result (dict[str, Any]): From `search_mentions`.
    RETURNS (str): The mention, maybe a note, and a table.
    """
    from ..formats.table import WIDEST, shorten

    note = f" ({result['note']})" if result["note"] else ""
    rows = [candidate_row(i, c) for i, c in enumerate(result["candidates"], 1)]
    body = "\nno candidates\n"
    if rows:
        body = table(rows, header=HEADER, divider=True, aligns=ALIGNS, max_col=WIDEST)
    return f"\n{shorten(result['mention'])}{note}\n{body}"


@kb_app.command("search")
def search(
    mentions: list[str] = typer.Argument(..., metavar="MENTION...", help="Texts."),
    kb: str | None = typer.Option(None, help="Folder or name. [the installed]"),
    k: int = typer.Option(10, "-k", "--k", min=1, max=1000, help="Candidates."),
    types: str | None = TYPES,
    sources: str | None = SOURCES,
    languages: str | None = LANGUAGES,
    allow: Path | None = ALLOW,
    deny: Path | None = DENY,
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """mentions + kb/ -> candidates

    Example: spacy sapbert kb search "heart atack" MI --kb models/kb -k 5

    Example: spacy sapbert kb search cold --kb models/kb --types DISO --json

    Exit code: 0 = every mention has a candidate; 3 = one has none; 1 = an error, which
    is told in a line; 2 = the options cannot be understood.
    """
    filter = gather_filter(types, sources, languages, allow, deny)
    results = search_mentions(load_kb(kb), mentions, k=k, filter=filter)
    if as_json:
        typer.echo(json.dumps(results, indent=2, ensure_ascii=False))
    else:
        typer.echo("".join(map(show_result, results)).strip("\n"))
    if not all(result["candidates"] for result in results):
        raise typer.Exit(NOTHING_FOUND)
