"""A text and a concept that somebody claims for it → how likely it is the right one.

Two logistic models: right against all others, and right against unrelated ones. Their
weights were fitted on annotated mentions; `benchmarks/verify.py` fits them again.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..linking.difference import LITTLE
from ..linking.features import Features
from ..linking.probability import squash
from ..linking.schwartz_hearst import find_explanation
from ..linking.text import is_abbreviation, is_acronym, list_words

TABLE = json.loads(Path(__file__).with_name("weights.json").read_text("utf8"))
LEAST_SPREAD = 0.02  # of cosines with unrelated names
DIGITS = 4  # of standardised cosines
PLURAL = 2  # letters, above which a last "s" is one: "LIDs"
NEAR = math.log(4)  # log of one plus the rank
MOST = 0.98  # chance of a concept of which a text is not a name
PAIRED = ("characters", "covered", "name_covered", "head_covered", "unnamed")
GAPS = ("cosine", "covered", "characters", "name_covered")


class Similarity(NamedTuple):
    """How near the names of a concept are to a text, in deviations of unrelated names.

    Attributes:
        nearest: Its nearest name, above the mean of unrelated names.
        mean: The mean of its names, in the same way.
        spread: The deviation of the cosines of unrelated names.
        names: Their number.
    """

    nearest: float
    mean: float
    spread: float
    names: int


class Chances(NamedTuple):
    """Two probabilities of a claim: that it is right, and that it is not unrelated."""

    right: float
    related: float


def compare_cosines(cosines: np.ndarray, others: np.ndarray) -> Similarity:
    """Compare the cosines of a concept with those of unrelated names. Shape: (n,)."""
    spread = max(float(others.std()), LEAST_SPREAD)
    values = (cosines - others.mean()) / spread
    # Sums of float32 differ after these digits with the batch.
    nearest, mean = (
        round(float(values.max()), DIGITS),
        round(float(values.mean()), DIGITS),
    )
    return Similarity(nearest, mean, spread, len(cosines))


def is_short(text: str) -> bool:
    """Return whether a text is an abbreviation."""
    return is_abbreviation(text) or is_acronym(text)


def is_spelled(text: str, name: str) -> bool:
    """Return whether an abbreviation has the first letters of all words of a name.

    A name may be inverted, "heart failure, congestive", and have words without a letter
    of their own.
    """
    letters = [*filter(str.isalnum, text)]
    if len(letters) > PLURAL and letters[-1] == "s" and letters[-2].isupper():
        letters.pop()
    words = re.findall(r"[^\W_]+", name.casefold())
    spelled = "".join(letters).casefold()
    return any(
        len(initials) == len(spelled) and spelled in 2 * initials
        for initials in (
            "".join(word[0] for word in words),
            "".join(word[0] for word in words if word not in LITTLE),
        )
    )


def is_apart(text: str, names: Sequence[str]) -> bool:
    """Return whether a text that is the name of another concept excludes these names.

    It does not if it may be an abbreviation of one, or if one of the two only says more
    than the other: annotators use "dyskinesia" for "dyskinesia, drug-induced".
    """
    words = split_words(text)
    of_names = [*map(split_words, names)]
    if any(words <= other or other <= words for other in of_names):
        return False
    return not (is_short(text) and any(map(partial(is_spelled, text), names)))


def split_words(text: str) -> set[tuple[str, ...]]:
    """Return the words of a text; "IL6" is one, and no part of "IL6R"."""
    return {(*list_words(word, "english"),) for word in re.findall(r"[^\W_]+", text)}


def list_values(
    text: str,
    claimed: int,
    features: Features,
    similarity: Similarity,
    names: Sequence[str],
) -> dict[str, float]:
    """Return what the models weigh, by name.

    Args:
        claimed: Place of the claimed concept in `features`.
        names: Of the claimed concept.
    """
    cosines = features["cosine"]
    rank = math.log1p(min(int((cosines > cosines[claimed] + 1e-6).sum()), 19))
    short = is_short(text)
    initials = short and any(find_explanation(n, text, (0, len(n))) for n in names)
    values = {name: float(features[name][claimed]) for name in PAIRED}
    values |= {
        "nearest": similarity.nearest,
        "mean": similarity.mean,
        "names": math.log(similarity.names),
        "rank": rank,
        "first": float(rank == 0),
        "among_first": float(rank <= NEAR),
        "short": float(short),
        "initials": float(initials),
        "spelled": float(short and any(map(partial(is_spelled, text), names))),
        "short_nearest": short * similarity.nearest,
    }
    for name in GAPS:
        others = np.delete(features[name], claimed)
        gap = float(features[name][claimed] - others.max(initial=0.0))
        if name == "cosine":
            gap = round(gap / similarity.spread, DIGITS)
        values |= {f"{name}_above": max(gap, 0.0), f"{name}_below": min(gap, 0.0)}
    values["short_below"] = short * values["cosine_below"]
    return values


def weigh(values: Mapping[str, float], model: str) -> float:
    """Return the probability that one of the models gives."""
    weights = TABLE[model]["weights"]
    total = sum(weight * values[name] for name, weight in weights.items())
    return squash(total + TABLE[model]["intercept"])


def compute_chances(values: Mapping[str, float], *, named: bool) -> Chances:
    """Return the chances of a claim.

    Args:
        values: From `list_values`.
        named: Whether the text is a name of another concept, and not of the claimed.
    """
    right = weigh(values, "right_named" if named else "right")
    return Chances(min(right, MOST), weigh(values, "related"))
