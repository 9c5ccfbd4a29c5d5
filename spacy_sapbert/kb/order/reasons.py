"""Why a concept is first in a learned order, in words."""

from collections import defaultdict

import numpy as np

from ...linking.features import EXCLUDED, GROUPS, Features, Pool, pool_concepts
from ...linking.filters import Filter
from ...linking.ranker import BEHIND, Ranker
from ...linking.text import read_mention
from ..knowledge_base import KnowledgeBase

MOST_REASONS = 3
GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}
# Group → what it means that the first candidate is ahead by its features.
REASONS = {
    "cosine": "by the encoder, {nearest!r} is near the mention (cosine {cosine:.3f})",
    "nearest names": "many of the nearest names are names of {cui}",
    "3-grams": "3-grams of {mention!r} are nearest to {alias!r}",
    "characters": "few letters differ between {mention!r} and {alias!r}",
    "words": "{mention!r} and {alias!r} have words in common",
    "coverage": "{mention!r} has words that {cui} has, and few others",
    "exact name": "{nearest!r} is the same name",
    EXCLUDED: "the next candidate has another numeral, opposite or single letter than "
    "{mention!r}",
    "counts": "mentions like {mention!r} were annotated with {cui}",
}


def explain_order(kb: KnowledgeBase, mention: str, filter: Filter) -> list[str]:
    """Return why the first candidate of a mention is before the second, in words.

    The strongest reason comes first. Empty = the order is that of the cosines.

    Args:
        mention: The text that was linked.
    """
    ranker, searcher = kb.ranker, kb.searcher
    text = read_mention(mention)
    embedded = kb.embed([text])
    mentions = searcher.name([text], embedded.vectors, filter)
    by_cosine = bool(mentions.named[0]) and ranker is not None and not ranker.taught
    if ranker is None or by_cosine or not embedded.usable.all():
        return []
    (found,) = searcher.find_names(mentions, filter)
    pool = pool_concepts(found, searcher.find_provenance)
    if len(pool.near) < 2:
        return []
    taught = kb.manifest.taught is not None
    features = searcher.features(
        text,
        pool,
        filter,
        counts=searcher.count_annotations([text])[0] if taught else None,
        concept_counts=kb.store.annotated_concepts(pool.cuis) if taught else None,
    )
    gains = compare_first(ranker, features)
    first = pool.cuis[int(ranker.scores(features).argmax())]
    return [
        format_reason(group, text, pool, first)
        for group in sorted(gains, key=lambda group: -gains[group])[:MOST_REASONS]
        if gains[group] > 0
    ]


def compare_first(ranker: Ranker, features: Features) -> dict[str, float]:
    """Return by how much each group of features puts the first before the second."""
    scores = ranker.scores(features)
    first, second = np.argsort(-scores, kind="stable")[:2]
    gains: dict[str, float] = defaultdict(float)
    excluded = features[EXCLUDED]
    gains[EXCLUDED] = BEHIND * float(excluded[second] - excluded[first])
    for weights in ranker.parts(features):
        parts = weights.contributions(features)
        for name, gain in zip(weights.names, parts[first] - parts[second], strict=True):
            gains[GROUP_OF[name]] += float(gain)
        cosines = features["cosine"]
        gains["cosine"] += weights.temperature * float(cosines[first] - cosines[second])
    return gains


def format_reason(group: str, mention: str, pool: Pool, cui: str) -> str:
    """Return a reason in words."""
    names = pool.near[cui]
    return REASONS[group].format(
        mention=mention,
        alias=names.similar.alias,
        nearest=names.nearest.alias,
        cosine=names.cosine,
        cui=cui,
    )
