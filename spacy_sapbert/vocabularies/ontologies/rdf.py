"""SKOS and OWL, as RDF/XML, Turtle, N-Triples or JSON-LD.

pyoxigraph parses the file, and a temporary database sorts what it finds by subject, so
that memory does not depend on the size of the file.

Source: SKOS Reference, OWL 2, and the annotations of OBO ontologies, ORDO and NCIt.
"""

import io
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from ...errors import SapbertError
from ...io.plugins import require
from ...io.reading import BlockReader, damaged_gzip, read_blocks, read_start
from ...io.temporary_db import open_temporary_db
from ...io.xml_blocks import feed_blocks, make_parser
from ...linking.languages import language_code
from ..facts import Fact, group_facts, store_facts
from ..ids import id_key, split_id
from ..options import SCOPES, ReadOptions
from ..report import Report, check_known, nested_too_deep, source_of_file
from .obographs import id_of, short_id
from .ontology import Term, facts_of_terms

DEPTH = 100  # elements in each other
# of the members of a list that is written as `rdf:rest` in `rdf:rest`; thousands in the
# enumerations of the NCI Thesaurus, which have no concepts
LIST_DEPTH = DEPTH - 20
MOST_DEPTH = 500_000  # in all; a list with half as many members needs 200 MB
BATCH = 10_000  # statements that are stored at once
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
SKOS_XL = "http://www.w3.org/2008/05/skos-xl#"
DCT = "http://purl.org/dc/terms/"
OBO = "http://purl.obolibrary.org/obo/"
OIO = "http://www.geneontology.org/formats/oboInOwl#"
EFO = "http://www.ebi.ac.uk/efo/"
THING = OWL + "Thing"
EQUIVALENT, INTERSECTION = OWL + "equivalentClass", OWL + "intersectionOf"
FIRST, REST = ":first", ":rest"  # ends of the tags of a list
ORDO = "http://www.orpha.net/ORDO/Orphanet_"
CLASSES = (SKOS + "Concept", OWL + "Class", RDFS + "Class")
FILES = (OWL + "Ontology", SKOS + "ConceptScheme")
# Predicates → what they say of a `Term`; "child" is "parent" the other way round.
PREDICATES = {
    RDF + "type": "type",
    SKOS + "prefLabel": "name",
    RDFS + "label": "label",
    SKOS + "altLabel": "EXACT",
    SKOS + "hiddenLabel": "HIDDEN",
    OBO + "IAO_0000118": "EXACT",
    OIO + "hasExactSynonym": "EXACT",
    OIO + "hasNarrowSynonym": "NARROW",
    OIO + "hasBroadSynonym": "BROAD",
    OIO + "hasRelatedSynonym": "RELATED",
    EFO + "alternative_term": "EXACT",
    SKOS + "broader": "parent",
    SKOS + "narrower": "child",
    RDFS + "subClassOf": "parent",
    ORDO + "C021": "parent",  # part of
    SKOS + "definition": "definition",
    OBO + "IAO_0000115": "definition",
    EFO + "definition": "definition",
    DCT + "description": "description",
    SKOS + "notation": "notation",
    OIO + "hasDbXref": "xref",
    EQUIVALENT: "exactMatch",
    OWL + "sameAs": "exactMatch",
    SKOS + "exactMatch": "exactMatch",
    SKOS + "closeMatch": "closeMatch",
    SKOS + "broadMatch": "broadMatch",
    SKOS + "narrowMatch": "narrowMatch",
    SKOS + "relatedMatch": "relatedMatch",
    OIO + "hasAlternativeId": "alternative",
    OBO + "IAO_0100001": "replacement",
    DCT + "isReplacedBy": "replacement",
    OWL + "deprecated": "deprecated",
    OWL + "versionInfo": "version",
    DCT + "license": "licence",
}
# Properties of the NCI Thesaurus, which is published under two kinds of IRIs
NCI_PROPERTIES = {"P90": "EXACT", "P108": "name", "P97": "definition"}
for property_, meaning in NCI_PROPERTIES.items():
    for address in (
        "http://ncicb.nci.nih.gov/xml/owl/EVS/Thesaurus.owl#",
        OBO + "NCIT_",
    ):
        PREDICATES[address + property_] = meaning
# Predicates of nodes: of a restriction, of an intersection and its list, of an axiom
NODES = {
    INTERSECTION: "intersection",
    RDF + "first": "first",
    RDF + "rest": "rest",
    OWL + "onProperty": "property",
    OWL + "someValuesFrom": "values",
    OWL + "annotatedSource": "source",
    OWL + "annotatedTarget": "target",
    OBO + "ECO_0000218": "precision",
}
UNREAD = {
    SKOS_XL + "prefLabel": "labels of SKOS-XL",
    SKOS_XL + "altLabel": "labels of SKOS-XL",
    SKOS_XL + "hiddenLabel": "labels of SKOS-XL",
}
# What a class below "some values of a property" says of the class of the values
RESTRICTIONS = {ORDO + "C021": "parent", ORDO + "C056": "replacement"}
PART_OF = OBO + "BFO_0000050"  # was C021 in ORDO
# How exact Orphanet calls a cross reference, as its first word. The others are wrong
# (W) or not decided (ND).
PRECISIONS = {
    "E": "exactMatch",
    "NTBT": "broadMatch",
    "BTNT": "narrowMatch",
    "NTBT/E": "broadMatch",
    "BTNT/E": "narrowMatch",
    "W": "wrongMatch",
    "W/E": "wrongMatch",
    "ND": "relatedMatch",
}
ENDINGS = {"ttl": "TURTLE", "nt": "N_TRIPLES", "jsonld": "JSON_LD"}
HEAD = rb"\A(?:\xef\xbb\xbf)?(?:\s|#.*\n)*"  # blanks and comments
TURTLE = re.compile(HEAD + rb"(?:@prefix|@base|prefix\s)", re.IGNORECASE)
# Syntaxes that are not RDF, by how a file begins
OTHER_SYNTAXES = {
    "OWL functional syntax": re.compile(HEAD + rb"(?:Prefix|Ontology)\s*\("),
    "Manchester syntax": re.compile(HEAD + rb"(?:Prefix|Ontology):"),
    "OWL/XML": re.compile(rb"\A(?:(?!<(?:\w+:)?RDF)[\s\S])*?<Ontology\s[^<>]*xmlns"),
}
# The end of the IRI of a property whose values may be synonyms
SYNONYM = re.compile(r"synonym|alias|alt(?:ernati\w+)?_?(?:label|name|term)", re.I)
LONGEST = 100  # characters of it
MOST_PROPERTIES = 10_000  # that are remembered


def read_rdf(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read the concepts of SKOS and the classes of OWL.

    The id is that of `read_obographs` if the IRI ends with a prefix and a number
    (`…/obo/DOID_8718` → `DOID:8718`) and no other IRI has it, and else the IRI. Names
    without a language are kept beside those in `languages`; without these all are,
    English first.
    """
    return facts_of_terms(read_terms(path, report, options), options, report)


def read_terms(path: Path, report: Report, options: ReadOptions) -> Iterator[Term]:
    """Yield the concepts and classes of a file."""
    with open_temporary_db() as database:
        store_statements(path, database, report, options)
        store_facts(database, find_node_facts(database))
        shorten = find_ids(database)
        languages = options.languages or ()
        for iri, statements in group_facts(database):
            term = make_term(iri, statements, languages, report, shorten)
            if term is not None:
                yield term


class Properties(dict[str, str]):
    """What each predicate says of a `Term`: `PREDICATES`, and synonyms; "" = nothing.

    Args:
        synonyms: IRIs of properties, or names with a prefix of the file.

    Attributes:
        prefixes: Those of the file so far.
        counts: Values of the properties that are not read and may be synonyms.
        known: The synonyms that the file has.
    """

    def __init__(self, synonyms: Sequence[str]) -> None:
        super().__init__(PREDICATES)
        self.synonyms = {*synonyms}
        self.prefixes: dict[str, str] = {}
        self.counts: dict[str, int] = {}
        self.known: set[str] = set()

    def __missing__(self, iri: str) -> str:
        names = {iri}
        for prefix, namespace in self.prefixes.items():
            if iri.startswith(namespace):
                names.add(f"{prefix}:{iri.removeprefix(namespace)}")
        kind = "" if names.isdisjoint(self.synonyms) else "EXACT"
        self.known |= names & self.synonyms
        if len(self) < MOST_PROPERTIES:
            self[iri] = kind
            if (
                not kind
                and iri not in NODES
                and SYNONYM.search(short_id(iri)[:LONGEST])
            ):
                self.counts[iri] = 0
        return kind


def store_statements(
    path: Path, database: sqlite3.Connection, report: Report, options: ReadOptions
) -> None:
    """Write the statements of a file to a database, those of nodes to a table."""
    require("pyoxigraph", "pyoxigraph")
    from pyoxigraph import Literal, NamedNode

    database.execute("CREATE TABLE nodes (node, kind, value)")
    nodes: list[tuple[str, str, str]] = []
    properties = Properties(options.synonym_property)

    def find_fact(quad: Any) -> Fact | None:
        predicate, value = quad.predicate.value, quad.object
        kind = properties[predicate]
        if not kind:
            if predicate in NODES:
                store_node(str(quad.subject), NODES[predicate], value)
                if predicate == INTERSECTION and isinstance(quad.subject, NamedNode):
                    store_node(str(quad.subject), "below", quad.subject)
            elif predicate in UNREAD:
                report.dropped[UNREAD[predicate]] += 1
            elif predicate in properties.counts and isinstance(value, Literal):
                properties.counts[predicate] += 1
            return None
        if not isinstance(quad.subject, NamedNode):
            return None
        subject, language = quad.subject.value, ""
        if isinstance(value, Literal):
            language = language_code(value.language or "")
        elif not isinstance(value, NamedNode):
            if kind == "parent" or predicate == EQUIVALENT:
                store_node(str(value), "below", quad.subject)
            elif not kind.endswith("Match"):
                report.dropped["values that are nodes without an IRI"] += 1
            return None
        if language:
            report.languages.add(language)
        if kind == "child":
            return Fact(value.value, "parent", subject)
        return Fact(subject, kind, value.value, language=language)

    def store_node(node: str, kind: str, value: Any) -> None:
        text = value.value if isinstance(value, (Literal, NamedNode)) else str(value)
        nodes.append((node, kind, text))

    parser = open_file(path, report)
    for batch in read_batches(parser, path, report):
        # an element of XML declares prefixes up to its end, mostly the root
        properties.prefixes |= parser.prefixes
        store_facts(database, filter(None, map(find_fact, batch)))
        database.executemany("INSERT INTO nodes VALUES (?, ?, ?)", nodes)
        nodes.clear()
    unread = {iri: count for iri, count in properties.counts.items() if count}
    for iri, count in unread.items():
        report.dropped[f"values of {iri}"] = count
    if unread:
        report.notes.append(
            "Properties that may be synonyms are not read; to read one, pass it: "
            f"`--synonym-property {next(iter(unread))}`."
        )
    known = [*properties.known, *unread]
    check_known("synonym properties", options.synonym_property, known, path)


def open_file(path: Path, report: Report) -> Any:
    """Return the parser of a file; it is read by `read_batches`."""
    from pyoxigraph import RdfFormat, parse

    start = read_start(path)
    for syntax, beginning in OTHER_SYNTAXES.items():
        if beginning.search(start):
            raise SapbertError(
                "E110",
                f"{path}: Expected an ontology as RDF/XML, Turtle, N-Triples or "
                f"JSON-LD, but got {syntax}. Convert it with ROBOT: `robot convert "
                f"--input {path.name} --output {path.stem}.rdf.owl`.",
            )
    ending = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    syntax = ENDINGS.get(ending, "TURTLE" if TURTLE.match(start) else "RDF_XML")
    is_xml = syntax == "RDF_XML"
    blocks = check_xml(path, report) if is_xml else read_blocks([path])
    file: Any = io.BufferedReader(BlockReader(blocks))
    format = getattr(RdfFormat, syntax)
    return parse(file, format, base_iri="file:///", lenient=True)


def read_batches(parser: Any, path: Path, report: Report) -> Iterator[list[Any]]:
    """Yield the statements of a file, the first one alone."""
    size = 1
    try:
        while batch := [*islice(parser, size)]:
            report.read(path.name, len(batch))
            yield batch
            size = BATCH
    except (EOFError, zlib.error) as error:
        raise damaged_gzip(path=path, line=1, reason=error) from None
    except (SyntaxError, ValueError, UnicodeError) as error:
        if isinstance(error, SapbertError):
            raise
        line = getattr(error, "lineno", None)  # its message may quote the file
        raise SapbertError(
            "E150",
            f"{path}{f':{line}' if line else ''}: Expected an ontology as RDF/XML, "
            "Turtle, N-Triples or JSON-LD, but it is damaged. Download it again, or "
            "pass it as OBO or OBO Graphs.",
        ) from None


def check_xml(path: Path, report: Report) -> Iterator[bytes]:
    """Yield the bytes of XML that pyoxigraph can parse in bounded memory and time.

    Its time is the square of the depth, so the rest of a long list is left out where
    each member is written inside the one before it.
    """
    parser = make_parser(path, entities=True)
    depth = 0
    tags = [""] * (DEPTH + 1)  # by depth, of those that may be in a long list
    cuts: list[tuple[int, int]] = []  # what is left out, from byte to byte
    cut = cut_depth = 0  # where begins what is left out now, and its depth or 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth, cut, cut_depth
        depth += 1
        if depth < LIST_DEPTH:
            return
        if not cut_depth and tags[depth - 1].endswith(REST):
            cut, cut_depth = parser.CurrentByteIndex, depth
        limit = MOST_DEPTH if cut_depth else DEPTH
        if depth > limit:
            line = parser.CurrentLineNumber
            raise nested_too_deep(path=path, line=line, limit=limit)
        if cut_depth:
            report.dropped["members of long lists"] += tag.endswith(FIRST)
        else:
            tags[depth] = tag

    def end(tag: str) -> None:
        nonlocal depth, cut_depth
        if depth < cut_depth:  # the list in which is what was left out
            cuts.append((cut, parser.CurrentByteIndex))
            cut_depth = 0
        depth -= 1

    parser.StartElementHandler, parser.EndElementHandler = start, end
    data, begin = b"", 0  # what was not yielded, and its first byte
    for block in feed_blocks(parser, path, lambda: parser.CurrentByteIndex):
        data += block
        # a tag that has not ended may begin what is left out
        ready = max(parser.CurrentByteIndex if block else begin + len(data), begin)
        place = begin
        for first, last in (*cuts, (cut if cut_depth else ready, ready)):
            yield data[place - begin : max(first - begin, 0)]
            place = last
        cuts.clear()
        data, begin = data[ready - begin :], ready


def find_node_facts(database: sqlite3.Connection) -> Iterator[Fact]:
    """Yield what restrictions and annotated axioms say of classes."""
    database.execute("CREATE INDEX nodes_node ON nodes (node, kind)")
    database.execute(
        "CREATE TEMP VIEW axioms AS SELECT source.node AS node, source.value AS iri, "
        "target.value AS target FROM nodes AS source JOIN nodes AS target "
        "ON target.node = source.node AND target.kind = 'target' "
        "WHERE source.kind = 'source'"
    )
    restricted = database.execute(
        "SELECT below.value, property.value, filler.value FROM nodes AS below "
        "JOIN nodes AS property "
        "ON property.node = below.node AND property.kind = 'property' "
        "JOIN nodes AS filler ON filler.node = below.node AND filler.kind = 'values' "
        "WHERE below.kind = 'below'"
    )
    for iri, property, value in restricted:
        kind = RESTRICTIONS.get(property)
        if property == PART_OF and iri.startswith(ORDO):
            kind = "parent"
        if kind is not None:
            yield Fact(iri, kind, value)
    # A class that is an intersection is below the classes in it.
    parents = database.execute(
        "WITH RECURSIVE lists (iri, node) AS ("
        "SELECT below.value, list.value FROM nodes AS below JOIN nodes AS list "
        "ON list.node = below.node AND list.kind = 'intersection' "
        "WHERE below.kind = 'below' UNION "
        "SELECT iri, rest.value FROM lists JOIN nodes AS rest "
        "ON rest.node = lists.node AND rest.kind = 'rest') "
        "SELECT iri, first.value FROM lists JOIN nodes AS first "
        "ON first.node = lists.node AND first.kind = 'first' "
        "WHERE substr(first.value, 1, 2) <> '_:'"
    )
    for iri, value in parents:
        yield Fact(iri, "parent", value)
    # An annotation may be one of an annotation of the cross reference.
    judged = database.execute(
        "SELECT ifnull(inside.iri, axioms.iri), ifnull(inside.target, axioms.target), "
        "judged.value FROM nodes AS judged JOIN axioms ON axioms.node = judged.node "
        "LEFT JOIN axioms AS inside ON inside.node = axioms.iri "
        "WHERE judged.kind = 'precision'"
    )
    for iri, target, text in judged:
        kind = PRECISIONS.get(text.partition(" ")[0])
        if kind is not None:
            yield Fact(iri, kind, target)


def find_ids(database: sqlite3.Connection) -> Callable[[str], str]:
    """Return the function that shortens IRIs; two IRIs have no common short id."""
    database.execute("CREATE TABLE ids (short, iri)")
    iris = database.execute("SELECT DISTINCT cui FROM packs")
    database.executemany(
        "INSERT INTO ids VALUES (?, ?)", ((id_of(iri), iri) for (iri,) in iris)
    )
    shared = "SELECT short FROM ids GROUP BY short HAVING count(*) > 1"
    ambiguous = {short for (short,) in database.execute(shared)}
    return lambda iri: iri if (short := id_of(iri)) in ambiguous else short


def make_term(
    iri: str,
    statements: Sequence[Any],
    languages: Sequence[str],
    report: Report,
    shorten: Callable[[str], str],
) -> Term | None:
    """Make a term of the statements about a subject; None if it is no class."""
    term = Term(shorten(iri))
    order = {language: place for place, language in enumerate(languages or ["ENG"])}
    is_class = is_file = False
    names: list[tuple[int, str]] = []
    definitions: list[tuple[int, str]] = []
    texts: list[tuple[str, str]] = []
    other = 0
    head = {"version": "", "licence": ""}
    for kind, value, _, _, language in statements:
        # a text without a language is between the preferred and the others
        rank = order.get(language, len(order) + bool(language))
        fits = not languages or not language or language in order
        if kind in ("name", "label", *SCOPES):
            if not fits:
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
            case "parent" if value != THING:
                term.parents.append(shorten(value))
            case "definition" | "description" if fits:
                definitions.append((2 * rank + (kind == "description"), value))
            case "notation":
                prefix, code = split_id(value)
                same = id_key(value) == id_key(term.id)
                if not same:
                    own = split_id(term.id)[0] or "NOTATION"
                    term.xrefs.append(value if prefix else f"{own}:{code}")
            case "xref":
                term.xrefs.append(value)
            case "alternative":
                term.alternatives.append(value)
            case "replacement":
                term.replaced_by.append(shorten(value))
            case "deprecated":
                term.obsolete = value.lower() in ("true", "1")
            case _ if kind.endswith("Match"):
                term.matches.append((kind, shorten(value)))
    if is_file:
        source = source_of_file(term.id.rstrip("/#").rpartition("/")[2])
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
    if definitions:
        term.definition = min(definitions, key=itemgetter(0))[1]
    return term
