"""Why a concept is first in a learned order, in words."""

from collections import defaultdict

import numpy as np

from ...linking.features import GROUPS, Features, Pool, compute_features, pool_concepts
from ...linking.filters import Filter
from ...linking.ranker import Ranker
from ..knowledge_base import KnowledgeBase
from ..search import Mentions

MOST_REASONS = 3
READ_AS = "the encoder reads {text!r}"
GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}
# Group → what it means that the first candidate is ahead by its features.
REASONS = {
    "cosine": "by the encoder, {nearest!r} is near the mention (cosine {cosine:.3f})",
    "nearest names": "many of the nearest names are names of {cui}",
    "3-grams": "3-grams of {mention!r} are nearest to {alias!r}",
    "characters": "few letters differ between {mention!r} and {alias!r}",
    "words": "{mention!r} and {alias!r} have words in common",
    "exact name": "{nearest!r} is the same name",
    "counts": "mentions like {mention!r} were annotated with {cui}",
}


def explain_order(kb: KnowledgeBase, mention: str, filter: Filter) -> list[str]:
    """Return why the first candidate of a mention is before the second, in words.

    What was corrected in the mention comes first, then the strongest reason. Empty =
    the order is that of the cosines.

    Args:
        mention: The text that was linked.
    """
    ranker, searcher = kb.ranker, kb.searcher
    embedded = kb.embed([mention], variants=filter.may_be_english, respell=True)
    by_cosine = bool(embedded.named[0]) and ranker is not None and not ranker.taught
    if ranker is None or by_cosine or not np.isfinite(embedded.vectors).all():
        return []
    compared = embedded.texts[0]
    mentions = Mentions([compared], embedded.vectors, embedded.named)
    (found,) = searcher.find_names(mentions, filter)
    pool = pool_concepts(found, searcher.find_provenance)
    if len(pool.near) < 2:
        return []
    taught = kb.manifest.taught is not None
    features = compute_features(
        compared,
        pool,
        counts=searcher.count_annotations([compared])[0] if taught else None,
        concept_counts=kb.store.annotated_concepts(pool.cuis) if taught else None,
    )
    known = searcher.knows(compared)
    gains = compare_first(ranker, features, known=known)
    first = pool.cuis[int(ranker.scores(features, known=known).argmax())]
    corrected = embedded.corrected.values()
    return [READ_AS.format(text=found.text) for found in corrected] + [
        format_reason(group, compared, pool, first)
        for group in sorted(gains, key=lambda group: -gains[group])[:MOST_REASONS]
        if gains[group] > 0
    ]


def compare_first(
    ranker: Ranker, features: Features, *, known: bool
) -> dict[str, float]:
    """Return by how much each group of features puts the first before the second."""
    scores = ranker.scores(features, known=known)
    first, second = np.argsort(-scores, kind="stable")[:2]
    gains: dict[str, float] = defaultdict(float)
    for weights in ranker.parts(features, known=known):
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
        alias=names.alias,
        nearest=names.nearest.alias,
        cosine=names.cosine,
        cui=cui,
    )
