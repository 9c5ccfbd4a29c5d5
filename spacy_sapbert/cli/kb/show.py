"""`spacy sapbert kb show` and `kb dump`: what a knowledge base has."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ...errors import SapbertError
from ...io.progress import show_progress
from ...io.tables.files import write_table
from ...io.terminal import format_json, msg
from ...vocabularies.concepts import concept_to_json, write_concepts
from ..app import check_outputs
from ..options import AsJson, Force, KbName, Quiet
from .app import kb_app

if TYPE_CHECKING:
    from ...kb.knowledge_base import KnowledgeBase
    from ...vocabularies.concepts import Concept

JSONL, CSV = (".jsonl", ".jsonl.gz"), (".csv",)
MOST_CHILDREN = 20
NAMES = ("name", "language", "sources", "local")


def list_rows(kb: "KnowledgeBase", concept: "Concept") -> list[tuple[str, Any]]:
    """Return what is known of a concept besides its names, for a table."""
    children = kb.children(concept.cui)
    more = f" … ({len(children):,})" if len(children) > MOST_CHILDREN else ""

    def name(cuis: list[str]) -> str:
        found = kb.store.names_of_cuis(cuis)
        return "; ".join(f"{cui} {found.get(cui, '')}".strip() for cui in cuis)

    rows = [
        ("Types", ", ".join(concept.types)),
        ("Definition", concept.definition or ""),
        *((source, ", ".join(codes)) for source, codes in concept.codes.items()),
        *(
            (f"{source}, {relation}", ", ".join(codes))
            for relation, by_source in concept.related_codes.items()
            for source, codes in by_source.items()
        ),
        ("Parents", name(concept.parents)),
        ("Children", name(children[:MOST_CHILDREN]) + more),
        ("Retired ids", ", ".join(concept.retired)),
    ]
    return [row for row in rows if row[1]]


@kb_app.command("show")
def show(
    kb: KbName,
    cuis: list[str] = typer.Argument(..., metavar="CUI", help="Ids of concepts."),
    as_json: AsJson = False,
) -> None:
    """kb/ + ids -> all that it has of these concepts

    `local` marks names that were added since the knowledge base was built.

    Example: spacy sapbert kb show models/kb C0027051
    """
    from ...kb.edits.dump import COLUMNS, iter_names
    from ...kb.knowledge_base import load_kb

    opened = load_kb(kb)
    places = [COLUMNS.index(column) for column in NAMES]
    concepts = [opened[cui] for cui in cuis]
    if as_json:
        listed = [
            {**concept_to_json(each), "children": opened.children(each.cui)}
            for each in concepts
        ]
        typer.echo(format_json(listed))
        return
    for concept in concepts:
        msg.text(f"{concept.cui} {concept.name}")
        names = [[row[at] for at in places] for row in iter_names(opened, [concept])]
        msg.table(names, header=NAMES, divider=True)
        msg.table(list_rows(opened, concept))


@kb_app.command("dump")
def dump(
    kb: KbName,
    output: Path = typer.Option(
        ..., "--output", "-o", help="concepts.jsonl, .jsonl.gz or .csv to write."
    ),
    local: bool = typer.Option(
        False, "--local", help="Only what `kb add` added, for `kb add` to another one."
    ),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """kb/ -> its concepts, with the names that `kb add` added

    JSONL is what `concepts` writes and `kb build` reads; CSV has a row for each name.
    Annotated mentions that were taught are left out, since they are of documents.

    Example: spacy sapbert kb dump models/kb -o concepts.jsonl

    Example: spacy sapbert kb dump models/kb --local -o ward.jsonl
    """
    from ...kb.edits.dump import COLUMNS, iter_concepts, iter_local_concepts, iter_names
    from ...kb.knowledge_base import load_kb

    check_outputs(output, force=force)
    if not output.name.endswith((*JSONL, *CSV)):
        raise SapbertError(
            "E110",
            f"Expected a file that ends with one of {[*JSONL, *CSV]}, but got "
            f"{output}. Rename it.",
        )
    opened = load_kb(kb)
    concepts = iter_local_concepts(opened) if local else iter_concepts(opened)
    with show_progress(concepts, unit="concepts", quiet=quiet) as shown:
        if output.name.endswith(CSV):
            write_table(output, COLUMNS, iter_names(opened, shown))
        else:
            write_concepts(output, shown)
    if not quiet:
        msg.good(f"Wrote {output}")
