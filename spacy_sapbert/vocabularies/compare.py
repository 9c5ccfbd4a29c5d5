"""What differs between two vocabularies, e.g. two releases of one."""

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Literal, NamedTuple

from ..errors import SapbertError
from ..io.temporary_db import open_temporary_db
from .concepts import Concept, list_related_codes, read_concepts

Kind = Literal["added", "removed", "retired", "renamed", "moved", "names", "codes"]
MEANINGS: dict[Kind, str] = {
    "added": "new concepts",
    "removed": "concepts that are gone",
    "retired": "ids that are now those of another concept",
    "renamed": "concepts with another preferred name",
    "moved": "concepts with other parents",
    "names": "concepts with more or fewer names",
    "codes": "concepts with other codes of a vocabulary",
}
SHOWN = 3  # names in a line


class Difference(NamedTuple):
    """One difference of a concept."""

    change: Kind
    cui: str
    old: list[str]  # what only the old one has: names, ids of parents or codes
    new: list[str]  # what only the new one has; of "retired" the other id
    name: str  # the preferred one, in the new if it is there


def compare_vocabularies(old: Path, new: Path) -> Iterator[Difference]:
    """Yield the differences of two concepts.jsonl by id, in bounded memory."""
    with open_temporary_db() as database:
        database.execute("CREATE TABLE retired (id PRIMARY KEY, cui) WITHOUT ROWID")
        for concept in read_concepts(new):
            rows = ((id, concept.cui) for id in concept.retired)
            database.executemany("INSERT OR IGNORE INTO retired VALUES (?, ?)", rows)

        def find_current(cui: str) -> str | None:
            sql = "SELECT cui FROM retired WHERE id = ?"
            return next((new for (new,) in database.execute(sql, (cui,))), None)

        yield from compare_concepts(read_sorted(old), read_sorted(new), find_current)


def read_sorted(path: Path) -> Iterator[Concept]:
    """Read concepts.jsonl, and check that ids ascend."""
    last = ""
    for concept in read_concepts(path):
        if concept.cui <= last:
            raise SapbertError(
                "E104",
                f"{path}: Expected concepts that are sorted by id, each once, but got "
                f"{concept.cui[:40]} after {last[:40]}. Write the file again with "
                "`spacy sapbert concepts`.",
            )
        last = concept.cui
        yield concept


def compare_concepts(
    old: Iterable[Concept],
    new: Iterable[Concept],
    find_current: Callable[[str], str | None],
) -> Iterator[Difference]:
    """Yield the differences of two vocabularies by id.

    Types, definitions and the order of codes are not compared.

    Args:
        old, new: The concepts, sorted by id.
        find_current: Returns the new concept for which an old id was retired.
    """
    both = heapq.merge(
        ((concept.cui, 0, concept) for concept in old),
        ((concept.cui, 1, concept) for concept in new),
        key=itemgetter(0, 1),
    )
    for cui, same in groupby(both, key=itemgetter(0)):
        sides = {side: concept for _, side, concept in same}
        before, after = sides.get(0), sides.get(1)
        if before is None or after is None:
            if after is not None:
                yield Difference("added", cui, [], [after.name], after.name)
            elif before is not None:
                now = find_current(cui)
                kind: Kind = "removed" if now is None else "retired"
                new_id = [] if now is None else [now]
                yield Difference(kind, cui, [before.name], new_id, before.name)
            continue
        if before.name != after.name:
            yield Difference("renamed", cui, [before.name], [after.name], after.name)
        for change, values_of in COMPARED.items():
            had, has = {*values_of(before)}, {*values_of(after)}
            if had != has:
                lost, gained = sorted(had - has), sorted(has - had)
                yield Difference(change, cui, lost, gained, after.name)


def list_codes(concept: Concept) -> list[str]:
    """Return the codes of a concept: "ICD10CM:R50.9", "ICD10:R50 (broader)"."""
    codes = [f"{key}:{code}" for key, some in concept.codes.items() for code in some]
    for relation, source, code in list_related_codes(concept):
        codes.append(f"{source}:{code} ({relation})")
    return codes


COMPARED: dict[Kind, Callable[[Concept], list[str]]] = {
    "moved": attrgetter("parents"),
    "names": attrgetter("aliases"),
    "codes": list_codes,
}


def describe_difference(difference: Difference) -> str:
    """Return a difference as a line: "names C1 Fever: -febrile +pyrexia, hot"."""
    change, cui, old, new, name = difference
    lists = []
    for sign, values in (("-", old), ("+", new)):
        more = f" and {len(values) - SHOWN:,} more" if len(values) > SHOWN else ""
        if values:
            lists.append(f"{sign}{', '.join(values[:SHOWN])}{more}")
    return f"{change} {cui} {name}: {' '.join(lists)}"
