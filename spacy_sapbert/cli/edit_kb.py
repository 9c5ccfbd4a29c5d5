"""`spacy sapbert kb add`, `remove`, `set` …: change a knowledge base in place."""

from pathlib import Path

import typer

from ..errors import Errors, SapbertError
from ..system.terminal import msg
from ..vocabularies.concepts import Concept, read_concepts
from .kb import describe_manifest, kb_app, parse_settings, warn_of_recall


def list_concepts(
    path: Path | None, cui: str | None, aliases: list[str], types: list[str]
) -> list[Concept]:
    """Return the concepts of a concepts.jsonl, or the one of the options.

    RAISES (SapbertError): If there is neither or both.
    """
    given = cui is not None and bool(aliases)
    if (path is None) != given or (path is not None and (cui or aliases or types)):
        raise SapbertError(Errors.E341)
    if path is not None:
        return list(read_concepts(path))
    return [Concept(str(cui), list(dict.fromkeys(aliases)), types=types)]


@kb_app.command("add")
def add(
    kb: str = typer.Argument(..., help="Folder or name of the knowledge base."),
    concepts: Path | None = typer.Argument(None, help="concepts.jsonl"),
    cui: str | None = typer.Option(None, help="Id of one concept, new or known."),
    alias: list[str] = typer.Option([], help="A name of it; may be repeated."),
    type: list[str] = typer.Option([], help="A semantic type; may be repeated."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """concepts.jsonl + kb/ -> kb/ with these concepts

    A concept with a known id gets the names; its preferred name does not change.

    Example: spacy sapbert kb add models/kb --cui C0027051 --alias "WARD MI"

    Example: spacy sapbert kb add models/kb local.jsonl
    """
    from ..kb.overlay import add_concepts, load_kb_to_edit

    given = list_concepts(concepts, cui, alias, type)
    opened = add_concepts(load_kb_to_edit(kb), given)
    if not quiet:
        msg.good(f"Added {len(given):,} concepts to {opened.folder}")


@kb_app.command("discard-edits")
def discard(
    kb: str = typer.Argument(..., help="Folder or name of the knowledge base."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """kb/ -> kb/ as it was built, without what `kb add` and `kb remove` changed

    It also repairs a knowledge base whose edits are damaged.

    Example: spacy sapbert kb discard-edits models/kb
    """
    from ..kb.overlay import discard_edits

    opened = discard_edits(kb)
    if not quiet:
        msg.good(f"Removed all edits from {opened.folder}")


@kb_app.command("remove")
def remove(
    kb: str = typer.Argument(..., help="Folder or name of the knowledge base."),
    cuis: list[str] = typer.Argument(..., metavar="CUI...", help="Ids of concepts."),
    alias: str | None = typer.Option(
        None, help="Remove this name only. [the whole concept]"
    ),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """ids + kb/ -> kb/ without these concepts

    `kb add` adds a removed concept or name again.

    Example: spacy sapbert kb remove models/kb C0027051 --alias "MI"
    """
    from ..kb.overlay import load_kb_to_edit, remove_concepts

    opened = remove_concepts(load_kb_to_edit(kb), cuis, alias=alias)
    if not quiet:
        what = "concepts" if alias is None else "names"
        msg.good(f"Removed {len(cuis):,} {what} from {opened.folder}")


@kb_app.command("set")
def set_index(
    kb: Path = typer.Argument(..., help="Folder of the knowledge base."),
    settings: list[str] = typer.Argument(
        ..., metavar="NAME=NUMBER...", help="Settings of the index, like ef=200."
    ),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """kb/ -> kb/ with other settings of its index

    Only settings that need no new build can change: `ef` of hnsw, the number of names
    compared in a search. More find more, and take longer.

    Example: spacy sapbert kb set models/kb ef=200
    """
    from ..kb.build import change_index

    manifest = change_index(kb, parse_settings(settings))
    if not quiet:
        msg.table(describe_manifest(manifest))
        warn_of_recall(kb, manifest)
        msg.good(f"Wrote {kb}")


@kb_app.command("export")
def export(
    kb: Path = typer.Argument(..., help="Folder of the knowledge base."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """kb/ -> kb/ whose encoder OpenVINO can run as well

    The index does not change. Needs `pip install openvino`.

    Example: spacy sapbert kb export models/kb
    """
    from ..kb.build import export_kb

    cosine = export_kb(kb)
    if not quiet:
        msg.good(f"Wrote {kb}", f"Cosine to the encoder's own vectors: {cosine:.6f}")
