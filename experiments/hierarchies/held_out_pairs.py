"""Held-out concepts → pairs of names for evaluation, by distance and relation.

At least one concept of each pair is held out, so at least one name is new.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.temporary_db import open_temporary_db
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts
from training.data.families import draw_one, draw_sibling
from training.data.hierarchy import Hierarchy, build_hierarchy, compute_distances
from training.data.pairs import ConceptNames, NameTable, distinct_names, hash_text
from training.data.relations import Relation, read_relations

TRIES = 20  # to draw a concept with the right distance
COMMON = 28  # relations in the paper


class NamePair(NamedTuple):
    """Two names, and the distance or relation of their concepts."""

    kind: str
    one: str
    other: str


def pair_names(
    kind: str, one: Sequence[str], other: Sequence[str], rng: random.Random
) -> Iterator[NamePair]:
    """Draw a name from each side; yield nothing if they differ in case only."""
    names = rng.choice(one), rng.choice(other)
    if names[0].lower() != names[1].lower():
        yield NamePair(kind, *names)


def draw_at_distance(
    concept: Concept,
    distance: int,
    hierarchy: Hierarchy,
    table: NameTable,
    rng: random.Random,
) -> ConceptNames | None:
    """Draw a sibling (1), a parent or child (2), or neither (3) of a concept."""
    label = hash_text(concept.cui)
    near = [*hierarchy.parents_of(label), *hierarchy.children_of(label)]
    for _ in range(TRIES):
        if distance == 1:
            found = draw_sibling(label, hierarchy, table, rng)
        elif distance == 2:
            found = draw_one(near, table, rng)
        else:
            found = table.find("rowid", rng.randint(1, max(table.count, 1)))
        if found is None:
            return None
        labels = np.array([label, hash_text(found[0])])
        if compute_distances(hierarchy, labels)[0, 1] == distance:
            return found
    return None


def pair_by_distance(
    held_out: Iterable[Concept],
    hierarchy: Hierarchy,
    table: NameTable,
    *,
    most: int,
    seed: int,
) -> list[NamePair]:
    """Draw a pair of each distance for each held-out concept, `most` of a distance.

    The pairs of distance "0" come first: two names of one concept.
    """
    found: dict[str, list[NamePair]] = {str(each): [] for each in range(4)}
    for concept in held_out:
        # Seeded by a text, not by its hash, which depends on PYTHONHASHSEED.
        rng = random.Random(f"{seed} {concept.cui}")
        names = distinct_names(concept)
        if len(names) > 1:
            found["0"].append(NamePair("0", *rng.sample(names, 2)))
        for distance in (1, 2, 3):
            other = draw_at_distance(concept, distance, hierarchy, table, rng)
            if other is not None:
                pairs = pair_names(str(distance), names, other[1], rng)
                found[str(distance)].extend(pairs)
    return [
        pair
        for kind, pairs in found.items()
        for pair in keep_some(pairs, most, f"{seed} {kind}")
    ]


def keep_some(pairs: list[NamePair], most: int, seed: str) -> list[NamePair]:
    """Return at most `most` pairs, drawn at random."""
    return random.Random(seed).sample(pairs, most) if len(pairs) > most else pairs


def pair_by_relation(
    held_out: set[str],
    relations: Iterable[Relation],
    table: NameTable,
    *,
    most: int,
    seed: int,
) -> list[NamePair]:
    """Draw pairs of the most frequent relations, with at least one held-out concept.

    Args:
        held_out: Ids of the held-out concepts.
        table: All concepts; its database sorts the relations.
        most: Pairs of a relation at most.
    """
    scratch = table.scratch
    scratch.execute(
        "CREATE TABLE related (rela, one, other, PRIMARY KEY (rela, one, other)) "
        "WITHOUT ROWID"
    )
    scratch.executemany(
        "INSERT OR IGNORE INTO related VALUES (?, ?, ?)",
        (
            relation
            for relation in relations
            if relation[1] != relation[2] and not held_out.isdisjoint(relation[1:])
        ),
    )
    common = scratch.execute(
        "SELECT rela FROM related GROUP BY rela ORDER BY count(*) DESC, rela LIMIT ?",
        (COMMON,),
    ).fetchall()
    found: list[NamePair] = []
    for (rela,) in common:
        rng = random.Random(f"{seed} {rela}")
        rows = scratch.execute(
            "SELECT one, other FROM related WHERE rela = ? ORDER BY one, other",
            (rela,),
        )
        pairs: list[NamePair] = []
        for cuis in rows:
            both = [table.find("label", hash_text(cui)) for cui in cuis]
            names = [each[1] for each in both if each is not None]
            if len(names) == 2:
                pairs += pair_names(rela, names[0], names[1], rng)
        found += keep_some(pairs, most, f"{seed} {rela}")
    return found


def draw_pairs(
    concepts_path: Path,
    held_out_path: Path,
    relations_path: Path | None = None,
    *,
    most: int,
    seed: int = 0,
) -> list[NamePair]:
    """Draw the pairs of names for an evaluation, by distance, then by relation.

    Args:
        concepts_path: concepts.jsonl, with the held-out concepts.
        held_out_path: concepts.jsonl of the held-out concepts.
        relations_path: MRREL.RRF, or the folder of a release.
        most: Pairs of a distance, and of a relation, at most.
    """
    with open_temporary_db() as scratch:
        table = NameTable(scratch)
        hierarchy = build_hierarchy(table.add(read_concepts(concepts_path)))
        held_out = read_concepts(held_out_path)
        pairs = pair_by_distance(held_out, hierarchy, table, most=most, seed=seed)
        if len({pair.kind for pair in pairs}) < 2:
            raise SapbertError(
                "E106",
                f"Expected pairs of two distances or more from {held_out_path}, but "
                f"got fewer. Name the part of {concepts_path} that `python -m "
                "training hold-out` wrote, or hold out more.",
            )
        if relations_path is not None:
            pairs += pair_by_relation(
                {concept.cui for concept in read_concepts(held_out_path)},
                read_relations(relations_path),
                table,
                most=most,
                seed=seed,
            )
    return pairs
