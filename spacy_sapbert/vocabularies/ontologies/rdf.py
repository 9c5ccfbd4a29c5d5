"""SKOS and OWL, as RDF/XML, Turtle or N-Triples.

rdflib parses the file, and a temporary database sorts what it finds by subject, so that
memory does not depend on the size of RDF/XML and N-Triples. Turtle is parsed at once.
"""

import logging
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from ...errors import Errors, SapbertError
from ...system.temporary_db import open_temporary_db
from ..concepts import Concept
from ..facts import check_count, language_code
from ..ids import split_id
from ..report import Report, source_of_file
from .obographs import id_of
from .ontology import UMLS, Term, read_ontology
from .rdf_stream import RdfStream

FORMATS = {"owl": "xml", "rdf": "xml", "ttl": "turtle", "nt": "nt"}
SKOS = "http://www.w3.org/2004/02/skos/core#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
OIO = "http://www.geneontology.org/formats/oboInOwl#"
OBO = "http://purl.obolibrary.org/obo/"
CLASSES = (SKOS + "Concept", OWL + "Class", RDFS + "Class")
FILES = (OWL + "Ontology", SKOS + "ConceptScheme")
# predicates → the property of a `Term`, or "child" for the other way round
PREDICATES = {
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#type": "type",
    SKOS + "prefLabel": "name",
    RDFS + "label": "label",
    SKOS + "altLabel": "EXACT",
    OBO + "IAO_0000118": "EXACT",
    OIO + "hasExactSynonym": "EXACT",
    OIO + "hasNarrowSynonym": "NARROW",
    OIO + "hasBroadSynonym": "BROAD",
    OIO + "hasRelatedSynonym": "RELATED",
    SKOS + "broader": "parent",
    SKOS + "narrower": "child",
    RDFS + "subClassOf": "parent",
    SKOS + "definition": "definition",
    OBO + "IAO_0000115": "definition",
    SKOS + "notation": "notation",
    OIO + "hasDbXref": "xref",
    OWL + "equivalentClass": "exactMatch",
    OWL + "sameAs": "exactMatch",
    **{
        SKOS + kind: kind
        for kind in ("exactMatch", "closeMatch", "broadMatch", "narrowMatch")
    },
    SKOS + "relatedMatch": "relatedMatch",
    OIO + "hasAlternativeId": "alternative",
    OBO + "IAO_0100001": "replaced by",
    "http://purl.org/dc/terms/isReplacedBy": "replaced by",
    OWL + "deprecated": "deprecated",
    OWL + "versionInfo": "version",
    "http://purl.org/dc/terms/license": "licence",
}
IDS = ("parent", "child", "replaced by")
SCOPES = ("EXACT", "NARROW", "BROAD", "RELATED")


def read_rdf(
    path: Path,
    report: Report,
    *,
    languages: Sequence[str] = (),
    ids: str = "own",
    xref_prefix: str = UMLS,
    multi_xref: str = "drop",
    scopes: Sequence[str] = ("EXACT",),
    obsolete: bool = False,
    type: str | None = None,
    cui_pattern: str | None = None,
) -> Iterator[Concept]:
    """Read the concepts of SKOS and the classes of OWL.

    The id is that of `read_obographs` if the IRI ends with a prefix and a number
    (`…/obo/DOID_8718` → `DOID:8718`), and else the IRI.

    Args:
        path: RDF/XML (`.owl`, `.rdf`), Turtle (`.ttl`) or N-Triples (`.nt`), plain or
            `.gz`.
        languages: Languages of names to keep, as UMLS writes them, the preferred first,
            beside names without a language; empty: all, English first.
        ids, xref_prefix, multi_xref, scopes, obsolete, type, cui_pattern: See
            `read_ontology`.

    Yields:
        Each concept, sorted by id.

    Raises:
        SapbertError: If rdflib is not installed; if the file is damaged.

    Source: SKOS Reference, OWL 2, and the annotations of OBO ontologies.
    """
    return read_ontology(
        partial(parse_rdf, languages=languages),
        path,
        report,
        ids=ids,
        xref_prefix=xref_prefix,
        multi_xref=multi_xref,
        scopes=scopes,
        obsolete=obsolete,
        type=type,
        cui_pattern=cui_pattern,
    )


def parse_rdf(
    path: Path, report: Report, *, languages: Sequence[str] = ()
) -> Iterator[Term]:
    """Yield the concepts and classes of a file."""
    with open_temporary_db() as database:
        database.execute("CREATE TABLE facts (subject, kind, value, language)")
        parse_file(path, database, report)
        rows = database.execute("SELECT * FROM facts ORDER BY subject, rowid")
        for subject, group in groupby(rows, key=itemgetter(0)):
            term = make_term(subject, group, languages, report)
            if term is not None:
                yield term


def parse_file(path: Path, database: sqlite3.Connection, report: Report) -> None:
    """Write the statements of a file to a database.

    Raises:
        SapbertError: If it is damaged, or rdflib is not installed.
    """
    try:
        from rdflib import Graph, Literal, URIRef
        from rdflib.store import Store
    except ImportError as error:
        raise SapbertError(
            Errors.E521.format(library="rdflib", reason=error, packages="rdflib")
        ) from None
    # it quotes texts that are not of their type
    logging.getLogger("rdflib.term").setLevel(logging.ERROR)
    name = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    count = 0

    class Database(Store):
        """A store of rdflib that keeps what a `Term` has."""

        def add(self, triple: Any, context: Any, quoted: bool = False) -> None:
            nonlocal count
            count += 1
            if count % 10_000 == 0:
                report.read(path.name, 10_000)
            subject, predicate, value = triple
            kind = PREDICATES.get(str(predicate))
            if kind is None or not isinstance(subject, URIRef):
                return
            language = ""
            if isinstance(value, Literal):
                language = language_code(value.language or "")
            elif not isinstance(value, URIRef):
                return
            elif kind in IDS:
                value = id_of(str(value))
            row = id_of(str(subject)), kind, str(value), language
            if kind == "child":
                row = row[2], "parent", row[0], ""
            database.execute("INSERT INTO facts VALUES (?, ?, ?, ?)", row)

    syntax = FORMATS.get(name, "xml")
    try:
        with RdfStream(path, syntax) as stream:
            graph = Graph(store=Database(), bind_namespaces="none")
            graph.parse(stream, format=syntax, publicID="file:///")
    except (SapbertError, sqlite3.Error):
        raise
    except (EOFError, zlib.error) as error:
        values = {"path": path, "line": 1, "reason": error}
        raise SapbertError(Errors.E008.format(**values)) from None
    except Exception as error:  # rdflib has no common class of errors of parsers
        reason = error.__class__.__name__
        raise SapbertError(Errors.E421.format(path=path, reason=reason)) from None
    report.read(path.name, count % 10_000)


def make_term(
    id: str,
    rows: Iterator[tuple[str, str, str, str]],
    languages: Sequence[str],
    report: Report,
) -> Term | None:
    """Make a term of the statements about a subject; None if it is no class."""
    term = Term(id)
    order = {language: place for place, language in enumerate(languages or ["ENG"])}
    is_class = is_file = False
    names: list[tuple[int, str]] = []
    defined = len(order) + 1  # rank of the definition
    texts: list[tuple[str, str]] = []
    other = 0
    head = {"version": "", "licence": ""}
    for count, (_, kind, value, language) in enumerate(rows):
        check_count(count, id)
        value = value.encode("utf8", "replace").decode("utf8")
        # a text without a language is between the preferred and the others
        rank = order.get(language, len(order) + bool(language))
        if kind in ("name", "label", *SCOPES):
            if languages and language and language not in order:
                other += 1
                continue
            if language:
                term.languages.setdefault(language, []).append(value)
            if kind in SCOPES:
                texts.append((kind, value))
            else:
                names.append((2 * rank + (kind == "label"), value))
        match kind:
            case "type":
                is_class = is_class or value in CLASSES
                is_file = is_file or value in FILES
            case "version" | "licence":
                head[kind] = value[:500]
            case "parent":
                term.parents.append(value)
            case "definition":
                fits = not languages or not language or language in order
                if fits and (term.definition is None or rank < defined):
                    term.definition, defined = value, rank
            case "notation":
                term.xrefs.append(f"{split_id(id)[0] or 'NOTATION'}:{value}")
            case "xref":
                term.xrefs.append(value)
            case "alternative":
                term.alternatives.append(value)
            case "replaced by":
                term.replaced_by.append(value)
            case "deprecated":
                term.obsolete = value.lower() in ("true", "1")
            case _ if kind.endswith("Match"):
                term.matches.append((kind, id_of(value)))
    if is_file:
        source = source_of_file(id.rstrip("/#").rpartition("/")[2])
        report.add_release(source, head["version"], head["licence"])
    if not is_class:
        return None
    report.dropped["names in other languages"] += other
    names.sort(key=itemgetter(0))
    if names:
        term.name = names[0][1]
        # a label in another language is a name like any other
        texts[:0] = [("EXACT", name) for _, name in names[1:]]
    term.synonyms = texts
    return term
