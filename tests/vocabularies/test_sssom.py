"""SSSOM: ids with namespaces. Who decided is in `answers` of the service."""

import pytest

from spacy_sapbert.vocabularies import sssom


@pytest.mark.parametrize(
    ("id", "curie", "namespace"),
    [
        ("C0027051", "UMLS:C0027051", "https://uts.nlm.nih.gov/uts/umls/concept/"),
        ("MONDO:5148", "MONDO:5148", "http://purl.obolibrary.org/obo/MONDO_"),
        ("ICD10CM:E11.9", "ICD10CM:E11.9", "https://identifiers.org/icd10cm:"),
        ("my id", "concept:my%20id", sssom.OWN_ADDRESS),
        ("no (1):x", "concept:no%20(1):x", sssom.OWN_ADDRESS),
    ],
)
def test_ids_become_curies_with_a_namespace(id, curie, namespace):
    prefix = curie.partition(":")[0]
    assert sssom.make_curie(id) == curie
    assert f'#  {prefix}: "{namespace}"' in sssom.list_head([curie], "digest")
