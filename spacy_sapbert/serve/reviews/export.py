"""Decisions → annotated files."""

import io
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from ...formats.convert import write_table
from ...formats.entities import LinkedDoc, LinkedEntity
from ...formats.gold import NIL, GoldDocument, GoldMention
from ...formats.registry import list_formats, load_writer
from ...kb.knowledge_base import KnowledgeBase
from ..problems import check_format
from .agreement import judge_places
from .decisions import AGREED, OPEN, Decision
from .store import ReviewedDocument, ReviewStore

TSV = "tsv"


def list_exports() -> dict[str, tuple[str, str]]:
    """Return the formats of decisions: their media types, and endings of files."""
    media = {
        name: (format.media, ".zip" if format.folder else "".join(format.suffixes[:1]))
        for name, format in list_formats("media").items()
    }
    return {**media, TSV: ("text/tab-separated-values; charset=utf-8", ".tsv")}


def group_decisions(
    store: ReviewStore, reviewer: str | None
) -> Iterator[tuple[str, ReviewedDocument, list[Decision]]]:
    """Yield each document with the mentions that a reviewer says it has, and an id.

    A document without mentions is there if the reviewer has done it.

    Args:
        reviewer: None = all, and each has documents of its own, as what settles has;
            `AGREED` = what holds, see `judge_places`. A document is then left out as
            long as nothing in it holds, unless it was done and nobody differs.
    """
    done = store.done()
    groups: dict[tuple[str, str], list[Decision]] = {}
    if reviewer == AGREED:
        for id, judged in judge_places(store.latest(), done):
            held = [(one, agreed) for one, _, agreed, _ in judged if agreed is not None]
            if held:
                groups[id, ""] = [
                    one.model_copy(update={"chosen": agreed}) for one, agreed in held
                ]
            else:
                done.pop(id, None)
        groups |= {(id, ""): [] for id in done if (id, "") not in groups}
    else:
        for decision in store.latest(reviewer=reviewer):
            name = AGREED if decision.settles else decision.reviewer
            if decision.chosen != OPEN:
                groups.setdefault((decision.document, name), []).append(decision)
        for id, names in done.items():
            for name in names:
                if reviewer in (None, name):
                    groups.setdefault((id, name), [])
    known_names = Counter(one.name for one in store.documents())
    for (id, name), decisions in groups.items():
        document = store.document(id)
        if document is not None:
            known_by = document.name
            if known_names[known_by] > 1:
                known_by = f"{known_by}-{id[:8]}"
            shown = known_by if reviewer is not None else f"{known_by}-{name}"
            yield shown, document, [one for one in decisions if one.is_mention]


def make_entity(
    kb: KnowledgeBase, document: ReviewedDocument, decision: Decision
) -> LinkedEntity:
    """Return a decision as a linked entity."""
    chosen = None if decision.chosen == NIL else decision.chosen
    concept = kb.concept(chosen) if chosen else None
    return {
        "start": decision.start,
        "end": decision.end,
        "text": document.text[decision.start : decision.end],
        "label": decision.label,
        "cui": chosen,
        "name": concept.name if concept else None,
        "score": None,
        "probability": None,
        "types": concept.types if concept else [],
        "codes": concept.codes if concept else {},
        "candidates": [],
        "note": None if chosen else "reviewed",
        "tie": None,
    }


def make_docs(
    store: ReviewStore, kb: KnowledgeBase, reviewer: str | None
) -> Iterator[LinkedDoc]:
    """Yield the reviewed documents as the formats write them."""
    for id, document, decisions in group_decisions(store, reviewer):
        entities = [make_entity(kb, document, one) for one in decisions]
        yield LinkedDoc(id, document.text, entities)


def make_gold(
    id: str, document: ReviewedDocument, decisions: Iterable[Decision]
) -> GoldDocument:
    """Return a reviewed document as an annotated one."""
    mentions = [
        GoldMention(
            one.start,
            one.end,
            one.label,
            document.text[one.start : one.end],
            [] if one.chosen in (None, NIL) else [[one.chosen]],
            0,
        )
        for one in decisions
    ]
    return GoldDocument(id, document.text, mentions)


def export_reviews(
    store: ReviewStore, kb: KnowledgeBase, format: str, reviewer: str | None
) -> bytes:
    """Return the decisions as an annotated file; a folder as an archive.

    Args:
        format: A key of `list_exports`.
        reviewer: See `group_decisions`; the ids are the names that documents came
            with, and if it is None those of reviewers too.

    Raises:
        SapbertError: If the format is unknown, or needs a missing library.
    """
    check_format(format, list_exports())
    file = io.BytesIO()
    if format == TSV:
        golds = (make_gold(*group) for group in group_decisions(store, reviewer))
        write_table(golds, file, Counter())
        return file.getvalue()
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
