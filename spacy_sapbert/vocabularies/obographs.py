"""Ontologies as OBO Graphs: `.json`."""

import json
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import Errors, SapbertError
from ..system.reading import UTF16_MARKS, read_blocks
from .ontology import Term, read_ontology
from .report import Report

SCOPE_OF = {
    "hasExactSynonym": "EXACT",
    "hasNarrowSynonym": "NARROW",
    "hasBroadSynonym": "BROAD",
    "hasRelatedSynonym": "RELATED",
}
ALTERNATIVE = "hasAlternativeId"
REPLACED_BY = "IAO_0100001"
JSON_BYTES = 1 << 32  # larger files are not ontologies


def load_json(path: Path) -> Any:
    """Parse a JSON file, plain or `.gz`.

    RAISES (SapbertError): If it is missing, truncated, too large, or not JSON in UTF-8.
    """
    data = bytearray()
    try:
        for block in read_blocks([path]):
            data += block
            if len(data) > JSON_BYTES:
                raise bad_graph(path, "the file", f"more than {JSON_BYTES:,} bytes")
        if data[:2] in UTF16_MARKS:
            raise SapbertError(Errors.E006.format(path=path))
        return json.loads(data.decode("utf-8-sig"))
    except SapbertError:
        raise
    except (EOFError, zlib.error) as error:
        text = Errors.E008.format(path=path, line=1, reason=error)
    except UnicodeDecodeError as error:
        text = Errors.E009.format(path=path, line=1, offset=error.start)
    except json.JSONDecodeError as error:
        raise bad_graph(path, f"line {error.lineno}", error.msg) from None
    except (ValueError, RecursionError):
        got = "endless nesting, or a number of too many digits"
        raise bad_graph(path, "the file", got) from None
    raise SapbertError(text)


def bad_graph(path: Path, where: str, got: str) -> SapbertError:
    """Return the error of a file, a graph or a node that is invalid."""
    return SapbertError(Errors.E118.format(path=path, where=where, got=got))


def parse_graphs(path: Path, report: Report) -> Iterator[Term]:
    """Yield the classes of all graphs in a file; the whole file is in memory.

    RAISES (SapbertError): If the file is not an OBO Graph; with the number of the first
        invalid node.
    SOURCE: OBO Graphs 0.3, github.com/geneontology/obographs.
    """
    data = load_json(path)
    graphs = data.get("graphs") if isinstance(data, dict) else None
    if not isinstance(graphs, list) or not all(isinstance(g, dict) for g in graphs):
        raise bad_graph(path, "the file", "no list of `graphs`")
    for graph in graphs:
        nodes, edges = graph.get("nodes") or [], graph.get("edges") or []
        if not isinstance(nodes, list) or not isinstance(edges, list):
            raise bad_graph(path, "a graph", "no lists of `nodes` and `edges`")
        parents: dict[str, list[str]] = {}
        for edge in edges:
            if isinstance(edge, dict) and edge.get("pred") == "is_a":
                above = parents.setdefault(str(edge.get("sub")), [])
                above.append(short_id(str(edge.get("obj"))))
        for number, node in enumerate(nodes, 1):
            report.read(path.name, 1)
            try:
                term = parse_node(node)
            except (AttributeError, KeyError, TypeError):
                error = bad_graph(path, f"node {number}", "something else")
                report.skip("bad nodes", error)
                continue
            if term is not None:
                term.parents = parents.get(node["id"], [])
                yield term


read_obographs = partial(read_ontology, parse_graphs)


def short_id(iri: str) -> str:
    """Shorten an IRI of an ontology.

    iri (str): E.g. "http://purl.obolibrary.org/obo/DOID_8718".
    RETURNS (str): E.g. "DOID:8718"; of another IRI the part after its last `/`.
    """
    local = iri.rpartition("/")[2].rpartition("#")[2]
    return local.replace("_", ":", 1) if ":" not in local else local


def parse_node(node: Any) -> Term | None:
    """Return the term of a node; None if it is not a class.

    RAISES (AttributeError, KeyError, TypeError): If the node is invalid.
    """
    id = short_id(text_of(node["id"]))
    if node.get("type") != "CLASS":
        return None
    if not id.strip():
        raise TypeError
    meta = node.get("meta") or {}
    properties = [
        (short_id(each["pred"]), text_of(each["val"]))
        for each in meta.get("basicPropertyValues") or []
    ]
    definition = meta.get("definition")
    return Term(
        id,
        name=text_of(node.get("lbl") or ""),
        synonyms=[
            (SCOPE_OF.get(each["pred"], "RELATED"), text_of(each["val"]))
            for each in meta.get("synonyms") or []
        ],
        definition=text_of(definition["val"]) if definition else None,
        xrefs=[text_of(each["val"]).strip() for each in meta.get("xrefs") or []],
        alternatives=[short_id(val) for pred, val in properties if pred == ALTERNATIVE],
        replaced_by=[
            short_id(val)
            for pred, val in properties
            if pred == REPLACED_BY.replace("_", ":", 1)
        ],
        obsolete=meta.get("deprecated") is True,
    )


def text_of(value: Any) -> str:
    """Return a value that is a text.

    RAISES (TypeError): If it is not.
    """
    if not isinstance(value, str):
        raise TypeError
    try:
        # JSON can escape a lone surrogate, which UTF-8 cannot encode
        value.encode("utf8")
    except UnicodeEncodeError:
        raise TypeError from None
    return value
