"""`spacy sapbert kb add`, `remove`, `set` …: change a knowledge base in place."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ...errors import SapbertError
from ...io.progress import format_count
from ...io.terminal import msg
from ...kb.folder.publication import read_only_kb
from ...kb.folder.versions import find_kb, read_version
from ...linking.settings_base import unknown_setting
from ...vocabularies.concepts import Concept, check_concept, read_concepts
from ..options import Device, KbFolder, Quiet, open_kb
from .app import kb_app, parse_numbers
from .build import warn_of_recall
from .description import describe_manifest

if TYPE_CHECKING:
    from ...kb.knowledge_base import KnowledgeBase


THRESHOLD = "threshold"


def list_concepts(
    path: Path | None, cui: str | None, aliases: list[str], types: list[str]
) -> list[Concept]:
    """Return the concepts of a concepts.jsonl, or the one of the options."""
    given = cui is not None and bool(aliases)
    if (path is None) != given or (path is not None and (cui or aliases or types)):
        raise SapbertError(
            "E423",
            "Expected either a concepts.jsonl, or `--cui` with `--alias`, but got "
            "neither or both. Name one of them.",
        )
    if path is not None:
        concepts = list(read_concepts(path))
        if not concepts:
            raise SapbertError(
                "E106",
                f"Expected at least one concept in {path}, but got none. Write one a "
                "line, as `spacy sapbert concepts` does.",
            )
        return concepts
    return [Concept(str(cui), list(dict.fromkeys(aliases)), types=types)]


def check_folder(kb: Path) -> Path:
    """Return a folder of a knowledge base; the files of an installed one are pip's."""
    if not kb.is_dir():
        raise read_only_kb(path=find_kb(kb))
    return kb


def check_known(kb: "KnowledgeBase", cui: str) -> None:
    """Check that a knowledge base has a concept; a retired id is one of it."""
    if cui in kb:
        return
    other = kb.other_prefix(cui)
    hint = f" It has {other}." if other else ""
    raise SapbertError(
        "E336",
        f"Expected `--cui` to be the id of a concept of {kb.folder}, but it has no "
        f"{repr(cui)}.{hint} Correct the id, or pass `--new` to add a concept with it.",
    )


def list_known_names(kb: "KnowledgeBase", concept: Concept) -> set[str]:
    """Return those names of a concept that the knowledge base has for it."""
    known = kb.concept(concept.cui)
    return set() if known is None else {*known.aliases} & {*concept.aliases}


@kb_app.command("add")
def add(
    kb: KbFolder,
    concepts: Path | None = typer.Argument(None, help="concepts.jsonl"),
    cui: str | None = typer.Option(None, help="Id of one concept."),
    alias: list[str] = typer.Option([], help="A name of it; may be repeated."),
    type: list[str] = typer.Option([], help="A semantic type; may be repeated."),
    new: bool = typer.Option(
        False, "--new", help="The id of `--cui` may be new: add a concept with it."
    ),
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """concepts.jsonl + kb/ -> kb/ with these concepts

    A concept with a known id gets the names; its preferred name does not change.

    Example: spacy sapbert kb add models/kb --cui C0027051 --alias "WARD MI"

    Example: spacy sapbert kb add models/kb --new --cui WARD-1 --alias "bay 3 fever"

    Example: spacy sapbert kb add models/kb local.jsonl
    """
    from ...kb.edits.change import add_concepts

    given = list_concepts(concepts, cui, alias, type)
    opened = open_kb(check_folder(kb), device)
    if concepts is None and not new:
        check_concept(given[0])
        check_known(opened, given[0].cui)
    names = sum(len(concept.aliases) for concept in given)
    known = sum(map(len, (list_known_names(opened, concept) for concept in given)))
    opened = add_concepts(opened, given)
    if not quiet:
        added = format_count(names - known, "name")
        concepts_given = format_count(len(given), "concept")
        earlier = f"; {format_count(known, 'name')} known before" if known else ""
        msg.good(f"Added {added} of {concepts_given} to {opened.folder}{earlier}")


@kb_app.command("remove")
def remove(
    kb: KbFolder,
    cuis: list[str] = typer.Argument(..., metavar="CUI", help="Ids of concepts."),
    alias: str | None = typer.Option(
        None, help="Remove this name only. [the whole concept]"
    ),
    quiet: Quiet = False,
) -> None:
    """ids + kb/ -> kb/ without these concepts

    `kb add` adds a removed concept or name again.

    Example: spacy sapbert kb remove models/kb C0027051 --alias "MI"
    """
    from ...kb.edits.change import remove_concepts
    from ...kb.knowledge_base import load_kb

    opened = remove_concepts(load_kb(check_folder(kb)), cuis, alias=alias)
    if not quiet:
        what = "concept" if alias is None else "name"
        count = format_count(len(cuis), what)
        msg.good(f"Removed {count} from {opened.folder}")


@kb_app.command("set")
def set_values(
    kb: KbFolder,
    settings: list[str] = typer.Argument(
        ..., metavar="NAME=NUMBER", help="threshold, or a setting of the index."
    ),
    quiet: Quiet = False,
) -> None:
    """kb/ -> kb/ with another threshold or other index settings

    Only settings that need no new build can change: the threshold, the least
    probability of a link (0 = link everything), and `ef` of the index, the number of
    names compared in a search. More find more, and take longer.

    Example: spacy sapbert kb set models/kb ef=200

    Example: spacy sapbert kb set models/kb threshold=0.8
    """
    from ...kb.adjust import change_kb

    folder = check_folder(kb)
    known = [THRESHOLD, *sorted(read_version(folder).manifest.index.settings)]
    index, threshold = [], None
    for setting in settings:
        name, _, number = setting.partition("=")
        if number and name not in known:
            raise unknown_setting(name=name, known=known)
        if name != THRESHOLD:
            index.append(setting)
            continue
        try:
            threshold = float(number)
        except ValueError:
            raise SapbertError(
                "E331",
                f"Expected `{THRESHOLD}` as a number, but got {number!r}. Write it "
                f"like `{THRESHOLD}=0.8`.",
            ) from None
    numbers = parse_numbers(index)
    manifest = change_kb(folder, index=numbers, threshold=threshold)
    if not quiet:
        msg.table(describe_manifest(manifest))
        warn_of_recall(kb, manifest)
        msg.good(f"Wrote {kb}")


@kb_app.command("export-onnx")
def export(
    kb: KbFolder,
    quiet: Quiet = False,
) -> None:
    """kb/ -> kb/ whose encoder ONNX Runtime can run as well

    The index does not change. Needs torch, transformers and onnx.

    Example: spacy sapbert kb export-onnx models/kb
    """
    from ...kb.adjust import export_kb

    cosine = export_kb(check_folder(kb))
    if not quiet:
        msg.good(
            f"ONNX Runtime runs the encoder of {kb}",
            f"Cosine to the encoder's own vectors: {cosine:.6f}",
        )
