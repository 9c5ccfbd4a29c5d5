"""encoder/ + held-out concepts → how well cosines tell near concepts from far ones."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer
from wasabi import msg

from training.errors import Errors, SapbertError
from spacy_sapbert.system.reading import file_digest
from spacy_sapbert.system.writing import write_atomically, write_json
from spacy_sapbert.vocabularies.concepts import read_concepts
from spacy_sapbert.vocabularies.temporary_db import open_scratch
from training.data.hierarchy import make_hierarchy
from training.data.names_by_concept import NamedConcepts
from training.data.relations import read_relations
from training.encoders.embedding import embed_names
from training.experiments.held_out_pairs import (
    NamePair,
    pair_by_distance,
    pair_by_relation,
)
from training.experiments.relatedness import judge_distances, judge_relations

FARTHEST = "3"
COMMON = 28  # relations that the paper judges


def draw_pairs(
    concepts_path: Path,
    held_out_path: Path,
    relations_path: Path | None = None,
    *,
    most: int,
    seed: int = 0,
) -> list[NamePair]:
    """Draw the pairs that an encoder is judged by.

    concepts_path (Path): concepts.jsonl, the held-out ones included.
    held_out_path (Path): From `training.data.hold_out`.
    relations_path (Path | None): MRREL.RRF, or the folder of a release.
    most (int): Pairs of a distance, and of a relation, at the most.
    seed (int): Which ones.
    RETURNS (list[NamePair]): By distance, then by relation.
    RAISES (SapbertError): If a file is not usable, or only one distance is found.
    """
    with open_scratch() as scratch:
        named = NamedConcepts(scratch)
        hierarchy = make_hierarchy(named.add(read_concepts(concepts_path)))
        held_out = read_concepts(held_out_path)
        pairs = pair_by_distance(held_out, hierarchy, named, most=most, seed=seed)
        if len({pair.kind for pair in pairs}) < 2:
            raise SapbertError(
                Errors.E762.format(path=held_out_path, concepts=concepts_path)
            )
        if relations_path is not None:
            pairs += pair_by_relation(
                {concept.cui for concept in read_concepts(held_out_path)},
                read_relations(relations_path),
                named,
                kinds=COMMON,
                most=most,
                seed=seed,
            )
    return pairs


def compare_names(encoder: str, pairs: Sequence[NamePair]) -> np.ndarray:
    """Compute the cosines of pairs of names.

    encoder (str): Folder or hub id.
    pairs (Sequence[NamePair]): The pairs.
    RETURNS (np.ndarray): float32. Shape: (pairs,).
    """
    names = sorted({name for pair in pairs for name in pair[1:]})
    rows = {name: row for row, name in enumerate(names)}
    vectors = embed_names(encoder, names)  # (names, width)
    ones = vectors[[rows[pair.one] for pair in pairs]]
    others = vectors[[rows[pair.other] for pair in pairs]]
    cosines: np.ndarray = np.einsum("ij,ij->i", ones, others)
    return cosines


def judge_encoder(encoder: str, pairs: Sequence[NamePair]) -> dict[str, Any]:
    """Judge an encoder by pairs of names.

    encoder (str): Folder or hub id.
    pairs (Sequence[NamePair]): From `draw_pairs`.
    RETURNS (dict[str, Any]): From `judge_distances`, and under "relatedness" from
        `judge_relations` if there are related pairs.
    """
    cosines = compare_names(encoder, pairs)
    kinds = np.array([pair.kind for pair in pairs], dtype=object)
    by_distance = np.array([kind.isdigit() for kind in kinds])
    result = judge_distances(cosines[by_distance], kinds[by_distance].astype(int))
    if not by_distance.all():
        result["relatedness"] = judge_relations(
            cosines[~by_distance],
            kinds[~by_distance].tolist(),
            cosines[kinds == FARTHEST],
        )
    return result


def write_table(result: dict[str, Any]) -> str:
    """Lay a result out for people.

    result (dict[str, Any]): From `judge_encoder`.
    RETURNS (str): Tables in Markdown.
    """
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


def main(
    encoder: str = typer.Argument(..., help="Encoder folder or hub id."),
    concepts_path: Path = typer.Argument(
        ..., metavar="CONCEPTS", help="concepts.jsonl, held-out ones included"
    ),
    held_out_path: Path = typer.Argument(
        ..., metavar="HELD_OUT", help="held_out.jsonl, from training.data.hold_out"
    ),
    output: Path = typer.Argument(..., help="JSON to write; .md beside it."),
    relations_path: Path | None = typer.Option(
        None, "--relations", help="MRREL.RRF, or the folder of a release."
    ),
    most: int = typer.Option(10_000, min=1, help="Pairs of a distance or relation."),
    seed: int = typer.Option(0, help="Which pairs."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """encoder/ + concepts.jsonl + held_out.jsonl -> results.json, results.md

    Example: python -m training.experiments.evaluate_hierarchy models/encoder corpus/concepts.jsonl
    corpus/held_out.jsonl results/hierarchy.json --relations assets/umls
    """
    try:
        pairs = draw_pairs(
            concepts_path, held_out_path, relations_path, most=most, seed=seed
        )
        result = {
            "encoder": encoder,
            "concepts_sha256": file_digest(concepts_path),
            "held_out_sha256": file_digest(held_out_path),
            "most": most,
            "seed": seed,
            **judge_encoder(encoder, pairs),
        }
        table = write_table(result)
        write_json(output, result)
        with write_atomically(output.with_suffix(".md")) as file:
            file.write(table.encode("utf8"))
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        typer.echo(table)
        msg.good(f"Wrote {output} and {output.with_suffix('.md')}")


if __name__ == "__main__":
    typer.run(main)
