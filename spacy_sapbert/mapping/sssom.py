"""SSSOM: the concepts of terms as mappings, with who or what decided each.

SOURCE: https://mapping-commons.github.io/sssom, slots of a mapping.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import IO
from urllib.parse import quote

from ..formats.mention_tables import OWN
from ..io.version import __version__
from ..linking.sources import SOURCES, normalize_prefix
from ..vocabularies.ids import split_id
from ..vocabularies.readers.sssom import NOTHING
from .lookup import EXACT, LINKED, Found
from .tables import TSV, Cell, write_text

COLUMNS = (
    *("subject_label", "subject_type", "predicate_id", "object_id", "object_label"),
    *("mapping_justification", "confidence", "similarity_score", "reviewer_label"),
    *("mapping_tool", "mapping_tool_version", "mapping_date", "match_string"),
    "comment",
)
NAME, SIMILAR = "semapv:LexicalMatching", "semapv:SemanticSimilarityThresholdMatching"
PERSON = "semapv:ManualMappingCuration"
NAMESPACES = {
    "semapv": "https://w3id.org/semapv/vocab/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sssom": "https://w3id.org/sssom/",
}
OWN_ADDRESS = "https://w3id.org/spacy-sapbert/concept/"
SAFE = "-._~:/()"  # characters of an id that a CURIE may have
PAGES = {
    normalize_prefix(source.name): source.page[1] for source in SOURCES if source.page
}
CHOSEN, NO_CONCEPT = "chosen", "no concept"  # statuses that a person gives


def make_curie(id: str) -> str:
    """Return an id with the prefix of its vocabulary: C0027051 → UMLS:C0027051."""
    prefix, local = split_id(id)
    if not prefix or not prefix.replace("_", "").replace("-", "").isalnum():
        prefix, local = OWN, id
    return f"{normalize_prefix(prefix) if prefix != OWN else OWN}:{quote(local, SAFE)}"


def find_namespace(prefix: str) -> str:
    if prefix == OWN:
        return OWN_ADDRESS
    page = PAGES.get(prefix, "")
    if page.endswith("{}") and page.count("{}") == 1:
        return page.removesuffix("{}")
    return f"https://identifiers.org/{prefix.lower()}:"


def list_head(curies: Iterable[str], source: str) -> Iterator[str]:
    """Yield the metadata above the table; `source` is the digest of the kb."""
    prefixes = {curie.partition(":")[0] for curie in curies} - {*NAMESPACES}
    known = NAMESPACES | {prefix: find_namespace(prefix) for prefix in prefixes}
    yield "#curie_map:"
    for prefix, address in sorted(known.items()):
        yield f"#  {prefix}: {json.dumps(address)}"
    values = {
        "mapping_set_id": f"https://w3id.org/spacy-sapbert/mappings/{source}",
        "license": "https://w3id.org/sssom/license/unspecified",
        "object_source_version": source,
    }
    for name, value in values.items():
        yield f"#{name}: {json.dumps(value)}"


def list_cells(
    term: str, found: Found, today: date, reviewer: str = ""
) -> list[Cell] | None:
    """Return the cells of a mapping; None if nobody and nothing has decided."""
    by_person = found.status in (CHOSEN, NO_CONCEPT)
    if not by_person and found.status not in (EXACT, LINKED):
        return None
    values: dict[str, Cell] = {
        "subject_label": term,
        "subject_type": "rdfs literal",
        "predicate_id": f"skos:{'close' if found.status == LINKED else 'exact'}Match",
        "object_id": NOTHING,
        "mapping_justification": PERSON,
        "mapping_date": today.isoformat(),
        "match_string": found.read_as or None,
        "comment": found.note,
    }
    if by_person:
        values["reviewer_label"] = reviewer or None
    else:
        values["mapping_justification"] = NAME if found.status == EXACT else SIMILAR
        values["mapping_tool"] = "spacy-sapbert"
        values["mapping_tool_version"] = __version__
    if found.cui is not None:
        values["object_id"] = make_curie(found.cui)
    if found.cui is not None and found.candidates:
        first = found.candidates[0]
        values["object_label"] = first["name"]
        values["confidence"] = None if by_person else first["probability"]
        # a concept that a person found has no score
        values["similarity_score"] = first["score"] if first["score"] > 0 else None
    return [values.get(column) for column in COLUMNS]


def write_sssom(
    file: IO[bytes], rows: Iterable[Sequence[Cell] | None], source: str
) -> None:
    """Write mappings without the rows that are None; `source` is as in `list_head`."""
    mappings = [row for row in rows if row is not None]
    place = COLUMNS.index("object_id")
    curies = {str(row[place]) for row in mappings}
    for line in list_head(curies, source):
        file.write(f"{line}\n".encode())
    write_text(file, [COLUMNS], TSV)
    write_text(file, mappings, TSV)
