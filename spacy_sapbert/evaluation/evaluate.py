"""Knowledge base + gold mentions → evaluation.json and predictions."""

import platform
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import SapbertError
from ..formats.corpus import corpus_digest
from ..formats.documents import OnError, raise_error
from ..formats.gold import GoldDocument, GoldMention, check_ids
from ..io.tables.headers import show_id
from ..io.version import __version__
from ..kb.knowledge_base import KnowledgeBase
from ..kb.learned_order.fit import measure_thresholds
from ..kb.search import choose_threshold
from ..linking.candidates import SORT_DIGITS
from ..linking.options import DEFAULT_OPTIONS
from .accuracy import LEVELS, TIES, Answer
from .calibration import score_candidates
from .gold_mentions import Pair, Resolve, check_names, make_resolver
from .rankers import (
    embed_mentions,
    exact_search,
    kb_lookup,
    kb_ranker,
    link_mentions,
    order_answers,
)
from .score_mentions import (
    EvaluationSettings,
    list_predictions,
    rank_mentions,
    score_mentions,
    select_mentions,
)

LIBRARIES = ("numpy", "spacy", "torch", "transformers")
MANY = 10  # mentions without any known id, of which no accuracy says anything
TOLERANCE = 1e-6  # by which equal cosines in float32 differ


class Evaluation(NamedTuple):
    """A knowledge base, scored on files of gold mentions.

    Attributes:
        results: The content of evaluation.json.
        predictions: The lines of predictions.jsonl.
        golds: Name of the file and mention.
        answers: By text, the best first.
    """

    results: dict[str, Any]
    predictions: list[dict[str, Any]]
    golds: list[tuple[str, GoldMention]]
    answers: dict[str, list[Answer]]


def describe_versions() -> dict[str, str]:
    """Return the versions of Python, this package and the libraries that are there."""
    versions = {"python": platform.python_version(), "spacy-sapbert": __version__}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):  # a light installation has no torch
            versions[name] = version(name)
    return versions


def describe_settings(settings: EvaluationSettings) -> dict[str, Any]:
    fixed = {"levels": LEVELS, "ties": TIES, "tie_digits": SORT_DIGITS}
    return {**settings._asdict(), **fixed}


def describe_kb(kb: KnowledgeBase) -> dict[str, Any]:
    """Return meta.json without checksums, threshold and calibration."""
    left_out = {"files", "threshold", "calibration"}
    return {"folder": kb.folder.name, **kb.manifest.model_dump(exclude=left_out)}


def measure_recall(
    kb: KnowledgeBase, mentions: Sequence[str], *, ks: Sequence[int] = (1, 10)
) -> dict[str, float | None]:
    """Compare the index with exact search: `recall@k` is the share of right rows.

    A row is right if its cosine reaches the k-th highest of all rows, so that rows with
    equal cosines count alike.
    """
    _, vectors = embed_mentions(kb, mentions)
    depth = min(max(ks), kb.rows)
    recall: dict[str, float | None] = {"queries": len(vectors)}
    if not len(vectors):
        return {**recall, **{f"recall@{k}": None for k in ks}}
    _, exact = exact_search(kb, vectors, depth)
    rows, _ = kb.search(vectors, depth)
    best = np.full_like(exact, -np.inf)  # (n, depth)
    found_vectors = kb.vectors(rows.clip(0).ravel()).reshape(*rows.shape, -1)
    cosines = np.einsum("nw,nkw->nk", vectors, found_vectors)
    best[:, : rows.shape[1]] = np.where(rows < 0, -np.inf, cosines)
    for k in ks:
        cut = min(k, depth)
        right = best[:, :cut] >= exact[:, cut - 1 : cut] - TOLERANCE
        recall[f"recall@{k}"] = round(float(right.mean()), 6)
    return recall


def check_coverage(
    path: Path, golds: Sequence[GoldMention], resolve: Resolve, kb: KnowledgeBase
) -> None:
    """Raise an error if no mention has a concept of the knowledge base.

    The ids then have another form, and every accuracy would be 0. A few mentions may
    also have concepts that are not covered, unless only the prefix is different.
    """
    if not golds or any(any(resolve(gold)) for gold in golds):
        return
    example = golds[0].parts[0][0]
    other = kb.other_prefix(example)
    if other is not None or len(golds) >= MANY:
        hint = f" It has {other!r}." if other else ""
        raise SapbertError(
            "E725",
            f"{path}: Expected mentions with ids of the knowledge base, but none of "
            f"{len(golds):,} has one, e.g. {show_id(example)}.{hint} Use the "
            "vocabulary of the annotations, or change the ids with `spacy sapbert "
            "convert --prefix` or `--drop-prefix`.",
        )


def evaluate_kb(
    kb: KnowledgeBase,
    paths: Sequence[Path],
    settings: EvaluationSettings,
    *,
    aliases: dict[str, str] | None = None,
    seen: set[Pair] | None = None,
    recall_queries: int = 1000,
    threshold: float | None = None,
    least_cosine: float | None = None,
    progress: bool = False,
    on_error: OnError = raise_error,
) -> Evaluation:
    """Compute accuracy and coverage of a knowledge base on files of gold mentions.

    `seen` has the pairs of the training. `recall_queries` mentions compare the index
    with exact search. `threshold` and `least_cosine` are as in `LinkOptions`, and only
    count for what is said of links. `on_error` gets the error of each document that is
    left out.
    """
    check_names(paths)
    aliases, k = aliases or {}, max(settings.ks)
    lookup = kb_lookup(kb)

    def find(id: str) -> str | None:
        return aliases.get(id) or (id if id in others else lookup(id))

    others = {*aliases.values()}
    selected: list[tuple[Path, list[GoldMention], dict[str, int]]] = []
    for path in paths:
        read, counts = select_mentions(path, settings, on_error)
        check_coverage(path, read, make_resolver(lookup, aliases), kb)
        document = GoldDocument(path.name, "", read)
        read = check_ids(path, document, find, on_error).mentions
        selected.append((path, read, counts))
    named = [(path.name, gold) for path, golds, _ in selected for gold in golds]
    golds = [gold for _, gold in named]
    texts = list(dict.fromkeys(gold.mention for gold in golds))
    rank = partial(link_mentions, kb, k=k)
    linked = rank_mentions(rank, texts, progress=progress)
    if kb.ranker is None:
        answers = rank_mentions(kb_ranker(kb, aliases, k=k), texts, progress=progress)
    else:
        answers = {
            text: order_answers(kb, found.candidates, aliases)
            for text, found in linked.items()
        }
    top = score_candidates(kb, golds, linked, aliases, least_cosine=least_cosine)
    options = DEFAULT_OPTIONS.replace(threshold=threshold, least_cosine=least_cosine)
    used = choose_threshold(kb.manifest, options)
    links = measure_thresholds(top, used)
    step = max(1, len(texts) // max(1, recall_queries))
    content = {
        "settings": {
            **describe_settings(settings),
            "threshold": used,
            "least_cosine": least_cosine,
        },
        "kb": describe_kb(kb),
        "versions": describe_versions(),
        "links": [at.model_dump() for at in links],
        "index_recall": measure_recall(kb, texts[::step][:recall_queries]),
        "files": [
            {
                "file": path.name,
                "sha256": corpus_digest(path),
                **counts,
                **score_mentions(found, answers, lookup, aliases, settings, seen=seen),
            }
            for path, found, counts in selected
        ],
    }
    predictions = [
        row
        for path, found, _ in selected
        for row in list_predictions(path.name, found, answers, k)
    ]
    return Evaluation(content, predictions, named, answers)
