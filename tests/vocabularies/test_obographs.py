import json
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept
from tests.vocabularies import whole

OBO = "http://purl.obolibrary.org/obo/"
OIO = "http://www.geneontology.org/formats/oboInOwl#"
# nodes of type CLASS that are not deprecated
DOID_CONCEPTS = 14_943


def make_node(id: str, label: str = "a name", **meta: Any) -> dict[str, Any]:
    return {"id": OBO + id, "lbl": label, "type": "CLASS", "meta": meta}


def write_graph(folder: Path, *nodes: Any, edges: Any = ()) -> Path:
    path = folder / "vocabulary.json"
    data = {"graphs": [{"nodes": nodes, "edges": edges}]}
    path.write_text(json.dumps(data), "utf8")
    return path


read = partial(whole.read, format="obographs")
fail = partial(whole.fail, format="obographs")


def test_read_obographs_ids_keep_what_tells_vocabularies_apart(tmp_path: Path) -> None:
    """Genes in MONDO have such IRIs."""
    hgnc = "http://identifiers.org/hgnc/10001"
    gene = "http://www.ncbi.nlm.nih.gov/gene/10001"
    names = {hgnc: "A", gene: "B"}
    nodes = [{**make_node("", name), "id": id} for id, name in names.items()]
    edge = {"sub": hgnc, "pred": "is_a", "obj": gene}
    concepts, _ = read(write_graph(tmp_path, *nodes, edges=[edge]))
    assert {each.cui: (each.aliases, each.parents) for each in concepts} == {
        hgnc: (["A"], [gene]),
        gene: (["B"], []),
    }


def test_read_obographs_class_becomes_a_concept(tmp_path: Path) -> None:
    node = make_node(
        "X_1",
        "chikungunya",
        definition={"val": "A fever."},
        synonyms=[{"pred": "hasExactSynonym", "val": "Chikungunya fever"}],
        xrefs=[{"val": "ICD10CM:A92.0"}],
        basicPropertyValues=[{"pred": OIO + "hasAlternativeId", "val": "X:9"}],
    )
    edge = {"sub": OBO + "X_1", "pred": "is_a", "obj": OBO + "X_2"}
    other = {"sub": OBO + "X_1", "pred": OBO + "BFO_1", "obj": OBO + "X_3"}
    nodes = [node, make_node("X_2"), make_node("X_3")]
    path = write_graph(tmp_path, *nodes, edges=[edge, other])
    assert read(path, type="T047")[0][0] == Concept(
        "X:1",
        ["chikungunya", "Chikungunya fever"],
        types=["T047"],
        codes={"X": ["1"], "ICD10CM": ["A92.0"]},
        parents=["X:2"],
        definition="A fever.",
        retired=["X:9"],
        sources={"X": [0, 1]},
    )


@pytest.mark.parametrize(
    ("iri", "cui"),
    [
        (OBO + "DOID_8718", "DOID:8718"),
        ("http://example.org/a#HP_1", "HP:1"),
        ("MONDO:1", "MONDO:1"),
        ("http://example.org/code", "http://example.org/code"),
    ],
)
def test_read_obographs_iri_is_shortened(tmp_path: Path, iri: str, cui: str) -> None:
    path = write_graph(tmp_path, {"id": iri, "lbl": "a", "type": "CLASS"})
    assert read(path)[0][0].cui == cui


def test_read_obographs_nodes_that_are_no_classes_are_ignored(tmp_path: Path) -> None:
    nodes = [{**make_node("X_1"), "type": "PROPERTY"}, {"id": OBO + "X_3"}]
    path = write_graph(tmp_path, *nodes, make_node("X_2"))
    assert [concept.cui for concept in read(path)[0]] == ["X:2"]


def test_read_obographs_graphs_of_a_file_are_merged(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.json"
    graphs = [{"nodes": [make_node("X_1", name)]} for name in ("a", "b")]
    path.write_text(json.dumps({"graphs": [*graphs, {}]}))
    ((concept,), _) = read(path)
    assert concept.aliases == ["a", "b"]


def test_read_obographs_synonyms_have_scopes_and_xrefs_may_be_ids(
    tmp_path: Path,
) -> None:
    kinds = ("Exact", "Narrow", "Broad", "Related")
    synonyms = [{"pred": f"has{kind}Synonym", "val": kind} for kind in kinds]
    xrefs = [{"val": "UMLS:C0000001"}]
    path = write_graph(tmp_path, make_node("X_1", "x", synonyms=synonyms, xrefs=xrefs))
    (concept,), report = read(path)
    assert (concept.cui, concept.aliases) == ("X:1", ["x", "Exact"])
    assert report.dropped["synonyms of other scopes"] == 3
    ((concept,), _) = read(path, scopes=(), ids="xref")
    assert (concept.cui, concept.aliases) == ("C0000001", ["x", *kinds])


def test_read_obographs_references_that_are_no_exact_matches_are_not_equal(
    tmp_path: Path,
) -> None:
    skos = "http://www.w3.org/2004/02/skos/core#"
    values = [
        {"pred": f"{skos}exactMatch", "val": "http://identifiers.org/mesh/D1"},
        {"pred": f"{skos}broadMatch", "val": "ICD10CM:C34"},
    ]
    xrefs = [{"val": id} for id in ("MESH:D1", "MESH:D2", "ICD10CM:C34", "NCIT:C4")]
    node = make_node("X_1", basicPropertyValues=values, xrefs=xrefs)
    (concept,), report = read(write_graph(tmp_path, node))
    assert concept.codes == {"X": ["1"], "MESH": ["D1"], "NCIT": ["C4"]}
    # the file says which MESH matches exactly: its other ids are only related
    assert concept.related_codes == {
        "related": {"MESH": ["D2"]},
        "broader": {"ICD10CM": ["C34"]},
    }
    assert report.counts["broader codes"] == 1


def test_read_obographs_obsolete_node_retires_to_the_new_one(tmp_path: Path) -> None:
    values = [{"pred": OBO + "IAO_0100001", "val": OBO + "X_2"}]
    old = make_node("X_1", deprecated=True, basicPropertyValues=values)
    path = write_graph(tmp_path, old, make_node("X_2"))
    (concept,), report = read(path)
    assert (concept.cui, concept.retired) == ("X:2", ["X:1"])
    assert report.dropped["obsolete terms"] == 1
    assert len(read(path, obsolete=True)[0]) == 2


# --- errors ---

BAD_NODES = [
    None,
    "node",
    [],
    {"lbl": "no id"},
    {"id": 5, "type": "CLASS"},
    {"id": "", "lbl": "empty id", "type": "CLASS"},
    {**make_node("X_2"), "lbl": ["x"]},
    {**make_node("X_2"), "meta": "x"},
    make_node("X_2", synonyms=[{"pred": "hasExactSynonym"}]),
    make_node("X_2", synonyms=5),
    make_node("X_2", synonyms=[{"pred": [], "val": "x"}]),
    make_node("X_2", xrefs=["x"]),
    make_node("X_2", definition="x"),
    make_node("X_2", basicPropertyValues=[{"pred": 1, "val": "x"}]),
]


@pytest.mark.parametrize("node", BAD_NODES)
def test_read_obographs_invalid_node_is_an_error_or_counted(
    tmp_path: Path, node: Any
) -> None:
    path = write_graph(tmp_path, make_node("X_1"), node)
    assert fail(path).startswith(f"[E117] {path}: Expected an OBO Graph")
    assert "node 2" in fail(path)
    concepts, report = read(path, on_error="skip")
    assert [concept.cui for concept in concepts] == ["X:1"]
    assert report.dropped["bad nodes"] == 1


BAD_FILES = [
    b"",
    b"{",
    b"[]",
    b"5",
    b"5" * 5000,
    b"{}",
    b'{"graphs": {}}',
    b'{"graphs": [5]}',
    b'{"graphs": [{"nodes": 5}]}',
    b'{"graphs": [{"edges": 5}]}',
    b"[" * 200_000,
]


@pytest.mark.parametrize("data", BAD_FILES, ids=range(len(BAD_FILES)))
def test_read_obographs_file_that_is_no_graph_is_an_error(
    tmp_path: Path, data: bytes
) -> None:
    path = tmp_path / "vocabulary.json"
    path.write_bytes(data)
    assert fail(path).startswith(f"[E117] {path}: ")


@pytest.mark.parametrize(
    "data",
    [
        b'{"graphs": [\n{"nodes": [}]}',
        b'{"graphs": [{"nodes": [{"id": "X:1"',
        b'{"graphs": "\xff"}',
        b'{"graphs": [{"nodes": [' + b"[" * 200_000,
        b'{"graphs": [{"nodes": [' + b'{"a":' * 200_000 + b"1",
        b'{"graphs": [{"nodes": [' + b"9" * 5_000 + b"]}]}",
        b'{"graphs": [{"nodes": [1e999]}]}',
    ],
)
def test_read_obographs_damaged_or_hostile_json_is_an_error(
    tmp_path: Path, data: bytes
) -> None:
    path = tmp_path / "vocabulary.json"
    path.write_bytes(data)
    assert fail(path).startswith(f"[E117] {path}: ")


# --- properties and real files ---

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "val", "pred"]), inner, max_size=3)
    ),
    max_leaves=5,
)
KEYS = st.sampled_from(["id", "lbl", "type", "meta"])
METAS = st.dictionaries(
    st.sampled_from(
        ["definition", "synonyms", "xrefs", "basicPropertyValues", "deprecated"]
    ),
    VALUES,
)


@given(st.dictionaries(KEYS, VALUES), METAS, VALUES, st.sampled_from(["fail", "skip"]))
def test_read_obographs_any_json_gives_concepts_or_a_sapbert_error(
    node: dict[str, Any], meta: dict[str, Any], edges: Any, on_error: str
) -> None:
    nodes = [make_node("X_1"), {**make_node("X_2", **meta), **node}]
    with tempfile.TemporaryDirectory() as folder:
        path = write_graph(Path(folder), *nodes, edges=edges)
        with suppress(SapbertError):
            concepts, _ = read(path, on_error=on_error)
            assert concepts
            assert all(concept.cui and concept.aliases for concept in concepts)


@pytest.mark.slow
def test_read_obographs_real_ontologies_read_every_concept(data_folder: Path) -> None:
    counts = {}
    for path in sorted((data_folder / "sources").glob("*.json.gz")):
        concepts, report = read(path)
        counts[path.name] = len(concepts)
        assert report.concepts == len(concepts) > 0
    assert counts["doid-2018-07-05.json.gz"] == DOID_CONCEPTS


@pytest.mark.slow
def test_read_obographs_real_ontology_reads_under_umls_ids(data_folder: Path) -> None:
    path = data_folder / "sources" / "doid-2018-07-05.json.gz"
    concepts, report = read(path, ids="xref", multi_xref="all")
    assert len(concepts) > 5000
    assert report.dropped["terms without a UMLS id"] > 0
