"""Whether a mention is linked to its first candidate, and why not."""

from typing import NamedTuple

from ..linking.link import EXCLUDED, SearchResult
from ..linking.options import LinkOptions
from ..linking.scores import round_score
from .folder.records import Manifest


class Threshold(NamedTuple):
    """What the first candidate must reach.

    Attributes:
        cosine: None = the probability counts.
        probability: 0 = any.
    """

    cosine: float | None
    probability: float

    def is_reached(self, result: SearchResult) -> bool:
        """Return whether the first candidate of a mention, if any, reaches it."""
        if not result.ranked:
            return False
        if self.cosine is not None:
            return round_score(result.ranked[0].score) >= self.cosine
        return (result.probability or 0) >= self.probability


def choose_threshold(manifest: Manifest, options: LinkOptions) -> Threshold:
    """Return the threshold that is in force.

    A cosine of the options comes first, then the probability that was learned from
    annotations, then a cosine of the knowledge base, then the probability of the order
    that was learned from names.
    """
    cosine = options.threshold
    if cosine is None and not manifest.has_ranker:
        cosine = manifest.threshold
    ranker = manifest.ranker
    return Threshold(cosine, ranker.threshold if ranker is not None else 0.0)


def decide(
    result: SearchResult, threshold: Threshold, *, barred: bool = False
) -> str | None:
    """Return why a mention has no concept; None = it is linked to the first candidate.

    Args:
        barred: It is a name only of concepts that the filter excludes.
    """
    if barred:
        return "filtered"
    if result.excluded:
        return EXCLUDED
    return None if threshold.is_reached(result) else "below_threshold"
