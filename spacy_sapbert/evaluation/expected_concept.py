"""Where the expected concept of a mention stands, and what may change that."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from ..kb.knowledge_base import KnowledgeBase
from ..linking.candidates import Entry
from ..linking.filters import Filter
from ..linking.link import BROADER, Linked, label_filter
from ..linking.options import LinkOptions
from ..linking.scores import SCORE_DIGITS, round_score
from ..pipeline.annotations import NIL
from .error_causes import is_short_form
from .regression import MentionContext

MAX_K = 1000  # the deepest ranking
MAX_SUGGESTED_K = 50
SLACK = 2 * 10**-SCORE_DIGITS  # by which scores of two searches may differ

# By state: its meaning, and what may link the mention to the expected concept.
STATES: dict[str, tuple[str, str]] = {
    "found": ("it is the linked concept", ""),
    "not_accepted": (
        "it is the first candidate, but it is not accepted",
        "The note is {note}: lower the `threshold` {threshold}, or set `ambiguous = "
        '"link"`. A lower threshold adds wrong links elsewhere.',
    ),
    "tied": (
        "it has the same score as the first candidate",
        "{first} has the name too. Its types are {first_types}, the expected ones are "
        "{types}: if they differ, set `label_types`. If their sources differ, set "
        "`source_rank`. If no mention means {first}, remove the name there: {remove}",
    ),
    "behind": (
        "another concept has a higher score",
        "If the mention is a name of it, add the name: {add}",
    ),
    "missed": (
        "the index does not find it",
        "Set a larger `k` than {k}, or build the knowledge base with a larger `ef` or "
        "with `--backend exact`.",
    ),
    "filtered": ("the filter removes it", "Change {fields}: its types are {types}."),
    "removed": (
        "it was removed from the knowledge base",
        "Add it again with all its names: {add}",
    ),
    "unknown": (
        "it is not in the knowledge base",
        "Check the id, or add the concept with all its names: {add}",
    ),
    "unreadable": (
        "the encoder cannot read any of its names",
        "Add a name that the encoder can read: {add}",
    ),
    "not_searched": (
        "the mention cannot be searched",
        "The encoder cannot read the mention. Mark another text.",
    ),
}


@dataclass
class Expected:
    """The concept that a mention should have.

    Attributes:
        given: Its id, which may be retired; "NIL" for no concept.
        state: One of `STATES`.
        rank: Rank among the first 1,000 concepts.
        alias: Its nearest name; `score` is the score of this name.
        filtered_by: The fields of the filter that remove it.
        relation: What the first candidate is to it: "parent", "child" or "sibling".
    """

    given: str
    state: str
    cui: str | None = None
    name: str | None = None
    types: list[str] = field(default_factory=list)
    rank: int | None = None
    alias: str | None = None
    score: float | None = None
    filtered_by: list[str] = field(default_factory=list)
    relation: str | None = None


def rejecting_fields(
    kb: KnowledgeBase, filter: Filter, entries: Sequence[Entry]
) -> list[str]:
    """Return the fields of a filter that remove all of some names."""
    rejecting: list[str] = []
    for each in fields(filter):
        alone = Filter(**{each.name: getattr(filter, each.name)})
        if alone and not any(map(kb.resolve_filter(alone).matches, entries)):
            rejecting.append(each.name)
    return rejecting


def link_in_context(
    kb: KnowledgeBase, context: MentionContext, options: LinkOptions
) -> list[Linked]:
    """Link a mention and the others of its document; the mention is the first."""
    texts, labels = zip((context.text, context.label), *context.others, strict=True)
    return kb.link(texts, labels=labels, documents=[0] * len(texts), options=options)


def locate_expected(
    kb: KnowledgeBase,
    context: MentionContext,
    options: LinkOptions,
    linked: Linked,
    given: str,
) -> Expected:
    """Find where the expected concept stands.

    Args:
        given: Its id, which may be retired; "NIL" for no concept.
    """
    if given == NIL:
        return Expected(given, "behind" if linked.cui else "found")
    concept = kb.concept(given)
    if concept is None:
        old = kb.base_store().concept(given)
        if old is None:
            return Expected(given, "unknown")
        return Expected(given, "removed", old.cui, old.name, old.types)
    expected = Expected(given, "behind", concept.cui, concept.name, concept.types)
    entries = kb.store.entries_of(concept.cui)
    if linked.note in ("empty", "no_vector"):
        expected.state = "not_searched"
    elif not entries:
        expected.state = "unreadable"
    else:
        if filter := label_filter(context.label, options):
            kept = [e for e in entries if kb.resolve_filter(filter).matches(e)]
            expected.filtered_by = [] if kept else rejecting_fields(kb, filter, entries)
            entries = kept or entries
        english = options.filter.may_be_english
        (vector,) = kb.embed([context.text], variants=english).vectors
        scores = kb.vectors(np.array([entry.row for entry in entries])) @ vector
        expected.alias = entries[int(np.argmax(scores))].alias
        expected.score = round_score(scores.max())
        expected.state = rank_expected(kb, context, options, linked, expected)
    if linked.candidates and linked.candidates[0]["cui"] != concept.cui:
        first = linked.candidates[0]["cui"]
        (expected.relation,) = kb.searcher.relate(concept.cui, [first])
    if linked.cui == concept.cui:
        expected.state = "found"
    return expected


def rank_expected(
    kb: KnowledgeBase,
    context: MentionContext,
    options: LinkOptions,
    linked: Linked,
    expected: Expected,
) -> str:
    """Find the rank of a concept that can be searched, and return its state."""
    if expected.filtered_by:
        return "filtered"
    candidates = linked.candidates
    if not any(candidate["cui"] == expected.cui for candidate in candidates):
        deep = replace(options, k=MAX_K)
        candidates = link_in_context(kb, context, deep)[0].candidates
    own = next((one for one in candidates if one["cui"] == expected.cui), None)
    if own is None:
        last = candidates[-1]["score"] if len(candidates) >= MAX_K else -1.0
        return "missed" if (expected.score or 0.0) > last + SLACK else "behind"
    expected.rank, expected.alias = own["rank"], own["alias"]
    if own["rank"] == 1:
        return "not_accepted"
    tied = candidates[0]["tie"] and own["score"] == candidates[0]["score"]
    return "tied" if tied else "behind"


def suggest(
    kb: KnowledgeBase,
    context: MentionContext,
    options: LinkOptions,
    linked: Linked,
    expected: Expected,
) -> list[str]:
    """Suggest what may link a mention to the expected concept, in words."""
    if expected.state == "found":
        return []
    first = linked.candidates[0] if linked.candidates else None
    if expected.given == NIL:
        return suggest_nil(linked)
    threshold = options.threshold
    cui, folder = expected.cui or expected.given, str(kb.folder)
    gone = expected.state == "removed" and expected.name
    add = ["add", folder, "--cui", cui, "--alias", gone or context.text]
    remove = ["remove", folder]
    if first:
        many = len(kb[first["cui"]].aliases) > 1
        remove += [first["cui"], *(["--alias", first["alias"]] if many else [])]
    values = {
        "add": shlex.join(["spacy", "sapbert", "kb", *add]),
        "remove": shlex.join(["spacy", "sapbert", "kb", *remove]),
        "first": f"{first['cui']} ({first['name']})" if first else "",
        "first_types": (first and ", ".join(first["types"])) or "unknown",
        "types": ", ".join(expected.types) or "unknown",
        "fields": " and ".join(f"`{name}`" for name in expected.filtered_by),
        "threshold": kb.manifest.threshold if threshold is None else threshold,
        "note": linked.note,
        "k": options.k,
    }
    states = [expected.state]
    if expected.state in ("behind", "missed") and first and first["score"] == 1:
        states.insert(0, "tied")  # the mention is a name of another concept
    if expected.state in ("missed", "not_accepted") and expected.score != 1:
        states.append("behind")
    found = [STATES[state][1].format(**values) for state in states]
    if context.defined and not context.long_form:
        (linked,) = kb.link([context.defined], labels=[context.label], options=options)
        found.insert(
            0,
            f'The document defines it as "{context.defined}", but no component uses '
            "that. Add `sapbert_abbreviations` to the pipeline, before the linker: its "
            f"concept is then {linked.cui or NIL}.",
        )
    elif is_short_form(context.mention) and not context.long_form:
        found.append(
            "It looks like an abbreviation. If the document defines it, link the whole "
            "document with the component `sapbert_abbreviations`."
        )
    if kb.embed([context.text]).truncated[0]:
        found.append("It is longer than the encoder reads. Mark a shorter mention.")
    if options.k < (expected.rank or 0) <= MAX_SUGGESTED_K:
        found.append(f"With `k = {expected.rank}` it is the last candidate.")
    return found


def suggest_nil(linked: Linked) -> list[str]:
    """Suggest what may leave a mention without a concept."""
    if linked.note == BROADER:
        return ["Set `broader = false`."]
    first = linked.candidates[0]
    found = [f"Set a `threshold` above {first['score']}: other links are lost too."]
    if first["tie"] == "id":
        found.append('Set `ambiguous = "nil"`: no evidence breaks the tie.')
    return [*found, f"Add {first['cui']} to `filter.deny`, if no mention means it."]
