"""Why a mention has its concept: what was found, what decided, what was left out."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..linking.candidates import SCORE_DIGITS
from ..linking.filters import Filter
from ..linking.link import BROADER, Facts
from ..linking.options import LinkOptions
from .expected_concept import locate_expected
from .suggestions import find_mends
from .trace import (
    ExactSearch,
    Lookup,
    Question,
    look_up,
    named_fields,
    rejecting_fields,
)

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase
    from ..linking.candidates import Hit

Explanation = dict[str, Any]  # plain JSON types only
SLACK = 1e-5  # by which cosines of two ways to search differ
FEWEST_NEAR = 32  # rows looked at for names that were removed
COUNTED = ("allow", "deny")  # fields of a filter that may be long


def explain_mention(
    kb: "KnowledgeBase",
    question: Question,
    *,
    options: LinkOptions,
    expected: str | None = None,
    exact: bool = True,
) -> Explanation:
    """Tell why a mention has its concept, or none.

    kb (KnowledgeBase): The knowledge base.
    question (Question): The mention, and what its document says about it.
    options (LinkOptions): How it is looked up.
    expected (str | None): Id of the concept that it should have; "NIL" for none.
    exact (bool): Compare the mention with all names too, to see what the index missed;
        on millions of names that takes seconds.
    RETURNS (Explanation): Plain JSON types. `cui`, `note` and `candidates` are as the
        linker has them; the candidates tell besides by how much they fall behind the
        first (`margin`), whether they were added to the knowledge base (`local`), and
        in a fusion its `order` and the likeness of characters.
    RAISES (SapbertError): If a setting is not possible.
    """
    lookup = look_up(kb, question, options)
    searched = ExactSearch(kb) if exact and lookup.vector is not None else None
    missed = find_missed(lookup, searched)
    explanation = {
        "mention": question.mention,
        "label": question.label,
        "looked_up": describe_text(lookup),
        "document": {
            "mentions": len(question.others),
            "concepts": sorted(doubtless_concepts(lookup)),
        },
        "settings": describe_settings(lookup),
        "cui": lookup.cui,
        "note": lookup.linked.note,
        "broader": describe_broader(lookup),
        "candidates": list_candidates(lookup),
        "tie": describe_tie(lookup),
        "threshold": describe_threshold(lookup),
        "filter": describe_filter(lookup),
        "index": {"compared": searched is not None, "missed": missed},
        "removed": list_removed(lookup, searched),
        "expected": None,
        "mends": [],
    }
    if expected is not None:
        passed = {hit["cui"] for hit in missed}
        located = locate_expected(lookup, expected, searched, missed=passed)
        explanation["expected"] = located
        explanation["mends"] = find_mends(lookup, located)
    return explanation


def describe_hit(hit: "Hit") -> dict[str, Any]:
    """Write down what a search found."""
    return {
        "cui": hit.entry.cui,
        "name": hit.entry.name,
        "alias": hit.entry.alias,
        "score": hit.score,
    }


def describe_text(lookup: Lookup) -> dict[str, Any]:
    """Tell what the encoder got.

    lookup (Lookup): The answer.
    RETURNS (dict[str, Any]): `text`; `long_form` if that took the place of the mention,
        `defined` the one that the document has; whether it was `cut`; its `wordpieces`,
        and how many of them are `unknown`; whether a name has the same ones.
    """
    tokenizer = lookup.kb.encoder.attrs["engine"].tokenizer
    unknown = tokenizer.unknown_id
    frame = tokenizer.special_ids - {unknown}
    ids = [number for number in lookup.wordpieces if number not in frame]
    return {
        "text": lookup.question.text,
        "long_form": lookup.question.long_form,
        "defined": lookup.question.defined,
        "cut": lookup.cut,
        "wordpieces": [tokenizer.backend.id_to_token(number) for number in ids],
        "unknown": ids.count(unknown),
        "is_name": is_name(lookup),
    }


def is_name(lookup: Lookup) -> bool:
    """Return whether a name has the wordpieces of the mention."""
    from ..kb.store import name_key

    key = name_key(lookup.wordpieces)
    return bool(lookup.wordpieces and lookup.kb.store.rows_of_keys([key]))


def describe_settings(lookup: Lookup) -> dict[str, Any]:
    """Write down the settings that count, but for threshold and filter."""
    options = lookup.options
    return {
        "k": options.k,
        "fusion": options.fusion,
        "ngram_weight": options.ngram_weight,
        "label_types": list(options.label_types.get(lookup.question.label, ())),
        "label_types_use": options.label_types_use,
        "tie_evidence": list(options.tie_evidence),
        "source_rank": list(options.source_rank),
        "ambiguous": options.ambiguous,
        "broader": options.broader,
    }


def describe_broader(lookup: Lookup) -> dict[str, Any] | None:
    """Tell which concept stands for the candidates, and for which of them.

    lookup (Lookup): The answer.
    RETURNS (dict[str, Any] | None): Its `cui` and `name`, and the ids of its
        children among the candidates (`children`); None if the mention has another.
    """
    concept = lookup.kb.concept(lookup.cui or "")
    if lookup.linked.note != BROADER or concept is None:
        return None
    below = {concept.cui, *concept.retired}
    cuis = [candidate["cui"] for candidate in lookup.linked.candidates]
    parents = lookup.kb.store.parents(cuis)
    children = [cui for cui in cuis if not below.isdisjoint(parents.get(cui, ()))]
    return {"cui": concept.cui, "name": concept.name, "children": children}


def list_candidates(lookup: Lookup) -> list[dict[str, Any]]:
    """Return the candidates, and what tells them apart.

    lookup (Lookup): The answer.
    RETURNS (list[dict[str, Any]]): As the linker has them, with `margin`, `local`, and
        in a fusion `order` and `characters`.
    """
    hits = {hit.entry.cui: hit for hit in lookup.hits}
    found = []
    for candidate in lookup.linked.candidates:
        hit, best = hits[candidate["cui"]], lookup.linked.candidates[0]
        more: dict[str, Any] = {
            "margin": round(best["score"] - candidate["score"], SCORE_DIGITS),
            "local": hit.entry.row >= lookup.kb.layers[0].rows,
        }
        if lookup.options.fusion is not None:
            row = np.array([hit.entry.row])
            (alike,) = lookup.kb.contents.ngrams.similarity(
                [lookup.question.text], [row]
            )
            more.update(
                order=hit.order, characters=round(float(alike[0]), SCORE_DIGITS)
            )
        found.append({**candidate, **more})
    return found


def doubtless_concepts(lookup: Lookup) -> set[str]:
    """Return what the other mentions mean without doubt; see `linking`."""
    return {
        one.candidates[0]["cui"]
        for one in lookup.others
        if one.candidates
        and one.candidates[0]["tie"] is None
        and one.note in (None, "cut")
    }


def describe_tie(lookup: Lookup) -> dict[str, Any] | None:
    """Tell which concepts are as near as the best, and what put it before them.

    lookup (Lookup): The answer.
    RETURNS (dict[str, Any] | None): `decided_by`, as a candidate has it, and of each
        of the `concepts` what may speak for it; None if there is no other.
    """
    best = lookup.best
    if best is None or best["tie"] is None:
        return None
    facts = Facts(lookup.kb.contents, [hit.entry for hit in lookup.hits])
    close = doubtless_concepts(lookup)
    places = {c["cui"]: c["rank"] for c in lookup.linked.candidates}
    order = next(hit.order for hit in lookup.hits if hit.entry.cui == best["cui"])
    tied = [hit for hit in lookup.hits if hit.order == order]
    tied.sort(key=lambda hit: (places.get(hit.entry.cui, len(lookup.hits)), hit.entry))
    described = [
        {
            **describe_hit(hit),
            "preferred": hit.entry.preferred,
            "types": list(facts.types.get(hit.entry.cui, ())),
            "sources": lookup.kb.store.sources_of(hit.entry),
            "distance": facts.distance(hit.entry.cui, close) if close else None,
        }
        for hit in tied
    ]
    return {"decided_by": best["tie"], "concepts": described}


def describe_threshold(lookup: Lookup) -> dict[str, Any]:
    """Tell how far the best candidate is from the cosine that it needs."""
    value, best = lookup.threshold, lookup.best
    if value is None:
        return {"value": None, "from": None, "margin": None}
    return {
        "value": value,
        "from": "kb" if lookup.options.threshold is None else "options",
        "margin": None if best is None else round(best["score"] - value, SCORE_DIGITS),
    }


def describe_filter(lookup: Lookup) -> dict[str, Any]:
    """Tell what is left out, and what would have come before what was found.

    lookup (Lookup): The answer.
    RETURNS (dict[str, Any]): The `active` fields, of long ones the size; and `taken`,
        each with the fields that leave it out (`by`).
    """
    active: dict[str, Any] = {}
    for name in named_fields(lookup.wanted):
        values = getattr(lookup.wanted, name)
        active[name] = len(values) if name in COUNTED else list(values)
    taken: list[dict[str, Any]] = []
    last: float | None = None
    if active and lookup.vector is not None:
        for hit in lookup.search(Filter()):
            if last is not None and hit.order < last:
                break
            by = rejecting_fields(lookup.kb, lookup.wanted, hit.entry)
            if by:
                taken.append({**describe_hit(hit), "by": by})
            elif last is None:
                last = hit.order
    return {"active": active, "taken": taken}


def find_missed(lookup: Lookup, searched: ExactSearch | None) -> list[dict[str, Any]]:
    """Find what an exact search finds and the index does not.

    lookup (Lookup): The answer.
    searched (ExactSearch | None): Compares all names; None = not asked for.
    RETURNS (list[dict[str, Any]]): Concepts that the index did not find, or not by
        their nearest name. By cosine alone.
    """
    if searched is None:
        return []
    by_index = lookup.search(lookup.wanted)
    scores = {hit.entry.cui: hit.score for hit in by_index}
    full = len(by_index) >= lookup.options.k
    last = by_index[-1].score if full else -np.inf
    return [
        describe_hit(hit)
        for hit in lookup.search(lookup.wanted, searched)
        if hit.score > scores.get(hit.entry.cui, last) + SLACK
    ]


def list_removed(lookup: Lookup, searched: ExactSearch | None) -> list[dict[str, Any]]:
    """List removed names that are at least as near as what was found.

    lookup (Lookup): The answer.
    searched (ExactSearch | None): Compares all names; None = ask the index.
    RETURNS (list[dict[str, Any]]): The nearest first; `whole` = the concept was
        removed and not the name alone.
    """
    layer = lookup.kb.layers[0]
    if lookup.vector is None or not layer.removed:
        return []
    count = max(FEWEST_NEAR, 4 * lookup.options.k)
    search = (searched or lookup.kb).search
    (rows,), (scores,) = search(lookup.vector[None], count)
    entries = layer.store.entries(row for row in rows.tolist() if layer.has(row))
    least = lookup.best["score"] if lookup.best else -1.0
    return [
        {
            "cui": entry.cui,
            "name": entry.name,
            "alias": entry.alias,
            "score": round(float(score), SCORE_DIGITS),
            "whole": not layer.removed[entry.cui],
        }
        for row, score in zip(rows.tolist(), scores, strict=True)
        for entry in entries.get(row, ())
        if score >= least - SLACK and layer.is_removed(entry.cui, entry.alias)
    ]
