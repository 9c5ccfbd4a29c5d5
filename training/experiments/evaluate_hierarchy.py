"""Encoder + held-out concepts → how well cosines separate near from far concepts."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import typer
from wasabi import msg

from spacy_sapbert.system.reading import file_digest
from spacy_sapbert.system.temporary_db import open_temporary_db
from spacy_sapbert.system.writing import write_atomically, write_json
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.data.hierarchy import build_hierarchy
from training.data.pairs import NameTable
from training.data.relations import read_relations
from training.encoders.embedding import embed_names
from training.errors import Errors, SapbertError
from training.experiments.held_out_pairs import (
    NamePair,
    pair_by_distance,
    pair_by_relation,
)

DIGITS = 4
POINTS = 100  # of a precision–recall curve
FARTHEST = "3"
COMMON = 28  # relations in the paper


def import_statistics() -> tuple[Any, Any]:
    """Import sklearn.metrics and scipy.stats."""
    try:
        import sklearn.metrics
        from scipy import stats
    except ImportError as error:
        raise SapbertError(
            Errors.E521.format(
                library="scipy and scikit-learn", reason=error, extra="evaluation"
            )
        ) from None
    return sklearn.metrics, stats


def round_number(value: float | None) -> float | None:
    return None if value is None else round(float(value), DIGITS)


def area_under_curve(near: np.ndarray, far: np.ndarray) -> float | None:
    """Compute the area under the ROC curve of near against far pairs.

    near (np.ndarray): Cosines. Shape: (n,).
    far (np.ndarray): Cosines. Shape: (m,).
    RETURNS (float | None): 0 to 1; None if there are no near or no far pairs.
    """
    if not len(near) or not len(far):
        return None
    metrics, _ = import_statistics()
    is_near = np.arange(len(near) + len(far)) < len(near)
    return float(metrics.roc_auc_score(is_near, np.concatenate((near, far))))


def rank_correlation(cosines: np.ndarray, distances: np.ndarray) -> float | None:
    """Compute Spearman's coefficient of cosines and negative distances.

    RETURNS (float | None): −1 to 1; None if either is constant.
    """
    if len(np.unique(cosines)) < 2 or len(np.unique(distances)) < 2:
        return None
    _, stats = import_statistics()
    return float(stats.spearmanr(cosines, -distances).statistic)


def precision_recall(
    cosines: np.ndarray, near: np.ndarray, *, points: int = POINTS
) -> list[dict[str, float]]:
    """Compute precision and recall at decreasing thresholds.

    cosines (np.ndarray): Shape: (n,).
    near (np.ndarray): Which pairs are to be found, bool. Shape: (n,).
    points (int): Number of thresholds at most, evenly spaced among all cosines.
    RETURNS (list[dict[str, float]]): Threshold, precision and recall; empty if no pair
        is near.
    """
    if not near.any():
        return []
    metrics, _ = import_statistics()
    precision, recall, thresholds = metrics.precision_recall_curve(near, cosines)
    places = np.arange(len(thresholds))[::-1]
    if len(places) > points:
        places = places[np.linspace(0, len(places) - 1, points).round().astype(int)]
    return [
        {
            "cosine": round(float(thresholds[place]), DIGITS),
            "precision": round(float(precision[place]), DIGITS),
            "recall": round(float(recall[place]), DIGITS),
        }
        for place in places.tolist()
    ]


def score_distances(cosines: np.ndarray, distances: np.ndarray) -> dict[str, Any]:
    """Score the cosines of pairs with known distances.

    cosines (np.ndarray): Shape: (n,).
    distances (np.ndarray): Whole numbers. Shape: (n,).
    RETURNS (dict[str, Any]): Number of pairs and mean cosine by distance, the area
        under the ROC curve of each two distances, Spearman's coefficient, and the
        precision–recall curve of the pairs up to each distance but the largest.
    """
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
        "precision_recall": {
            str(each): precision_recall(cosines, distances <= each)
            for each in known[:-1]
        },
    }


def score_relations(
    cosines: np.ndarray, relations: Sequence[str], random: np.ndarray
) -> dict[str, Any]:
    """Score the cosines of related pairs against those of random pairs.

    cosines (np.ndarray): Cosines of related pairs. Shape: (n,).
    relations (Sequence[str]): The relation of each.
    random (np.ndarray): Cosines of random pairs. Shape: (m,).
    RETURNS (dict[str, Any]): Number of pairs and area under the ROC curve by relation,
        the most frequent first; and the mean area.
    """
    names = np.array(relations, dtype=object)
    known = sorted(set(relations), key=lambda name: (-int((names == name).sum()), name))
    areas = {name: area_under_curve(cosines[names == name], random) for name in known}
    found = [area for area in areas.values() if area is not None]
    return {
        "relations": {
            name: {"pairs": int((names == name).sum()), "auc": round_number(area)}
            for name, area in areas.items()
        },
        "mean_auc": round(float(np.mean(found)), DIGITS) if found else None,
    }


def draw_pairs(
    concepts_path: Path,
    held_out_path: Path,
    relations_path: Path | None = None,
    *,
    most: int,
    seed: int = 0,
) -> list[NamePair]:
    """Draw the pairs of names for an evaluation.

    concepts_path (Path): concepts.jsonl, with the held-out concepts.
    held_out_path (Path): concepts.jsonl of the held-out concepts.
    relations_path (Path | None): MRREL.RRF, or the folder of a release.
    most (int): Pairs of a distance, and of a relation, at most.
    RETURNS (list[NamePair]): By distance, then by relation.
    RAISES (SapbertError): If a file is not usable, or there is only one distance.
    """
    with open_temporary_db() as scratch:
        table = NameTable(scratch)
        hierarchy = build_hierarchy(table.add(read_concepts(concepts_path)))
        held_out = read_concepts(held_out_path)
        pairs = pair_by_distance(held_out, hierarchy, table, most=most, seed=seed)
        if len({pair.kind for pair in pairs}) < 2:
            raise SapbertError(
                Errors.E762.format(path=held_out_path, concepts=concepts_path)
            )
        if relations_path is not None:
            pairs += pair_by_relation(
                {concept.cui for concept in read_concepts(held_out_path)},
                read_relations(relations_path),
                table,
                kinds=COMMON,
                most=most,
                seed=seed,
            )
    return pairs


def compare_names(encoder: str, pairs: Sequence[NamePair]) -> np.ndarray:
    """Compute the cosines of pairs of names, float32. Shape: (pairs,)."""
    names = sorted({name for pair in pairs for name in pair[1:]})
    rows = {name: row for row, name in enumerate(names)}
    vectors = embed_names(encoder, names)  # (names, width)
    ones = vectors[[rows[pair.one] for pair in pairs]]
    others = vectors[[rows[pair.other] for pair in pairs]]
    cosines: np.ndarray = np.einsum("ij,ij->i", ones, others)
    return cosines


def score_encoder(encoder: str, pairs: Sequence[NamePair]) -> dict[str, Any]:
    """Score an encoder, a folder or hub id, with the pairs of `draw_pairs`.

    RETURNS (dict[str, Any]): From `score_distances`; under "relatedness" from
        `score_relations` if there are related pairs.
    """
    cosines = compare_names(encoder, pairs)
    kinds = np.array([pair.kind for pair in pairs], dtype=object)
    by_distance = np.array([kind.isdigit() for kind in kinds])
    result = score_distances(cosines[by_distance], kinds[by_distance].astype(int))
    if not by_distance.all():
        result["relatedness"] = score_relations(
            cosines[~by_distance],
            kinds[~by_distance].tolist(),
            cosines[kinds == FARTHEST],
        )
    return result


def format_tables(result: dict[str, Any]) -> str:
    """Format the result of `score_encoder` as Markdown."""
    lines = ["| distance | pairs | mean cosine |", "|---|---:|---:|"]
    for each, count in result["pairs"].items():
        lines.append(f"| {each} | {count:,} | {result['mean_cosine'][each]:.3f} |")
    lines += ["", "| distances | AUC |", "|---|---:|"]
    lines += [f"| {name} | {area:.3f} |" for name, area in result["auc"].items()]
    spearman = result["spearman"]
    shown = "–" if spearman is None else f"{spearman:.3f}"
    lines.append(f"| Spearman | {shown} |")
    related = result.get("relatedness")
    if related and related["mean_auc"] is not None:
        lines += ["", "| relation | pairs | AUC |", "|---|---:|---:|"]
        for name, found in related["relations"].items():
            lines.append(f"| `{name}` | {found['pairs']:,} | {found['auc']:.3f} |")
        lines.append(f"| mean | | {related['mean_auc']:.3f} |")
    return "\n".join(lines) + "\n"


def evaluate_hierarchy_command(
    encoder: str = typer.Argument(..., help="Encoder folder or hub id."),
    concepts_path: Path = typer.Argument(
        ..., metavar="CONCEPTS", help="concepts.jsonl, with held-out concepts"
    ),
    held_out_path: Path = typer.Argument(
        ..., metavar="HELD_OUT", help="held_out.jsonl, from the command hold-out"
    ),
    output: Path = typer.Argument(..., help="JSON to write; .md beside it."),
    relations_path: Path | None = typer.Option(
        None, "--relations", help="MRREL.RRF, or the folder of a release."
    ),
    most: int = typer.Option(
        10_000, min=1, help="Pairs of a distance or relation at most."
    ),
    seed: int = typer.Option(0, help="Seed of the pairs."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """Example: python -m training evaluate-hierarchy models/encoder
    corpus/concepts.jsonl corpus/held_out.jsonl results/hierarchy.json
    --relations assets/umls
    """
    pairs = draw_pairs(
        concepts_path, held_out_path, relations_path, most=most, seed=seed
    )
    result = {
        "encoder": encoder,
        "concepts_sha256": file_digest(concepts_path),
        "held_out_sha256": file_digest(held_out_path),
        "most": most,
        "seed": seed,
        **score_encoder(encoder, pairs),
    }
    table = format_tables(result)
    write_json(output, result)
    with write_atomically(output.with_suffix(".md")) as file:
        file.write(table.encode("utf8"))
    if not quiet:
        typer.echo(table)
        msg.good(f"Wrote {output} and {output.with_suffix('.md')}")
