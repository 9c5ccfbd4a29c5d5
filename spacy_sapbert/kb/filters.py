"""Filter → the rows, concepts and names that it leaves."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import NamedTuple

import numpy as np

from ..errors import Errors, SapbertError, Warnings
from ..linking.candidates import Entry
from ..linking.filters import GROUPS, UNTYPED, Filter, expand_types
from ..linking.languages import choose_languages
from ..linking.options import LinkOptions
from ..vocabularies.ids import normalize_prefix
from .folder.records import Manifest
from .store import Store

VALUES = "SELECT value FROM json_each(?)"


class FilterResult(NamedTuple):
    """What a filter leaves.

    rows (np.ndarray): Rows with at least one name that is left, ascending. Shape: (n,).
    concepts (np.ndarray): Mask of the concepts, bool. Shape: (concepts,).
    origins (frozenset[int] | None): The origins of names; None = all.
    foreign (frozenset[int]): Origins in other languages than those of the document.
    """

    rows: np.ndarray
    concepts: np.ndarray
    origins: frozenset[int] | None
    foreign: frozenset[int]

    def mask(self, total: int) -> np.ndarray:
        """Return the mask of the rows, of `total` rows. Shape: (total,)."""
        mask = np.zeros(total, dtype=bool)
        mask[self.rows] = True
        return mask

    def matches(self, entry: Entry) -> bool:
        """Return whether a name is left."""
        if self.origins is not None and entry.origin not in self.origins:
            return False
        if entry.origin in self.foreign:
            return False
        return entry.concept < len(self.concepts) and bool(self.concepts[entry.concept])

    def filter_entries(self, entries: dict[int, list[Entry]]) -> dict[int, list[Entry]]:
        """Return the entries, by row, without those that the filter removes."""
        kept = {
            row: [e for e in found if self.matches(e)] for row, found in entries.items()
        }
        return {row: found for row, found in kept.items() if found}


def resolve_filter(store: Store, filter: Filter) -> FilterResult:
    """Find what a filter leaves of a store.

    RAISES (SapbertError): If the store has no such type, source or language.
    """
    check_values(store, filter)
    check_ids(store, filter)
    filter = replace(
        filter,
        allow=(*filter.allow, *store.current_cuis(filter.allow).values()),
        deny=(*filter.deny, *store.current_cuis(filter.deny).values()),
    )
    conditions, values = concept_conditions(filter)
    chosen = f"SELECT id FROM concepts WHERE {' AND '.join(conditions)}"
    concepts = np.full(store.total_concepts, not conditions)
    if conditions:
        concepts[store.numbers(chosen, values)] = True
    origins = filter_origins(store, filter)
    of_names = ["row IS NOT NULL"]
    if conditions:
        of_names.append(f"concept IN ({chosen})")
    if origins is not None:
        of_names.append(f"origin IN ({VALUES})")
        values.append(json.dumps(sorted(origins)))
    foreign = foreign_origins(store, filter.document_language)
    if foreign:
        of_names.append(f"origin NOT IN ({VALUES})")
        values.append(json.dumps(sorted(foreign)))
    sql = f"SELECT DISTINCT row FROM aliases WHERE {' AND '.join(of_names)}"
    return FilterResult(store.numbers(sql, values), concepts, origins, foreign)


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


def filter_origins(store: Store, filter: Filter) -> frozenset[int] | None:
    """Return the origins that a filter leaves; None if it leaves all."""
    left: frozenset[int] | None = None
    for kind, names in (("language", filter.languages), ("source", filter.sources)):
        if names:
            having = frozenset(
                number
                for number, values in store.origins(kind).items()
                if not set(names).isdisjoint(values)
            )
            left = having if left is None else left & having
    return left


def foreign_origins(store: Store, lang: str) -> frozenset[int]:
    """Return the origins of names in other languages than those of a document.

    lang (str): Language of the document; see `choose_languages`.
    """
    origins = store.origins("language")
    known = {language for some in origins.values() for language in some}
    fitting = {*choose_languages(lang, known)}
    if not fitting:
        return frozenset()
    return frozenset(n for n, own in origins.items() if fitting.isdisjoint(own))


def check_options(store: Store, manifest: Manifest, options: LinkOptions) -> None:
    """Check options of linking; see `KnowledgeBase.check_options`."""
    types = {kind for kinds in options.label_types.values() for kind in kinds}
    check_values(store, replace(options.filter, label_types=tuple(sorted(types))))
    check_values(store, Filter(sources=options.source_rank), field="source_rank")
    if options.codes:
        check_sources_of_codes(store, options.codes)
    if options.fusion is not None and not manifest.ngrams:
        raise SapbertError(Errors.E340)


def check_sources_of_codes(store: Store, sources: Sequence[str]) -> None:
    """Check that a store has codes of vocabularies.

    RAISES (SapbertError): If not; with the vocabularies that it has codes of.
    """
    known = store.sources_of_codes()
    normal = {*map(normalize_prefix, known)}
    for source in sources:
        if normalize_prefix(source) not in normal:
            shown = [*known[:20], *(["…"] if len(known) > 20 else [])]
            raise SapbertError(
                Errors.E332.format(
                    field="codes", got=repr(source), known=", ".join(shown) or "none"
                )
            )


def check_values(store: Store, filter: Filter, *, field: str = "") -> None:
    """Check that a store has the types, sources and languages of a filter.

    field (str): Name in the error; empty = that of the field of the filter.
    RAISES (SapbertError): If not; with similar values. A group is known if one of its
        types is.
    """
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
                close = get_close_matches(value, has, n=3, cutoff=0.5)
                listed = close or [*sorted(has)[:10], *(["…"] if len(has) > 10 else [])]
                raise SapbertError(
                    Errors.E332.format(
                        field=field or shown_name,
                        got=repr(value),
                        known=", ".join(listed) or "none",
                    )
                )


def check_ids(store: Store, filter: Filter) -> None:
    """Warn of ids that a store does not have.

    RAISES (SapbertError): If it has none of those that are allowed.
    """
    for name in ("allow", "deny"):
        ids = getattr(filter, name)
        unknown = [*dict.fromkeys(ids).keys() - store.known_cuis(ids)]
        if unknown and name == "allow" and len(unknown) == len({*ids}):
            raise SapbertError(Errors.E470.format(count=len(unknown), got=min(unknown)))
        if unknown:
            values = {"count": len(unknown), "total": len(ids), "got": min(unknown)}
            warnings.warn(Warnings.W555.format(name=name, **values), stacklevel=2)


def choose_codes(
    codes: dict[str, list[str]], sources: Sequence[str]
) -> dict[str, list[str]]:
    """Return the codes of vocabularies, in their order.

    codes (dict[str, list[str]]): By source.
    sources (Sequence[str]): Vocabularies; "SNOMEDCT_US" is also what other files call
        `SNOMEDCT`. Empty = all.
    RETURNS (dict[str, list[str]]): By vocabulary as it is named in `sources`; those
        without a code are left out.
    """
    if not sources:
        return codes
    own: dict[str, list[str]] = {}
    for source, found in codes.items():
        known = own.setdefault(normalize_prefix(source), [])
        known += [code for code in found if code not in known]
    chosen = {source: own.get(normalize_prefix(source), []) for source in sources}
    return {source: [*found] for source, found in chosen.items() if found}
