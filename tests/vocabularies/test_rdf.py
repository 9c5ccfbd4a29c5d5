"""SKOS and OWL in three syntaxes."""

import gzip
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, parse, serialize

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.ontologies.rdf import id_of
from spacy_sapbert.vocabularies.registry import guess_format, read_vocabulary
from spacy_sapbert.vocabularies.report import Report
from tests.vocabularies import whole
from tests.vocabularies.whole import read_by_id as read

SKOS = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix x: <http://voc.example/c/> .
x:1 a skos:Concept ; skos:prefLabel "Blue fever"@en , "Blaues Fieber"@de ;
  skos:altLabel "azure fever"@en-GB ; skos:hiddenLabel "blu fevr" ;
  skos:broader x:2 ; skos:definition "A blue fever."@en ; skos:notation "B1" ;
  skos:exactMatch <http://purl.obolibrary.org/obo/DOID_77> ;
  skos:closeMatch <http://purl.obolibrary.org/obo/DOID_78> .
x:2 a skos:Concept ; skos:prefLabel "Fever"@en ; skos:narrower x:3 .
x:3 a skos:Concept ; skos:prefLabel "Red fever"@en .
x:scheme a skos:ConceptScheme ; skos:prefLabel "A scheme"@en .
"""
OWL = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [<!ENTITY obo "http://purl.obolibrary.org/obo/">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
  xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
  xmlns:owl="http://www.w3.org/2002/07/owl#" xmlns:obo="http://purl.obolibrary.org/obo/"
  xmlns:oio="http://www.geneontology.org/formats/oboInOwl#">
<owl:Class rdf:about="&obo;X_1"><rdfs:label>blue fever</rdfs:label>
  <oio:hasExactSynonym>azure fever</oio:hasExactSynonym>
  <oio:hasRelatedSynonym>blueness</oio:hasRelatedSynonym>
  <oio:hasDbXref>UMLS:C0000001</oio:hasDbXref>
  <oio:hasAlternativeId>X:8</oio:hasAlternativeId>
  <obo:IAO_0000115>A blue fever.</obo:IAO_0000115>
  <rdfs:subClassOf rdf:resource="&obo;X_2"/>
  <rdfs:subClassOf><owl:Restriction><owl:onProperty rdf:resource="&obo;RO_1"/>
    </owl:Restriction></rdfs:subClassOf>
</owl:Class>
<owl:Class rdf:about="&obo;X_2"><rdfs:label>fever</rdfs:label></owl:Class>
<owl:Class rdf:about="&obo;X_3"><rdfs:label>old fever</rdfs:label>
  <owl:deprecated>true</owl:deprecated><obo:IAO_0100001 rdf:resource="&obo;X_2"/>
</owl:Class>
<owl:ObjectProperty rdf:about="&obo;RO_1"><rdfs:label>has</rdfs:label>
</owl:ObjectProperty>
</rdf:RDF>
"""
OBO = "http://purl.obolibrary.org/obo/"
BLUE = "http://voc.example/c/1"


@pytest.mark.parametrize("name", ["x.ttl", "x.nt", "x.rdf", "x.ttl.gz", "x.jsonld"])
def test_read_rdf_skos_is_the_same_in_each_syntax(name: str, tmp_path: Path) -> None:
    syntax = {"nt": "N_TRIPLES", "rdf": "RDF_XML", "jsonld": "JSON_LD"}
    format = getattr(RdfFormat, syntax.get(name.split(".")[1], "TURTLE"))
    triples = (quad.triple for quad in parse(SKOS, RdfFormat.TURTLE))
    data = serialize(triples, format=format)
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert guess_format(path) == "rdf"
    concepts, _ = read(path)
    assert [*concepts] == [BLUE, BLUE[:-1] + "2", BLUE[:-1] + "3"]
    blue = concepts[BLUE]
    assert blue.name == "Blue fever"
    assert {*blue.aliases} == {"Blue fever", "Blaues Fieber", "azure fever"}
    places = {alias: place for place, alias in enumerate(blue.aliases)}
    assert blue.languages == {
        "ENG": sorted([places["Blue fever"], places["azure fever"]]),
        "GER": [places["Blaues Fieber"]],
    }
    assert blue.parents == [BLUE[:-1] + "2"]
    assert concepts[BLUE[:-1] + "3"].parents == [BLUE[:-1] + "2"]
    assert blue.definition == "A blue fever."
    assert blue.codes["DOID"] == ["77"]


def test_read_rdf_triples_without_blank_nodes(tmp_path: Path) -> None:
    path = tmp_path / "x.nt"
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    above = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    path.write_text(
        f'<{OBO}X_1> {label} "see <x> <y> _:z" .\n_:a {label} "nothing" .\n'
        f"<{OBO}X_1> {kind} <http://www.w3.org/2002/07/owl#Class> .\n"
        f"<{OBO}X_1> {above} _:a .\n"
    )
    concepts, _ = read(path)
    assert concepts["X:1"].aliases == ["see <x> <y> _:z"]
    assert concepts["X:1"].parents == []


def test_read_rdf_languages_are_kept_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "x.ttl"
    path.write_text(SKOS)
    concepts, _ = read(path, languages=["GER", "ENG"])
    assert concepts[BLUE].name == "Blaues Fieber"
    concepts, report = read(path, languages=["GER"])
    assert concepts[BLUE].aliases == ["Blaues Fieber"]
    assert report.dropped["names in other languages"] == 4
    assert not report.dropped["names without a letter or digit"]


def test_read_rdf_owl_has_the_options_of_other_ontologies(tmp_path: Path) -> None:
    path = tmp_path / "x.owl"
    path.write_text(OWL)
    concepts, report = read(path)
    assert concepts["X:1"] == Concept(
        "X:1",
        ["blue fever", "azure fever"],
        codes={"X": ["1"], "UMLS": ["C0000001"]},
        parents=["X:2"],
        definition="A blue fever.",
        retired=["X:8"],
        sources={"X": [0, 1]},
    )
    assert concepts["X:2"].retired == ["X:3"]
    assert report.dropped["obsolete terms"] == 1
    concepts, _ = read(path, ids="xref", scopes=["RELATED"])
    assert concepts["C0000001"].aliases == ["blue fever", "blueness"]


@pytest.mark.parametrize(
    ("iri", "id"),
    [
        ("http://purl.obolibrary.org/obo/DOID_8718", "DOID:8718"),
        ("http://www.orpha.net/ORDO/Orphanet_558", "Orphanet:558"),
        (
            "http://aims.fao.org/aos/agrovoc/c_12",
            "http://aims.fao.org/aos/agrovoc/c_12",
        ),
        ("http://voc.example/c/1", "http://voc.example/c/1"),
        ("http://a.example/v1/heart_attack", "http://a.example/v1/heart_attack"),
        ("http://ncicb.nci.nih.gov/xml/owl/EVS/Thesaurus.owl#C3262", "NCIT:C3262"),
        ("http://purl.obolibrary.org/obo/NCIT_C3262", "NCIT:C3262"),
        ("http://www.ebi.ac.uk/efo/EFO_0000408", "EFO:0000408"),
        ("http://example.org/onto#Heart", "http://example.org/onto#Heart"),
    ],
)
def test_id_of_shortens_iris_of_ontologies(iri: str, id: str) -> None:
    assert id_of(iri) == id


fail = partial(whole.fail, on_error="skip")


def test_read_rdf_hostile_files_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "x.owl"
    bomb = '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">'
    for declared in (bomb, '<!ENTITY c SYSTEM "file:///etc/passwd">'):
        path.write_text(OWL.replace("<!ENTITY obo", declared + "<!ENTITY obo"))
        assert fail(path).startswith("[E150]")
    # expat itself limits what one entity expands to
    many = f'<!ENTITY z "{"z" * (1 << 19)}"><!ENTITY obo'
    path.write_text(OWL.replace("<!ENTITY obo", many).replace("blueness", "&z;" * 300))
    assert fail(path).startswith("[E150]")
    path.write_text(OWL.replace("<rdfs:label>fever", "<a>" * 10_000))
    assert fail(path).startswith("[E007]")
    path.write_text(OWL.replace("<rdfs:label>f", f"<!-- {'x' * (1 << 23)} --><a>f", 1))
    assert fail(path).startswith("[E007]")
    path.write_text(OWL[:-20])
    assert fail(path).startswith("[E150]")
    turtle = tmp_path / "x.ttl"
    turtle.write_text(SKOS + "x:1 x:p " + "[ x:p " * 5000)
    assert fail(turtle).startswith("[E150]")
    turtle.write_text("secret words")
    assert "secret" not in fail(turtle)
    turtle.write_text("")
    assert fail(turtle).startswith("[E106]")
    packed = tmp_path / "x.ttl.gz"
    packed.write_bytes(gzip.compress(b"a")[:-3])
    assert fail(packed).startswith("[E150]")


@given(
    source=st.sampled_from([("x.ttl", SKOS), ("x.owl", OWL)]),
    place=st.floats(0, 1),
    extra=st.text(max_size=4)
    | st.sampled_from(["<", ">", '"', "[]", "<a>", "\0", "@en", "^^", "]]>", "\\u"]),
)
def test_read_rdf_any_damage_gives_concepts_or_a_sapbert_error(
    source: tuple[str, str], place: float, extra: str
) -> None:
    name, text = source
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        where = int(place * len(text))
        path.write_text(text[:where] + extra + text[where:], "utf8", "replace")
        with suppress(SapbertError):
            concepts, _ = read(path)
            assert all(each.aliases for each in concepts.values())


@pytest.mark.parametrize(
    ("languages", "definition"),
    [
        ([], "English."),
        (["SPA", "GER"], "Deutsch."),
        (["GER", "FRE"], "Deutsch."),
        (["FRE"], "Français, un."),
        (["SPA"], None),
    ],
)
def test_read_rdf_definition_is_the_first_in_the_preferred_language(
    languages: list[str], definition: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "x.ttl"
    path.write_text(
        """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<http://voc.example/c/1> a skos:Concept ; skos:prefLabel "Fever" ;
  skos:definition "Français, un."@fr , "Français, deux."@fr , "Deutsch."@de ,
  "English."@en .
""",
        "utf8",
    )
    (concept,) = read_vocabulary(path, report=Report(), languages=languages)
    assert concept.definition == definition


PREFIXES = """@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix oio: <http://www.geneontology.org/formats/oboInOwl#> .
@prefix obo: <http://purl.obolibrary.org/obo/> .
@prefix efo: <http://www.ebi.ac.uk/efo/> .
@prefix ordo: <http://www.orpha.net/ORDO/> .
@prefix nci: <http://ncicb.nci.nih.gov/xml/owl/EVS/Thesaurus.owl#> .
@prefix dct: <http://purl.org/dc/terms/> .
"""


def write_turtle(folder: Path, text: str) -> Path:
    path = folder / "x.ttl"
    path.write_text(PREFIXES + text, "utf8")
    return path


def test_read_rdf_iris_with_the_same_end_are_two_concepts(tmp_path: Path) -> None:
    path = write_turtle(
        tmp_path,
        """<http://a.example/v1/EX_1> a owl:Class ; rdfs:label "fever" .
<http://b.example/v2/EX_1> a owl:Class ; rdfs:label "cough" ;
  rdfs:subClassOf <http://a.example/v1/EX_1> .
<http://a.example/v1/EX_2> a owl:Class ; rdfs:label "pain" .
""",
    )
    concepts, _ = read(path)
    assert [*concepts] == [
        "EX:2",
        "http://a.example/v1/EX_1",
        "http://b.example/v2/EX_1",
    ]
    assert concepts["http://b.example/v2/EX_1"].parents == ["http://a.example/v1/EX_1"]


# The layout of ORDO: the rows of a class of its own, and axioms about its mappings.
ORDO = """ordo:Orphanet_1 a owl:Class ; rdfs:label "Blue fever"@en ;
  efo:alternative_term "Azure fever"@en ; efo:definition "A fever."@en ;
  skos:notation "ORPHA:1" ; ordo:Orphanet_C021 ordo:Orphanet_2 ;
  rdfs:subClassOf ordo:Orphanet_3 ;
  oio:hasDbXref "ICD-10:A01", "ICD-10:A02", "MeSH:D01", "OMIM:7", "UMLS:C0000001",
    "GARD:5" .
ordo:Orphanet_2 a owl:Class ; rdfs:label "Fevers"@en .
ordo:Orphanet_3 a owl:Class ; rdfs:label "Disease"@en .
ordo:Orphanet_4 a owl:Class ; rdfs:label "OBSOLETE: Blue fewer"@en ;
  owl:deprecated "true" ; rdfs:subClassOf [ a owl:Restriction ;
    owl:onProperty ordo:Orphanet_C056 ; owl:someValuesFrom ordo:Orphanet_1 ] .
ordo:Orphanet_5 a owl:Class ; rdfs:label "Red fever"@en ;
  rdfs:subClassOf [ a owl:Restriction ; owl:onProperty obo:BFO_0000050 ;
    owl:someValuesFrom ordo:Orphanet_2 ] .
[] a owl:Axiom ; owl:annotatedSource ordo:Orphanet_1 ;
  owl:annotatedProperty oio:hasDbXref ; owl:annotatedTarget "ICD-10:A01" ;
  obo:ECO_0000218 "NTBT (ORPHA code's Narrower Term maps to a Broader Term)"@en ,
    "Attributed (The ICD10 code is attributed by Orphanet)"@en .
[] a owl:Axiom ; owl:annotatedSource ordo:Orphanet_1 ;
  owl:annotatedProperty oio:hasDbXref ; owl:annotatedTarget "MeSH:D01" ;
  obo:ECO_0000218 "E (Exact mapping: the two concepts are equivalent)"@en .
[] a owl:Axiom ; owl:annotatedSource ordo:Orphanet_1 ;
  owl:annotatedProperty oio:hasDbXref ; owl:annotatedTarget "OMIM:7" ;
  obo:ECO_0000218 "BTNT (ORPHA code's Broader Term maps to a Narrower Term)"@en .
[] a owl:Axiom ; owl:annotatedSource ordo:Orphanet_1 ;
  owl:annotatedProperty oio:hasDbXref ; owl:annotatedTarget "UMLS:C0000001" ;
  obo:ECO_0000218 "W (incorrect mapping)"@en .
# An annotation of the annotation that says who attributed the code
[] a owl:Annotation ; owl:annotatedProperty obo:ECO_0000218 ;
  owl:annotatedTarget "Attributed (The ICD10 code is attributed by Orphanet)"@en ;
  obo:ECO_0000218 "NTBT (ORPHA code's Narrower Term maps to a Broader Term)"@en ;
  owl:annotatedSource [ a owl:Axiom ; owl:annotatedSource ordo:Orphanet_1 ;
    owl:annotatedProperty oio:hasDbXref ; owl:annotatedTarget "ICD-10:A02" ;
    obo:ECO_0000218 "Attributed (The ICD10 code is attributed by Orphanet)"@en ] .
"""


def test_read_rdf_of_orphanet(tmp_path: Path) -> None:
    concepts, report = read(write_turtle(tmp_path, ORDO))
    blue = concepts["Orphanet:1"]
    assert blue.aliases == ["Blue fever", "Azure fever"]
    assert blue.definition == "A fever."
    assert blue.parents == ["Orphanet:2", "Orphanet:3"]
    assert blue.retired == ["Orphanet:4"]
    # A broader, a narrower and a wrong code are not codes of the concept.
    assert blue.codes == {"Orphanet": ["1"], "MeSH": ["D01"], "GARD": ["5"]}
    assert blue.related_codes == {
        "broader": {"ICD-10": ["A01", "A02"]},
        "narrower": {"OMIM": ["7"]},
    }
    assert report.dropped["cross references that are wrong"] == 1
    assert concepts["Orphanet:5"].parents == ["Orphanet:2"]


def test_read_rdf_of_the_nci_thesaurus_and_of_descriptions(tmp_path: Path) -> None:
    path = write_turtle(
        tmp_path,
        """nci:C3262 a owl:Class ; rdfs:label "Neoplasm (code)" ; nci:P108 "Neoplasm" ;
  nci:P90 "Tumor" ; nci:P97 "A growth." .
<http://sio.example/SIO_000010> a owl:Class ; rdfs:label "organism"@en ;
  dct:description "A living thing."@en .
""",
    )
    concepts, _ = read(path)
    tumor = concepts["NCIT:C3262"]
    assert (tumor.name, tumor.definition) == ("Neoplasm", "A growth.")
    assert {*tumor.aliases} == {"Neoplasm", "Neoplasm (code)", "Tumor"}
    assert concepts["SIO:000010"].definition == "A living thing."


def test_read_rdf_hidden_labels_are_read_if_wanted(tmp_path: Path) -> None:
    path = tmp_path / "x.ttl"
    path.write_text(SKOS)
    concepts, report = read(path, scopes=["EXACT"])
    assert "blu fevr" not in concepts[BLUE].aliases
    assert report.dropped["synonyms of other scopes"] == 1
    concepts, _ = read(path, scopes=["EXACT", "HIDDEN"])
    assert "blu fevr" in concepts[BLUE].aliases


def test_read_rdf_counts_what_it_does_not_read(tmp_path: Path) -> None:
    path = write_turtle(
        tmp_path,
        """@prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
<http://x.example/1> a skos:Concept ; xl:prefLabel [ xl:literalForm "fever"@en ] ;
  skos:prefLabel "cough"@en ; skos:definition [ rdfs:label "a note" ] .
""",
    )
    _, report = read(path)
    assert report.dropped["labels of SKOS-XL"] == 1
    assert report.dropped["values that are nodes without an IRI"] == 1


def test_read_rdf_error_lists_the_languages_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.ttl"
    path.write_text(SKOS)
    assert "it has names in ENG, GER" in fail(path, languages=["SPA"])
