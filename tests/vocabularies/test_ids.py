import pytest

from spacy_sapbert.vocabularies.ids import id_key, rewrite_id


@pytest.mark.parametrize(
    ("id", "source", "key"),
    [
        ("mesh:D003924", "", "MESH:D003924"),
        ("D003924", "", "MESH:D003924"),
        ("D003924", "MSH", "MESH:D003924"),
        ("http://id.nlm.nih.gov/mesh/D003924", "", "MESH:D003924"),
        ("http://identifiers.org/mesh/D003924", "", "MESH:D003924"),
        ("C0011849", "", "UMLS:C0011849"),
        ("http://linkedlifedata.com/resource/umls/id/C0011849", "", "UMLS:C0011849"),
        ("C565588", "", "MESH:C565588"),  # one digit less than UMLS
        ("C8114", "NCI", "NCIT:C8114"),
        ("SNOMEDCT_US_2018_03_01:126853008", "", "SNOMEDCT:126853008"),
        ("http://purl.obolibrary.org/obo/DOID_1816", "", "DOID:1816"),
        ("https://omim.org/entry/613097", "", "OMIM:613097"),
        ("613097", "", "613097"),  # of OMIM, or of anything else
        ("E11.9", "ICD10CM", "ICD10CM:E11.9"),
        ("X:", "", "X:"),
        ("https://loinc.org/2-2", "LNC", "LOINC:2-2"),
        ("http://www.orpha.net/ORDO/Orphanet_79318", "", "ORPHA:79318"),
    ],
)
def test_id_key_is_equal_for_the_same_id(id, source, key):
    assert id_key(id, source) == key


@pytest.mark.parametrize(
    ("id", "like", "expected"),
    [
        ("C026098", "MESH:D000077287", "MESH:C026098"),
        ("MESH:C026098", "D000077287", "C026098"),
        ("C0000001", "C0000002", "C0000001"),
        ("OMIM:1", "MESH:D000077287", "OMIM:1"),
    ],
)
def test_rewrite_id_follows_another(id, like, expected):
    assert rewrite_id(id, like) == expected


@pytest.mark.parametrize("id", ["http://", "a://b/c/", "a://" + "b" * 5000 + "!"])
def test_id_key_of_a_strange_iri_is_a_text(id):
    assert isinstance(id_key(id), str)
