"""Encoder + held-out concepts → how well cosines separate near from far concepts."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import typer

from benchmarks.harness import run_cli
from experiments.hierarchies.held_out_pairs import NamePair, draw_pairs
from spacy_sapbert.io.plugins import require
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_outputs, write_json
from training.data.options import Force, format_markdown
from training.encoders.open import open_encoder

DIGITS = 4
FARTHEST = "3"
PACKAGES = "scipy scikit-learn"

Scores = dict[str, Any]


def area_under_curve(near: np.ndarray, far: np.ndarray) -> float | None:
    """Compute the area under the ROC curve of the cosines of near and of far pairs.

    None if there are no near or no far pairs.
    """
    if not len(near) or not len(far):
        return None
    metrics = require("sklearn.metrics", PACKAGES)
    is_near = np.arange(len(near) + len(far)) < len(near)
    area = metrics.roc_auc_score(is_near, np.concatenate((near, far)))
    return round(float(area), DIGITS)


def rank_correlation(cosines: np.ndarray, distances: np.ndarray) -> float | None:
    """Compute Spearman's coefficient of cosines and negative distances.

    None if either is constant.
    """
    if len(np.unique(cosines)) < 2 or len(np.unique(distances)) < 2:
        return None
    stats = require("scipy.stats", PACKAGES)
    return round(float(stats.spearmanr(cosines, -distances).statistic), DIGITS)


def score_distances(cosines: np.ndarray, distances: np.ndarray) -> Scores:
    """Score the cosines of pairs with known distances, whole numbers. Shape: (n,).

    Returns:
        Number of pairs by distance, "auc" of each two distances, and "spearman".
    """
    by_distance = {n: cosines[distances == n] for n in sorted({*distances.tolist()})}
    return {
        "pairs": {str(n): len(found) for n, found in by_distance.items()},
        "auc": {
            f"{one}-{other}": area_under_curve(by_distance[one], by_distance[other])
            for one, other in combinations(by_distance, 2)
        },
        "spearman": rank_correlation(cosines, distances),
    }


def score_relations(
    cosines: np.ndarray, relations: np.ndarray, random: np.ndarray
) -> Scores:
    """Score the cosines of related pairs, (n,), against those of random pairs, (m,).

    Returns:
        Scores by relation, the most frequent first, and the mean area.
    """
    counts = Counter(relations.tolist())
    areas = {
        name: area_under_curve(cosines[relations == name], random)
        for name in sorted(counts, key=lambda name: (-counts[name], name))
    }
    found = [area for area in areas.values() if area is not None]
    return {
        "relations": {n: {"pairs": counts[n], "auc": a} for n, a in areas.items()},
        "mean_auc": round(float(np.mean(found)), DIGITS) if found else None,
    }


def score_encoder(encoder: str, pairs: Sequence[NamePair]) -> Scores:
    """Score an encoder, a folder or hub id, with the pairs of `draw_pairs`."""
    names = sorted({name for pair in pairs for name in pair[1:]})
    rows = {name: row for row, name in enumerate(names)}
    vectors = open_encoder(encoder).embed(names)
    ones = vectors[[rows[pair.one] for pair in pairs]]
    others = vectors[[rows[pair.other] for pair in pairs]]
    cosines = np.einsum("ij,ij->i", ones, others)  # (pairs,)
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
    counts = [[each, f"{count:,}"] for each, count in scores["pairs"].items()]
    lines = format_markdown(["distance", "pairs"], counts)
    areas = [[name, format_area(area)] for name, area in scores["auc"].items()]
    areas.append(["Spearman", format_area(scores["spearman"])])
    lines += ["", *format_markdown(["distances", "AUC"], areas)]
    if related := scores.get("relatedness"):
        rows = [
            [f"`{name}`", f"{found['pairs']:,}", format_area(found["auc"])]
            for name, found in related["relations"].items()
        ]
        rows.append(["mean", "", format_area(related["mean_auc"])])
        lines += ["", *format_markdown(["relation", "pairs", "AUC"], rows)]
    return "\n".join(lines) + "\n"


def main(
    encoder: str = typer.Argument(..., help="Encoder folder or hub id."),
    concepts: Path = typer.Argument(..., help="concepts.jsonl, of all concepts."),
    held_out: Path = typer.Argument(..., help="held_out.jsonl, from hold-out."),
    output: Path = typer.Argument(..., help="JSON to write."),
    relations: Path | None = typer.Option(
        None, help="MRREL.RRF, or the folder of a release."
    ),
    most: int = typer.Option(
        10_000, min=1, help="Pairs of a distance or relation at most."
    ),
    seed: int = typer.Option(0, help="Seed of the pairs."),
    force: Force = False,
) -> None:
    """Measure how well cosines separate near from far concepts.

    Example: python -m experiments.hierarchies.evaluate_hierarchy models/encoder
    corpus/concepts.jsonl corpus/held_out.jsonl results/hierarchy.json
    --relations assets/umls
    """
    check_outputs(output, force=force)
    for module in ("sklearn.metrics", "scipy.stats"):  # before the encoder runs
        require(module, PACKAGES)
    pairs = draw_pairs(concepts, held_out, relations, most=most, seed=seed)
    scores = score_encoder(encoder, pairs)
    write_json(output, {"encoder": encoder, "most": most, "seed": seed, **scores})
    typer.echo(format_tables(scores))
    msg.good(f"Wrote {output}")


if __name__ == "__main__":
    run_cli(main)
