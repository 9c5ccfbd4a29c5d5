"""Held-out concepts → pairs of names that no training saw, by distance and relation.

One concept at least of each pair is held out, so that one name of it is new.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from spacy_sapbert.vocabularies.concepts import Concept
from training.data.families import draw_one, draw_sibling
from training.data.hierarchy import Hierarchy, measure_distances
from training.data.names_by_concept import Named, NamedConcepts
from training.data.pairs import distinct_names
from training.data.relations import Relation
from training.data.tokenized_pairs import hash_text

TRIES = 20  # until two concepts have the distance that is looked for


class NamePair(NamedTuple):
    """Two names to be compared.

    kind (str): The distance of their concepts, or the name of their relation.
    one (str): A name.
    other (str): Another name, in more than case.
    """

    kind: str
    one: str
    other: str


def pair_names(
    kind: str, one: Sequence[str], other: Sequence[str], chance: random.Random
) -> Iterator[NamePair]:
    """Draw a name from each side; nothing comes out if they are equal."""
    names = chance.choice(one), chance.choice(other)
    if names[0].lower() != names[1].lower():
        yield NamePair(kind, *names)


def draw_at_distance(
    concept: Concept,
    distance: int,
    hierarchy: Hierarchy,
    named: NamedConcepts,
    chance: random.Random,
) -> Named | None:
    """Draw a concept that is so far from another.

    concept (Concept): The other one.
    distance (int): 1 for siblings, 2 for parent and child, 3 for neither.
    hierarchy (Hierarchy): Of all concepts.
    named (NamedConcepts): All concepts.
    chance (random.Random): Decides which.
    RETURNS (Named | None): A concept; None if none is found.
    """
    label = hash_text(concept.cui)
    near = [*hierarchy.parents_of(label), *hierarchy.children_of(label)]
    for _ in range(TRIES):
        if distance == 1:
            found = draw_sibling(label, hierarchy, named, chance)
        elif distance == 2:
            found = draw_one(near, named, chance)
        else:
            found = named.look_up("rowid", chance.randint(1, named.count))
        if found is None:
            return None
        labels = np.array([label, hash_text(found[0])])
        if measure_distances(hierarchy, labels)[0, 1] == distance:
            return found
    return None


def pair_by_distance(
    held_out: Iterable[Concept],
    hierarchy: Hierarchy,
    named: NamedConcepts,
    *,
    most: int,
    seed: int = 0,
) -> list[NamePair]:
    """Draw pairs of every distance, one of each for a held-out concept.

    held_out (Iterable[Concept]): The concepts that no training saw.
    hierarchy (Hierarchy): Of all concepts.
    named (NamedConcepts): All concepts.
    most (int): Pairs of a distance at the most.
    seed (int): Which ones; together with the CUI.
    RETURNS (list[NamePair]): By distance, "0" first; of synonyms two names of one
        concept.
    """
    found: dict[str, list[NamePair]] = {str(each): [] for each in range(4)}
    for concept in held_out:
        # Seeded by a text, not by a hash of it: the same for any PYTHONHASHSEED.
        chance = random.Random(f"{seed} {concept.cui}")
        names = distinct_names(concept)
        if len(names) > 1:
            found["0"].append(NamePair("0", *chance.sample(names, 2)))
        for distance in (1, 2, 3):
            other = draw_at_distance(concept, distance, hierarchy, named, chance)
            if other is not None:
                pairs = pair_names(str(distance), names, other[1], chance)
                found[str(distance)].extend(pairs)
    return [
        pair
        for kind, pairs in found.items()
        for pair in keep_some(pairs, most, f"{seed} {kind}")
    ]


def keep_some(pairs: list[NamePair], most: int, seed: str) -> list[NamePair]:
    """Keep at most so many, drawn at random."""
    return random.Random(seed).sample(pairs, most) if len(pairs) > most else pairs


def pair_by_relation(
    held_out: set[str],
    relations: Iterable[Relation],
    named: NamedConcepts,
    *,
    kinds: int,
    most: int,
    seed: int = 0,
) -> list[NamePair]:
    """Draw related pairs of which one concept at least is held out.

    held_out (set[str]): Ids of the concepts that no training saw.
    relations (Iterable[Relation]): Between any concepts.
    named (NamedConcepts): All concepts; its database is used for sorting.
    kinds (int): How many relations, the most frequent ones.
    most (int): Pairs of a relation at the most.
    seed (int): Which ones.
    RETURNS (list[NamePair]): By relation, the most frequent first.
    """
    scratch = named.scratch
    scratch.execute("CREATE TABLE related (rela, one, other)")
    scratch.executemany(
        "INSERT INTO related VALUES (?, ?, ?)",
        (
            relation
            for relation in relations
            if relation[1] != relation[2] and not held_out.isdisjoint(relation[1:])
        ),
    )
    scratch.execute(
        "CREATE TABLE distinctly AS SELECT DISTINCT * FROM related ORDER BY 1, 2, 3"
    )
    common = scratch.execute(
        "SELECT rela FROM distinctly GROUP BY rela "
        "ORDER BY count(*) DESC, rela LIMIT ?",
        (kinds,),
    ).fetchall()
    found: list[NamePair] = []
    for (rela,) in common:
        chance = random.Random(f"{seed} {rela}")
        rows = scratch.execute(
            "SELECT one, other FROM distinctly WHERE rela = ? ORDER BY one, other",
            (rela,),
        )
        pairs: list[NamePair] = []
        for cuis in rows:
            both = [named.look_up("label", hash_text(cui)) for cui in cuis]
            names = [each[1] for each in both if each is not None]
            if len(names) == 2:
                pairs += pair_names(rela, names[0], names[1], chance)
        found += keep_some(pairs, most, f"{seed} {rela}")
    return found
