"""Filter → the rows, concepts and names that it leaves."""

import json
import warnings
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import chain
from typing import NamedTuple, Self

import numpy as np

from ..errors import SapbertError
from ..linking.candidates import Entry
from ..linking.filters import GROUPS, UNTYPED, Filter, expand_types
from ..linking.languages import choose_languages, lacks_language
from ..linking.options import LinkOptions
from ..linking.sources import normalize_prefix
from .database import KINDS
from .store import NameOfKey, Store

VALUES = "SELECT value FROM json_each(?)"


class FilterResult(NamedTuple):
    """What a filter leaves."""

    rows: np.ndarray  # mask of the rows with at least one name that is left (rows,)
    concepts: np.ndarray  # mask of the concepts (concepts,)
    excluded: frozenset[int]  # origins; −1 = without language and source

    def matches(self, entry: Entry | NameOfKey) -> bool:
        return entry.origin not in self.excluded and bool(self.concepts[entry.concept])


def resolve_filter(store: Store, filter: Filter) -> FilterResult:
    """Find what a filter leaves of a store; an error if it has an unknown value."""
    check_values(store, filter)
    check_ids(store, filter)
    filter = filter.replace(
        allow=(*filter.allow, *store.current_cuis(filter.allow).values()),
        deny=(*filter.deny, *store.current_cuis(filter.deny).values()),
    )
    conditions, values = concept_conditions(filter)
    chosen = f"SELECT id FROM concepts WHERE {' AND '.join(conditions)}"
    concepts = np.full(store.total_concepts, not conditions)
    if conditions:
        concepts[store.numbers(chosen, values)] = True
    of_names = ["row IS NOT NULL"]
    if conditions:
        of_names.append(f"concept IN ({chosen})")
    excluded = find_excluded_origins(store, filter)
    if excluded:
        of_names.append(f"origin NOT IN ({VALUES})")
        values.append(json.dumps(sorted(excluded)))
    sql = f"SELECT DISTINCT row FROM aliases WHERE {' AND '.join(of_names)}"
    rows = np.zeros(store.total_rows, dtype=bool)
    rows[store.numbers(sql, values)] = True
    return FilterResult(rows, concepts, excluded)


def concept_conditions(filter: Filter) -> tuple[list[str], list[str]]:
    """Return SQL conditions for the concepts that a filter leaves, and their values."""
    conditions: list[str] = []
    values: list[str] = []
    for types in (filter.types, filter.label_types):
        if types:
            sql = f"id IN (SELECT concept FROM types WHERE type IN ({VALUES}))"
            if UNTYPED in types:
                sql = f"({sql} OR id NOT IN (SELECT concept FROM types))"
            conditions.append(sql)
            values.append(json.dumps(sorted(expand_types(types))))
    if filter.defined:
        conditions.append("definition IS NOT NULL")
    for cuis, word in ((filter.allow, "IN"), (filter.deny, "NOT IN")):
        if cuis:
            conditions.append(f"cui {word} ({VALUES})")
            values.append(json.dumps(cuis))
    return conditions, values


def find_excluded_origins(store: Store, filter: Filter) -> frozenset[int]:
    origins = {kind: store.origins(kind) for kind in KINDS}
    every = {-1}.union(*origins.values())
    excluded = {*foreign_origins(store, filter.document_language)}
    for kind, names in zip(KINDS, (filter.languages, filter.sources), strict=True):
        if names:
            left = {o for o, known in origins[kind].items() if {*names} & {*known}}
            excluded |= every - left
    return frozenset(excluded)


def find_foreign_origins(store: Store, lang: str) -> frozenset[int]:
    """Return the origins of names that do not count; warn if none is of a language."""
    known = {*chain.from_iterable(store.origins("language").values())}
    if lacks_language(lang, known):
        warnings.warn(
            f"[W562] Expected names in the language of the documents, {lang!r}, but "
            f"the knowledge base has names in {', '.join(sorted(known))} alone. "
            "Mentions in this language find few names. Build one with the language, "
            "or correct that of the pipeline.",
            stacklevel=2,
        )
    return foreign_origins(store, lang)


def foreign_origins(store: Store, lang: str) -> frozenset[int]:
    """Return the origins of names in languages that do not fit that of a document."""
    origins = store.origins("language")
    known = {*chain.from_iterable(origins.values())}
    fitting = {*choose_languages(lang, known)}
    if not fitting:
        return frozenset()
    return frozenset(o for o, known in origins.items() if fitting.isdisjoint(known))


class NamedValues(NamedTuple):
    """What options name besides the filter, and a knowledge base must have."""

    types: tuple[str, ...]  # of all labels, sorted
    source_rank: tuple[str, ...]
    codes: tuple[str, ...]

    @classmethod
    def of(cls, options: LinkOptions) -> Self:
        types = {*chain.from_iterable(options.label_types.values())}
        return cls(tuple(sorted(types)), options.source_rank, options.codes)


def check_named(store: Store, named: NamedValues) -> None:
    """Raise an error for values that a store has not."""
    if named.types:
        check_values(store, Filter(label_types=named.types))
    if named.source_rank:
        check_values(store, Filter(sources=named.source_rank), field="source_rank")
    known = store.sources_of_codes if named.codes else []
    normal = {*map(normalize_prefix, known)}
    for source in named.codes:
        if normalize_prefix(source) not in normal:
            raise unknown_value("codes", source, known)


def check_values(store: Store, filter: Filter, *, field: str = "") -> None:
    """Raise an error for values that a store has not; `field` is for the message."""
    types = store.distinct_types()
    groups = {name for name, kinds in GROUPS.items() if types & {*kinds.split(" ")}}
    named = types | groups | {UNTYPED}
    known = {"types": named, "label_types": named}
    for kind in ("language", "source"):
        values = store.origins(kind).values()
        known[f"{kind}s"] = {value for some in values for value in some}
    for name, has in known.items():
        shown_name = name if name == "label_types" else f"filter.{name}"
        for value in getattr(filter, name):
            if value not in has:
                raise unknown_value(field or shown_name, value, has)


def unknown_value(field: str, value: str, known: Collection[str]) -> SapbertError:
    """Return the error of a value that a knowledge base has not."""
    name = field.removeprefix("filter.")
    setting = f"`{field}`" + f" (`--{name}` of a command)" * (name != field)
    if not {*known} - {UNTYPED}:
        return SapbertError(
            "E332",
            f"Expected no `{field}`, since the knowledge base has none, but got "
            f"{value!r}. Leave out {setting}.",
        )
    similar = get_close_matches(value, known, n=3, cutoff=0.5)
    shown = [*sorted(known)[:10], *["…"] * (len(known) > 10)]
    listed = (
        f"similar: {', '.join(similar)}" if similar else f"it has {', '.join(shown)}"
    )
    return SapbertError(
        "E332",
        f"Expected `{field}` to have values of the knowledge base ({listed}), but got "
        f"{value!r}. Correct {setting}.",
    )


def check_ids(store: Store, filter: Filter) -> None:
    """Warn of ids that a store lacks; an error if it has none that is allowed."""
    for name in ("allow", "deny"):
        ids = getattr(filter, name)
        unknown = [*dict.fromkeys(ids).keys() - store.known_cuis(ids)]
        if unknown and name == "allow" and len(unknown) == len({*ids}):
            raise SapbertError(
                "E470",
                "Expected `filter.allow` to have ids of the knowledge base, but it "
                f"has none of the {len(unknown):,}. Correct them, or leave out the "
                "filter.",
            )
        if unknown:
            warnings.warn(
                f"[W555] Expected `filter.{name}` to have ids of the knowledge "
                f"base, but it has none of {len(unknown):,} of the {len(ids):,}, "
                f"e.g. {min(unknown)}.",
                stacklevel=2,
            )


def choose_codes(
    codes: dict[str, list[str]], sources: Iterable[str]
) -> dict[str, list[str]]:
    """Return the codes of some vocabularies, by the names in `sources`; empty = all.

    "SNOMEDCT_US" is also what other files call `SNOMEDCT`.
    """
    if not sources:
        return codes
    by_prefix: dict[str, dict[str, None]] = {}
    for source, known in codes.items():
        by_prefix.setdefault(normalize_prefix(source), {}).update(dict.fromkeys(known))
    chosen = {source: by_prefix.get(normalize_prefix(source)) for source in sources}
    return {source: [*known] for source, known in chosen.items() if known}
