"""What a filter leaves of one concepts.db."""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ..errors import Errors, SapbertError
from ..linking.filters import GROUPS, UNTYPED, Filter, expand_types
from .store import Entry, Store


class Allowed(NamedTuple):
    """What a filter leaves of one concepts.db.

    rows (np.ndarray): Rows with at least one name that is left, ascending. Shape: (n,).
    concepts (np.ndarray): Which concepts are left, bool. Shape: (concepts,).
    origins (np.ndarray): Which origins of names are left, bool. Shape: (origins,).
    """

    rows: np.ndarray
    concepts: np.ndarray
    origins: np.ndarray

    def admits(self, entry: Entry) -> bool:
        """Return whether a name is left."""
        return bool(self.concepts[entry.concept] and self.origins[entry.origin])


def check_known(stores: Sequence[Store], wanted: Filter) -> None:
    """Check that a knowledge base has what a filter names.

    stores (Sequence[Store]): Its concepts.
    wanted (Filter): The filter.
    RAISES (SapbertError): If it knows no such type, source or language; a group is
        known if one of its types is. With what was perhaps meant.
    """
    sql = "SELECT DISTINCT type FROM types"
    types = {kind for store in stores for (kind,) in store.query(sql)}
    groups = {name for name, kinds in GROUPS.items() if types & {*kinds.split(" ")}}
    named = types | groups | {UNTYPED}
    known = {"types": named, "label_types": named}
    for kind in ("language", "source"):
        origins = (found for store in stores for found in store.origins(kind).values())
        known[f"{kind}s"] = {value for values in origins for value in values}
    for field, has in known.items():
        for value in getattr(wanted, field):
            if value not in has:
                close = get_close_matches(value, has, n=3, cutoff=0.5)
                shown = close or [*sorted(has)[:10], *(["…"] if len(has) > 10 else [])]
                raise SapbertError(
                    Errors.E332.format(
                        field=field if field == "label_types" else f"filter.{field}",
                        got=repr(value),
                        known=", ".join(shown) or "none",
                    )
                )


def apply_filter(
    store: Store, wanted: Filter, decided: Mapping[str, bool] = MappingProxyType({})
) -> Allowed:
    """Find what a filter leaves.

    store (Store): The concepts.
    wanted (Filter): The filter; what it names need not be there, and retired ids say
        nothing here: `layers.admit` adds those that replaced them.
    decided (Mapping[str, bool]): Concepts of which somebody knows more than is here:
        whether they are left.
    RETURNS (Allowed): What is left.
    """
    conditions: list[str] = []
    values: list[str] = []
    cuis = "SELECT value FROM json_each(?)"
    for types in (wanted.types, wanted.label_types):
        if types:
            sql = f"id IN (SELECT concept FROM types WHERE type IN ({cuis}))"
            if UNTYPED in types:
                sql = f"({sql} OR id NOT IN (SELECT concept FROM types))"
            conditions.append(sql)
            values.append(json.dumps(sorted(expand_types(types))))
    for field, word in ((wanted.allow, "IN"), (wanted.deny, "NOT IN")):
        if field:
            conditions.append(f"cui {word} ({cuis})")
            values.append(json.dumps(field))
    where = " AND ".join(conditions)
    if conditions and decided:
        where = f"({where}) AND cui NOT IN ({cuis}) OR cui IN ({cuis})"
        for left in (False, True):
            known = [cui for cui, is_left in decided.items() if is_left is left]
            values.append(json.dumps(known))
    ((total,),) = store.query("SELECT count(*) FROM concepts")
    concepts = np.full(total, not conditions)
    chosen = f"SELECT id FROM concepts WHERE {where}"
    if conditions:
        numbers = (number for (number,) in store.query(chosen, values))
        concepts[np.fromiter(numbers, dtype=np.int64)] = True
    origins = allowed_origins(store, wanted)
    of_names = ["row IS NOT NULL"]
    if conditions:
        of_names.append(f"concept IN ({chosen})")
    if not origins.all():
        of_names.append(f"origin IN ({cuis})")
        values.append(json.dumps(np.flatnonzero(origins).tolist()))
    sql = f"SELECT DISTINCT row FROM aliases WHERE {' AND '.join(of_names)}"
    rows = np.fromiter((row for (row,) in store.query(sql, values)), dtype=np.int64)
    return Allowed(np.sort(rows), concepts, origins)


def allowed_origins(store: Store, wanted: Filter) -> np.ndarray:
    """Find the origins of names that a filter leaves.

    store (Store): The names.
    wanted (Filter): The filter.
    RETURNS (np.ndarray): By number of the origin, bool. Shape: (origins,).
    """
    ((last,),) = store.query("SELECT coalesce(max(origin), -1) FROM aliases")
    allowed = np.ones(last + 1, dtype=bool)
    for kind, names in (("language", wanted.languages), ("source", wanted.sources)):
        if names:
            having = [
                number
                for number, values in store.origins(kind).items()
                if not set(names).isdisjoint(values)
            ]
            allowed &= np.isin(np.arange(last + 1), having)
    return allowed
