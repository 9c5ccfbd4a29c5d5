import pytest

from spacy_sapbert.vocabularies.ids import id_key


@pytest.mark.parametrize(
    ("id", "source", "key"),
    [
        ("mesh:D003924", "", "MESH:D003924"),
        ("D003924", "", "MESH:D003924"),
        ("D003924", "MSH", "MESH:D003924"),
        ("http://id.nlm.nih.gov/mesh/D003924", "", "MESH:D003924"),
        ("C0011849", "", "UMLS:C0011849"),
        ("http://linkedlifedata.com/resource/umls/id/C0011849", "", "UMLS:C0011849"),
        ("C565588", "", "MESH:C565588"),  # one digit less than UMLS
        ("SNOMEDCT_US_2018_03_01:126853008", "", "SNOMEDCT:126853008"),
        ("http://purl.obolibrary.org/obo/DOID_1816", "", "DOID:1816"),
        ("https://omim.org/entry/613097", "", "OMIM:613097"),
        ("613097", "", "613097"),  # of OMIM, or of anything else
        ("X:", "", "X:"),
        ("http://www.orpha.net/ORDO/Orphanet_79318", "", "ORPHA:79318"),
    ],
)
def test_id_key_is_equal_for_the_same_id(id, source, key):
    assert id_key(id, source) == key
