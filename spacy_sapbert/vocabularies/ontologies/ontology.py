"""Terms of an ontology → concepts, under their own ids or cross-referenced ones.

A temporary database has the terms, because a term may come after its children.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from ...errors import Errors, SapbertError
from ...system.temporary_db import open_temporary_db
from ..concepts import Concept, clean_name
from ..ids import id_key, normalize_prefix
from ..merge import sort_concepts
from ..report import IdPattern, Report, clean_names

SCOPES = ("EXACT", "NARROW", "BROAD", "RELATED")
IDS = ("own", "xref")
MULTI_XREF = ("drop", "all")
UMLS = "UMLS"
CUI = r"C\d{7}"
EXACT = "exactMatch"
NOT_EQUIVALENT = "cross references that are no exact matches"


@dataclass(slots=True)
class Term:
    """A term of an ontology.

    Attributes:
        id: E.g. "DOID:1816".
        name: May be empty.
        parents: Ids of `is_a`.
        xrefs: Cross references, e.g. "UMLS_CUI:C0018923".
        matches: What a cross reference means, in SKOS, and its id, e.g. "exactMatch"
            and "MESH:D003924".
        alternatives: Ids that were merged into this one.
        languages: The names of which the language is known.
    """

    id: str
    name: str = ""
    synonyms: list[tuple[str, str]] = field(default_factory=list)
    definition: str | None = None
    parents: list[str] = field(default_factory=list)
    xrefs: list[str] = field(default_factory=list)
    matches: list[tuple[str, str]] = field(default_factory=list)
    alternatives: list[str] = field(default_factory=list)
    replaced_by: list[str] = field(default_factory=list)
    obsolete: bool = False
    languages: dict[str, list[str]] = field(default_factory=dict)


get_fields = attrgetter(*(each.name for each in fields(Term)))


class Parent(NamedTuple):
    """A parent of a term, in a file that has parents apart from terms."""

    term: str
    parent: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Which terms and names become concepts; see `read_ontology`."""

    ids: str
    xref_prefix: str
    multi_xref: str
    scopes: Sequence[str]
    obsolete: bool
    pattern: IdPattern | None


def read_ontology(
    parse: Callable[[Path, Report], Iterator[Term | Parent]],
    path: Path,
    report: Report,
    *,
    ids: str = "own",
    xref_prefix: str = UMLS,
    multi_xref: str = "drop",
    scopes: Sequence[str] = ("EXACT",),
    obsolete: bool = False,
    type: str | None = None,
    cui_pattern: str | None = None,
) -> Iterator[Concept]:
    """Read an ontology.

    Args:
        parse: Yields the terms of a file, and the parents that they do not have
            themselves.
        path: The file, plain or `.gz`.
        ids: "own", or "xref" to use the ids of another vocabulary.
        xref_prefix: Prefix of that vocabulary, with or without `_CUI` after it.
        multi_xref: For terms with several of its ids: "drop" the term, or add its names
            to "all" of them.
        scopes: Synonyms to keep: EXACT, NARROW, BROAD, RELATED; empty: all.
        type: Semantic type of all concepts.
        cui_pattern: Regular expression for whole ids; None = that of UMLS for its ids,
            else any.

    Yields:
        Each concept, sorted by id.

    Raises:
        SapbertError: If an option has an unknown value; at the first invalid line or
            node.
    """
    upper = [scope.upper() for scope in scopes] or SCOPES
    for option, values, known in (
        ("ids", [ids], IDS),
        ("multi-xref", [multi_xref], MULTI_XREF),
        ("scopes", upper, SCOPES),
    ):
        for value in values:
            if value not in known:
                names = ", ".join(known)
                raise SapbertError(
                    Errors.E115.format(option=option, known=names, value=value)
                )
    if cui_pattern is None and ids == "xref" and xref_prefix.upper() == UMLS:
        cui_pattern = CUI
    pattern = None if cui_pattern is None else IdPattern(cui_pattern)
    choice = Choice(ids, xref_prefix, multi_xref, upper, obsolete, pattern)
    with open_temporary_db() as database:
        store_terms(database, parse(path, report), choice, report)
        types = [type] if type else []
        yield from sort_concepts(make_concepts(database, choice, types, report))


def choose_equivalents(term: Term) -> list[str]:
    """Return the cross references of a term, without those that mean something else.

    Where a file says which ids of a vocabulary match exactly, its other ids do not.
    """
    kinds: dict[str, set[str]] = {}
    for kind, id in term.matches:
        kinds.setdefault(id_key(id), set()).add(kind)
    exact = {key for key, found in kinds.items() if EXACT in found}
    prefixes = {key.partition(":")[0] for key in exact}
    kept: dict[str, str] = {}
    for xref in term.xrefs:
        key = id_key(xref)
        if key in exact or (key not in kinds and key.partition(":")[0] not in prefixes):
            kept.setdefault(key, xref)
    # an exact match need not be repeated as cross reference
    return [*kept.values(), *sorted(exact - {*kept})]


def xref_ids(term: Term, prefix: str) -> list[str]:
    """Return the distinct ids of a term in another vocabulary, without the prefix.

    Args:
        prefix: Of the vocabulary; `UMLS` finds `UMLS:…` and `UMLS_CUI:…`.
    """
    name = normalize_prefix(prefix)
    parts = (xref.partition(":") for xref in term.xrefs)
    found = (local for other, _, local in parts if normalize_prefix(other) == name)
    return list(dict.fromkeys(filter(None, found)))


def choose_ids(term: Term, choice: Choice) -> tuple[list[str], str]:
    """Choose the ids of the concepts that get the names of a term.

    Returns:
        The ids, and the rule that drops the term, or "".
    """
    own, prefix = choice.ids == "own", choice.xref_prefix
    found = [term.id] if own else xref_ids(term, prefix)
    ids = [i for i in found if not choice.pattern or choice.pattern.matches(i)]
    if term.obsolete and not choice.obsolete:
        return ids, "obsolete terms"
    if not ids and found:
        return ids, "terms with malformed ids"
    if not ids:
        return ids, f"terms without a {prefix} id"
    if len(ids) > 1 and choice.multi_xref == "drop":
        return ids, f"terms with several {prefix} ids"
    return ids, ""


def term_codes(term: Term, ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the codes of a term and of its cross references, by source.

    Args:
        ids: The ids of its concepts, which are left out.
    """
    codes: dict[str, dict[str, None]] = {}
    left_out = {"", *ids}
    for reference in [term.id, *term.xrefs]:
        source, _, code = reference.partition(":")
        if code not in left_out and "//" not in code:
            codes.setdefault(source, {})[code] = None
    return {source: list(found) for source, found in codes.items()}


def term_sources(term: Term, names: int) -> dict[str, list[int]]:
    """Return the prefix of a term's id as the source of all its names, if it has one.

    Args:
        names: Number of names.
    """
    source, _, code = term.id.partition(":")
    known = source and code and not code.startswith("//")
    return {source: list(range(names))} if known else {}


def term_languages(term: Term, names: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of the names in each language."""
    where = {name: place for place, name in enumerate(names)}
    return {
        language: sorted(places)
        for language, texts in term.languages.items()
        if (places := {where[name] for name in map(clean_name, texts) if name in where})
    }


def store_terms(
    database: sqlite3.Connection,
    terms: Iterable[Term | Parent],
    choice: Choice,
    report: Report,
) -> None:
    """Write terms, their parents, chosen ids and retired ids to a database."""
    for table in ("terms (data)", "parents (term, parent)"):
        database.execute(f"CREATE TABLE {table}")
    for table in ("chosen (term, cui)", "retired (cui, id)"):
        database.execute(f"CREATE TABLE {table}")
    for term in terms:
        if isinstance(term, Parent):
            database.execute("INSERT INTO parents VALUES (?, ?)", term)
            continue
        parents, term.parents = term.parents, []
        if term.matches:
            count = len(term.xrefs)
            term.xrefs = choose_equivalents(term)
            report.dropped[NOT_EQUIVALENT] += max(0, count - len(term.xrefs))
        ids, rule = choose_ids(term, choice)
        retired = [(term.id, old) for old in term.alternatives]
        if term.obsolete and not choice.obsolete and len(term.replaced_by) == 1:
            retired.append((term.replaced_by[0], term.id))
        rows = {
            "parents": [(term.id, parent) for parent in parents],
            "chosen": [] if rule else [(term.id, cui) for cui in ids],
            "retired": retired if choice.ids == "own" else [],
        }
        database.execute(
            "INSERT INTO terms VALUES (?)", (json.dumps(get_fields(term)),)
        )
        for table, found in rows.items():
            if found:
                database.executemany(f"INSERT INTO {table} VALUES (?, ?)", found)
    database.execute("CREATE INDEX parents_term ON parents (term)")
    database.execute("CREATE INDEX chosen_term ON chosen (term)")
    database.execute("CREATE INDEX retired_cui ON retired (cui)")


def make_concepts(
    database: sqlite3.Connection, choice: Choice, types: list[str], report: Report
) -> Iterator[Concept]:
    """Make the concepts of all terms in a database; an id may come again."""
    for (data,) in database.execute("SELECT data FROM terms ORDER BY rowid"):
        term = Term(*json.loads(data))
        ids, rule = choose_ids(term, choice)
        if rule:
            report.dropped[rule] += 1
            continue
        texts = [text for scope, text in term.synonyms if scope in choice.scopes]
        report.dropped["synonyms of other scopes"] += len(term.synonyms) - len(texts)
        names = clean_names([term.name, *texts], report)
        if not names:
            report.dropped["terms without a name"] += 1
            continue
        parents = select_texts(
            database,
            "SELECT DISTINCT cui FROM parents JOIN chosen ON chosen.term = parent "
            "WHERE parents.term = ? ORDER BY cui",
            term.id,
        )
        for cui in ids:
            retired = "SELECT id FROM retired WHERE cui = ? ORDER BY rowid"
            yield Concept(
                cui,
                list(names),
                types=types,
                codes=term_codes(term, ids),
                parents=[parent for parent in parents if parent != cui],
                definition=term.definition,
                retired=list(dict.fromkeys(select_texts(database, retired, cui))),
                sources=term_sources(term, len(names)),
                languages=term_languages(term, names),
            )


def select_texts(database: sqlite3.Connection, query: str, value: str) -> list[str]:
    """Return the only column of the rows that a query selects by a value."""
    return [text for (text,) in database.execute(query, (value,))]
