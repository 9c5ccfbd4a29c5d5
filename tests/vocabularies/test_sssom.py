"""SSSOM: ids with namespaces. Who decided is in `answers` of the service."""

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies import sssom
from spacy_sapbert.vocabularies.reader_table import read_vocabulary


@pytest.mark.parametrize(
    ("id", "curie", "namespace"),
    [
        ("C0027051", "UMLS:C0027051", "https://uts.nlm.nih.gov/uts/umls/concept/"),
        ("MONDO:5148", "MONDO:5148", "http://purl.obolibrary.org/obo/MONDO_"),
        ("ICD10CM:E11.9", "ICD10CM:E11.9", "https://identifiers.org/icd10cm:"),
        ("my id", "concept:my%20id", sssom.OWN_ADDRESS),
        ("12:34", "concept:12:34", sssom.OWN_ADDRESS),
        ("no (1):x", "concept:no%20(1):x", sssom.OWN_ADDRESS),
    ],
)
def test_ids_become_curies_with_a_namespace(id, curie, namespace):
    prefix = curie.partition(":")[0]
    assert sssom.make_curie(id) == curie
    assert f'#  {prefix}: "{namespace}"' in sssom.list_head([], [curie], "digest")


@pytest.mark.parametrize(
    ("confidence", "least", "said"),
    [
        ("0.9", 0.5, "Dropped: 2 ids without a label. "),
        ("0.3", 0.5, r"Dropped: 1 mappings with a confidence below 0.5 \(--least-conf"),
        ("0.3", 0.3, "Dropped: 2 ids without a label. "),
        ("0.3", 1.1, "E331.*least-confidence from 0 to 1"),
    ],
)
def test_mappings_without_labels_are_said_to_have_none(
    tmp_path, confidence, least, said
):
    path = tmp_path / "a.sssom.tsv"
    path.write_text(
        "subject_id\tpredicate_id\tobject_id\tconfidence\n"
        f"A:1\tskos:exactMatch\tB:1\t{confidence}\n",
        "utf8",
    )
    with pytest.raises(SapbertError, match=said):
        [*read_vocabulary(path, least_confidence=least)]
