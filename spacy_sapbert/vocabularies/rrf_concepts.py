"""Concepts, made of the atoms that were taken out of rows of MRCONSO.

Millions are made, so `make_concepts` is laid out for speed: it calls no function for
most concepts, whose names are distinct and begin with the preferred one, and it fills a
concept itself, since `Concept(...)` takes twice as long.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from .concepts import Concept
from .report import Report
from .rrf_atoms import Atoms


def make_concepts(atoms: Atoms, report: Report) -> Iterator[Concept]:
    """Put atoms together by their ids.

    atoms (Atoms): Atoms of whole concepts.
    report (Report): Counts, when all are made.
    YIELDS (Concept): A concept with names and codes, one by one: a list of them would
        cost Python's garbage collector dear.
    """
    languages: dict[str, list[int]]
    sources: dict[str, list[int]]
    codes: dict[str, list[str]]
    new, names, repeated = Concept.__new__, atoms.names, 0
    origins = zip(atoms.languages, atoms.sources, atoms.codes)  # noqa: B905
    for cui, start, end, first in zip(  # noqa: B905
        atoms.cuis, atoms.bounds, atoms.bounds[1:], atoms.best
    ):
        aliases, count = names[start:end], end - start
        if count == 1:
            language, source, code = next(origins)
            codes = {source: [code]} if code else {}
            languages, sources = {language: [0]}, {source: [0]}
        else:
            languages, sources, codes, place = {}, {}, {}, 0
            for language, source, code in islice(origins, count):
                if language in languages:
                    languages[language].append(place)
                else:
                    languages[language] = [place]
                if source not in sources:
                    sources[source] = [place]
                    if code:
                        codes[source] = [code]
                else:
                    sources[source].append(place)
                    if code:
                        if source not in codes:
                            codes[source] = [code]
                        # most concepts have a handful: looking through it beats a set
                        elif code not in (known := codes[source]):
                            known.append(code)
                place += 1  # noqa: SIM113 (`enumerate` takes longer)
            if first != start or len(set(aliases)) < count:
                aliases, places = order_names(aliases, first - start)
                move_to(places, languages)
                move_to(places, sources)
                repeated += count - len(aliases)
        concept = new(Concept)
        concept.cui, concept.aliases, concept.definition = cui, aliases, None
        concept.types, concept.parents, concept.retired = [], [], []
        concept.codes, concept.languages, concept.sources = codes, languages, sources
        yield concept
    report.concepts += len(atoms.cuis)
    report.names += len(names) - repeated
    report.dropped["repeated names"] += repeated


def order_names(names: list[str], first: int) -> tuple[list[str], list[int]]:
    """Put the preferred name first, and leave out what comes again.

    names (list[str]): The names of a concept's atoms.
    first (int): Which of them is preferred.
    RETURNS (tuple[list[str], list[int]]): Distinct names; where each of `names` is
        among them.
    """
    distinct = list(dict.fromkeys([names[first], *names]))
    where = dict(zip(distinct, range(len(distinct))))  # noqa: B905
    return distinct, [where[name] for name in names]


def move_to(places: Sequence[int], grouped: dict[str, list[int]]) -> None:
    """Put the places of names in the concept for those of its atoms, sorted.

    places (Sequence[int]): Where the name of each atom is; one may come twice.
    grouped (dict[str, list[int]]): Places of atoms, changed in place.
    """
    for found in grouped.values():
        if len(found) == 1:
            found[0] = places[found[0]]
        else:
            found[:] = sorted({places[atom] for atom in found})
