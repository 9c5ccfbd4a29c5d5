"""Ontologies as OBO Graphs: `.json`."""

import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import Errors, SapbertError
from ..system.reading import read_blocks
from .concepts import Concept
from .ontology import PREFIX, Term, make_choice, sort_terms
from .report import Report, start_report

SCOPE_OF = {
    "hasExactSynonym": "EXACT",
    "hasNarrowSynonym": "NARROW",
    "hasBroadSynonym": "BROAD",
    "hasRelatedSynonym": "RELATED",
}
ALTERNATIVE = "hasAlternativeId"
REPLACED_BY = "IAO_0100001"
JSON_BYTES = 1 << 32  # larger files are not ontologies


def read_obographs(
    path: Path,
    *,
    ids: str = "own",
    xref_prefix: str = PREFIX,
    multi_xref: str = "drop",
    scopes: Sequence[str] = ("EXACT",),
    obsolete: bool = False,
    type: str | None = None,
    cui_pattern: str | None = None,
    on_error: str = "fail",
    report: Report | None = None,
) -> Iterator[Concept]:
    """Read an ontology; the whole file is in memory. See `obo.read_obo`.

    RAISES (SapbertError): If the file is not an OBO Graph; with the number of the first
        invalid node; if no concept is left.
    SOURCE: OBO Graphs 0.3, github.com/geneontology/obographs.
    """
    report = start_report(report, path, "obographs")
    choice = make_choice(
        ids, xref_prefix, multi_xref, scopes, obsolete, type, cui_pattern
    )
    terms = list(parse_graphs(path, on_error=on_error, report=report))
    yield from sort_terms(terms, choice, report)


def load_json(path: Path) -> Any:
    """Parse a JSON file, plain or `.gz`.

    RAISES (SapbertError): If it is missing, truncated, too large, or not JSON in UTF-8.
    """
    blocks: list[bytes] = []
    size = 0
    try:
        for block in read_blocks([path]):
            blocks.append(block)
            size += len(block)
            if size > JSON_BYTES:
                got = f"more than {JSON_BYTES:,} bytes"
                raise SapbertError(
                    Errors.E118.format(path=path, where="the file", got=got)
                )
    except (EOFError, zlib.error) as error:
        raise SapbertError(
            Errors.E008.format(path=path, line=1, reason=error)
        ) from None
    data = b"".join(blocks)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SapbertError(Errors.E006.format(path=path))
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise SapbertError(
            Errors.E009.format(path=path, line=1, offset=error.start)
        ) from None
    except json.JSONDecodeError as error:
        raise SapbertError(
            Errors.E118.format(path=path, where=f"line {error.lineno}", got=error.msg)
        ) from None
    except (ValueError, RecursionError):
        got = "endless nesting, or a number of too many digits"
        raise SapbertError(
            Errors.E118.format(path=path, where="the file", got=got)
        ) from None


def parse_graphs(path: Path, *, on_error: str, report: Report) -> Iterator[Term]:
    """Yield the classes of all graphs in a file."""
    data = load_json(path)
    graphs = data.get("graphs") if isinstance(data, dict) else None
    if not isinstance(graphs, list) or not all(isinstance(g, dict) for g in graphs):
        raise SapbertError(
            Errors.E118.format(path=path, where="the file", got="no list of `graphs`")
        )
    for graph in graphs:
        nodes, edges = graph.get("nodes") or [], graph.get("edges") or []
        if not isinstance(nodes, list) or not isinstance(edges, list):
            got = "no lists of `nodes` and `edges`"
            raise SapbertError(Errors.E118.format(path=path, where="a graph", got=got))
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
                if on_error == "fail":
                    where, got = f"node {number}", "something else"
                    raise SapbertError(
                        Errors.E118.format(path=path, where=where, got=got)
                    ) from None
                report.dropped["bad nodes"] += 1
                continue
            if term is not None:
                term.parents = parents.get(node["id"], [])
                yield term


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
