"""Docs whose entities have concepts → a knowledge base that has learned from them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from spacy.tokens import Doc

from ..formats.gold import NO_ID
from ..kb.teaching.documents import AnnotatedDocument, AnnotatedMention
from .abbreviation_detector import find_long_form
from .schwartz_hearst import find_long_forms

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase
    from ..kb.teaching.teach import TeachingReport

Mention = tuple[str, list[list[str]]]  # text, ids of each part


def annotate(
    source: str, text: str, mentions: Iterable[Mention], *, id: str = ""
) -> AnnotatedDocument:
    """Return an annotated document; abbreviations that it defines become long forms."""
    long_forms = find_long_forms(text) if text else {}
    annotated: list[AnnotatedMention] = []
    for mention, parts in mentions:
        read = find_long_form(mention, long_forms) or " ".join(mention.split())
        annotated.append(AnnotatedMention(read, parts))
    return AnnotatedDocument(source, text, annotated, id)


def read_annotations(doc: Doc, spans_key: str | None) -> list[Mention]:
    """Return the spans that have an id; a group of `convert` has all ids in `attrs`."""
    group = doc.spans.get(spans_key) if spans_key is not None else None
    spans = doc.ents if spans_key is None else group or ()
    texts = [span.text for span in spans]
    if group is not None and len(group.attrs.get("ids", ())) == len(texts):
        return list(zip(texts, group.attrs["ids"], strict=True))
    ids = [span.kb_id_ for span in spans]
    return [
        (text, [] if cui in NO_ID else [[cui]])
        for text, cui in zip(texts, ids, strict=True)
        if cui
    ]


def annotate_docs(
    docs: Iterable[Doc], *, source: str = "", spans_key: str | None = None
) -> Iterator[AnnotatedDocument]:
    for doc in docs:
        yield annotate(source, doc.text, read_annotations(doc, spans_key))


def teach(
    kb: "KnowledgeBase",
    docs: Iterable[Doc],
    *,
    spans_key: str | None = None,
    output: Path | None = None,
    add: bool = False,
    force: bool = False,
    progress: bool = False,
) -> "tuple[KnowledgeBase, TeachingReport]":
    """Teach a knowledge base with Docs whose entities have concepts.

    Args:
        kb: The knowledge base; the object itself does not change.
        docs: Entities with a `kb_id_`: an id of the knowledge base, or `NIL`. Others
            are not used. No text is kept but the mentions.
        spans_key: A span group; None = the entities.
        output: A folder for the new version; None = the folder of `kb`.
        add: What it has learned from other documents counts further on.
        force: Replace `output`, and change the knowledge base even if nothing gets
            better.
        progress: Show progress bars.

    Returns:
        The new version, or `kb` if it was not changed; and the report.

    Examples:
        >>> path = Path("assets/sample/annotated.txt")
        >>> docs = [doc for _, doc in read_docs(path, spacy.blank("en"))]
        >>> taught, report = teach(kb, docs, spans_key="gold", force=True)
        >>> taught.manifest.taught.mentions > 200
        True
    """
    from ..kb.teaching.teach import teach_documents

    documents = annotate_docs(docs, spans_key=spans_key)
    return teach_documents(
        kb, documents, output=output, add=add, force=force, progress=progress
    )
