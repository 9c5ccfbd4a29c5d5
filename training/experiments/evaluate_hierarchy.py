"""Encoder + held-out concepts → how well cosines separate near from far concepts."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import typer

from spacy_sapbert.io.plugins import require
from spacy_sapbert.io.reading import file_digest
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import (
    check_name,
    check_outputs,
    write_atomically,
    write_json,
)
from training.data.options import Force, Quiet, format_markdown
from training.encoders.open import open_encoder
from training.experiments.held_out_pairs import NamePair, draw_pairs

DIGITS = 4
FARTHEST = "3"
PACKAGES = "scipy scikit-learn"

Scores = dict[str, Any]


def round_number(value: float | None) -> float | None:
    return None if value is None else round(float(value), DIGITS)


def area_under_curve(near: np.ndarray, far: np.ndarray) -> float | None:
    """Compute the area under the ROC curve of the cosines of near and of far pairs.

    None if there are no near or no far pairs.
    """
    if not len(near) or not len(far):
        return None
    metrics = require("sklearn.metrics", PACKAGES)
    is_near = np.arange(len(near) + len(far)) < len(near)
    return float(metrics.roc_auc_score(is_near, np.concatenate((near, far))))


def rank_correlation(cosines: np.ndarray, distances: np.ndarray) -> float | None:
    """Compute Spearman's coefficient of cosines and negative distances.

    None if either is constant.
    """
    if len(np.unique(cosines)) < 2 or len(np.unique(distances)) < 2:
        return None
    stats = require("scipy.stats", PACKAGES)
    return float(stats.spearmanr(cosines, -distances).statistic)


def score_distances(cosines: np.ndarray, distances: np.ndarray) -> Scores:
    """Score the cosines of pairs with known distances, whole numbers. Shape: (n,).

    Returns:
        Number of pairs and mean cosine by distance, "auc" of each two distances,
        "spearman", and "average_precision", the area under the curve of precision by
        recall of the pairs up to each distance but the largest.
    """
    metrics = require("sklearn.metrics", PACKAGES)
    known = sorted(set(distances.tolist()))
    by_distance = {each: cosines[distances == each] for each in known}
    return {
        "pairs": {str(each): len(found) for each, found in by_distance.items()},
        "mean_cosine": {
            str(each): round(float(found.mean()), DIGITS)
            for each, found in by_distance.items()
        },
        "auc": {
            f"{one}-{other}": round_number(
                area_under_curve(by_distance[one], by_distance[other])
            )
            for one, other in combinations(known, 2)
        },
        "spearman": round_number(rank_correlation(cosines, distances)),
        "average_precision": {
            str(each): round_number(
                metrics.average_precision_score(distances <= each, cosines)
            )
            for each in known[:-1]
        },
    }


def score_relations(
    cosines: np.ndarray, relations: np.ndarray, random: np.ndarray
) -> Scores:
    """Score the cosines of related pairs, (n,), against those of random pairs, (m,).

    Returns:
        Scores by relation, the most frequent first, and the mean area.
    """
    counts = Counter(relations.tolist())
    known = sorted(counts, key=lambda name: (-counts[name], name))
    areas = {
        each: area_under_curve(cosines[relations == each], random) for each in known
    }
    found = [area for area in areas.values() if area is not None]
    return {
        "relations": {
            name: {"pairs": counts[name], "auc": round_number(area)}
            for name, area in areas.items()
        },
        "mean_auc": round(float(np.mean(found)), DIGITS) if found else None,
    }


def compare_names(encoder: str, pairs: Sequence[NamePair]) -> np.ndarray:
    """Compute the cosines of pairs of names, float32. Shape: (pairs,)."""
    names = sorted({name for pair in pairs for name in pair[1:]})
    rows = {name: row for row, name in enumerate(names)}
    vectors = open_encoder(encoder).embed(names)
    ones = vectors[[rows[pair.one] for pair in pairs]]
    others = vectors[[rows[pair.other] for pair in pairs]]
    cosines: np.ndarray = np.einsum("ij,ij->i", ones, others)
    return cosines


def score_encoder(encoder: str, pairs: Sequence[NamePair]) -> Scores:
    """Score an encoder, a folder or hub id, with the pairs of `draw_pairs`."""
    cosines = compare_names(encoder, pairs)
    kinds = np.array([pair.kind for pair in pairs], dtype=object)
    by_distance = np.array([kind.isdigit() for kind in kinds])
    result = score_distances(cosines[by_distance], kinds[by_distance].astype(int))
    if not by_distance.all():
        result["relatedness"] = score_relations(
            cosines[~by_distance], kinds[~by_distance], cosines[kinds == FARTHEST]
        )
    return result


def format_area(area: float | None) -> str:
    return "–" if area is None else f"{area:.3f}"


def format_tables(scores: Scores) -> str:
    """Format the result of `score_encoder` as Markdown."""
    columns = (scores["mean_cosine"], scores["average_precision"])
    lines = format_markdown(
        ["distance", "pairs", "mean cosine", "average precision up to it"],
        [
            [each, f"{count:,}", *(format_area(c.get(each)) for c in columns)]
            for each, count in scores["pairs"].items()
        ],
    )
    areas = [[name, format_area(area)] for name, area in scores["auc"].items()]
    areas.append(["Spearman", format_area(scores["spearman"])])
    lines += ["", *format_markdown(["distances", "AUC"], areas)]
    related = scores.get("relatedness")
    if related and related["mean_auc"] is not None:
        rows = [
            [f"`{name}`", f"{found['pairs']:,}", format_area(found["auc"])]
            for name, found in related["relations"].items()
        ]
        rows.append(["mean", "", format_area(related["mean_auc"])])
        lines += ["", *format_markdown(["relation", "pairs", "AUC"], rows)]
    return "\n".join(lines) + "\n"


def evaluate_hierarchy_command(
    encoder: str = typer.Argument(..., help="Encoder folder or hub id."),
    concepts: Path = typer.Argument(..., help="concepts.jsonl, of all concepts."),
    held_out: Path = typer.Argument(..., help="held_out.jsonl, from hold-out."),
    output: Path = typer.Argument(..., help="JSON to write; .md beside it."),
    relations: Path | None = typer.Option(
        None, help="MRREL.RRF, or the folder of a release."
    ),
    most: int = typer.Option(
        10_000, min=1, help="Pairs of a distance or relation at most."
    ),
    seed: int = typer.Option(0, help="Seed of the pairs."),
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Measure how well cosines separate near from far concepts.

    Example: python -m training evaluate-hierarchy models/encoder
    corpus/concepts.jsonl corpus/held_out.jsonl results/hierarchy.json
    --relations assets/umls
    """
    check_name(output)
    check_outputs(output, output.with_suffix(".md"), force=force)
    for module in ("sklearn.metrics", "scipy.stats"):  # before the encoder runs
        require(module, PACKAGES)
    pairs = draw_pairs(concepts, held_out, relations, most=most, seed=seed)
    scores = score_encoder(encoder, pairs)
    result = {
        "encoder": encoder,
        "concepts_sha256": file_digest(concepts),
        "held_out_sha256": file_digest(held_out),
        "most": most,
        "seed": seed,
        **scores,
    }
    table = format_tables(scores)
    write_json(output, result)
    with write_atomically(output.with_suffix(".md")) as file:
        file.write(table.encode("utf8"))
    if not quiet:
        typer.echo(table)
        msg.good(f"Wrote {output} and {output.with_suffix('.md')}")
