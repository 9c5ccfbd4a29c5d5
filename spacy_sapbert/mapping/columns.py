"""The columns of a mapped table, and SSSOM: links of terms → rows."""

import json
from collections.abc import Iterator, Sequence
from datetime import date

from ..io.version import __version__
from .found import EXACT, Found
from .tables import Cell

PREFIX = "match_"  # of all columns that a mapping adds, so that no others are lost
FIRST = (
    *("term", "chosen", "status", "id", "name", "alias", "score", "probability"),
    *("codes", "note", "read_as"),
)
OTHERS = ("id", "name", "score")  # of the second candidate and those after it
TERM, CHOSEN = f"{PREFIX}term", f"{PREFIX}chosen"

# SOURCE: mapping-commons.github.io/sssom, slots of a mapping
SSSOM = (
    *("subject_label", "subject_type", "predicate_id", "object_id", "object_label"),
    *("mapping_justification", "confidence", "similarity_score", "mapping_tool"),
    *("mapping_tool_version", "mapping_date", "match_string", "comment"),
)
NOTHING = "sssom:NoTermFound"


def list_columns(k: int) -> list[str]:
    """Return the names of the columns that are added for k candidates."""
    others = [f"{rank}_{name}" for rank in range(2, k + 1) for name in OTHERS]
    return [f"{PREFIX}{name}" for name in (*FIRST, *others)]


def list_cells(term: str, found: Found, k: int) -> list[Cell]:
    """Return the cells of `list_columns`.

    `chosen` is empty: a person fills it. The first candidate is given also if the term
    has no concept, `status` then says so.
    """
    first = found.candidates[0] if found.candidates else None
    cells: list[Cell] = [term, "", found.status]
    if first is None:
        cells += [None] * 6
    else:
        codes = json.dumps(first["codes"], ensure_ascii=False) if first["codes"] else ""
        cells += [first["cui"], first["name"], first["alias"], first["score"]]
        cells += [first["probability"], codes]
    cells += [found.note, found.read_as]
    for rank in range(1, k):
        if rank < len(found.candidates):
            other = found.candidates[rank]
            cells += [other["cui"], other["name"], other["score"]]
        else:
            cells += [None, None, None]
    return cells


def sssom_head(source: str, today: date) -> Iterator[str]:
    """Yield the metadata above a table of SSSOM, without line ends."""
    yield "#curie_map:"
    for prefix, address in (
        ("semapv", "https://w3id.org/semapv/vocab/"),
        ("skos", "http://www.w3.org/2004/02/skos/core#"),
        ("sssom", "https://w3id.org/sssom/"),
    ):
        yield f'#  {prefix}: "{address}"'
    yield f"#mapping_date: {today.isoformat()}"
    yield "#mapping_tool: spacy-sapbert"
    yield f"#mapping_tool_version: {__version__}"
    yield f"#object_source_version: {json.dumps(source)}"


def sssom_cells(term: str, found: Found, today: date) -> list[Cell]:
    """Return the cells of `SSSOM`; only a link is a mapping."""
    justification = "semapv:SemanticSimilarityThresholdMatching"
    if found.status == EXACT:
        justification = "semapv:LexicalMatching"
    cells: list[Cell] = [term, "rdfs literal"]
    if found.cui is None or not found.candidates:
        cells += ["skos:exactMatch", NOTHING, None, justification, None, None]
    else:
        first = found.candidates[0]
        predicate = "exact" if found.status == EXACT else "close"
        cells += [f"skos:{predicate}Match", found.cui, first["name"], justification]
        cells += [first["probability"], max(first["score"], 0.0)]
    return [
        *cells,
        *("spacy-sapbert", __version__, today.isoformat()),
        *(found.read_as or None, found.note),
    ]


def find_column(header: Sequence[str], name: str) -> int | None:
    """Return the place of a column, whatever the case of its name; None = absent."""
    keys = [column.strip().casefold() for column in header]
    key = name.strip().casefold()
    return keys.index(key) if key in keys else None
