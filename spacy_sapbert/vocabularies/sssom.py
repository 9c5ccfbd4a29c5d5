"""SSSOM: mappings between concepts of vocabularies, or of texts, as a table.

SOURCE: https://mapping-commons.github.io/sssom, slots of a mapping.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import quote, unquote

from ..errors import SapbertError
from ..io.reading import read_lines
from ..io.tables.delimited import Row
from ..io.tables.files import (
    COMMENT,
    TSV,
    find_kind,
    is_sssom,
    read_style,
    write_table,
    write_text,
)
from ..io.tables.headers import column_key
from ..io.tables.spreadsheets import Cell
from ..io.writing import write_atomically
from ..linking.sources import SOURCES, normalize_prefix
from .concepts import BROADER, NARROWER, RELATED
from .ids import rewrite_id, split_id
from .options import LEAST_CONFIDENCE
from .report import Report
from .tables.delimited import read_rows, select_columns

NEEDED = ("object_id", "predicate_id")
CLAIM = ("predicate_id", "predicate_modifier")  # columns of what a mapping says
OPTIONAL = (
    *("subject_id", "subject_label", "object_label", "predicate_modifier"),
    *("confidence", "mapping_justification", "comment"),
)
EXACT, CLOSE = "exact", "close"
# What the object is to the subject. A cross reference, of which the file says nothing
# else, makes them equal, as in other ontologies.
PREDICATES = {
    "skos:exactMatch": EXACT,
    "owl:sameAs": EXACT,
    "owl:equivalentClass": EXACT,
    "oboInOwl:hasDbXref": EXACT,
    "oio:hasDbXref": EXACT,
    "skos:broadMatch": BROADER,
    "skos:narrowMatch": NARROWER,
    "skos:closeMatch": CLOSE,
    "skos:relatedMatch": RELATED,
}
INVERSE = {BROADER: NARROWER, NARROWER: BROADER}
PREFIXES = {
    "http://www.w3.org/2004/02/skos/core#": "skos:",
    "http://www.w3.org/2002/07/owl#": "owl:",
    "http://www.geneontology.org/formats/oboInOwl#": "oboInOwl:",
}
NOTHING = "sssom:NoTermFound"
COLUMNS = (
    *("subject_id", "subject_label", "subject_type"),
    *("predicate_id", "object_id", "object_label"),
    *("mapping_justification", "confidence", "similarity_score", "reviewer_label"),
    *("mapping_tool", "mapping_tool_version", "mapping_date", "match_string"),
    "comment",
)
NAME, SIMILAR = "semapv:LexicalMatching", "semapv:SemanticSimilarityThresholdMatching"
PERSON = "semapv:ManualMappingCuration"
# What a text adds to its concept, as `map` writes it, and does not make it another one
HARMLESS = re.compile(r"(?:(?:code|side|unspecified): [^;]*(?:; |$))+")
NAMESPACES = {
    "semapv": "https://w3id.org/semapv/vocab/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sssom": "https://w3id.org/sssom/",
}
PREFIX = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)  # of a CURIE
OWN = "concept"  # prefix of ids whose vocabulary is unknown
OWN_ADDRESS = "https://w3id.org/spacy-sapbert/concept/"
SAFE = "-._~:/()"  # characters of an id that a CURIE may have
PAGES = {
    normalize_prefix(source.name): source.page[1] for source in SOURCES if source.page
}
KNOWN = {source.prefix or source.name for source in SOURCES}
SUBJECT = "subject"  # prefix of ids of a column that names no vocabulary
SUBJECT_ADDRESS = "https://w3id.org/spacy-sapbert/subject/"


class Mapping(NamedTuple):
    """A row that says what a concept is to another concept, or to a text.

    Attributes:
        subject: Id; "" = the subject is a text, its label.
        target: Id, or `NOTHING`.
        relation: What the target is to the subject: `EXACT` or one of `RELATIONS`.
        is_chosen: Whether a person chose the target for a text that says no more than
            it but for a side or a code, as the comment of `map` tells.
    """

    line: int
    subject: str
    target: str
    subject_label: str
    target_label: str
    relation: str = EXACT
    is_chosen: bool = False


def read_mappings(
    path: Path, report: Report, least_confidence: float = LEAST_CONFIDENCE
) -> Iterator[Mapping]:
    """Yield the mappings between two concepts, or a text and a concept."""
    for row in read_rows_of(path, report, least_confidence):
        if NOTHING in (row.subject, row.target) or row.subject == row.target:
            report.dropped["mappings to nothing"] += 1
        elif row.relation == CLOSE:
            yield row._replace(relation=RELATED)
        else:
            yield row


def read_exact(
    path: Path, report: Report, least_confidence: float = LEAST_CONFIDENCE
) -> Iterator[Mapping]:
    """Yield exact mappings; of several objects with bars between them, one each.

    What a person chose for a text with a side or a code is as good as exact.
    """
    for row in read_rows_of(path, report, least_confidence):
        if row.relation == EXACT or row.is_chosen:
            yield row
        else:
            report.dropped["mappings that are no exact matches"] += 1


def read_rows_of(
    path: Path, report: Report, least_confidence: float
) -> Iterator[Mapping]:
    """Yield the mappings of a file with a known predicate.

    Args:
        least_confidence: A mapping without a confidence has it.
    """
    rows = skip_comments(read_rows(path, None, report, quoted=True))
    for line, cells in select_columns(rows, path, NEEDED, report, optional=OPTIONAL):
        targets, predicate, subject, label, other, modifier, *cells = cells
        confidence, made_by, comment = cells
        relation, says_not = read_claim(predicate, modifier)
        if says_not:
            report.dropped["mappings that say Not"] += 1
        elif not relation:
            report.dropped["mappings with other predicates"] += 1
        elif is_below(confidence, least_confidence):
            option = "--least-confidence"
            rule = f"mappings with a confidence below {least_confidence} ({option})"
            report.dropped[rule] += 1
        else:
            adds = relation in (BROADER, CLOSE) and bool(HARMLESS.fullmatch(comment))
            is_chosen = made_by == PERSON and adds
            for target in map(str.strip, targets.split("|")):
                row = (line, subject, target, label, other, relation, is_chosen)
                yield Mapping(*row)


def read_claim(predicate: str, modifier: str = "") -> tuple[str, bool]:
    """Return what a mapping says that the object is to the subject.

    Args:
        predicate: A CURIE or an address; empty = an exact match.

    Returns:
        A value of `PREDICATES`, "" = another predicate, and whether it is negated.
    """
    predicate = predicate.strip()
    for namespace, prefix in PREFIXES.items():
        predicate = predicate.replace(namespace, prefix)
    relation = PREDICATES.get(predicate, "") if predicate else EXACT
    return relation, bool(modifier.strip())


def says_same(predicate: str, modifier: str = "") -> bool:
    """Return whether a mapping says that two are the same, or nearly so."""
    relation, says_not = read_claim(predicate, modifier)
    return relation in (EXACT, CLOSE) and not says_not


def is_below(confidence: str, least: float) -> bool:
    """Return whether a confidence is a number that is too low."""
    try:
        return float(confidence) < least
    except ValueError:
        return False


def skip_comments(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows of the table, without the metadata."""
    for number, fields in rows:
        if not fields or not fields[0].startswith(COMMENT):
            yield number, fields


def make_curie(id: str, own: str = OWN) -> str:
    """Return an id with the prefix of its vocabulary: C0027051 → UMLS:C0027051.

    `own` is the prefix of ids without one.
    """
    prefix, local = split_id(id)
    if not PREFIX.fullmatch(prefix):
        return f"{own}:{quote(id, SAFE)}"
    return f"{normalize_prefix(prefix)}:{quote(local, SAFE)}"


def make_subject(id: str, column: str, prefix: str = "") -> str:
    """Return the id of a row of a column as a CURIE; "" = it has none.

    Args:
        prefix: Of ids without a colon; "" = that of the vocabulary of the id or column.
    """
    id = id.strip()
    if prefix and id and ":" not in id:
        return f"{prefix}:{quote(id, SAFE)}"
    return make_curie(id, name_subjects(column)) if id else ""


def name_subjects(column: str) -> str:
    """Return the prefix of the ids of a column: that of its vocabulary, if it has one.

    A column "ICD-10-CM" has codes of ICD10CM, and one "code" those of nobody.
    """
    key = column_key(column)
    for source in SOURCES:
        if key in (*source.columns, source.name.lower()):
            return source.prefix or source.name
    return SUBJECT


def find_namespace(prefix: str, *, of_rows: bool = False) -> str:
    """Return the address of ids; a prefix `of_rows` may be the user's own."""
    if prefix in (OWN, SUBJECT):
        return OWN_ADDRESS if prefix == OWN else SUBJECT_ADDRESS
    if of_rows and prefix not in KNOWN:
        return f"{SUBJECT_ADDRESS}{prefix}/"
    page = PAGES.get(prefix, "")
    if page.endswith("{}") and page.count("{}") == 1:
        return page.removesuffix("{}")
    return f"https://identifiers.org/{prefix.lower()}:"


def list_head(
    subjects: Iterable[str], objects: Iterable[str], source: str
) -> Iterator[str]:
    """Yield the metadata above the table; `source` is the digest of the kb."""
    known: dict[str, str] = {}
    for curies, of_rows in ((subjects, True), (objects, False)):
        for prefix in {curie.partition(":")[0] for curie in curies}:
            known[prefix] = find_namespace(prefix, of_rows=of_rows)
    known |= NAMESPACES
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


def read_curie(id: str, like: str) -> str:
    """Return an id of SSSOM, which has a prefix, as a knowledge base writes its own."""
    return unquote(rewrite_id(id.removeprefix(f"{OWN}:"), like))


def write_sssom(
    file: IO[bytes],
    rows: Iterable[Sequence[Cell] | None],
    source: str,
    kind: str = TSV,
) -> None:
    """Write distinct mappings as TSV or CSV; `source` is as in `list_head`.

    Args:
        rows: Cells of `COLUMNS`; None is left out, and what was not decided by a person
            if the same subject has a decision.
    """
    distinct = dict.fromkeys(tuple(row) for row in rows if row is not None)
    made_by = COLUMNS.index("mapping_justification")
    decided = {row[:2] for row in distinct if row[made_by] == PERSON}
    mappings = [r for r in distinct if r[made_by] == PERSON or r[:2] not in decided]
    subjects, objects = (
        {str(row[place]) for row in mappings if row[place]}
        for place in map(COLUMNS.index, ("subject_id", "object_id"))
    )
    for line in list_head(subjects, objects, source):
        file.write(f"{line}\n".encode())
    write_text(file, [COLUMNS], kind)
    write_text(file, mappings, kind)


def check_sssom(path: Path, output: Path) -> None:
    """Raise an error if an output is SSSOM, and the table that it is made of is not."""
    if is_sssom(output) and not is_sssom(path):
        raise SapbertError(
            "E110",
            f"Expected an input that is SSSOM, for its metadata, but got {path}. Name "
            "an output with another ending.",
        )


def write_again(
    path: Path,
    output: Path,
    header: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    encoding: str = "utf-8",
) -> None:
    """Write a table; SSSOM with the metadata of the file that it was made of."""
    if not is_sssom(output):
        write_table(output, header, rows, style=read_style(path, encoding))
        return
    with write_atomically(output) as file:
        for _, line in read_lines(path):
            if not line.startswith(COMMENT):
                break
            file.write(f"{line}\n".encode())
        write_text(file, [header], find_kind(output))
        write_text(file, rows, find_kind(output))
