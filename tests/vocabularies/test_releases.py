"""What files say of their release and licence, from the reader to `kb info`."""

import json
from pathlib import Path

import pytest

from spacy_sapbert.linking.sources import SOURCES, find_licence
from spacy_sapbert.vocabularies.registry import read_vocabulary
from spacy_sapbert.vocabularies.releases import (
    SourceRelease,
    read_releases,
    releases_path,
)
from spacy_sapbert.vocabularies.report import Report
from tests.commands import invoke

OBO = """format-version: 1.2
data-version: hp/releases/2026-06-23
ontology: hp
property_value: terms:license "https://hpo.jax.org/license" xsd:string

[Term]
id: HP:0000001
name: All
data-version: 1999
"""
GRAPHS = {
    "graphs": [
        {
            "meta": {
                "basicPropertyValues": [
                    {"pred": "http://purl.org/dc/terms/license", "val": "CC0"},
                    {"pred": "http://x#versionInfo", "val": "2026-07-31"},
                    {"pred": "http://x#versionInfo", "val": 3},
                    "nothing",
                ]
            },
            "nodes": [
                {"id": "http://x/obo/DOID_1", "lbl": "Fever", "type": "CLASS"},
            ],
        }
    ]
}
RDF = """@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<http://x/obo/mondo.owl> a owl:Ontology ; owl:versionInfo "2026-08-04" ;
    dct:license <https://creativecommons.org/licenses/by/4.0/> .
<http://x/obo/MONDO_1> a owl:Class ; rdfs:label "Fever" .
"""
TABULAR = """<ICD10CM.tabular><version>2027</version><chapter><name>1</name>
<desc>Fevers (A00-A09)</desc><section id="A00-A09"><desc>Fevers (A00-A09)</desc>
<diag><name>A00</name><desc>Fever</desc></diag></section></chapter></ICD10CM.tabular>
"""
CLAML = """<ClaML version="2.0.0"><Title name="ICD-10-GM" version="2026" date="x"/>
<Class code="A00" kind="category"><Rubric kind="preferred">
<Label xml:lang="de">Fieber</Label></Rubric></Class></ClaML>
"""


def find_releases(path: Path) -> dict[str, tuple[str, str]]:
    report = Report()
    assert list(read_vocabulary(path, report=report))
    return report.releases


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("hp.obo", OBO, {"HP": ("2026-06-23", "https://hpo.jax.org/license")}),
        ("doid-2026.json", json.dumps(GRAPHS), {"DOID": ("2026-07-31", "CC0")}),
        (
            "any.ttl",
            RDF,
            {"MONDO": ("2026-08-04", "https://creativecommons.org/licenses/by/4.0/")},
        ),
        ("icd10cm_tabular.xml", TABULAR, {"ICD10CM": ("2027", "")}),
        ("icd10gm2026.xml", CLAML, {"ICD10GM": ("2026", "")}),
        ("x.jsonl", '{"cui": "X:1", "name": "Fever"}\n', {}),
    ],
)
def test_readers_find_release_and_licence(
    tmp_path: Path, name: str, text: str, expected: dict[str, tuple[str, str]]
) -> None:
    if name.endswith("ttl"):
        pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed")
    path = tmp_path / name
    path.write_text(text, "utf8")
    assert find_releases(path) == expected


def test_read_rrf_finds_the_sources_of_mrsab(tmp_path: Path) -> None:
    atom = "C0000001|ENG|P||PF||Y|A1||||MSH|MH|D1|Fever|0|N||\n"
    (tmp_path / "MRCONSO.RRF").write_text(atom, "utf8")
    rows = [
        "C1|C2|MSH2026|MSH|MeSH|MSH|2026||||||0|0|||||||UTF-8|Y|Y|MSH|x|",
        "C1|C2|SNOMEDCT_US_2026|SNOMEDCT_US|SNOMED|S|2026_03||||||x|9|||||||U|Y|Y|S|x|",
        "C1|C2|MSH2020|MSH|MeSH|MSH|2020||||||0|0|||||||UTF-8|N|Y|MSH|x|",
    ]
    fixed = []
    for row in rows:
        fields = row.split("|")[:-1]
        fixed.append("|".join(fields) + "|")
        assert len(fields) == 25
    (tmp_path / "MRSAB.RRF").write_text("\n".join(fixed) + "\n", "utf8")
    assert find_releases(tmp_path) == {
        "MSH": ("2026", "UMLS restriction category 0"),
        "SNOMEDCT_US": ("2026_03", "UMLS restriction category 9"),
        "UMLS": ("", ""),
    }


def test_releases_are_beside_the_concepts_and_only_count_for_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "hp.obo").write_text(OBO, "utf8")
    output = tmp_path / "concepts.jsonl"
    words = ["concepts", str(tmp_path / "hp.obo"), "-o", str(output), "--quiet"]
    invoke(*words, code=0)
    known = read_releases(output)
    licence = "https://hpo.jax.org/license"
    assert known == {"HP": SourceRelease(release="2026-06-23", licence=licence)}
    output.write_text(output.read_text("utf8").replace("All", "Everything"), "utf8")
    assert read_releases(output) == {}
    releases_path(output).write_text("{", "utf8")
    assert read_releases(output) == {}
    (tmp_path / "x.jsonl").write_text('{"cui": "X:1", "name": "Fever"}\n', "utf8")
    words[1] = str(tmp_path / "x.jsonl")
    invoke(*words, "--force", code=0)
    assert not releases_path(output).exists()


def test_find_licence_of_names_as_umls_and_the_readers_write_them() -> None:
    for source in (
        "SNOMEDCT_US",
        "SCTSPA",
        "MDRGER",
        "CPT",
        "CPT4",
        "LNC-ES-ES",
        "MTH",
    ):
        assert getattr(find_licence(source), "limit", ""), source
    for source in ("MSH", "HP", "HPO", "DOID", "mondo", "RXNORM", "ICD10CM", "GO"):
        assert getattr(find_licence(source), "limit", "?") == "", source
    assert find_licence("OWN") is None
    assert find_licence("ICD10") is not find_licence("ICD10CM")
    licences = [source.licence for source in SOURCES if source.licence]
    assert all(each.address.startswith("https://") for each in licences)
