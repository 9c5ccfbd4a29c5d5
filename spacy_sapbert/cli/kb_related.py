"""`spacy sapbert kb related`: what lies near a concept."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer
from wasabi import table

from ..kb.knowledge_base import load_kb
from .kb import kb_app
from .kb_search import NOTHING_FOUND

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

HEADER = ("score", "CUI", "name", "relation")
ALIGNS = ("r", "l", "l", "l")


def list_related(
    kb: "KnowledgeBase", cuis: Sequence[str], *, k: int
) -> list[dict[str, Any]]:
    """Find the neighbours of concepts.

    kb (KnowledgeBase): The knowledge base.
    cuis (Sequence[str]): Their ids, maybe retired ones.
    k (int): Neighbours of each at the most.
    RETURNS (list[dict[str, Any]]): For each its `cui` and `name` as they are now, and
        `related`, as `kb.related` gives it.
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
    """Draw the neighbours of a concept.

    result (dict[str, Any]): From `list_related`.
    RETURNS (str): The concept and a table.
    """
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
        body = table(rows, header=HEADER, divider=True, aligns=ALIGNS, max_col=WIDEST)
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

    Exit code: 0 = every concept has neighbours; 3 = one has none; 1 = an error, which
    is told in a line; 2 = the options cannot be understood.
    """
    results = list_related(load_kb(kb), cuis, k=k)
    if as_json:
        typer.echo(json.dumps(results, indent=2, ensure_ascii=False))
    else:
        typer.echo("".join(map(show_related, results)).strip("\n"))
    if not all(result["related"] for result in results):
        raise typer.Exit(NOTHING_FOUND)
