"""Decisions → annotated files, and documents to teach."""

import io
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...formats.entities import LinkedDoc, LinkedEntity, describe_mention
from ...formats.format_table import list_formats, load_writer
from ...formats.gold import NIL, GoldDocument, GoldMention
from ...kb.knowledge_base import KnowledgeBase
from ...pipeline.teaching import annotate
from ..problems import check_format
from .agreement import list_agreed
from .decisions import AGREED, OPEN, Decision
from .store import ReviewedDocument, ReviewStore

SOURCE = "reviews"  # of what is taught


def list_exports() -> dict[str, tuple[str, str]]:
    """Return the formats of decisions: their media types, and endings of files."""
    return {
        name: (format.media, ".zip" if format.folder else [*format.suffixes, ""][0])
        for name, format in list_formats("media").items()
    }


def list_answers(
    store: ReviewStore, reviewer: str | None
) -> Iterable[tuple[ReviewedDocument, str, list[Decision]]]:
    """Return the decisions of each document and reviewer, also if it is only done.

    Args:
        reviewer: Of whom; `AGREED` = what holds; None = of all, one by one.
    """
    if reviewer == AGREED:
        return ((document, AGREED, held) for document, held in list_agreed(store))
    found: dict[str, dict[str, list[Decision]]] = {
        id: {name: [] for name in names if reviewer in (None, name)}
        for id, names in store.done().items()
    }
    for one in store.latest(reviewer=reviewer):
        if one.chosen != OPEN:
            own = found.setdefault(one.document, {})
            name = AGREED if one.settles else one.reviewer
            own.setdefault(name, []).append(one)
    return (
        (document, name, decisions)
        for document, own in store.with_documents(found.items())
        for name, decisions in own.items()
    )


def make_entity(
    kb: KnowledgeBase,
    document: ReviewedDocument,
    decision: Decision,
    candidates: Sequence[Any],
) -> LinkedEntity:
    """Return a decision as a linked entity.

    Args:
        candidates: What was found for the mention, as the page shows it.
    """
    chosen = None if decision.chosen == NIL else decision.chosen
    concept = kb.concept(chosen) if chosen else None
    text = document.text[decision.start : decision.end]
    place = decision.start, decision.end, text, decision.label
    entity = describe_mention(*place, chosen)
    if concept is not None:
        entity["name"] = concept.name
        entity["types"], entity["codes"] = concept.types, concept.codes
    entity["note"] = None if chosen else "reviewed"
    ranked: list[Any] = [{**one, "rank": n} for n, one in enumerate(candidates, 1)]
    entity["candidates"] = ranked
    for one in candidates:
        if one["cui"] == chosen:
            entity["score"], entity["probability"] = one["score"], one["probability"]
            entity["tie"] = one["tie"]
    return entity


def make_docs(
    store: ReviewStore, kb: KnowledgeBase, reviewer: str | None
) -> Iterator[LinkedDoc]:
    """Yield the reviewed documents as the formats write them.

    Their ids are the names that they came with, which are made different, and if all
    reviewers are meant, with the reviewer's name.
    """
    names = Counter(one.name for one in store.documents())
    for document, name, decisions in list_answers(store, reviewer):
        shown = document.name
        if names[shown] > 1:
            shown = f"{shown}-{document.id[:8]}"
        if reviewer is None:
            shown = f"{shown}-{name}"
        links = store.links(document.id, kb.manifest.digest) or []
        found = {(one["start"], one["end"]): one["candidates"] for one in links}
        remarks = {(one.start, one.end): one for one in store.remarks(document.id)}
        contexts = {(one["start"], one["end"]): one["context"] for one in links}
        contexts |= {
            place: one.context
            for place, one in remarks.items()
            if one.context is not None
        }
        entities = [
            make_entity(kb, document, one, found.get((one.start, one.end), []))
            for one in decisions
            if one.is_mention
        ]
        for entity in entities:
            place = entity["start"], entity["end"]
            if context := contexts.get(place):
                entity["context"] = context
            if place in remarks and remarks[place].comment:
                entity["comment"] = remarks[place].comment
        yield LinkedDoc(shown, document.text, entities)


def annotate_reviews(store: ReviewStore) -> Iterator[GoldDocument]:
    """Yield what holds in each document, to teach it."""
    for document, decisions in list_agreed(store):
        mentions = [
            GoldMention(
                one.start,
                one.end,
                one.label,
                document.text[one.start : one.end],
                [[one.chosen]] if one.chosen and one.chosen != NIL else [],
                0,
            )
            for one in decisions
            if one.is_mention
        ]
        gold = GoldDocument(document.id, document.text, mentions)
        yield annotate(gold, SOURCE)


def export_reviews(
    store: ReviewStore, kb: KnowledgeBase, format: str, reviewer: str | None
) -> bytes:
    """Return the decisions as an annotated file; a folder as an archive.

    Args:
        format: A key of `list_exports`.
        reviewer: See `list_answers`.

    Raises:
        SapbertError: If the format is unknown, or needs a missing library.
    """
    check_format(format, list_exports())
    file = io.BytesIO()
    writer = load_writer(format)
    docs = make_docs(store, kb, reviewer)
    if not list_formats()[format].folder:
        writer(docs, file)
        return file.getvalue()
    with TemporaryDirectory(prefix="sapbert-reviews-") as folder:
        writer(docs, Path(folder))
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file():
                    archive.write(path, path.relative_to(folder).as_posix())
    return file.getvalue()
