"""Where the expected concept of a mention stands, and what may change that."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..formats.gold import NIL
from ..kb.folder.records import Manifest
from ..kb.knowledge_base import KnowledgeBase
from ..kb.search import choose_threshold
from ..linking.candidates import SCORE_DIGITS, Candidate, Entry
from ..linking.certainty import AMBIGUOUS
from ..linking.filters import Filter
from ..linking.link import EXCLUDED, Linked, label_filter
from ..linking.options import LinkOptions
from .diagnose import CAUSES, find_cause, info_finder, is_short_form, score_candidates
from .regression import MentionContext

MAX_K = 1000  # the deepest ranking
MAX_SUGGESTED_K = 50
SLACK = 2 * 10**-SCORE_DIGITS  # by which scores of two searches may differ

MORE_WRONG = "That adds wrong links elsewhere."
ADD = "If the mention is a name of it, add the name: {add}"
NAMESAKE = (
    "{first} has the name too. Its types are {first_types}, the expected ones are "
    "{types}: if they differ, set `label_types`. If their sources differ, set "
    "`source_rank`. If no mention means {first}, remove the name there: {remove}"
)


@dataclass
class Expected:
    """The concept that a mention should have.

    Attributes:
        given: Its id, which may be retired; "NIL" for no concept.
        cause: Why the mention is not linked to it, one of `CAUSES`; None = it is.
        rank: Rank among the first 1,000 concepts.
        alias: Its nearest name; `score` is the score of this name.
        filtered_by: The fields of the filter that remove it.
        relation: What the first candidate is to it: "parent", "child" or "sibling".
    """

    given: str
    cause: str | None
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
    for name, value in filter:
        alone = Filter(**{name: value})
        if alone and not any(map(kb.resolve_filter(alone).matches, entries)):
            rejecting.append(name)
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
    """Find where the concept with an id, which may be retired or "NIL", stands."""
    if given == NIL:
        cause = "decided" if linked.decided else "spurious"
        return Expected(given, cause if linked.cui else None)
    concept = kb.concept(given)
    if concept is None:
        old = kb.base_store().concept(given)
        if old is None:
            return Expected(given, "not covered")
        return Expected(given, "removed", old.cui, old.name, old.types)
    expected = Expected(given, None, concept.cui, concept.name, concept.types)
    entries = kb.store.entries_of(concept.cui)
    filter = label_filter(context.label, options)
    if linked.note in ("empty", "no_vector"):
        expected.cause = "no answer"
    elif not entries:
        expected.cause = "unreadable"
    elif filter and not any(map(kb.resolve_filter(filter).matches, entries)):
        expected.cause = "filtered"
        expected.filtered_by = rejecting_fields(kb, filter, entries)
        found = find_alone(kb, context, options, concept.cui, Filter())
        expected.alias, expected.score = found["alias"], found["score"]
    else:
        expected.cause = rank_expected(kb, context, options, linked, expected)
    if linked.candidates and linked.candidates[0]["cui"] != concept.cui:
        first = linked.candidates[0]["cui"]
        (expected.relation,) = kb.store.relate(concept.cui, [first])
    if linked.decided:
        expected.cause = "decided"
    if linked.cui == concept.cui:
        expected.cause = None
    return expected


def find_alone(
    kb: KnowledgeBase,
    context: MentionContext,
    options: LinkOptions,
    cui: str,
    filter: Filter,
) -> Candidate:
    """Return the candidate that a concept is if no other one may be found."""
    alone = options.replace(filter=filter.replace(allow=[cui]), label_types={})
    (linked,) = kb.link([context.text], options=alone)
    return linked.candidates[0]


def rank_expected(
    kb: KnowledgeBase,
    context: MentionContext,
    options: LinkOptions,
    linked: Linked,
    expected: Expected,
) -> str | None:
    """Find the rank of a concept that can be searched, and return the cause."""
    candidates, cui = linked.candidates, expected.cui or ""
    if not any(candidate["cui"] == cui for candidate in candidates):
        deep = options.replace(k=MAX_K)
        candidates = link_in_context(kb, context, deep)[0].candidates
    found = next((c for c in candidates if c["cui"] == cui), None)
    nearest: frozenset[str] = frozenset()
    if found is not None:
        expected.rank = found["rank"]
    else:
        filter = label_filter(context.label, options)
        found = find_alone(kb, context, options, cui, filter)
        last = candidates[-1]["score"] if len(candidates) >= MAX_K else -1.0
        if found["score"] > last + SLACK:
            nearest = frozenset([cui])
    expected.alias, expected.score = found["alias"], found["score"]
    if expected.rank == 1:
        return "excluded" if linked.note == EXCLUDED else "not accepted"
    ranking, info = score_candidates(candidates), info_finder(kb, {})
    parts = [frozenset([cui])]
    return find_cause(context.text, parts, ranking, info, k=options.k, nearest=nearest)


def suggest(
    kb: KnowledgeBase,
    context: MentionContext,
    options: LinkOptions,
    linked: Linked,
    expected: Expected,
) -> list[str]:
    """Suggest what may link a mention to the expected concept, in words."""
    if expected.cause is None:
        return []
    if expected.cause == "decided":
        return [CAUSES["decided"].advice]
    first = linked.candidates[0] if linked.candidates else None
    if expected.given == NIL:
        return suggest_nil(linked)
    cui, folder = expected.cui or expected.given, str(kb.folder)
    gone = expected.cause == "removed" and expected.name
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
        "threshold": choose_threshold(kb.manifest, options),
        "probability": first and first["probability"],
        "cosines": compare_cosines(first, options.least_cosine),
        "note": linked.note,
    }
    cause = CAUSES[expected.cause]
    advice = cause.advice
    if cause.name == "not accepted" and first:
        advice = name_settings(linked, options, kb.manifest) or advice
    formats = [f"{advice} {cause.detail}"]
    if cause.name not in ("filtered", "no answer"):
        other = first and first["cui"] != expected.cui
        if first and other and (first["score"] == 1 or cause.name == "tie"):
            formats.insert(0, NAMESAKE)
        if expected.score != 1 and "{add}" not in cause.detail:
            formats.append(ADD)
    sentences = [text.format(**values).strip() for text in formats]
    if context.defined and not context.long_form:
        (linked,) = kb.link([context.defined], labels=[context.label], options=options)
        sentences.insert(
            0,
            f'The document defines it as "{context.defined}", but no component uses '
            "that. Add `sapbert_abbreviations` to the pipeline, before the linker: its "
            f"concept is then {linked.cui or NIL}.",
        )
    elif is_short_form(context.mention) and not context.long_form:
        sentences.append(
            "It looks like an abbreviation. If the document defines it, link the whole "
            "document with the component `sapbert_abbreviations`."
        )
    if kb.embed([context.text]).truncated[0]:
        sentences.append("It is longer than the encoder reads. Mark a shorter mention.")
    if options.k < (expected.rank or 0) <= MAX_SUGGESTED_K:
        sentences.append(f"With `k = {expected.rank}` it is the last candidate.")
    return sentences


def name_settings(linked: Linked, options: LinkOptions, manifest: Manifest) -> str:
    """Return which settings left the first candidate out; "" = none of these."""
    if linked.note == AMBIGUOUS:
        return f'Set `ambiguous = "link"`. {MORE_WRONG}'
    if linked.note == "filtered":  # its names are of other concepts
        return CAUSES["filtered"].advice
    if linked.note != "below_threshold":
        return ""
    first, least = linked.candidates[0], options.least_cosine
    is_far = least is not None and first["score"] < least
    is_unlikely = (first["probability"] or 0) < choose_threshold(manifest, options)
    if is_far and is_unlikely:
        return f"Lower the `threshold` and `least_cosine`. {MORE_WRONG}"
    return f"Lower {'`least_cosine`' if is_far else 'the `threshold`'}. {MORE_WRONG}"


def compare_cosines(first: Candidate | None, least: float | None) -> str:
    """Return in words what `least_cosine` asks of the first candidate."""
    if first is None or least is None:
        return ""
    return f"; its score is {first['score']}, `least_cosine` is {least}"


def suggest_nil(linked: Linked) -> list[str]:
    """Suggest what may leave a mention without a concept."""
    first = linked.candidates[0]
    probability = first["probability"]
    sentences = [f"Set a `threshold` above {probability}: other links are lost too."]
    if first["tie"] == "id":
        sentences.append('Set `ambiguous = "nil"`: no evidence breaks the tie.')
    return [*sentences, f"Add {first['cui']} to `filter.deny`, if no mention means it."]
