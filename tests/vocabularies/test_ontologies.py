"""OBO, OBO Graphs, SKOS and OWL: what stands in no example."""

import gzip
import json
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, parse, serialize

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io import reading
from spacy_sapbert.vocabularies.reader_table import guess_format
from tests.vocabularies import whole
from tests.vocabularies.test_examples import FOLDER
from tests.vocabularies.whole import read

SKOS = (FOLDER / "rdf" / "skos.ttl").read_text("utf8")
OWL = (FOLDER / "rdf" / "ontology.owl").read_text("utf8")
fail = partial(whole.fail, on_error="skip")


def test_read_obo_option_of_an_unknown_value_is_an_error():
    error = fail(FOLDER / "obo" / "hp.obo", multi_xref="best")
    assert error.startswith("[E331] Expected `--multi-xref`")


@pytest.mark.parametrize("piece", [" ", " {", '\\"'])
def test_read_obo_long_line_takes_no_longer_than_its_length(tmp_path, piece):
    long = piece * 100_000
    path = tmp_path / "x.obo"
    path.write_text(
        f"[Term]\nid: X:1\nname: x\nis_a: X:2{long}x\nxref: M:1{long}x\n"
        f'synonym: "{long}x" EXACT []\n'
    )
    assert read(path)[0][0].cui == "X:1"


@pytest.mark.parametrize(
    "data",
    [
        *(b"[]", b'{"graphs": [5]}', b'{"graphs": [{"nodes": 5}]}'),
        b'{"graphs": [{"nodes": [' + b'{"a":' * 200_000 + b"1",
    ],
    ids=range(4),
)
def test_read_obographs_file_that_is_no_graph_is_an_error(tmp_path, data):
    path = tmp_path / "vocabulary.json"
    path.write_bytes(data)
    assert whole.fail(path, "obographs").startswith(f"[E117] {path}: ")


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
    node, meta, edges, on_error
):
    good = {"id": "X:1", "lbl": "a name", "type": "CLASS"}
    nodes = [good, {**good, "id": "X:2", "meta": meta, **node}]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        path.write_text(json.dumps({"graphs": [{"nodes": nodes, "edges": edges}]}))
        with suppress(SapbertError):
            concepts, _ = read(path, "obographs", on_error=on_error)
            assert concepts
            assert all(concept.cui and concept.aliases for concept in concepts)


@pytest.mark.parametrize("name", ["x.nt", "x.rdf", "x.ttl.gz", "x.jsonld"])
def test_read_rdf_skos_is_the_same_in_each_syntax(name, tmp_path):
    syntax = {"nt": "N_TRIPLES", "rdf": "RDF_XML", "jsonld": "JSON_LD"}
    format = getattr(RdfFormat, syntax.get(name.split(".")[1], "TURTLE"))
    triples = [quad.triple for quad in parse(SKOS, RdfFormat.TURTLE)]
    data = serialize(triples, format=format)
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert guess_format(path) == "rdf"
    concepts, expected = read(path)[0], read(FOLDER / "rdf" / "skos.ttl")[0]
    for concept in (*concepts, *expected):  # the order of triples is that of names
        named = {
            language: {concept.aliases[place] for place in places}
            for language, places in concept.languages.items()
        }
        concept.languages, concept.aliases = named, sorted(concept.aliases)  # type: ignore[assignment]
    assert concepts == expected


def test_read_rdf_hostile_files_are_errors(tmp_path):
    bomb = '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;"><!ENTITY obo'
    file = '<!ENTITY c SYSTEM "file:///etc/passwd"><!ENTITY obo'
    for name, text, code in (
        ("x.owl", OWL.replace("<!ENTITY obo", bomb), "E150"),
        ("x.owl", OWL.replace("<!ENTITY obo", file), "E150"),
        ("x.owl", OWL.replace("<rdfs:label>fever", "<a>" * 10_000), "E007"),
        (
            "x.owl",
            OWL.replace("<rdfs:label>f", f"<!-- {'x' * (1 << 23)} --><a>f", 1),
            "E007",
        ),
        ("x.ttl", SKOS + "x:1 x:p " + "[ x:p " * 5000, "E150"),
        ("x.ttl", "secret words", "E150"),
    ):
        path = tmp_path / name
        path.write_text(text, "utf8")
        error = fail(path)
        assert error.startswith(f"[{code}]")
        assert "secret" not in error
    packed = tmp_path / "x.ttl.gz"
    packed.write_bytes(gzip.compress(b"a")[:-3])
    assert fail(packed).startswith("[E150]")
    error = fail(FOLDER / "rdf" / "orphanet.ttl", languages=["SPA"])
    assert "it has names in ENG" in error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "file", "count"),
    [
        ("obo", "uberon-craft.obo.gz", 13_080),
        # nodes of type CLASS that are not deprecated
        ("json", "doid-2018-07-05.json.gz", 14_943),
    ],
)
def test_read_ontologies_of_releases_every_concept(data_folder, ending, file, count):
    counts = {}
    for path in sorted((data_folder / "sources").glob(f"*.{ending}.gz")):
        concepts, report = read(path)
        counts[path.name] = len(concepts)
        assert report.concepts == len(concepts) > 0
        assert report.names == sum(len(concept.aliases) for concept in concepts)
    assert counts[file] == count


def test_read_owl_with_a_hundred_elements_in_each_other(tmp_path):
    path = tmp_path / "deep.owl"
    one = "<owl:Class><rdfs:subClassOf>{}</rdfs:subClassOf></owl:Class>"
    for inner, read_whole in (("", True), ("<rdfs:label>x</rdfs:label>", False)):
        nested = f"<owl:Class>{inner}</owl:Class>"
        for _ in range(49):
            nested = one.format(nested)
        path.write_text(OWL.replace("</rdf:RDF>", nested + "</rdf:RDF>"), "utf8")
        if read_whole:
            assert read(path)[0] == read(FOLDER / "rdf" / "ontology.owl")[0]
        else:
            assert "at most 100" in fail(path)


def write_list(folder: Path, members: int) -> Path:
    """An enumeration as the NCI Thesaurus has it: each member in the one before it."""
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    one = (
        f'<rdf:Description>\n<rdf:type rdf:resource="{rdf}List"/><rdf:first>a &lt; b'
        "</rdf:first>\n<rdf:rest>"
    )
    nested = one * members + f'<rdf:Description rdf:about="{rdf}nil"/>'
    nested += "</rdf:rest>\n</rdf:Description>" * members
    before = f"<owl:DataRange><owl:oneOf>{nested}</owl:oneOf></owl:DataRange>"
    path = folder / "list.owl"
    path.write_text(OWL.replace("<owl:Class", before + "<owl:Class", 1), "utf8")
    return path


@pytest.mark.parametrize("members", [1, 38, 39, 40, 5_000])
def test_read_owl_list_may_have_any_length(members, tmp_path):
    concepts, report = read(write_list(tmp_path, members))
    assert concepts == read(FOLDER / "rdf" / "ontology.owl")[0]
    assert report.dropped["members of long lists"] == max(members - 39, 0)


@pytest.mark.parametrize("size", [1, 3, 7, 64, 1000])
def test_read_owl_list_may_be_cut_at_any_byte(size, tmp_path, monkeypatch):
    path = write_list(tmp_path, 60)
    expected = read(path)
    monkeypatch.setattr(reading, "BLOCK_BYTES", size)
    assert read(path) == expected


def test_read_owl_synonym_property_that_is_not_there_is_an_error():
    path = FOLDER / "rdf" / "fma.owl"
    error = fail(path, synonym_property=["fma:synonyms"])
    assert error.startswith("[E105]")
    assert "The file has: http://purl.org/sig/ont/fma/synonym." in error


@pytest.mark.parametrize(
    ("name", "text", "syntax"),
    [
        *(
            ("x.ofn", "# by hand\nPrefix(:=<http://x/>)\nOntology()", "functional"),
            ("x.owl", "Ontology(<http://x/>\nDeclaration(Class(:A)))", "functional"),
            ("x.omn", "Prefix: : <http://x/>\nOntology: <http://x/>", "Manchester"),
            ("x.owx", '<Ontology xmlns="http://www.w3.org/2002/07/owl#">', "OWL/XML"),
        ),
        (
            "x.owl",
            '<?xml version="1.0"?>\n<!-- x -->\n<Ontology\n xmlns="http://a">',
            "OWL/XML",
        ),
    ],
)
def test_read_owl_of_another_syntax_names_it_and_the_fix(name, text, syntax, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    error = fail(path)
    assert error.startswith(f"[E110] {path}: ")
    assert syntax in error
    assert f"`robot convert --input {name} --output x.rdf.owl`" in error


@pytest.mark.parametrize("piece", ["<Ontology ", "<a ", "alternati", "#", "<RDF:"])
@pytest.mark.parametrize("name", ["x.owl", "x.ttl", "x.xml", "x.json"])
def test_beginning_of_any_file_is_read_in_the_time_of_its_length(name, piece, tmp_path):
    path = tmp_path / name
    path.write_text(piece * 30_000)
    assert fail(path)[:6] in ("[E106]", "[E110]", "[E117]", "[E150]")


def test_read_owl_property_with_a_long_name_takes_the_time_of_its_length(tmp_path):
    path = tmp_path / "x.nt"
    property = f"<http://x.example/{'alternati' * 50_000}>"
    text = '<http://x.example/X_1> {} "fever" .\n'
    label = "<http://www.w3.org/2004/02/skos/core#prefLabel>"
    skos = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    kind = "<http://www.w3.org/2004/02/skos/core#Concept>"
    path.write_text(
        text.format(property)
        + text.format(label)
        + f"<http://x.example/X_1> {skos} {kind} .\n"
    )
    assert read(path)[0][0].aliases == ["fever"]


def test_read_owl_may_be_turtle(tmp_path):
    path = tmp_path / "skos.owl"
    path.write_text(f"# a comment\n{SKOS}", "utf8")
    assert read(path)[0] == read(FOLDER / "rdf" / "skos.ttl")[0]
