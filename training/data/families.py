"""concepts.jsonl → families.tsv: concepts and their relatives, two names of each.

Hardly any two concepts of a random batch are related. So each concept with parents or
children, the anchor, is written with a sibling and with a parent or child; a batch of
such families has every distance. A line has the format of pairs.tsv.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.temporary_db import open_temporary_db
from spacy_sapbert.io.writing import check_outputs
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts
from training.data.hierarchy import FAMILY, Hierarchy, build_hierarchy
from training.data.options import Concepts, Force, Quiet, print_counts
from training.data.pairs import (
    ConceptNames,
    NameTable,
    distinct_names,
    hash_text,
    write_lines,
)


def draw_one(
    labels: Sequence[Any], table: NameTable, rng: random.Random
) -> ConceptNames | None:
    """Draw one of the concepts with these hashes of ids that are in the table."""
    start = rng.randrange(len(labels)) if len(labels) else 0
    for number in range(len(labels)):
        found = table.find("label", labels[(start + number) % len(labels)])
        if found is not None:
            return found
    return None


def draw_sibling(
    label: int, hierarchy: Hierarchy, table: NameTable, rng: random.Random
) -> ConceptNames | None:
    """Draw a sibling of the concept with this hash; None if there is none."""
    parents = list(hierarchy.parents_of(label))
    rng.shuffle(parents)
    for parent in parents:
        children = hierarchy.children_of(parent)
        found = draw_one(children[children != label], table, rng)
        if found is not None:
            return found
    return None


def draw_family(
    concept: Concept, hierarchy: Hierarchy, table: NameTable, *, seed: int
) -> list[ConceptNames]:
    """Draw the relatives of a concept.

    Returns:
        Anchor, sibling, and a parent or child, two names of each. Another parent or
        child replaces a missing sibling, and a random concept whatever is still
        missing. Empty if the anchor has no relative.
    """
    # Seeded by a text, not by its hash, which depends on PYTHONHASHSEED.
    rng = random.Random(f"{seed} {concept.cui}")
    label = hash_text(concept.cui)
    sibling = draw_sibling(label, hierarchy, table, rng)
    near = [*hierarchy.parents_of(label), *hierarchy.children_of(label)]
    relatives = [] if sibling is None else [sibling]
    while len(relatives) < FAMILY - 1:
        known = {hash_text(cui) for cui, _ in relatives}
        near = [each for each in near if each not in known]
        found = draw_one(near, table, rng)
        if found is None:
            break
        relatives.append(found)
    if not relatives:
        return []
    while len(relatives) < FAMILY - 1:
        other = table.find("rowid", rng.randint(1, table.count))
        if other is not None and other[0] != concept.cui:
            relatives.append(other)
    return [
        (cui, rng.sample(names, 2) if len(names) > 1 else names * 2)
        for cui, names in [(concept.cui, distinct_names(concept)), *relatives]
    ]


def write_families(
    concepts: Concepts,
    families: Annotated[Path, typer.Argument(help="families.tsv to write.")],
    seed: Annotated[int, typer.Option(help="Seed of relatives and names.")] = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> dict[str, int]:
    """Write the families of a vocabulary; concepts without a relative have none.

    Example: python -m training families assets/concepts.jsonl corpus/families.tsv
    """
    check_outputs(families, force=force)
    with open_temporary_db() as scratch:
        table = NameTable(scratch)
        hierarchy = build_hierarchy(table.add(read_concepts(concepts)))
        pairs = (
            (cui, one, other)
            for concept in read_concepts(concepts)
            for cui, (one, other) in draw_family(concept, hierarchy, table, seed=seed)
        )
        lines = write_lines(
            pairs,
            families,
            lambda: SapbertError(
                "E106",
                f"Expected concepts in {concepts} with parents or siblings in "
                "the same file, but got none. Read a vocabulary that has a hierarchy.",
            ),
        )
        counts = {
            "concepts": table.count,
            "steps from child to parent": len(hierarchy.children),
            "families": lines // FAMILY,
        }
    print_counts(counts, families, quiet=quiet)
    return counts
