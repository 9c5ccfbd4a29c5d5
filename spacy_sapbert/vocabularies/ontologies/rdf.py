"""SKOS and OWL, as RDF/XML, Turtle or N-Triples.

rdflib parses the file, and a temporary database sorts what it finds by subject, so that
memory does not depend on the size of RDF/XML and N-Triples. Turtle is parsed at once.

Source: SKOS Reference, OWL 2, and the annotations of OBO ontologies.
"""

import logging
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.sax.xmlreader import InputSource

from ...errors import SapbertError
from ...io.plugins import require
from ...io.reading import damaged_gzip, read_blocks, read_line_blocks
from ...io.temporary_db import open_temporary_db
from ...io.xml_blocks import feed_blocks, make_parser
from ..facts import Fact, group_facts, language_code, store_facts
from ..ids import split_id
from ..options import SCOPES, ReadOptions
from ..report import Report, nested_too_deep, source_of_file
from .obographs import id_of
from .ontology import Term, find_facts

PREFIXES = 1000  # in each other; rdflib copies them all for each
DEPTH = 100  # elements in each other
TURTLE_BYTES = 1 << 27  # of a file, which rdflib holds in memory several times
# a statement about or with a blank node, which no `Term` has
BLANK = re.compile(rb"\s*(?:<[^>]*>\s*<[^>]*>\s*)?_:")
BATCH = 10_000  # statements that are stored at once
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
    OBO + "IAO_0100001": "replacement",
    "http://purl.org/dc/terms/isReplacedBy": "replacement",
    OWL + "deprecated": "deprecated",
    OWL + "versionInfo": "version",
    "http://purl.org/dc/terms/license": "licence",
}
IDS = ("parent", "child", "replacement")


Add = Callable[[Any, Any, Any], None]  # a statement: subject, predicate, value


def read_rdf(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read the concepts of SKOS and the classes of OWL.

    The id is that of `read_obographs` if the IRI ends with a prefix and a number
    (`…/obo/DOID_8718` → `DOID:8718`), and else the IRI. Names without a language are
    kept beside those in `languages`; without these all are, English first.

    Args:
        path: RDF/XML (`.owl`, `.rdf`), Turtle (`.ttl`) or N-Triples (`.nt`).

    Raises:
        SapbertError: If rdflib is not installed; if the file is damaged.
    """
    terms = parse_terms(path, options.languages or (), report)
    return find_facts(terms, options, report)


def parse_terms(path: Path, languages: Sequence[str], report: Report) -> Iterator[Term]:
    """Yield the concepts and classes of a file."""
    with open_temporary_db() as database:
        parse_file(path, database, report)
        for subject, statements in group_facts(database):
            term = make_term(subject, statements, languages, report)
            if term is not None:
                yield term


def parse_file(path: Path, database: sqlite3.Connection, report: Report) -> None:
    """Write the statements of a file to a database.

    Raises:
        SapbertError: If it is damaged, or rdflib is not installed.
    """
    require("rdflib", "rdflib")
    from rdflib import Literal, URIRef

    # it quotes texts that are not of their type
    logging.getLogger("rdflib.term").setLevel(logging.ERROR)
    statements: list[Fact] = []
    unread = 0

    def store() -> None:
        nonlocal unread
        store_facts(database, statements)
        report.read(path.name, unread)
        statements.clear()
        unread = 0

    def add(subject: Any, predicate: Any, value: Any) -> None:
        nonlocal unread
        unread += 1
        if unread == BATCH:
            store()
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
        id, text = id_of(str(subject)), str(value)
        if kind == "child":
            id, kind, text, language = text, "parent", id, ""
        statements.append(Fact(id, kind, text, language=language))

    ending = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    parse = {"ttl": parse_turtle, "nt": parse_triples}.get(ending, parse_xml)
    try:
        parse(path, add)
    except (SapbertError, sqlite3.Error):
        raise
    except (EOFError, zlib.error) as error:
        values = {"path": path, "line": 1, "reason": error}
        raise damaged_gzip(**values) from None
    except Exception as error:  # rdflib has no common class of errors of parsers
        reason = error.__class__.__name__
        raise SapbertError(
            "E421",
            f"{path}: Expected an ontology as RDF/XML, Turtle or N-Triples, but it is "
            f"damaged or hostile ({reason}). Download it again, or pass it as OBO or "
            "OBO Graphs.",
        ) from None
    store()


def make_graph(add: Add) -> Any:
    """Return a graph of rdflib that keeps no statements."""
    from rdflib import Graph
    from rdflib.store import Store

    class Statements(Store):
        def add(self, triple: Any, context: Any, quoted: bool = False) -> None:
            add(*triple)

    return Graph(store=Statements(), bind_namespaces="none")


def parse_turtle(path: Path, add: Add) -> None:
    """Parse a file at once."""
    data = bytearray()
    for block in read_blocks([path]):
        data += block
        if len(data) > TURTLE_BYTES:
            limit = TURTLE_BYTES >> 20
            raise SapbertError(
                "E422",
                f"{path}: Expected Turtle of at most {limit} MiB, which is read at "
                "once, but got more. Convert it to N-Triples, which is streamed, "
                "e.g. with `rapper -i turtle -o ntriples`.",
            )
    make_graph(add).parse(data=bytes(data), format="turtle", publicID="file:///")


def parse_triples(path: Path, add: Add) -> None:
    """Parse lines, without blank nodes, whose labels rdflib would keep."""
    from rdflib.plugins.parsers.ntriples import W3CNTriplesParser

    parser = W3CNTriplesParser(SimpleNamespace(triple=add))
    for _, lines in read_line_blocks(path):
        kept = [line for line in lines if not BLANK.match(line)]
        parser.parsestring(b"\n".join(kept) + b"\n")


def parse_xml(path: Path, add: Add) -> None:
    """Parse XML, whose nodes rdflib makes statements of.

    Raises:
        SapbertError: See `feed_blocks`; if elements or prefixes are nested too deep.
    """
    from rdflib.plugins.parsers.rdfxml import RDFXMLHandler

    handler = RDFXMLHandler(make_graph(add))
    source = InputSource()
    source.setPublicId("file:///")
    handler.setDocumentLocator(source)
    parser = make_parser(path, separator=" ", entities=True)
    depth = prefixes = begun = 0

    def check(count: int, limit: int) -> None:
        if count > limit:
            values = {"path": path, "line": parser.CurrentLineNumber, "limit": limit}
            raise nested_too_deep(**values)

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth, begun
        depth += 1
        check(depth, DEPTH)
        if depth == 2:  # a child of the root
            begun = parser.CurrentByteIndex
        values = {split_tag(name): value for name, value in attributes.items()}
        handler.startElementNS(split_tag(tag), None, values)

    def end(tag: str) -> None:
        nonlocal depth, begun
        depth -= 1
        handler.endElementNS(split_tag(tag), None)
        if depth == 1:
            begun = parser.CurrentByteIndex
            # rdflib keeps the names of all nodes, but no `Term` has a blank node.
            handler.ids.clear()
            handler.bnode.clear()

    def bind(prefix: str | None, address: str) -> None:
        nonlocal prefixes
        prefixes += 1
        check(prefixes, PREFIXES)
        handler.startPrefixMapping(prefix, address)

    def unbind(prefix: str | None) -> None:
        nonlocal prefixes
        prefixes -= 1
        handler.endPrefixMapping(prefix)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartNamespaceDeclHandler, parser.EndNamespaceDeclHandler = bind, unbind
    parser.CharacterDataHandler = handler.characters
    for _ in feed_blocks(parser, path, lambda: begun):
        pass


def split_tag(tag: str) -> tuple[str | None, str]:
    """Return the namespace and the name of a tag or attribute."""
    address, _, name = tag.rpartition(" ")
    return address or None, name


def make_term(
    id: str,
    statements: Sequence[Any],
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
    for kind, value, _, _, language in statements:
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
                head[kind] = value
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
            case "replacement":
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
