"""Knowledge base + annotated mentions → better probabilities, and a threshold."""

import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SapbertError
from ..formats.corpus import corpus_digest
from ..formats.documents import OnError, raise_error
from ..formats.gold import GoldDocument, GoldMention
from ..io.version import __version__
from ..kb.folder.records import Calibration
from ..kb.knowledge_base import KnowledgeBase
from ..kb.learned_order.fit import measure_thresholds
from ..linking.candidates import Candidate
from ..linking.link import EXCLUDED, Linked, find_share
from ..linking.probability import (
    DIGITS,
    MEASURES,
    Correction,
    TopScores,
    compute_measures,
    fit_logistics,
    log_odds,
)
from .gold_mentions import check_names, make_resolver, read_gold
from .rankers import kb_lookup, link_mentions
from .score_mentions import rank_mentions

PRECISION = re.compile(r"precision=(1|1\.0+|0?\.\d+)")
FEWEST_MENTIONS = 50
STEPS = 10_000  # of a threshold that is chosen: it is rounded down to four digits
BINS = 10
MOST_TIES = 10  # concepts that share a probability; of more it is next to nothing

GoldFiles = dict[Path, list[GoldDocument]]  # without their texts


def parse_criterion(text: str) -> tuple[str, float]:
    """Parse "f1", "accuracy" or "precision=0.95": the measure and the precision."""
    name, _, level = text.partition("=")
    match = PRECISION.fullmatch(text)
    if text not in ("f1", "accuracy") and not (match and float(level)):
        raise SapbertError(
            "E331",
            "Expected `--criterion` to be f1, accuracy or precision=NUMBER with a "
            f"number above 0 and up to 1, but got {text!r}. Correct it, like "
            "`--criterion precision=0.95`.",
        )
    return name, float(level or 0)


def read_gold_files(
    paths: Sequence[Path],
    *,
    limit: int = 0,
    on_error: OnError = raise_error,
    **options: Any,
) -> GoldFiles:
    """Read annotated documents; `limit` = the first mentions of each file.

    `options` are those of `read_gold`.
    """
    check_names(paths)
    files: GoldFiles = {}
    for path in paths:
        left, files[path] = limit or sys.maxsize, []
        for document in read_gold(path, on_error=on_error, **options):
            mentions = document.mentions[:left]
            files[path].append(document._replace(text="", mentions=mentions))
            left -= len(mentions)
            if not left:
                break
    return files


def sort_scores(rows: Sequence[tuple[float | None, bool, bool, float]]) -> TopScores:
    """Sort the fields of `TopScores` by score; None = a mention without a candidate."""
    scores, right, known, shares = zip(*rows, strict=True)
    values = np.array([-np.inf if s is None else s for s in scores], dtype=np.float64)
    return TopScores.sorted(values, *map(np.array, (right, known, shares)))


def score_top1(
    kb: KnowledgeBase,
    files: GoldFiles,
    aliases: dict[str, str],
    *,
    progress: bool = False,
) -> TopScores:
    """Link mentions, and compare the first candidates; see `score_candidates`."""
    golds = [gold for file in files.values() for doc in file for gold in doc.mentions]
    rank = partial(link_mentions, kb, k=MOST_TIES)
    found = rank_mentions(rank, (g.mention for g in golds), progress=progress)
    return score_candidates(kb, golds, found, aliases)


def score_candidates(
    kb: KnowledgeBase,
    golds: Iterable[GoldMention],
    found: Mapping[str, Linked],
    aliases: dict[str, str],
    *,
    least_cosine: float | None = None,
) -> TopScores:
    """Compare the first candidates of mentions with their ids.

    A candidate is right if it is a gold concept of every part of the mention. A
    composite is linked as one text, so its candidate is hardly ever right. One below
    `least_cosine` is no answer, nor is one that is never linked.
    """
    resolve = make_resolver(kb_lookup(kb), aliases)
    rows: list[tuple[float | None, bool, bool, float]] = []
    for gold in golds:
        linked = found[gold.mention]
        parts, first = resolve(gold), next(iter(linked.candidates), None)
        if linked.note == EXCLUDED:
            first = None
        if first and least_cosine is not None and first["score"] < least_cosine:
            first = None
        probability, cui = None, ""
        if first is not None:
            probability = first["probability"]
            cui = aliases.get(first["cui"], first["cui"])
        right = bool(parts) and all(cui in part for part in parts)
        share = share_of_first(linked.candidates)
        rows.append((probability, right, any(parts), share))
    return sort_scores(rows)


def share_of_first(candidates: Sequence[Candidate]) -> float:
    """Return the share of the first candidate in the probability of those that tie."""
    if not candidates:
        return 1.0
    first = candidates[0]
    ties = sum(c["score"] == first["score"] for c in candidates if c["tie"])
    return find_share(first["tie"], ties)


def choose_threshold(top: TopScores, criterion: str) -> float:
    """Return the best of all scores as the threshold, of equally good ones the lowest.

    The criterion is "f1", "accuracy", or e.g. "precision=0.95": the lowest with it.
    """
    name, level = parse_criterion(criterion)
    thresholds = np.unique(top.scores[np.isfinite(top.scores)])
    values = np.nan_to_num(compute_measures(top, thresholds)[name], nan=-1.0)
    if name != "precision":
        return float(thresholds[np.argmax(values)])
    if values.max() < level:
        best = float(values.max())
        raise SapbertError(
            "E582",
            f"Expected a threshold with a precision of {level:g}, but the highest "
            f"precision of any is {best:.4f}. Choose a lower precision, or "
            "`--criterion f1`.",
        )
    return float(thresholds[np.argmax(values >= level)])


def calibration_error(probabilities: np.ndarray, right: np.ndarray) -> float:
    """Compute the expected calibration error over ten bins of equal width.

    Source: Naeini, Cooper and Hauskrecht (2015).
    """
    bins = np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)
    gaps = np.bincount(bins, probabilities - right, minlength=BINS)
    return float(np.abs(gaps).sum() / len(right))


def check_answers(top: TopScores) -> None:
    """Check that there are enough answers, and both right and wrong ones."""
    right = top.right[np.isfinite(top.scores)]
    if len(right) < FEWEST_MENTIONS:
        raise SapbertError(
            "E582",
            f"Expected at least {FEWEST_MENTIONS} annotated mentions that get an "
            f"answer, but got {len(right)}. Name more files of mentions, or raise "
            "`--limit`.",
        )
    if right.all() or not right.any():
        which = "right" if right.all() else "wrong"
        raise SapbertError(
            "E582",
            f"Expected right and wrong answers to {len(right)} mentions, but all are "
            f"{which}. Name mentions that are annotated with ids of this knowledge "
            "base, or of which it has aliases in `--aliases`.",
        )


def fit_correction(top: TopScores) -> Correction:
    """Fit the correction of probabilities by the answers that are right.

    Ties do not count: they share what is corrected. Nor does what is certain, since
    people decided it, which is not corrected.
    """
    corrected = (top.shares == 1) & (top.scores < 1)
    top = TopScores(*(values[corrected] for values in top))
    check_answers(top)
    answered = np.isfinite(top.scores)
    odds = np.array([log_odds(p) for p in top.scores[answered].tolist()])
    (slope,), intercept = fit_logistics(odds[:, None], top.right[answered])
    slope = round(float(slope), DIGITS)
    if slope <= 0:  # 0 if all are equal
        raise SapbertError(
            "E582",
            "Expected right answers to be more probable than wrong ones, but they are "
            "not. Check that the mentions are annotated with ids of this knowledge "
            "base.",
        )
    return Correction(slope=slope, intercept=round(intercept, DIGITS))


def correct_top(top: TopScores, correction: Correction) -> TopScores:
    """Return answers with corrected probabilities."""
    scores = [
        round(correction.correct(p / share) * share, DIGITS) if np.isfinite(p) else p
        for p, share in zip(top.scores.tolist(), top.shares.tolist(), strict=True)
    ]
    return TopScores.sorted(np.array(scores), *top[1:])


def calibrate(
    top: TopScores, files: GoldFiles, criterion: str, known: Calibration | None = None
) -> dict[str, Any]:
    """Correct the probabilities, and choose the threshold by a criterion.

    `known` is the calibration of the knowledge base that gave the answers. Returns the
    fields of `Calibration` as plain JSON.
    """
    correction = fit_correction(top)
    earlier = None if known is None else known.correction
    corrected = correct_top(top, correction)
    # Rounded down, so that it is reached by what it was chosen for.
    threshold = math.floor(choose_threshold(corrected, criterion) * STEPS) / STEPS
    return {
        **measure(corrected, files, threshold),
        "criterion": criterion,
        "correction": correction.after(earlier).model_dump(),
        "date": datetime.now(UTC).date().isoformat(),
        "package_version": __version__,
    }


def measure(top: TopScores, files: GoldFiles, threshold: float) -> dict[str, Any]:
    """Measure what a threshold does, and how far probabilities are off; plain JSON."""
    check_answers(top)
    answered = np.isfinite(top.scores)
    scores, right = top.scores[answered], top.right[answered]
    measures = compute_measures(top, np.array([threshold]))
    values = {name: float(measures[name][0]) for name in MEASURES}
    values["calibration_error"] = calibration_error(scores, right)
    documents = {
        (path, document.id)
        for path, found in files.items()
        for document in found
        if document.id and document.mentions
    }
    return {
        "threshold": threshold,
        "mentions": len(top.scores),
        "documents": len(documents),
        "nil": int((~top.known).sum()),
        "answered": len(scores),
        "right": int(right.sum()),
        "linked": int((scores >= threshold).sum()),
        **{
            name: None if math.isnan(value) else round(value, DIGITS)
            for name, value in values.items()
        },
        "files": [{"file": p.name, "sha256": corpus_digest(p)} for p in files],
        "thresholds": [at.model_dump() for at in measure_thresholds(top, threshold)],
    }
