"""`spacy sapbert kb search` and `kb related`: candidates and neighbours."""

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
RELATED_HEADER = ("score", "CUI", "name", "relation")
RELATED_ALIGNS = ("r", "l", "l", "l")
NOTHING_FOUND = 3  # exit code


def search_mentions(
    kb: "KnowledgeBase",
    mentions: Sequence[str],
    *,
    k: int,
    filter: dict[str, list[str]] | None = None,
) -> list[dict[str, Any]]:
    """Return `mention`, `note` and `candidates` of each mention.

    k (int): Maximum of candidates.
    filter (dict[str, list[str]] | None): From `gather_filter`.
    """
    options: dict[str, Any] = {"filter": filter} if filter else {}
    return [
        {"mention": mention, "note": found.note, "candidates": found.candidates}
        for mention, found in zip(
            mentions, kb.link(mentions, k=k, **options), strict=True
        )
    ]


def candidate_row(rank: int, candidate: dict[str, Any]) -> list[str]:
    """Return the cells of a candidate, one for each of `HEADER`."""
    from ..formats.table import shorten

    texts = (candidate["cui"], candidate["name"], candidate["alias"])
    types = ", ".join(candidate["types"])
    score = f"{candidate['score']:.3f}"
    return [str(rank), score, *map(shorten, texts), shorten(types)]


def show_result(result: dict[str, Any]) -> str:
    """Format a result of `search_mentions` as a table."""
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

    Exit code: 0 = every mention has a candidate; 3 = one has none; 1 = an error,
    printed in one line; 2 = wrong options.
    """
    filter = gather_filter(types, sources, languages, allow, deny)
    results = search_mentions(load_kb(kb), mentions, k=k, filter=filter)
    if as_json:
        typer.echo(json.dumps(results, indent=2, ensure_ascii=False))
    else:
        typer.echo("".join(map(show_result, results)).strip("\n"))
    if not all(result["candidates"] for result in results):
        raise typer.Exit(NOTHING_FOUND)


def list_related(
    kb: "KnowledgeBase", cuis: Sequence[str], *, k: int
) -> list[dict[str, Any]]:
    """Return current `cui` and `name` of each concept, and `related` from `kb.related`.

    cuis (Sequence[str]): Ids; they may be retired.
    k (int): Maximum of neighbours.
    """
    concepts = [kb[cui] for cui in cuis]
    return [
        {
            "cui": concept.cui,
            "name": concept.name,
            "related": [one._asdict() for one in kb.related(concept.cui, k=k)],
        }
        for concept in concepts
    ]


def show_related(result: dict[str, Any]) -> str:
    """Format a result of `list_related` as a table."""
    from ..formats.table import WIDEST, shorten

    rows = [
        [
            f"{one['score']:.3f}",
            shorten(one["cui"]),
            shorten(one["name"]),
            one["relation"] or "",
        ]
        for one in result["related"]
    ]
    body = "\nno other concepts\n"
    if rows:
        body = table(
            rows,
            header=RELATED_HEADER,
            divider=True,
            aligns=RELATED_ALIGNS,
            max_col=WIDEST,
        )
    return f"\n{shorten(result['cui'])} {shorten(result['name'])}\n{body}"


@kb_app.command("related")
def related(
    cuis: list[str] = typer.Argument(..., metavar="CUI...", help="Ids of concepts."),
    kb: str | None = typer.Option(None, help="Folder or name. [the installed]"),
    k: int = typer.Option(10, "-k", "--k", min=1, max=1000, help="Neighbours."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """ids + kb/ -> the nearest concepts, with their relations

    Example: spacy sapbert kb related C0027051 --kb models/kb -k 20

    Exit code: 0 = every concept has neighbours; 3 = one has none; 1 = an error, printed
    in one line; 2 = wrong options.
    """
    results = list_related(load_kb(kb), cuis, k=k)
    if as_json:
        typer.echo(json.dumps(results, indent=2, ensure_ascii=False))
    else:
        typer.echo("".join(map(show_related, results)).strip("\n"))
    if not all(result["related"] for result in results):
        raise typer.Exit(NOTHING_FOUND)
