"""Ontologies as OBO Graphs: `.json`.

Source: OBO Graphs 0.3, github.com/geneontology/obographs.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import SapbertError
from ...io.json_members import JSONError, read_members
from ..facts import ABOVE, Fact
from ..options import ReadOptions
from ..report import Report, source_of_file
from .ontology import Term, facts_of_terms

SCOPE_OF = {
    "hasExactSynonym": "EXACT",
    "hasNarrowSynonym": "NARROW",
    "hasBroadSynonym": "BROAD",
    "hasRelatedSynonym": "RELATED",
}
ALTERNATIVE = "hasAlternativeId"
REPLACED_BY = "IAO:0100001"
# A prefix and a code at the end of an IRI: not `c_12` of AGROVOC, nor `heart_attack`
ENDING = re.compile(r"([A-Z]|[A-Za-z]{2}[A-Za-z0-9]*)_([A-Z]{0,2}\d[\w.-]*)")
PREFIXED = re.compile(r"(?:[A-Z]|[A-Za-z]\w+):\S+")
NCI_THESAURUS = "http://ncicb.nci.nih.gov/xml/owl/EVS/Thesaurus.owl#"
NODES, EDGES = ("graphs", "nodes"), ("graphs", "edges")
HEAD = ("graphs", "meta", "basicPropertyValues")


def bad_graph(path: Path, where: str, got: str) -> SapbertError:
    """Return the error of a file, a graph or a node that is invalid."""
    return SapbertError(
        "E117",
        f"{path}: Expected an OBO Graph in JSON, but {where} has: {got}. Download the "
        "file again.",
    )


def read_obographs(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read the classes of all graphs in a file."""
    return facts_of_terms(parse_graphs(path, report), options, report)


def parse_graphs(path: Path, report: Report) -> Iterator[Term | Fact]:
    """Yield the classes of all graphs in a file, and what is above them."""
    number = 0
    found: Term | Fact | None
    try:
        for place, member in read_members(path, (NODES, EDGES, HEAD)):
            if place == HEAD:
                read_head(member, path, report)
                continue
            if place == NODES:
                number += 1
                report.read(path.name, 1)
                try:
                    found = parse_node(member)
                except (AttributeError, KeyError, TypeError):
                    error = bad_graph(path, f"node {number}", "something else")
                    report.skip("bad nodes", error)
                    continue
            else:
                found = parse_edge(member)
            if found is not None:
                yield found
    except JSONError as error:
        raise bad_graph(path, "the file", str(error)) from None


def read_head(member: Any, path: Path, report: Report) -> None:
    """Read the release or the licence from a property of a graph."""
    if isinstance(member, dict):
        kind, value = member.get("pred"), member.get("val")
        if isinstance(kind, str) and isinstance(value, str):
            source = source_of_file(path.name)
            if kind.endswith("versionInfo"):
                report.add_release(source, value)
            elif kind.endswith("license"):
                report.add_release(source, "", value)


def short_id(iri: str) -> str:
    """Return the end of an IRI: "DOID:8718" of "…/obo/DOID_8718"."""
    local = iri.rpartition("/")[2].rpartition("#")[2]
    parts = ENDING.fullmatch(local)
    return f"{parts[1]}:{parts[2]}" if parts else local


@lru_cache(1 << 14)  # edges repeat the ids of nodes
def id_of(iri: str) -> str:
    """Return the id of an IRI: its end if that has a prefix, e.g. "DOID:8718".

    Else it is the IRI itself, since two vocabularies may have the same code.
    """
    if iri.startswith(NCI_THESAURUS):
        return "NCIT:" + iri.removeprefix(NCI_THESAURUS)
    short = short_id(iri)
    return short if ":" in short and PREFIXED.fullmatch(short) else iri


def parse_edge(edge: Any) -> Fact | None:
    """Return the term that an edge puts above another; None if it is another edge."""
    if not isinstance(edge, dict) or edge.get("pred") != "is_a":
        return None
    try:
        return Fact(id_of(text_of(edge["sub"])), ABOVE, id_of(text_of(edge["obj"])))
    except (KeyError, TypeError):
        return None  # such an edge connects no nodes


def parse_node(node: Any) -> Term | None:
    """Return the term of a node; None if it is not a class."""
    id = id_of(text_of(node["id"]))
    if node.get("type") != "CLASS":
        return None
    if not id.strip():
        raise TypeError
    meta = node.get("meta") or {}
    properties = [
        (short_id(item["pred"]), text_of(item["val"]))
        for item in meta.get("basicPropertyValues") or []
    ]
    definition = meta.get("definition")
    return Term(
        id,
        name=text_of(node.get("lbl") or ""),
        synonyms=[
            (SCOPE_OF.get(item["pred"], "RELATED"), text_of(item["val"]))
            for item in meta.get("synonyms") or []
        ],
        definition=text_of(definition["val"]) if definition else None,
        xrefs=[text_of(item["val"]).strip() for item in meta.get("xrefs") or []],
        matches=[(pred, val) for pred, val in properties if pred.endswith("Match")],
        alternatives=[id_of(val) for pred, val in properties if pred == ALTERNATIVE],
        replaced_by=[id_of(val) for pred, val in properties if pred == REPLACED_BY],
        obsolete=meta.get("deprecated") is True,
    )


def text_of(value: Any) -> str:
    """Return a value that is a text."""
    if not isinstance(value, str):
        raise TypeError
    return value
