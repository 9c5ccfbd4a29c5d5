"""Names from concepts of other vocabularies that are mapped to concepts of this one."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from ..errors import SapbertError
from .concepts import Concept
from .facts import ALSO, CODE, NAME, Fact, concept_facts, store_facts
from .ids import id_key, split_id
from .known_concepts import KnownConcepts, list_keys
from .report import Report
from .sssom import EXACT, INVERSE, Mapping

SHORT = 4  # characters; such names are abbreviations that mean many things
ADDED = 1  # rank of what other vocabularies add


class Other(NamedTuple):
    """Another vocabulary.

    Attributes:
        concepts: Its concepts; their codes are cross references.
        mappings: Between concepts of any vocabularies, if it is a file of mappings.
    """

    path: Path
    concepts: Iterable[Concept]
    report: Report
    mappings: Iterable[Mapping] | None = None


def add_mapped_names(
    known: KnownConcepts, others: Sequence[Other], *, add_unmapped: bool = False
) -> None:
    """Add the names of concepts of other vocabularies that are mapped to a concept.

    A concept is mapped to another if it has the id of the other as a code, or the other
    way round; a code that both have is no mapping. What is not certain is left out and
    counted: concepts that are mapped to several, names of at most four characters, and
    names that another concept has or would get. The names have their sources, and the
    ids of the mapped concepts become codes.

    Args:
        others: Other vocabularies. Mappings are read first, whatever their place.
        add_unmapped: Concepts that are mapped to none or to several are concepts too,
            to which those of the vocabularies after them may be mapped.

    Raises:
        SapbertError: If no concept of another vocabulary is mapped, and unmapped ones
            are not added.
    """
    database = known.database
    database.execute(
        "CREATE TABLE added (form, cui, file, kind, alias, source, language, id)"
    )
    for other in others:
        store_facts(database, find_codes(known, other))
    for file, other in enumerate(others):
        store_facts(database, map_concepts(known, file, other, add_unmapped))
    database.execute("CREATE INDEX added_form ON added (form, cui)")
    store_facts(database, find_names(known, [other.report for other in others]))


def find_codes(known: KnownConcepts, other: Other) -> Iterator[Fact]:
    """Yield the ids to which the ids of concepts are mapped as codes of these."""
    report = other.report
    for row in other.mappings or ():
        if not row.subject:
            continue  # a text
        inverse = INVERSE.get(row.relation, row.relation)
        keys = [id_key(row.subject), id_key(row.target)]
        of_keys = [known.find(key, codes=False) for key in keys]
        if all(of_keys):
            rule = "mappings between concepts of one vocabulary"
            report.drop(rule, row.subject, of_keys[0] | of_keys[1])
            continue
        for cuis, id, key, relation in (
            (of_keys[0], row.target, keys[1], row.relation),
            (of_keys[1], row.subject, keys[0], inverse),
        ):
            source, code = split_id(id)
            for cui in cuis:
                report.counts["mappings that are used"] += 1
                if relation != EXACT:
                    yield Fact(cui, relation, code, ADDED, source)
                    continue
                values = key, cui, False
                known.database.execute("INSERT INTO ids VALUES (?, ?, ?)", values)
                yield Fact(cui, CODE, code, ADDED, source)


def find_mapped(known: KnownConcepts, concept: Concept) -> set[str]:
    """Find the concepts of the vocabulary that a concept of another is mapped to.

    If there is a concept with the same id, it is the only one.
    """
    concepts: set[str] = set()
    for key, is_id in list_keys(concept):
        if is_id and (same := known.find(key, codes=False)):
            return same
        concepts |= known.find(key, codes=is_id)
    return concepts


def map_concepts(
    known: KnownConcepts, file: int, other: Other, add_unmapped: bool
) -> Iterator[Fact]:
    """Store the names of concepts that are mapped, and yield their ids as codes."""
    report, stem = other.report, other.path.name.partition(".")[0]
    sql = "INSERT INTO added VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    for concept in other.concepts:
        concept.sources = concept.sources or {stem: [*range(len(concept.aliases))]}
        mapped = find_mapped(known, concept)
        if len(mapped) > 1:
            report.drop("concepts that are mapped to several", concept.cui, mapped)
        if len(mapped) != 1:
            if add_unmapped and other.mappings is None:
                report.counts["concepts added"] += 1
                known.add([concept])
            continue
        report.counts["concepts that are mapped"] += 1
        (cui,) = mapped
        short = sum(len(alias) <= SHORT for alias in concept.aliases)
        report.dropped[f"names of at most {SHORT} characters"] += short
        rows = [
            (
                *(alias.casefold(), cui, file, kind, alias),
                *(source or stem if kind == NAME else source, language, concept.cui),
            )
            for _, kind, alias, _, source, language in concept_facts(concept)
            if kind in (NAME, ALSO) and len(alias) > SHORT
        ]
        known.database.executemany(sql, rows)
        source, code = split_id(concept.cui)
        if source and concept.cui != cui:
            yield Fact(cui, CODE, code, ADDED, source)
    if not (
        report.counts["concepts that are mapped"]
        or report.counts["mappings that are used"]
        or add_unmapped
    ):
        ids = known.database.execute("SELECT cui FROM names LIMIT 1").fetchone()
        example = ids[0][:40] if ids else "nothing"
        raise SapbertError(
            "E106",
            f"Expected concepts in {other.path} that are mapped to ids like "
            f"{repr(example)}, but got none. Pass a vocabulary whose cross references "
            "or codes have such ids, or a file of SSSOM that maps its ids, or remove "
            "`--xrefs`.",
        )


def find_names(known: KnownConcepts, reports: Sequence[Report]) -> Iterator[Fact]:
    """Yield the names that were added and that no other concept has."""
    database = known.database
    columns = "cui, file, kind, alias, form, source, language, id"
    rows = database.execute(f"SELECT {columns} FROM added ORDER BY cui, rowid")
    of_concept = "SELECT alias FROM names WHERE form = ? AND cui = ?"
    for cui, group in groupby(rows, key=itemgetter(0)):
        names: dict[str, set[str]] = {}  # of the concept, by form
        for _, file, kind, alias, form, source, language, id in group:
            report = reports[file]
            if form not in names:
                found = database.execute(of_concept, (form, cui))
                names[form] = {name for (name,) in found}
            if alias not in names[form]:
                if kind == ALSO:
                    continue
                if names[form]:
                    report.dropped["repeated names"] += 1
                    continue
                if others := find_others(known, "names", form, cui):
                    report.drop("names of other concepts", id, {cui, *others}, alias)
                    continue
                if others := find_others(known, "added", form, cui):
                    report.drop("names of several concepts", id, {cui, *others}, alias)
                    continue
                report.counts["names added"] += 1
                names[form].add(alias)
            yield Fact(cui, kind, alias, ADDED, source, language)


def find_others(known: KnownConcepts, table: str, form: str, cui: str) -> set[str]:
    """Find up to two concepts with another id that have a name, in a table."""
    sql = f"SELECT min(cui), max(cui) FROM {table} WHERE form = ?"
    row = known.database.execute(sql, (form,)).fetchone()
    return {*row} - {cui, None}
