"""Merge concepts with the same id, of several vocabularies."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby
from operator import attrgetter

from .concepts import PLACES, Concept, list_related_codes, set_related_codes

get_cui = attrgetter("cui")


def unite_vocabularies(inputs: Sequence[Iterable[Concept]]) -> Iterator[Concept]:
    """Merge vocabularies in constant memory.

    Args:
        inputs: Each sorted by id, with each id once; the vocabulary whose names and
            definitions are preferred first.

    Yields:
        Each concept once, sorted by id.
    """
    for _, same in groupby(merge(*inputs, key=get_cui), key=get_cui):
        yield unite_concepts(list(same))


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
    for concept in reversed(concepts):
        united.retired_by = united.retired_by | concept.retired_by
    codes: dict[str, dict[str, None]] = {}
    for concept in concepts:
        united.definition = united.definition or concept.definition
        for source, found in concept.codes.items():
            codes.setdefault(source, {}).update(dict.fromkeys(found))
    related = [code for concept in concepts for code in list_related_codes(concept)]
    united.codes = {source: list(found) for source, found in codes.items()}
    set_related_codes(united, related)
    return united


def unite_names(concepts: Sequence[Concept]) -> None:
    """Add the names of other concepts, with languages and sources, to the first one."""
    where: dict[str, int] = {}
    for concept in concepts:
        for alias in concept.aliases:
            where.setdefault(alias, len(where))
    for field in PLACES:
        united: dict[str, set[int]] = {}
        for concept in concepts:
            for key, places in getattr(concept, field).items():
                moved = (where[concept.aliases[position]] for position in places)
                united.setdefault(key, set()).update(moved)
        setattr(concepts[0], field, {key: sorted(united[key]) for key in united})
    concepts[0].aliases = list(where)
