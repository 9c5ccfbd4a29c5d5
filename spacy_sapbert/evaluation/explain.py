"""Why a mention has its concept, or none."""

from dataclasses import dataclass, field, replace

import numpy as np

from ..kb.indexes.exact import search_rows
from ..kb.knowledge_base import KnowledgeBase
from ..linking.candidates import Candidate
from ..linking.filters import Filter
from ..linking.link import BROADER, Linked, label_filter
from ..linking.options import LinkOptions
from ..linking.ranking import SCORE_DIGITS, order_entries, rank_concepts
from .expected_concept import (
    MAX_K,
    SLACK,
    Expected,
    locate_expected,
    rejecting_fields,
    suggest,
)
from .regression import MentionContext

EXACT_ROWS = 256  # rows to compare with the index


@dataclass
class UnusedName:
    """A name that was not found, and the fields of the filter that remove it."""

    cui: str
    name: str
    alias: str
    score: float
    filtered_by: list[str] = field(default_factory=list)


@dataclass
class Explanation:
    """The link of a mention and the reasons for it.

    text (str): The text that was linked: the mention or its long form.
    defined (str | None): The long form that the document defines.
    document (list[str]): Unambiguous concepts of the other mentions.
    candidates (list[Candidate]): As the linker writes them.
    threshold (float | None): Of the options, or else of the knowledge base.
    broader (str | None): Name of the broader concept that the mention is linked to.
    filtered (list[UnusedName]): Removed by the filter, with at least the first score.
    missed (list[UnusedName] | None): Found by exact search only; None = not searched.
    suggestions (list[str]): What may link the mention to the expected concept.
    """

    mention: str
    label: str
    text: str
    defined: str | None
    truncated: bool
    document: list[str]
    cui: str | None
    note: str | None
    candidates: list[Candidate]
    threshold: float | None
    broader: str | None
    filtered: list[UnusedName]
    missed: list[UnusedName] | None
    expected: Expected | None = None
    suggestions: list[str] = field(default_factory=list)


def explain_mention(
    kb: KnowledgeBase,
    context: MentionContext,
    *,
    options: LinkOptions,
    expected: str | None = None,
    exact: bool = True,
) -> Explanation:
    """Explain why a mention has its concept, or none.

    expected (str | None): Id of the concept that it should have; "NIL" for none.
    exact (bool): Compare the mention with all names, which takes seconds for millions.
    RAISES (SapbertError): If an option is not possible.
    """
    linked, *others = link_in_context(kb, context, options)
    embedded = kb.embed([context.text])
    vector = None if linked.note in ("empty", "no_vector") else embedded.vectors[0]
    broader = kb.concept(linked.cui or "") if linked.note == BROADER else None
    compare = exact and vector is not None and options.fusion is None
    clear = [one.accepted[0] for one in others if one.accepted]
    filter, threshold = label_filter(context.label, options), options.threshold
    explanation = Explanation(
        mention=context.mention,
        label=context.label,
        text=context.text,
        defined=context.defined,
        truncated=bool(embedded.truncated[0]),
        document=sorted({first["cui"] for first in clear if not first["tie"]}),
        cui=linked.cui,
        note=linked.note,
        candidates=linked.candidates,
        threshold=kb.manifest.threshold if threshold is None else threshold,
        broader=broader.name if broader else None,
        filtered=find_filtered(kb, context, options, filter, linked),
        missed=find_missed(kb, vector, options, filter, linked) if compare else None,
    )
    if expected is not None:
        deep = replace(options, k=MAX_K)
        found = locate_expected(
            kb,
            expected,
            linked,
            vector,
            filter,
            lambda: link_in_context(kb, context, deep)[0].candidates,
        )
        explanation.expected = found
        explanation.suggestions = suggest(kb, context, options, linked, found)
    return explanation


def link_in_context(
    kb: KnowledgeBase, context: MentionContext, options: LinkOptions
) -> list[Linked]:
    """Link a mention and the others of its document; the mention is the first."""
    texts, labels = zip((context.text, context.label), *context.others, strict=True)
    return kb.link(texts, labels=labels, documents=[0] * len(texts), options=options)


def find_filtered(
    kb: KnowledgeBase,
    context: MentionContext,
    options: LinkOptions,
    filter: Filter,
    linked: Linked,
) -> list[UnusedName]:
    """Find what the filter removes with at least the score of the first candidate."""
    if not filter:
        return []
    free = replace(options, filter=Filter(), label_types={})
    least = linked.candidates[0]["score"] if linked.candidates else -1.0
    names: list[UnusedName] = []
    for found in link_in_context(kb, context, free)[0].candidates:
        cui, alias, score = found["cui"], found["alias"], found["score"]
        entries = [e for e in kb.store.entries_of(cui) if e.alias == alias]
        by = rejecting_fields(kb, filter, entries)
        if by and score >= least:
            names.append(UnusedName(cui, found["name"], alias, score, by))
    return names


def find_missed(
    kb: KnowledgeBase,
    vector: np.ndarray | None,
    options: LinkOptions,
    filter: Filter,
    linked: Linked,
) -> list[UnusedName]:
    """Find concepts that exact search finds and the index does not, by cosine."""
    filtered = kb.resolve_filter(filter) if filter else None
    allowed = np.arange(kb.rows) if filtered is None else filtered.rows
    if vector is None or not len(allowed):
        return []
    found, scores = search_rows(kb.vectors, allowed, vector[None], EXACT_ROWS)
    entries = kb.entries(found[0].tolist())
    if filtered is not None:
        entries = filtered.filter_entries(entries)
    ranked = order_entries(found[0].tolist(), scores[0].tolist(), entries)
    known = {one["cui"]: one["score"] for one in linked.candidates}
    last = linked.candidates[-1]["score"] if len(known) >= options.k else -1.0
    return [
        UnusedName(entry.cui, entry.name, entry.alias, round(score, SCORE_DIGITS))
        for score, entry, _ in rank_concepts(ranked, k=options.k)
        if score > known.get(entry.cui, last) + SLACK
    ]
