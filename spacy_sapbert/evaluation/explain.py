"""Why a mention has its concept, or none."""

from dataclasses import dataclass, field

from ..kb.knowledge_base import KnowledgeBase
from ..kb.search import choose_threshold
from ..linking.candidates import Candidate
from ..linking.filters import Filter
from ..linking.link import Linked, label_filter
from ..linking.options import LinkOptions
from .expected_concept import (
    Expected,
    link_in_context,
    locate_expected,
    rejecting_fields,
    suggest,
)
from .regression import MentionContext


@dataclass
class FilteredName:
    """A name and the fields of the filter that remove it."""

    cui: str
    name: str
    alias: str
    score: float
    filtered_by: list[str]


@dataclass
class Explanation:
    """The link of a mention and the reasons for it.

    Attributes:
        text: The text that was linked: the mention or its long form.
        document: Unambiguous concepts of the other mentions.
        threshold: Cosine, of the options or else of the knowledge base; None = none.
        least_probability: Probability that a link must have; None = none.
        filtered: Removed by the filter, with at least the first score.
        suggestions: What may link the mention to the expected concept.
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
    least_probability: float | None
    filtered: list[FilteredName]
    expected: Expected | None = None
    suggestions: list[str] = field(default_factory=list)


def explain_mention(
    kb: KnowledgeBase,
    context: MentionContext,
    *,
    options: LinkOptions,
    expected: str | None = None,
) -> Explanation:
    """Explain why a mention has its concept, or not the expected one; "NIL" = none."""
    linked, *others = link_in_context(kb, context, options)
    threshold = choose_threshold(kb.manifest, options)
    clear = [other.accepted[0] for other in others if other.accepted]
    explanation = Explanation(
        mention=context.mention,
        label=context.label,
        text=context.text,
        defined=context.defined,
        truncated=bool(kb.embed([context.text]).truncated[0]),
        document=sorted({first["cui"] for first in clear if not first["tie"]}),
        cui=linked.cui,
        note=linked.note,
        candidates=linked.candidates,
        threshold=threshold.cosine,
        least_probability=threshold.least_probability,
        filtered=find_filtered(kb, context, options, linked),
    )
    if expected is not None:
        found = locate_expected(kb, context, options, linked, expected)
        explanation.expected = found
        explanation.suggestions = suggest(kb, context, options, linked, found)
    return explanation


def find_filtered(
    kb: KnowledgeBase,
    context: MentionContext,
    options: LinkOptions,
    linked: Linked,
) -> list[FilteredName]:
    """Find what the filter removes with at least the score of the first candidate."""
    filter = label_filter(context.label, options)
    if not filter:
        return []
    free = options.replace(filter=Filter(), label_types={})
    least = linked.candidates[0]["score"] if linked.candidates else -1.0
    names: list[FilteredName] = []
    for candidate in link_in_context(kb, context, free)[0].candidates:
        cui, alias, score = candidate["cui"], candidate["alias"], candidate["score"]
        entries = [e for e in kb.store.entries_of(cui) if e.alias == alias]
        by = rejecting_fields(kb, filter, entries)
        if by and score >= least:
            names.append(FilteredName(cui, candidate["name"], alias, score, by))
    return names
