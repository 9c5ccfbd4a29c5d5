"""`spacy sapbert kb search` and `kb related`: candidates and neighbours."""

from collections.abc import Sequence
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
    from ...kb.knowledge_base import RelatedConcept
    from ...linking.candidates import Candidate
    from ...linking.link import Linked
    from ...vocabularies.concepts import Concept

HEADER = ("rank", "score", "CUI", "name", "alias", "types")
ALIGNS = ("r", "r", "l", "l", "l", "l")
RELATED_HEADER = ("score", "CUI", "name", "relation")
RELATED_ALIGNS = ("r", "l", "l", "l")
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


def show_related(concept: "Concept", related: Sequence["RelatedConcept"]) -> str:
    """Format the concepts nearest to a concept as a table."""
    from ...formats.table import draw_table, shorten

    body = "\nno other concepts\n"
    if related:
        rows = [
            (f"{score:.3f}", cui, name, relation or "")
            for cui, name, score, relation in related
        ]
        body = draw_table(rows, RELATED_HEADER, RELATED_ALIGNS)
    return f"\n{shorten(concept.cui)} {shorten(concept.name)}\n{body}"


@kb_app.command("related")
def related(
    kb: KbName,
    cuis: list[str] = typer.Argument(..., metavar="CUI", help="Ids of concepts."),
    k: int = typer.Option(10, "-k", "--k", min=1, max=1000, help="Neighbours."),
    as_json: AsJson = False,
) -> None:
    """kb/ + ids -> the nearest concepts, with their relations

    Example: spacy sapbert kb related models/kb C0027051 -k 20

    Exit code: 0 = every concept has neighbours; 3 = one has none; 1 = an error, printed
    in one line; 2 = wrong options.
    """
    opened = load_kb(kb)
    results = [
        (concept, opened.related(concept.cui, k=k))
        for concept in [opened[cui] for cui in cuis]
    ]
    if as_json:
        listed = [
            {
                "cui": concept.cui,
                "name": concept.name,
                "related": [concept_found._asdict() for concept_found in found],
            }
            for concept, found in results
        ]
        typer.echo(format_json(listed))
    else:
        typer.echo("".join(show_related(*result) for result in results).strip("\n"))
    if not all(found for _, found in results):
        raise typer.Exit(NOTHING_FOUND)
