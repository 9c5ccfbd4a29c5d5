"""concepts.jsonl → families.tsv: concepts and their relatives, two names of each.

Among concepts drawn at random hardly two are related. So a concept with parents or
children, the anchor, is written together with a sibling and a parent or child of it;
in a batch of such families every distance occurs. A line is like one of pairs.tsv.
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from wasabi import msg

from training.errors import Errors, SapbertError
from spacy_sapbert.system.writing import write_atomically
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts
from spacy_sapbert.vocabularies.temporary_db import open_scratch
from training.data.hierarchy import FAMILY, Hierarchy, make_hierarchy
from training.data.names_by_concept import Named, NamedConcepts
from training.data.pairs import Pair, distinct_names
from training.data.tokenized_pairs import hash_text


def draw_one(
    labels: Sequence[Any], named: NamedConcepts, chance: random.Random
) -> Named | None:
    """Draw one of some concepts; those that are not there are passed over.

    labels (Sequence[int]): Hashes of their ids; few, or nearly all there.
    named (NamedConcepts): Names of those that are there.
    chance (random.Random): Decides which.
    RETURNS (Named | None): A concept; None if none is there.
    """
    start = chance.randrange(len(labels)) if len(labels) else 0
    for number in range(len(labels)):
        found = named.look_up("label", labels[(start + number) % len(labels)])
        if found is not None:
            return found
    return None


def draw_sibling(
    label: int, hierarchy: Hierarchy, named: NamedConcepts, chance: random.Random
) -> Named | None:
    """Draw a sibling of a concept; see `draw_one`."""
    parents = list(hierarchy.parents_of(label))
    chance.shuffle(parents)
    for parent in parents:
        children = hierarchy.children_of(parent)
        found = draw_one(children[children != label], named, chance)
        if found is not None:
            return found
    return None


def draw_family(
    concept: Concept, hierarchy: Hierarchy, named: NamedConcepts, *, seed: int
) -> list[Named]:
    """Draw the relatives of a concept.

    concept (Concept): The anchor.
    hierarchy (Hierarchy): The hierarchy.
    named (NamedConcepts): All concepts.
    seed (int): Together with the CUI it decides which.
    RETURNS (list[Named]): Anchor, sibling, and a parent or child. Where there is no
        sibling another parent or child stands for it, and for what is still missing
        any other concept. Empty if the anchor has no relative.
    """
    # Seeded by a text, not by a hash of it: the same for any PYTHONHASHSEED.
    chance = random.Random(f"{seed} {concept.cui}")
    label = hash_text(concept.cui)
    sibling = draw_sibling(label, hierarchy, named, chance)
    near = [*hierarchy.parents_of(label), *hierarchy.children_of(label)]
    relatives = [] if sibling is None else [sibling]
    while len(relatives) < FAMILY - 1:
        known = {hash_text(cui) for cui, _ in relatives}
        near = [each for each in near if each not in known]
        found = draw_one(near, named, chance)
        if found is None:
            break
        relatives.append(found)
    if not relatives:
        return []
    while len(relatives) < FAMILY - 1:
        other = named.look_up("rowid", chance.randint(1, named.count))
        if other is not None and other[0] != concept.cui:
            relatives.append(other)
    return [
        (cui, chance.sample(names, 2) if len(names) > 1 else names * 2)
        for cui, names in [(concept.cui, distinct_names(concept)), *relatives]
    ]


def make_families(
    concepts_path: Path, hierarchy: Hierarchy, named: NamedConcepts, *, seed: int
) -> Iterator[Pair]:
    """Draw the families of all anchors; see `draw_family`.

    YIELDS (Pair): The lines, each family's together, the anchor's first.
    """
    for concept in read_concepts(concepts_path):
        for cui, (one, other) in draw_family(concept, hierarchy, named, seed=seed):
            yield cui, one, other


def write_families(concepts_path: Path, path: Path, *, seed: int = 0) -> dict[str, int]:
    """Write the families of a vocabulary.

    concepts_path (Path): concepts.jsonl with parents; it is read twice.
    path (Path): families.tsv, or families.tsv.gz.
    seed (int): Which relatives and names.
    RETURNS (dict[str, int]): How many concepts, steps from child to parent, and
        families there were.
    RAISES (SapbertError): If no concept has a parent that is there, or a sibling.
    """
    with open_scratch() as scratch, write_atomically(path) as file:
        named = NamedConcepts(scratch)
        hierarchy = make_hierarchy(named.add(read_concepts(concepts_path)))
        lines = 0
        for pair in make_families(concepts_path, hierarchy, named, seed=seed):
            file.write("\t".join(pair).encode("utf8") + b"\n")
            lines += 1
        if not lines:
            raise SapbertError(Errors.E756.format(path=concepts_path))
        return {
            "concepts": named.count,
            "steps": len(hierarchy.children),
            "families": lines // FAMILY,
        }


def main(
    concepts_path: Path = typer.Argument(
        ..., metavar="CONCEPTS", help="concepts.jsonl"
    ),
    families_path: Path = typer.Argument(
        ..., metavar="FAMILIES", help="families.tsv to write"
    ),
    seed: int = typer.Option(0, help="Which relatives and names."),
    quiet: bool = typer.Option(False, help="Print nothing but errors."),
) -> None:
    """concepts.jsonl -> families.tsv

    Example: python -m training.data.families assets/concepts.jsonl corpus/families.tsv
    """
    try:
        counts = write_families(concepts_path, families_path, seed=seed)
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if not quiet:
        msg.table(
            [
                ("Concepts", counts["concepts"]),
                ("Steps from child to parent", counts["steps"]),
                ("Families", counts["families"]),
            ]
        )
        msg.good(f"Wrote {families_path}")


if __name__ == "__main__":
    typer.run(main)
