"""SSSOM: the concepts of terms as mappings, with who or what decided each.

SOURCE: https://mapping-commons.github.io/sssom, slots of a mapping.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import quote

from ..errors import SapbertError
from ..formats.gold import is_no_id
from ..formats.mention_tables import OWN
from ..io.reading import read_lines
from ..io.tables.columns import column_key
from ..io.tables.files import SSSOM_ENDINGS, TSV, write_table, write_text
from ..io.tables.spreadsheets import Cell
from ..io.version import __version__
from ..io.writing import write_atomically
from ..linking.sources import SOURCES, normalize_prefix
from ..vocabularies.ids import split_id
from ..vocabularies.readers.sssom import COMMENT, NOTHING
from .lookup import EXACT, LINKED, Found

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

COLUMNS = (
    *("subject_id", "subject_label", "subject_type"),
    *("predicate_id", "object_id", "object_label"),
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
PREDICATES = ("exact", "broad", "narrow", "related")  # skos:exactMatch, …
SUBJECT = "subject"  # prefix of ids of a column that names no vocabulary
SUBJECT_ADDRESS = "https://w3id.org/spacy-sapbert/subject/"


def make_curie(id: str, own: str = OWN) -> str:
    """Return an id with the prefix of its vocabulary: C0027051 → UMLS:C0027051.

    `own` is the prefix of ids without one.
    """
    prefix, local = split_id(id)
    if not prefix or not prefix.replace("_", "").replace("-", "").isalnum():
        return f"{own}:{quote(id, SAFE)}"
    return f"{normalize_prefix(prefix)}:{quote(local, SAFE)}"


def name_subjects(column: str) -> str:
    """Return the prefix of the ids of a column: that of its vocabulary, if it has one.

    A column "ICD-10-CM" has codes of ICD10CM, and one "code" those of nobody.
    """
    key = column_key(column)
    for source in SOURCES:
        if key in (*source.columns, source.name.lower()):
            return source.prefix or source.name
    return SUBJECT


def find_namespace(prefix: str) -> str:
    if prefix in (OWN, SUBJECT):
        return OWN_ADDRESS if prefix == OWN else SUBJECT_ADDRESS
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
    term: str,
    found: Found,
    today: date,
    reviewer: str = "",
    *,
    subject: str = "",
    predicate: str = "",
) -> list[Cell] | None:
    """Return the cells of a mapping; None if nobody and nothing has decided.

    Args:
        term: What is mapped: a literal, or the label of `subject`.
        found: Its status is that of a person too: `CHOSEN`, `NO_CONCEPT`.
        today: When it is written.
        reviewer: Who has decided, if that is a person.
        subject: The id of what is mapped, a CURIE.
        predicate: One of `PREDICATES`; "" = exact, and close if only the link says so.
    """
    by_person = found.status in (CHOSEN, NO_CONCEPT)
    if not by_person and found.status not in (EXACT, LINKED):
        return None
    usual = "close" if found.status == LINKED else "exact"
    values: dict[str, Cell] = {
        "subject_id": subject or None,
        "subject_label": term,
        "subject_type": None if subject else "rdfs literal",
        "predicate_id": f"skos:{predicate or usual}Match",
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


def apply_choice(kb: "KnowledgeBase", found: Found, chosen: str) -> Found:
    """Return what was found, with the concept that a person chose in its place."""
    if not chosen:
        return found
    if is_no_id(chosen):
        return replace(found, cui=None, note=None, status=NO_CONCEPT)
    same = [one for one in found.candidates if one["cui"] == chosen]
    concept = kb.concept(chosen)
    if not same and concept is not None:
        same = [
            {
                "cui": concept.cui,
                "name": concept.name,
                "alias": concept.name,
                "score": 0.0,
                "rank": 1,
                "types": concept.types,
                "codes": concept.codes,
                "tie": None,
                "probability": None,
            }
        ]
    status = CHOSEN
    return replace(found, cui=chosen, status=status, note=None, candidates=same)


def write_sssom(
    file: IO[bytes], rows: Iterable[Sequence[Cell] | None], source: str
) -> None:
    """Write mappings without the rows that are None; `source` is as in `list_head`."""
    mappings = [row for row in rows if row is not None]
    places = [COLUMNS.index(name) for name in ("subject_id", "object_id")]
    curies = {str(row[place]) for row in mappings for place in places if row[place]}
    for line in list_head(curies, source):
        file.write(f"{line}\n".encode())
    write_text(file, [COLUMNS], TSV)
    write_text(file, mappings, TSV)


def check_sssom(path: Path, output: Path) -> None:
    """Raise an error if an output is SSSOM, and the table that it is made of is not."""
    names = (output.name.lower(), path.name.lower())
    if names[0].endswith(SSSOM_ENDINGS) and not names[1].endswith(SSSOM_ENDINGS):
        raise SapbertError(
            "E110",
            f"Expected an input that is SSSOM, for its metadata, but got {path}. Name "
            "an output with another ending.",
        )


def write_again(
    path: Path, output: Path, header: Sequence[str], rows: Iterable[Sequence[Cell]]
) -> None:
    """Write a table; SSSOM with the metadata of the file that it was made of."""
    if not output.name.lower().endswith(SSSOM_ENDINGS):
        write_table(output, header, rows)
        return
    with write_atomically(output) as file:
        for _, line in read_lines(path):
            if not line.startswith(COMMENT):
                break
            file.write(f"{line}\n".encode())
        write_text(file, [header], TSV)
        write_text(file, rows, TSV)
