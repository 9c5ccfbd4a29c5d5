"""Merge concepts with the same id, of one vocabulary or of several."""

import json
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby
from operator import attrgetter

from ..errors import Errors, SapbertError
from ..system.temporary_db import open_temporary_db
from .concepts import PLACES, VALUES, Concept, concept_to_json

BATCH = 10_000  # concepts of one id that are united at once
get_cui = attrgetter("cui")


def unite_vocabularies(inputs: Sequence[Iterable[Concept]]) -> Iterator[Concept]:
    """Merge vocabularies in constant memory.

    Args:
        inputs: Each sorted by id; the vocabulary whose names and definitions are
            preferred first.

    Yields:
        Each concept once, sorted by id.
    """
    for cui, same in groupby(merge(*inputs, key=get_cui), key=get_cui):
        batch: list[Concept] = []
        for concept in same:
            batch.append(concept)
            # a file may have one id a million times
            if len(batch) > BATCH + len(batch[0].aliases) // 4:
                batch = [unite_concepts(batch)]
                if count_values(batch[0]) > VALUES:
                    raise SapbertError(Errors.E123.format(limit=VALUES, cui=cui[:40]))
        yield unite_concepts(batch)


def count_values(concept: Concept) -> int:
    """Return the number of names, types, codes, parents and retired ids."""
    lists = (concept.aliases, concept.types, concept.parents, concept.retired)
    return sum(map(len, (*lists, *concept.codes.values())))


def sort_concepts(concepts: Iterable[Concept]) -> Iterator[Concept]:
    """Sort concepts by id on the disk, and merge those of the same id."""
    with open_temporary_db() as database:
        database.execute("CREATE TABLE concepts (cui, data)")
        database.executemany(
            "INSERT INTO concepts VALUES (?, ?)",
            (
                (concept.cui, json.dumps(concept_to_json(concept)))
                for concept in concepts
            ),
        )
        # SQLite compares texts by their UTF-8 bytes, Python by code point: the same
        rows = database.execute("SELECT data FROM concepts ORDER BY cui, rowid")
        stored = (load_concept(data) for (data,) in rows)
        yield from unite_vocabularies([stored])


def load_concept(data: str) -> Concept:
    """Load a concept that `concept_to_json` converted."""
    fields = json.loads(data)
    del fields["name"]
    return Concept(**fields)


def unite_concepts(concepts: list[Concept]) -> Concept:
    """Merge concepts with the same id into the first one.

    The preferred name is that of the first concept, the definition that of the first
    that has one; other fields are joined in this order.
    """
    united, *others = concepts
    if not others:
        return united
    unite_names(concepts)
    for field in ("types", "parents", "retired"):
        values = (value for concept in concepts for value in getattr(concept, field))
        setattr(united, field, list(dict.fromkeys(values)))
    codes: dict[str, dict[str, None]] = {}
    for concept in concepts:
        united.definition = united.definition or concept.definition
        for source, found in concept.codes.items():
            codes.setdefault(source, {}).update(dict.fromkeys(found))
    united.codes = {source: list(found) for source, found in codes.items()}
    return united


def unite_names(concepts: Sequence[Concept]) -> None:
    """Add the names of other concepts, with languages and sources, to the first one."""
    where: dict[str, int] = {}
    for concept in concepts:
        for alias in concept.aliases:
            where.setdefault(alias, len(where))
    for field in PLACES:
        found: dict[str, set[int]] = {}
        for concept in concepts:
            for key, places in getattr(concept, field).items():
                moved = (where[concept.aliases[place]] for place in places)
                found.setdefault(key, set()).update(moved)
        setattr(concepts[0], field, {key: sorted(found[key]) for key in found})
    concepts[0].aliases = list(where)
