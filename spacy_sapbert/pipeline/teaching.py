"""Docs whose entities have concepts → a knowledge base that has learned from them."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from spacy.tokens import Doc

from ..formats.gold import GoldDocument
from ..formats.gold_docs import make_gold
from ..linking.schwartz_hearst import find_long_forms
from .abbreviation_detector import find_long_form

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase
    from ..kb.teaching.teach import TeachingReport


def annotate(document: GoldDocument, source: str = "") -> GoldDocument:
    """Return a document to teach: abbreviations that it defines become long forms."""
    long_forms = find_long_forms(document.text) if document.text else {}
    mentions = [
        mention._replace(
            mention=find_long_form(mention.mention, long_forms)
            or " ".join(mention.mention.split())
        )
        for mention in document.mentions
    ]
    return document._replace(source=source, mentions=mentions)


def teach(
    kb: "KnowledgeBase",
    docs: Iterable[Doc],
    *,
    spans_key: str | None = None,
    output: Path | None = None,
    add: bool = True,
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
        add: What it has learned from other documents counts further on; False = it
            starts anew.
        force: Replace `output`, and use mentions as names even if fewer answers to
            other mentions are right.
        progress: Show progress bars.

    Returns:
        The new version, or `kb` if it learned nothing new; and the report.

    Examples:
        >>> path = Path("assets/sample/annotated.txt")
        >>> docs = [doc for _, doc in read_docs(path, spacy.blank("en"))]
        >>> taught, report = teach(kb, docs, spans_key="gold", force=True)
        >>> taught.manifest.taught.mentions > 200
        True
    """
    from ..kb.teaching.teach import teach_documents

    documents = (annotate(make_gold(doc, spans_key=spans_key)) for doc in docs)
    return teach_documents(
        kb, documents, output=output, add=add, force=force, progress=progress
    )
