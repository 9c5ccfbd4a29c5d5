"""Why a mention has its concept, or none."""

from dataclasses import dataclass, field

from ..formats.gold import NIL
from ..kb.contradiction import find_contradiction
from ..kb.knowledge_base import KnowledgeBase
from ..kb.search import choose_threshold
from ..linking.candidates import Candidate
from ..linking.difference import compare_texts
from ..linking.filters import Filter
from ..linking.link import EXCLUDED, Linked, label_filter
from ..linking.options import LinkOptions
from ..linking.text import read_mention
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
class DecidedMeaning:
    """What people decided for a text: `documents` of `total` say this concept, or NIL.

    A term of a table, which is a document of its own, counts alone if there is one.
    """

    cui: str
    name: str
    documents: int
    total: int


@dataclass
class Explanation:
    """The link of a mention and the reasons for it.

    Attributes:
        text: The text that was linked: the mention or its long form.
        document: Unambiguous concepts of the other mentions.
        differences: How the text differs from the name of the first candidate, or what
            says that it is another thing.
        threshold: Least probability of a link, of the options or else of the knowledge
            base.
        least_cosine: Least score of a link; None = any.
        decided: What people decided for the text; None = nothing, or they differ. The
            link follows it, unless the filter leaves no name of its concept.
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
    differences: list[str]
    threshold: float
    least_cosine: float | None
    filtered: list[FilteredName]
    decided: DecidedMeaning | None = None
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
        differences=list_differences(kb, context.text, options.filter, linked),
        threshold=choose_threshold(kb.manifest, options),
        least_cosine=options.least_cosine,
        filtered=find_filtered(kb, context, options, linked),
        decided=find_decided(kb, context.text),
    )
    if expected is not None:
        found = locate_expected(kb, context, options, linked, expected)
        explanation.expected = found
        explanation.suggestions = suggest(kb, context, options, linked, found)
    return explanation


def find_decided(kb: KnowledgeBase, text: str) -> DecidedMeaning | None:
    (decision,) = kb.searcher.find_decisions([read_mention(text)])
    if decision is None:
        return None
    cui, documents, total = decision
    name = kb.store.names_of_cuis([cui]).get(cui, "")
    return DecidedMeaning(cui or NIL, name, documents, total)


def list_differences(
    kb: KnowledgeBase, text: str, filter: Filter, linked: Linked
) -> list[str]:
    """Return how a text differs from the name of the first candidate."""
    if not linked.candidates:
        return []
    first = linked.candidates[0]
    changes = [*compare_texts(text, first["alias"]).changes]
    if linked.note == EXCLUDED:
        (number,) = kb.store.numbers_of_cuis([first["cui"]]).values()
        words = kb.searcher.agreement
        found = find_contradiction(words, read_mention(text), number, filter)
        changes = [found] if found is not None else changes
    return [str(change) for change in changes]


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
