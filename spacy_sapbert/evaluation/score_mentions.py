"""Gold mentions and the answers of a linker → coverage and accuracy."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeVar

import numpy as np

from ..errors import SapbertError
from ..formats.documents import OnError, raise_error
from ..formats.gold import GoldMention
from ..io.progress import show_progress
from .accuracy import (
    Answer,
    GroupAccuracy,
    combine_parts,
    compute_accuracy,
    list_concepts,
    score_answers,
)
from .gold_mentions import (
    Lookup,
    Pair,
    fold_text,
    is_seen,
    make_resolver,
    read_mentions,
)

BATCH_SIZE = 256
T = TypeVar("T")


class EvaluationSettings(NamedTuple):
    """How answers are scored.

    Attributes:
        ks: Numbers of first answers among which a right one counts.
        composite: See `combine_parts`.
        distinct: Count each pair of a mention and its ids once.
        limit: Use the first mentions of a file only; 0 = all.
        reading: Options of `read_gold`.
    """

    ks: tuple[int, ...] = (1, 5)
    composite: str = "parts"
    distinct: bool = False
    limit: int = 0
    reading: Mapping[str, Any] = {}


class FileScores(TypedDict):
    """The result for one file of gold mentions.

    Attributes:
        coverage: Share of mentions with a concept for each part.
        accuracy: By group: "all", "covered", "seen", "unseen".
    """

    judged: int
    coverage: float
    accuracy: dict[str, GroupAccuracy]


def select_mentions(
    path: Path, settings: EvaluationSettings, on_error: OnError = raise_error
) -> tuple[list[GoldMention], dict[str, int]]:
    """Read the gold mentions to score, and count all, `without_id` and `repeated`."""
    counts = {"mentions": 0, "without_id": 0, "repeated": 0}
    selected: list[GoldMention] = []
    known: set[tuple[str, str]] = set()
    for gold in read_mentions(path, on_error=on_error, **settings.reading):
        if settings.limit and counts["mentions"] == settings.limit:
            break
        counts["mentions"] += 1
        key = fold_text(gold.mention), repr(sorted(map(sorted, gold.parts)))
        if not gold.parts:
            counts["without_id"] += 1
        elif settings.distinct and key in known:
            counts["repeated"] += 1
        else:
            known.add(key)
            selected.append(gold)
    if not selected:
        raise no_gold_mentions(path=path, mentions=counts["mentions"])
    return selected, counts


def rank_mentions(
    rank: Callable[[Sequence[str]], Sequence[T]],
    mentions: Iterable[str],
    *,
    progress: bool = False,
) -> dict[str, T]:
    """Rank each distinct mention once, in batches."""
    texts = list(dict.fromkeys(mentions))
    answers: dict[str, T] = {}
    with show_progress(total=len(texts), unit="mentions", quiet=not progress) as bar:
        for start in range(0, len(texts), BATCH_SIZE):
            batch = texts[start : start + BATCH_SIZE]
            answers.update(zip(batch, rank(batch), strict=True))
            bar.update(len(batch))
    return answers


def score_mentions(
    golds: Sequence[GoldMention],
    answers: dict[str, list[Answer]],
    lookup: Lookup,
    aliases: dict[str, str],
    settings: EvaluationSettings,
    *,
    seen: set[Pair] | None = None,
) -> FileScores:
    """Compute coverage and accuracy of a linker on gold mentions.

    `answers` have the best first. Without `seen`, the pairs of the training, there are
    no groups "seen" and "unseen".
    """
    resolve = make_resolver(lookup, aliases)
    scores: list[np.ndarray] = []
    covered: list[bool] = []
    for gold in golds:
        parts = combine_parts(resolve(gold), settings.composite)
        covered.append(all(parts))
        scores.append(score_answers(answers[gold.mention], parts, settings.ks))
    groups = {"all": np.ones(len(golds), dtype=bool), "covered": np.array(covered)}
    if seen is not None:
        groups["seen"] = np.array([is_seen(gold, seen, aliases) for gold in golds])
        groups["unseen"] = ~groups["seen"]
    stacked = np.stack(scores)  # (n, levels, ks, ties)
    return {
        "judged": len(golds),
        "coverage": round(float(np.mean(covered)), 6),
        "accuracy": {
            name: compute_accuracy(stacked[mask], settings.ks)
            for name, mask in groups.items()
        },
    }


def list_predictions(
    file: str, golds: Sequence[GoldMention], answers: dict[str, list[Answer]], k: int
) -> list[dict[str, Any]]:
    """Return the lines of predictions.jsonl: file, line, cuis and scores, no text."""
    rows: list[dict[str, Any]] = []
    for gold in golds:
        best = list_concepts(answers[gold.mention])[:k]
        cuis, scores = [cui for _, cui in best], [score for score, _ in best]
        rows.append({"file": file, "line": gold.line, "cuis": cuis, "scores": scores})
    return rows


def no_gold_mentions(*, path: object, mentions: object) -> SapbertError:
    return SapbertError(
        "E106",
        f"Expected gold mentions with an id in {path}, but got none in {mentions} "
        "mentions. Name another file, or raise `--limit`.",
    )
