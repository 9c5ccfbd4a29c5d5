"""Knowledge base + annotated mentions → threshold, and the probability of a link."""

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
from ..kb.folder.records import Calibration, Logistic
from ..kb.knowledge_base import KnowledgeBase
from ..kb.learned_order.fit import measure_thresholds
from ..linking.candidates import Candidate
from ..linking.probability import (
    DIGITS,
    MEASURES,
    Curve,
    TopScores,
    compute_measures,
    fit_logistic,
    log_odds,
    score_probability,
)
from .gold_mentions import check_names, make_resolver, read_gold
from .rankers import kb_lookup, link_mentions
from .score_mentions import rank_mentions

PRECISION = re.compile(r"precision=(1|1\.0+|0?\.\d+)")
FEWEST_MENTIONS = 50
NOT_CALIBRATED = "no calibration"  # criterion of a threshold given or estimated
BINS = 10

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
    bars_join_parts: bool = False,
    limit: int = 0,
    on_error: OnError = raise_error,
) -> GoldFiles:
    """Read annotated documents; `limit` = the first mentions of each file."""
    check_names(paths)
    files: GoldFiles = {}
    for path in paths:
        left, files[path] = limit or sys.maxsize, []
        for document in read_gold(
            path, bars_join_parts=bars_join_parts, on_error=on_error
        ):
            mentions = document.mentions[:left]
            files[path].append(document._replace(text="", mentions=mentions))
            left -= len(mentions)
            if not left:
                break
    return files


def sort_scores(rows: Sequence[tuple[float | None, bool, bool]]) -> TopScores:
    """Sort scores, right and known by score; None = a mention without a candidate."""
    scores, right, known = zip(*rows, strict=True)
    values = np.array([-np.inf if s is None else s for s in scores], dtype=np.float64)
    return TopScores.sorted(values, np.array(right), np.array(known))


def score_top1(
    kb: KnowledgeBase,
    files: GoldFiles,
    aliases: dict[str, str],
    *,
    ordered: bool = False,
    progress: bool = False,
) -> TopScores:
    """Link mentions, and compare the first candidates; see `score_candidates`."""
    golds = [gold for file in files.values() for doc in file for gold in doc.mentions]
    rank = partial(link_mentions, kb, k=1)
    found = rank_mentions(rank, (g.mention for g in golds), progress=progress)
    return score_candidates(kb, golds, found, aliases, ordered=ordered)


def score_candidates(
    kb: KnowledgeBase,
    golds: Iterable[GoldMention],
    found: Mapping[str, Sequence[Candidate]],
    aliases: dict[str, str],
    *,
    ordered: bool = False,
) -> TopScores:
    """Compare the first candidates of mentions with their ids.

    A candidate is right if it is a gold concept of every part of the mention. A
    composite is linked as one text, so its candidate is hardly ever right. If
    `ordered`, the scores are log-odds of the learned order, not cosines.
    """
    resolve = make_resolver(kb_lookup(kb), aliases)
    rows: list[tuple[float | None, bool, bool]] = []
    for gold in golds:
        parts, first = resolve(gold), next(iter(found[gold.mention]), None)
        score, cui = None, ""
        if first is not None:
            score, cui = first["score"], aliases.get(first["cui"], first["cui"])
            if ordered:
                score = log_odds(first["probability"] or 0)
        right = bool(parts) and all(cui in part for part in parts)
        rows.append((score, right, any(parts)))
    return sort_scores(rows)


def measure_beside(
    top: TopScores, logistic: Logistic, threshold: float
) -> list[dict[str, Any]]:
    """Measure what a threshold that is a probability does, and some beside it."""
    chances = score_probability(logistic, top.scores)
    figures = measure_thresholds(top._replace(scores=chances), threshold)
    return [each.model_dump() for each in figures]


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


def calibrate(
    top: TopScores,
    files: GoldFiles,
    criterion: str,
    known: Calibration | float | None = None,
    *,
    ordered: bool = False,
) -> dict[str, Any]:
    """Choose the threshold and fit the probability, or measure those of `known`.

    `known` is checked on other mentions; it may be a threshold alone. If `ordered`, the
    probability of the learned order is corrected, and the threshold is a probability.
    The result has the fields of `Calibration`, and more; it is plain JSON.
    """
    answered = np.isfinite(top.scores)
    scores, right = top.scores[answered], top.right[answered]
    if len(scores) < FEWEST_MENTIONS:
        raise SapbertError(
            "E582",
            f"Expected at least {FEWEST_MENTIONS} annotated mentions that get an "
            f"answer, but got {len(scores)}. Name more files of mentions, or raise "
            "`--limit`.",
        )
    if right.all() or not right.any():
        which = "right" if right.all() else "wrong"
        raise SapbertError(
            "E582",
            f"Expected right and wrong answers to {len(scores)} mentions, but all are "
            f"{which}. Name mentions that are annotated with ids of this knowledge "
            "base, or of which it has aliases in `--aliases`.",
        )
    if ordered and known is not None:  # the probability of the knowledge base itself
        logistic = Logistic(slope=1, intercept=0)
        if isinstance(known, Calibration):
            criterion, threshold = known.criterion, known.threshold
        else:
            criterion, threshold = NOT_CALIBRATED, known
    elif isinstance(known, Calibration):
        criterion = known.criterion
        threshold, logistic = known.threshold, known.logistic
    else:
        curve = fit_logistic(scores, right)
        logistic = Logistic(slope=curve.slope, intercept=curve.intercept)
        if logistic.slope <= 0:  # 0 if all scores are equal
            raise SapbertError(
                "E582",
                "Expected right answers to have higher scores than wrong ones, but "
                "they have not. Check that the mentions are annotated with ids of "
                "this knowledge base.",
            )
        if known is None:
            threshold = choose_threshold(top, criterion)
        else:
            criterion, threshold = NOT_CALIBRATED, known
        if ordered:  # rounded down, so that it is reached by what it was chosen for
            chance = float(score_probability(logistic, threshold))
            threshold = math.floor(chance * 10_000) / 10_000
    least = threshold
    if ordered:
        curve = Curve(logistic.slope, logistic.intercept)
        least = curve.score_at(threshold) if threshold else -np.inf
    measures = compute_measures(top, np.array([least]))
    values = {name: float(measures[name][0]) for name in MEASURES}
    probabilities = score_probability(logistic, scores)
    values["calibration_error"] = calibration_error(probabilities, right)
    documents = {
        (path, document.id)
        for path, found in files.items()
        for document in found
        if document.id and document.mentions
    }
    return {
        "by": "probability" if ordered else "cosine",
        "criterion": criterion,
        "threshold": round(threshold, DIGITS),
        "mentions": len(top.scores),
        "documents": len(documents),
        "nil": int((~top.known).sum()),
        "answered": len(scores),
        "right": int(right.sum()),
        "linked": int((scores >= least).sum()),
        **{
            name: None if math.isnan(value) else round(value, DIGITS)
            for name, value in values.items()
        },
        "logistic": logistic.model_dump(),
        "files": [{"file": p.name, "sha256": corpus_digest(p)} for p in files],
        "date": datetime.now(UTC).date().isoformat(),
        "package_version": __version__,
    }
